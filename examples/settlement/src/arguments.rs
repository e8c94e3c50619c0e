//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Settles a file of payments exactly once, on one of several instances.
#[derive(Parser, Debug)]
#[command(version, arg_required_else_help = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do. Exit codes: 0, it holds; 1, it does not; 2, it could not be done.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Write a file of payments; the same seed gives the same file
    Generate(GenerateOptions),
    /// Run one instance: wait for leadership, settle, end when every payment is settled
    Run(RunOptions),
    /// Check a ledger against the file of payments
    Verify(VerifyOptions),
    /// Run three instances, do them harm, and check what they leave
    Drill(DrillOptions),
}

/// Options of `generate`.
#[derive(Args, Debug)]
pub struct GenerateOptions {
    /// How many payments
    #[arg(long, default_value_t = 1_000_000)]
    pub payments: u64,
    /// What the payments are derived from
    #[arg(long, default_value_t = 7)]
    pub seed: u64,
    /// Where to write them
    #[arg(long, value_name = "PATH", default_value = "payments.csv")]
    pub file: PathBuf,
}

/// Options of `run`.
#[derive(Args, Debug)]
pub struct RunOptions {
    /// Where the leases are: sqlite:leases.db, or mongodb://host/database
    #[arg(long, value_name = "URL")]
    pub store: String,
    /// Where the ledger is: a path (SQLite), or mongodb://host/database
    #[arg(long, value_name = "PLACE")]
    pub ledger: String,
    /// The payments
    #[arg(long, value_name = "PATH", default_value = "payments.csv")]
    pub file: PathBuf,
    /// What to call this instance
    #[arg(long, value_name = "NAME")]
    pub instance: String,
    /// How long a lease lasts from its last renewal, such as 3s or 1500ms
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = duration)]
    pub ttl: Duration,
    /// Payments in one transaction
    #[arg(long, default_value_t = BATCH, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub batch: u64,
    /// Stop once before the first batch at or after this payment, until a line comes from standard input:
    /// the gap between asking for authority and writing, made long enough to freeze the process in it
    #[arg(long, value_name = "PAYMENT", value_delimiter = ',')]
    pub hold_at: Vec<u64>,
    /// Write without the fence, to see what it is for
    #[arg(long, hide = true)]
    pub unfenced: bool,
    /// End when the process that started this one ends
    #[arg(long, hide = true)]
    pub end_with_parent: bool,
}

/// Options of `verify`.
#[derive(Args, Debug)]
pub struct VerifyOptions {
    /// Where the ledger is: a path (SQLite), or mongodb://host/database
    #[arg(long, value_name = "PLACE")]
    pub ledger: String,
    /// The payments
    #[arg(long, value_name = "PATH", default_value = "payments.csv")]
    pub file: PathBuf,
    /// How to print the findings
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

/// Options of `drill`.
#[derive(Args, Debug)]
pub struct DrillOptions {
    /// What keeps the leases and the ledger
    #[arg(long, value_enum, default_value_t = LedgerKind::Sqlite)]
    pub ledger: LedgerKind,
    /// How many payments
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(10_000..=100_000_000))]
    pub payments: u64,
    /// What to do to the instances, in this order [default: kill,freeze, and stepdown with mongodb]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub faults: Vec<Fault>,
    /// What the payments, and the moment of a kill, are derived from
    #[arg(long, default_value_t = 7)]
    pub seed: u64,
    /// How long a lease lasts from its last renewal, such as 3s or 1500ms
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = duration)]
    pub ttl: Duration,
    /// Payments in one transaction
    #[arg(long, default_value_t = BATCH, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub batch: u64,
    /// How to print the summary
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Write without the fence, to see what it is for
    #[arg(long, hide = true)]
    pub unfenced: bool,
}

/// How to print.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// For people
    Text,
    /// For programs
    Json,
}

/// What keeps the leases and the ledger of a drill.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum LedgerKind {
    /// Two files in a scratch folder
    Sqlite,
    /// A replica set of three servers, started for the drill
    Mongodb,
}

/// What a drill does to its instances.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Nothing
    None,
    /// SIGKILL to the leader, in the midst of its batches
    Kill,
    /// SIGSTOP to the leader between asking for authority and writing, until another has led; then SIGCONT
    Freeze,
    /// replSetStepDown of the primary of the replica set, in the midst of the batches
    Stepdown,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Kill => "kill",
            Self::Freeze => "freeze",
            Self::Stepdown => "stepdown",
        })
    }
}

/// Payments in one transaction, if not told otherwise.
const BATCH: u64 = 5_000;

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("\"{text}\" is no duration; write it like 3s or 1500ms");
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, Duration::from_millis(1)),
        None => (text.strip_suffix('s').ok_or_else(wrong)?, Duration::from_secs(1)),
    };
    let number: u32 = number.parse().map_err(|_| wrong())?;
    Ok(unit * number)
}
