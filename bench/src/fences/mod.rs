//! What the fences refuse, and what they cost.

mod contend;
mod cost;
mod frozen;
mod memory;
mod mongodb;
mod register;
mod sqlite;

pub use frozen::write_until_refused;
pub use register::Kind;

use self::mongodb::MongoRegister;
use self::sqlite::SqliteRegister;
use contend::contend;
use memory::MemoryRegister;
use register::{Register, judge_history};
use std::sync::Arc;
use tenure_testkit::{ReplicaSet, ScratchDir, Size};

/// Stale writes on every fence, by tasks that contend and by processes that were frozen, then what a fence costs.
pub async fn measure(kinds: &[Kind], stale_writes: u64, pauses: u32, rounds: u32) {
    let folder = ScratchDir::new("bench-fences");
    let set = ReplicaSet::start(Size::Three)
        .await
        .expect("three nodes of mongod");
    mongodb::end_frozen_transactions_soon(&set.uri()).await;
    for kind in Kind::ALL
        .into_iter()
        .filter(|kind| kinds.is_empty() || kinds.contains(kind))
    {
        let place = match kind {
            Kind::Watermark => folder.join("marks").display().to_string(),
            Kind::SqliteEnter | Kind::SqliteTable => {
                folder.join(format!("{kind:?}.db")).display().to_string()
            }
            Kind::MongoTransaction | Kind::MongoDocument => set.uri(),
        };
        let register = open(kind, &place).await;
        contend(kind, &register, stale_writes).await;
        if kind != Kind::Watermark {
            // Of a watermark, the process is frozen with all its writers.
            frozen::freeze_leaders(kind, &place, &register, pauses).await;
        }
        judge_history(&*register).await;
    }
    if rounds > 0 {
        cost::measure(&set.uri(), rounds).await;
    }
}

/// The register of a kind at a place.
async fn open(kind: Kind, place: &str) -> Arc<dyn Register> {
    match kind {
        Kind::Watermark => Arc::new(MemoryRegister::open(place)),
        Kind::SqliteEnter | Kind::SqliteTable => Arc::new(SqliteRegister::open(kind, place).await),
        Kind::MongoTransaction | Kind::MongoDocument => Arc::new(MongoRegister::open(kind, place).await),
    }
}
