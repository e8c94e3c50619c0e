//! What the fences refuse, and what they cost.

mod contend;
mod cost;
mod etcd;
mod frozen;
mod http;
mod kind;
mod memory;
mod mongodb;
mod mysql;
mod nats;
mod place;
mod postgres;
mod redis;
mod register;
mod remote;
mod sqlite;
mod writer;

pub use kind::Kind;
pub use writer::write_until_refused;

use crate::server::{self, Server};
use clap::ValueEnum as _;
use contend::contend;
use frozen::freeze_leaders;
use place::Place;
use register::{Superseded, judge_history};

/// How much is measured.
#[derive(Clone, Copy, clap::Args)]
pub struct Extent {
    /// As much as the README tells: 100,000 stale writes of either sort on each fence, 20 leaders.
    #[arg(long)]
    full: bool,
    /// Stale writes of tasks that contend, on each fence [default: 2000].
    #[arg(long)]
    stale_writes: Option<u64>,
    /// Stale writes of leaders that were frozen, on each fence [default: 300].
    #[arg(long)]
    frozen_writes: Option<u64>,
    /// Leaders that are frozen on each fence [default: 3].
    #[arg(long)]
    pauses: Option<u32>,
    /// Writes of each kind whose cost is measured, fenced and not; 0 leaves it out.
    #[arg(long, default_value_t = 600)]
    rounds: u32,
}

impl Extent {
    fn stale_writes(self) -> u64 {
        self.stale_writes
            .unwrap_or(if self.full { 100_000 } else { 2_000 })
    }

    fn frozen_writes(self) -> u64 {
        self.frozen_writes
            .unwrap_or(if self.full { 100_000 } else { 300 })
    }

    fn pauses(self) -> u32 {
        self.pauses.unwrap_or(if self.full { 20 } else { 3 })
    }
}

/// Stale writes on every fence, by tasks that contend and by processes that were frozen, then what a fence
/// costs.
pub async fn measure(kinds: &[Kind], extent: Extent) {
    let kinds = match kinds {
        [] => Kind::value_variants(),
        named => named,
    };
    for &kind in kinds {
        let place = Place::start(kind).await;
        println!("{}:", kind.name());
        if place.register.superseded() == Superseded::ByRead {
            println!(
                "  stale here: begun after a later term has claimed the number's document, not the resource alone"
            );
        }
        let last = contend(&place.register, extent.stale_writes()).await;
        freeze_leaders(kind, &place, last, extent.pauses(), extent.frozen_writes()).await;
        judge_history(&*place.register).await;
        let is_comparable = place.register.write_bare(0).is_some();
        drop(place);
        if is_comparable && extent.rounds > 0 {
            cost::of_a_write(kind, extent.rounds).await;
        }
    }
    if extent.rounds > 0
        && kinds
            .iter()
            .any(|kind| kind.server() == Some(server::Kind::Mongodb))
    {
        let set = Server::start(server::Kind::Mongodb).await;
        cost::on_mongodb(set.url(), extent.rounds).await;
    }
}
