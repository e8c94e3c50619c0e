//! What the fences refuse, and what they cost.

mod contend;
mod cost;
mod frozen;
mod memory;
mod mongodb;
mod register;
mod remote;
mod sqlite;
mod writer;

pub use register::Kind;
pub use writer::write_until_refused;

use self::mongodb::MongoRegister;
use self::sqlite::SqliteRegister;
use contend::contend;
use memory::MemoryRegister;
use register::{Register, judge_history};
use std::sync::Arc;
use tenure_testkit::{ReplicaSet, ScratchDir, Size};

/// How much is measured.
pub struct Extent {
    /// Stale writes of tasks that contend, on each fence.
    pub stale_writes: u64,
    /// Stale writes of leaders that were frozen, on each fence.
    pub frozen_writes: u64,
    /// Those leaders.
    pub pauses: u32,
    /// Writes whose cost is measured.
    pub rounds: u32,
}

/// Stale writes on every fence, by tasks that contend and by processes that were frozen, then what a fence costs.
pub async fn measure(kinds: &[Kind], extent: Extent) {
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
        contend(kind, &register, extent.stale_writes).await;
        let way = match kind {
            // Its file is this process's: the leaders come over a socket.
            Kind::Watermark => remote::serve(Arc::clone(&register)).await.to_string(),
            _ => place,
        };
        frozen::freeze_leaders(kind, &way, &register, extent.pauses, extent.frozen_writes).await;
        judge_history(&*register).await;
    }
    if extent.rounds > 0 {
        cost::measure(&set.uri(), extent.rounds).await;
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
