//! The command line.

use clap::{Args, Parser, Subcommand};
use std::time::Duration;

#[derive(Parser)]
#[command(about, version)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Makes orders that are paid, and to be shipped.
    Make(Make),
    /// Campaigns, and ships what is paid for as long as it leads; ends when nothing is left.
    Ship(Ship),
}

#[derive(Args)]
pub struct Make {
    /// Where the orders are: `mongodb://HOST/DATABASE`.
    #[arg(long)]
    pub shop: String,
    /// How many.
    #[arg(long, default_value_t = 1_000)]
    pub orders: i64,
}

#[derive(Args)]
pub struct Ship {
    /// Where the orders are, and the leases: `mongodb://HOST/DATABASE`.
    #[arg(long)]
    pub shop: String,
    /// The name of this candidate.
    #[arg(long)]
    pub candidate: String,
    /// The ttl of the lease.
    #[arg(long, default_value = "30s", value_parser = humantime::parse_duration)]
    pub ttl: Duration,
    /// Orders in one round trip.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(i64).range(1..=10_000))]
    pub batch: i64,
    /// Ends after so many batches.
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    pub batches: u64,
    /// How long it thinks between reading a batch and shipping it.
    #[arg(long, default_value = "0s", value_parser = humantime::parse_duration)]
    pub think: Duration,
    /// Leaves the fence out, to see what it is for.
    #[arg(long)]
    pub unfenced: bool,
}
