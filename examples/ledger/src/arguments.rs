//! The command line.

use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Parser)]
#[command(about, version)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Serves a ledger in a file, behind the fence.
    Serve(Serve),
    /// Campaigns, and adds one to the balance for as long as it leads.
    Work(Work),
    /// Has contending clients write with stale tokens, and checks the recorded history.
    Storm(Storm),
}

#[derive(Args, Clone)]
pub struct Serve {
    /// The ledger's SQLite file; the fence's marks are kept beside it, in a file that ends with `.marks`.
    #[arg(long)]
    pub file: PathBuf,
    /// Where to listen; port 0 takes a free one and prints it.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// The lease that protects the balance.
    #[arg(long, default_value = "nightly-settlement")]
    pub lease: String,
    /// Waits up to this long, at random, between check and effect of each change.
    #[arg(long, default_value = "0s", value_parser = humantime::parse_duration)]
    pub dawdle: Duration,
    /// Leaves the fence out, to see what it is for.
    #[arg(long)]
    pub unfenced: bool,
}

#[derive(Args)]
pub struct Work {
    /// Where the leases are.
    #[arg(long)]
    pub store: String,
    /// The ledger's address, as `serve` prints it.
    #[arg(long)]
    pub service: String,
    /// The lease.
    #[arg(long, default_value = "nightly-settlement")]
    pub lease: String,
    /// The name of this candidate.
    #[arg(long)]
    pub candidate: String,
    /// The ttl of the lease.
    #[arg(long, default_value = "30s", value_parser = humantime::parse_duration)]
    pub ttl: Duration,
    /// How long to think between reading the balance and writing it.
    #[arg(long, default_value = "1s", value_parser = humantime::parse_duration)]
    pub think: Duration,
}

#[derive(Args)]
pub struct Storm {
    /// How many requests that are certainly stale are to be sent.
    #[arg(long, default_value_t = 100_000)]
    pub stale: u64,
    /// How many clients contend.
    #[arg(long, default_value_t = 64)]
    pub clients: u32,
    /// Seed of what they do.
    #[arg(long, default_value_t = 7)]
    pub seed: u64,
    /// Leaves the fence out: the check must fail.
    #[arg(long)]
    pub unfenced: bool,
}
