use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, Subcommand};

/// Tend the store itself.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = HELP)]
pub(crate) struct StoreArguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) deed: StoreDeed,
}

/// What to do with a store.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum StoreDeed {
    /// Make what the leases and fences need, or bring it up to date; what is there stays
    Init {
        /// Print the statements instead, for who wants to read them or has them run by somebody else
        #[arg(
            long,
            action = ArgAction::SetTrue,
            value_parser = BoolishValueParser::new(),
            env = "TENURE_INIT_PRINT",
            hide_env_values = true
        )]
        print: bool,
    },
}

const HELP: &str = "\
SQLite and MongoDB make what they need by themselves. PostgreSQL's schema, and MySQL's tables and procedures,
are made once, by their owner: who runs candidates needs no right to make tables. The members of a quorum of
Redis servers keep who they are by themselves; where one was exchanged on purpose, this has them keep it anew:
end all candidates first, and wait for the longest ttl.

Examples:
  tenure store init --store postgres://owner@db1/jobs      the database of the leases
  tenure store init --store postgres://owner@db2/bank      that of the data, for a fence beside them
  tenure store init --print --store postgres://db1/bank | psql -v ON_ERROR_STOP=1 bank
  tenure store init --print --store mysql://db1/bank | mysql bank
  tenure store init --store redis+quorum://r1,r2,r4";
