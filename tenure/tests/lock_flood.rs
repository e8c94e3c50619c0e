//! A manager that always has something else to do.

use crate::harness::{Site, long_lock_timing, soon};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tenure::LockManager;
use tokio::task::JoinSet;

/// Of one process, each with a lock of its own: so many that the manager always has another of their messages
/// to read.
const BUSY: u64 = 512;

/// So many may have theirs before whoever waits: what the release, the watch and the attempt take on a loaded
/// machine.
const TURNS_MAX: u64 = 2 * BUSY;

const RELEASES: u32 = 12;

/// Tasks that take locks of their own again and again, and how often they had one.
struct Flood {
    tasks: JoinSet<()>,
    over: Arc<AtomicBool>,
    turns: Arc<AtomicU64>,
}

impl Flood {
    fn over(manager: &Arc<LockManager>) -> Self {
        let mut flood = Self {
            tasks: JoinSet::new(),
            over: Arc::default(),
            turns: Arc::default(),
        };
        for number in 0..BUSY {
            let (manager, over, turns) = (manager.clone(), flood.over.clone(), flood.turns.clone());
            flood.tasks.spawn(async move {
                while !over.load(Ordering::SeqCst) {
                    let mut lock = manager.lock(format!("busy-{number}")).await.unwrap();
                    lock.release().await;
                    turns.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        flood
    }

    fn turns(&self) -> u64 {
        self.turns.load(Ordering::SeqCst)
    }

    async fn end(mut self) {
        self.over.store(true, Ordering::SeqCst);
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
    }
}

/// Nothing but the watch tells of such a release before the ttl is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_elsewhere_wakes_whoever_waits_in_a_process_that_is_busy_with_others() {
    let site = Site::in_memory();
    let manager = |candidate: &str| {
        let builder = LockManager::builder(site.store()).candidate(candidate);
        Arc::new(builder.timing(long_lock_timing()).build().unwrap())
    };
    let (busy, other) = (manager("busy"), manager("other"));
    let flood = Flood::over(&busy);
    for _ in 0..RELEASES {
        let mut held = soon("the lock elsewhere", other.lock("x")).await.unwrap();
        let (waits, seen) = (busy.clone(), flood.turns());
        let waiter = tokio::spawn(async move { waits.lock("x").await.map(drop) });
        // It has been told to wait, and watches.
        while flood.turns() < seen + 2 * BUSY {
            tokio::task::yield_now().await;
        }
        let before = flood.turns();
        held.release().await;
        soon("the lock here", waiter).await.unwrap().unwrap();
        let turns = flood.turns() - before;
        assert!(turns <= TURNS_MAX, "{turns} others had their turns meanwhile");
    }
    flood.end().await;
}
