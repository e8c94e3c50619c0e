use super::durations::duration;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use std::time::Duration;

/// Claim, check, show and raise the marks that keep old terms out of the data.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = HELP)]
pub(crate) struct FenceArguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) deed: FenceDeed,
}

/// Where the marks are.
#[derive(Args, Clone, Debug)]
pub(crate) struct FencePlaceArguments {
    /// Where the marks are: sqlite:PATH, postgres://HOST/DATABASE, mysql://HOST/DATABASE,
    /// mongodb://HOST/DATABASE, redis://HOST, etcd://HOST, nats://HOST/BUCKET, file:PATH [default: beside the
    /// leases]
    ///
    /// In the database of the data. Wherever it is, a mark protects only what enters it in the transaction
    /// that writes (SELECT tenure.enter(RESOURCE, LEASE, TOKEN) on PostgreSQL), or a guarded table: a claim
    /// alone refuses nobody. A password belongs into the environment variable, TENURE_FENCE, where `ps` does
    /// not show it.
    #[arg(
        long,
        env = "TENURE_FENCE",
        hide_env_values = true,
        value_name = "URL",
        // A script's variable that is not set would stand for marks that protect nothing by themselves.
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub(crate) fence: Option<String>,
}

/// Whose term it is.
#[derive(Args, Clone, Debug)]
pub(crate) struct TermArguments {
    /// What is protected: a ledger, a table, a bucket
    #[arg(value_name = "RESOURCE")]
    pub(crate) resource: String,

    /// Token of the term
    #[arg(long, env = "TENURE_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub(crate) token: Option<u64>,

    /// Lease of the term
    #[arg(
        long,
        env = "TENURE_NAME",
        hide_env_values = true,
        value_name = "NAME",
        default_value = ""
    )]
    pub(crate) lease: String,

    /// Where the marks are.
    #[command(flatten)]
    pub(crate) place: FencePlaceArguments,
}

/// What to do with a mark.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum FenceDeed {
    /// Raise the mark to the token of a term, before the term first reads what it will change
    #[command(after_help = OF_A_TERM)]
    Claim {
        /// Claim again for this time where the mark is kept by a transaction that an earlier term has left
        /// open, or the fence does not answer, such as 6h [default: one claim]
        ///
        /// A leader that died in its transaction leaves it open until the server hears of that. Without this,
        /// such a claim ends with 69.
        #[arg(long, env = "TENURE_CLAIM_WAIT", hide_env_values = true, value_name = "TIME", value_parser = duration)]
        wait: Option<Duration>,
        /// Whose.
        #[command(flatten)]
        term: TermArguments,
    },
    /// Ask whether a term still holds the mark
    #[command(after_help = OF_A_TERM)]
    Check(TermArguments),
    /// Show the marks: whose they are, which token, how many were refused
    Show {
        /// Only these resources [default: all]
        #[arg(value_name = "RESOURCE")]
        resources: Vec<String>,
        /// Where the marks are.
        #[command(flatten)]
        place: FencePlaceArguments,
    },
    /// Raise a mark above every token that may have been granted, after a restore: an operator's command
    Bump {
        /// What is protected
        #[arg(value_name = "RESOURCE")]
        resource: String,
        /// A token that the mark must be above, beside its own, the lease's and, unless tokens are counted,
        /// the clock
        ///
        /// A mark never goes down again. So more than a day above all of these is refused.
        #[arg(long, env = "TENURE_BUMP_ABOVE", hide_env_values = true, value_name = "TOKEN")]
        above: Option<u64>,
        /// Bind the resource to this lease from now on
        #[arg(long, env = "TENURE_BUMP_LEASE", hide_env_values = true, value_name = "NAME")]
        lease: Option<String>,
        /// Where the marks are.
        #[command(flatten)]
        place: FencePlaceArguments,
    },
    /// Make a table of SQLite, PostgreSQL or MySQL refuse whoever does not show the token that has claimed
    Guard {
        /// What is protected
        #[arg(value_name = "RESOURCE")]
        resource: String,
        /// Which table and column.
        #[command(flatten)]
        table: TableArguments,
    },
    /// Remove what `guard` has made
    Unguard {
        /// Which table and column.
        #[command(flatten)]
        table: TableArguments,
    },
}

/// A table of an SQLite file, or of a PostgreSQL or MySQL database.
#[derive(Args, Clone, Debug)]
pub(crate) struct TableArguments {
    /// The table
    #[arg(
        long,
        env = "TENURE_FENCE_TABLE",
        hide_env_values = true,
        value_name = "TABLE",
        value_parser = table_name
    )]
    pub(crate) table: String,
    /// The column that holds the token of the writer, an integer; PostgreSQL and MySQL need none
    #[arg(
        long,
        env = "TENURE_FENCE_COLUMN",
        hide_env_values = true,
        value_name = "COLUMN",
        default_value = "fence"
    )]
    pub(crate) column: String,
    /// Where the marks are: the file or the database of the table.
    #[command(flatten)]
    pub(crate) place: FencePlaceArguments,
}

/// What every message about it shows: no URL, which may hold a password.
fn table_name(text: &str) -> Result<String, String> {
    match text.contains("://") {
        true => Err("a table has no URL; name the database by --fence".to_owned()),
        false => Ok(text.to_owned()),
    }
}

const OF_A_TERM: &str = "\
Ends with 0 if the term is admitted, with 80 if a later term has claimed, with 81 if the term has not claimed, with 78 if
the token is of another lease, from the future, or no token. In a command of `tenure run`, token and lease are in its
environment, and need no option:

  tenure fence claim ledger --fence postgres://db2/bank && ./settle.sh";

const HELP: &str = "\
`claim` and `check` end with 0 if the term is admitted, with 80 if a later term has claimed, with 81 if the term has
not claimed, with 78 if the token is of another lease, from the future, or no token. `tenure run` gives its command
the token (TENURE_TOKEN) and the lease (TENURE_NAME).

Examples:
  tenure run nightly -- sh -c 'tenure fence claim ledger --fence postgres://db2/bank && ./settle.sh'
  tenure fence check ledger --token $TENURE_TOKEN || exit
  tenure fence show --fence sqlite:/var/lib/app/ledger.db
  tenure fence bump ledger --fence mongodb://db1,db2,db3/bank
        After a restore of the data or of the leases: no term from before it is admitted again. Name the leases' store too
        (--store): what it has granted counts, and the default store is not asked about a fence elsewhere.
  tenure fence guard ledger --table account --fence sqlite:/var/lib/app/ledger.db
        Whoever writes to the table without the current token in its column `fence` is refused.
  tenure fence guard ledger --table account --fence postgres://db1/bank
        Whoever writes to the table in a transaction that has not entered `ledger` is refused.";
