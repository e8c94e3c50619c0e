//! Prints every figure that Tenure publishes, each beside its target, measured on this machine in this run.
//!
//! ```text
//! cargo run --release -p tenure-bench -- store     # acquire + release against the same on the bare driver
//! cargo run --release -p tenure-bench -- requests  # what an idle standby and a leader cost
//! cargo run --release -p tenure-bench -- command   # start-up and memory of `tenure run`
//! cargo run --release -p tenure-bench -- failover  # after SIGKILL, and after a clean exit
//! cargo run --release -p tenure-bench -- fences    # stale writes on every fence, and the cost of a fence
//! cargo run --release -p tenure-bench -- http      # what the fence over HTTP costs
//! cargo run --release -p tenure-bench -- seeing    # what metrics and logs cost with a thousand leases
//! cargo run --release -p tenure-bench -- waiting   # what candidates that wait cost the server
//! cargo run --release -p tenure-bench -- soak      # no unforced change of leader under load
//! cargo run --release -p tenure-bench -- locks     # lock + release, hand-overs, many locks held
//! cargo run --release -p tenure-bench -- terms     # leader-terms under random faults, on every deployment
//! cargo run --release -p tenure-bench -- build     # a clean build of the command: time, crates, size
//! ```

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a bench that cannot measure may stop"
)]

mod build;
mod command;
mod contain;
mod counting;
mod ending;
mod failover;
mod fences;
mod figures;
mod http;
mod locks;
mod requests;
mod seeing;
mod server;
mod soak;
mod store;
mod terms;
mod turns;
mod waiting;

use clap::{Parser, Subcommand};
use server::Kind;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about, version)]
struct Arguments {
    #[command(subcommand)]
    figure: Figure,
}

#[derive(Subcommand)]
enum Figure {
    /// Acquire + release, p50 against the same operation written straight on the driver.
    Store {
        #[command(flatten)]
        rounds: store::Rounds,
    },
    /// Requests of an idle standby and of a leader, counted over so many ttls of 3 s.
    Requests {
        /// How many ttls to count.
        #[arg(long, default_value_t = 10)]
        ttls: u32,
    },
    /// What `tenure run … -- true` adds to `true`, and how much memory an idle candidate takes.
    Command {
        /// How many runs of each.
        #[arg(long, default_value_t = 50)]
        rounds: u32,
    },
    /// How soon the next job starts: after everything of the leader is killed, its supervisor alone, after a
    /// clean exit, and after a hand-over by name.
    Failover {
        #[command(flatten)]
        rounds: failover::Rounds,
        /// On which store.
        #[arg(long, value_enum, default_value = "sqlite")]
        store: Kind,
    },
    /// Leases lost by every cause, under work that forks, detaches, stops and ignores signals: does any of it
    /// meet its successor?
    Contain {
        /// How many leases.
        #[arg(long, default_value_t = 1000)]
        cycles: u32,
    },
    /// Requests a second to a service with and without the fence over HTTP.
    Http {
        /// How many turns of half a second each side gets.
        #[arg(long, default_value_t = 10)]
        turns: u32,
    },
    /// What candidates that wait cost the server while nothing happens.
    Waiting {
        /// On which store.
        #[arg(long, value_enum, default_value = "mysql")]
        store: Kind,
        /// How many.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
        standbys: u32,
        /// How long, in seconds.
        #[arg(long, default_value_t = 20)]
        seconds: u64,
    },
    /// What metrics and logs cost a process that holds many leases.
    Seeing {
        /// How they are held.
        #[arg(long, value_enum, default_value = "locks")]
        holder: seeing::Holder,
        /// How many.
        #[arg(long, default_value_t = 1000)]
        leases: u32,
        /// How long a process holds them in each turn.
        #[arg(long, default_value_t = 20)]
        seconds: u64,
        /// How many turns each way of looking gets.
        #[arg(long, default_value_t = 3)]
        turns: u32,
    },
    /// The process that `seeing` counts.
    #[command(hide = true)]
    HoldSeen {
        #[arg(long, value_enum)]
        holder: seeing::Holder,
        #[arg(long, value_enum)]
        eyes: seeing::Eyes,
        #[arg(long)]
        leases: u32,
        #[arg(long)]
        seconds: u64,
    },
    /// Changes of leader that nobody forced, while both cores are busy.
    Soak {
        /// How long, in seconds.
        #[arg(long, default_value_t = 600)]
        seconds: u64,
    },
    /// Locks: lock + release against the bare driver, hand-overs under contention, many held by one heart.
    Locks {
        #[command(subcommand)]
        figure: locks::Figure,
    },
    /// Stale writes on every fence, attempted by contending tasks and by frozen leaders; then what a fence
    /// costs.
    Fences {
        /// Only these fences; default: all.
        #[arg(long = "fence", value_enum)]
        kinds: Vec<fences::Kind>,
        #[command(flatten)]
        extent: fences::Extent,
    },
    /// The leader that `fences` freezes.
    #[command(hide = true)]
    FenceWriter {
        #[arg(long, value_enum)]
        kind: fences::Kind,
        #[arg(long)]
        address: String,
        #[arg(long)]
        token: u64,
        #[arg(long)]
        stale_writes: u64,
    },
    /// Leader-terms under random faults, on real servers: fails if any deployment is violated, or has shown
    /// nothing.
    Terms {
        /// How many terms on each.
        #[arg(long, default_value_t = 10_000)]
        terms: u64,
        /// Only these deployments; default: all, one after the other.
        #[arg(long = "deployment", value_enum)]
        deployments: Vec<terms::Deployment>,
    },
    /// The store that `terms` kills and freezes.
    #[command(hide = true)]
    TermsStore {
        #[arg(long)]
        file: PathBuf,
    },
    /// A clean release build of the command with its default features, in a folder of its own.
    Build,
}

#[tokio::main]
async fn main() -> ExitCode {
    match Arguments::parse().figure {
        Figure::Store { rounds } => store::measure(&rounds).await,
        Figure::Requests { ttls } => requests::measure(ttls).await,
        Figure::Command { rounds } => command::measure(rounds),
        Figure::Contain { cycles } => contain::measure(cycles),
        Figure::Failover { rounds, store } => failover::measure(&rounds, store).await,
        Figure::Http { turns } => http::measure(turns).await,
        Figure::Waiting {
            store,
            standbys,
            seconds,
        } => waiting::measure(store, standbys, seconds).await,
        Figure::Seeing {
            holder,
            leases,
            seconds,
            turns,
        } => seeing::measure(holder, leases, seconds, turns),
        Figure::HoldSeen {
            holder,
            eyes,
            leases,
            seconds,
        } => seeing::hold(holder, eyes, leases, seconds).await,
        Figure::Soak { seconds } => soak::measure(seconds).await,
        Figure::Locks { figure } => locks::measure(figure).await,
        Figure::Fences { kinds, extent } => fences::measure(&kinds, extent).await,
        Figure::FenceWriter {
            kind,
            address,
            token,
            stale_writes,
        } => fences::write_until_refused(kind, &address, token, stale_writes).await,
        Figure::Terms { terms, deployments } => return terms::measure(&deployments, terms).await,
        Figure::TermsStore { file } => terms::serve(&file).await,
        Figure::Build => build::measure(),
    }
    ExitCode::SUCCESS
}
