//! Beside a writer who commits and begins again at once: the lock is free for some microseconds between.

use crate::common::{Asker, PATIENCE, Scratch, grant, name};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tenure_core::{
    Claimed, Fault, Fence, FenceError, FencingToken, LeaseStore, Leases, Renewed, ResourceName, StoreError,
    Term,
};
use tenure_sqlite::SqliteFence;

/// How long each of the writer's transactions has the lock.
const HELD: Duration = Duration::from_millis(20);

/// Writes without a rest until it goes.
struct BusyWriter {
    committed: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BusyWriter {
    fn start(file: &Path) -> Self {
        let mut connection = Connection::open(file).unwrap();
        connection.busy_timeout(PATIENCE).unwrap();
        // It waits for no disk between two transactions.
        connection
            .execute_batch("PRAGMA synchronous = OFF; CREATE TABLE IF NOT EXISTS account (cents INTEGER)")
            .unwrap();
        let (committed, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (counted, over) = (Arc::clone(&committed), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !over.load(Ordering::SeqCst) {
                let transaction = connection
                    .transaction_with_behavior(TransactionBehavior::Immediate)
                    .unwrap();
                transaction.execute("INSERT INTO account VALUES (1)", []).unwrap();
                std::thread::sleep(HELD);
                transaction.commit().unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        let writer = Self {
            committed,
            is_over,
            thread: Some(thread),
        };
        let end = Instant::now() + PATIENCE;
        while writer.committed() < 2 {
            assert!(Instant::now() < end, "it does not write");
            std::thread::sleep(Duration::from_millis(1));
        }
        writer
    }

    fn committed(&self) -> u64 {
        self.committed.load(Ordering::SeqCst)
    }
}

impl Drop for BusyWriter {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        drop(self.thread.take().unwrap().join());
    }
}

/// How many requests come through one after the other, and how many of the writer's transactions pass
/// meanwhile, at most. Of those who only pause for a millisecond or two, each meets one gap in fifty.
const REQUESTS: usize = 8;
const TRANSACTIONS_MAX: u64 = 64;

/// How often that is tried: on a machine that stands still nobody is awake in the gaps.
const SCENARIOS: usize = 5;

fn is_busy(error: &StoreError) -> bool {
    error.fault == Fault::Busy
}

/// Demands that the requests come through among few of the writer's transactions, each once it is no longer
/// told that the file is busy.
async fn comes_through(writer: &BusyWriter, request: impl AsyncFn(u64) -> bool) {
    let mut passed = Vec::new();
    let mut numbers = 0..;
    for _ in 0..SCENARIOS {
        let before = writer.committed();
        for number in numbers.by_ref().take(REQUESTS) {
            let end = Instant::now() + PATIENCE;
            while !request(number).await {
                assert!(Instant::now() < end, "it never comes through");
            }
        }
        let meanwhile = writer.committed() - before;
        if meanwhile <= TRANSACTIONS_MAX {
            return;
        }
        passed.push(meanwhile);
    }
    panic!("each time {REQUESTS} requests had to wait for so many transactions: {passed:?}");
}

#[tokio::test]
async fn a_renewal_comes_through_beside_a_writer_who_begins_again_at_once() {
    let scratch = Scratch::in_memory();
    let (store, asker) = (scratch.open(), Asker::new("first").ttl_ms(3_600_000));
    let token = grant(&store, &asker, "job").await.token;
    let writer = BusyWriter::start(&scratch.file());
    let renewals = [asker.renew("job", token)];
    let renewed = async |_| match &store.renew(&renewals).await[..] {
        [Ok(Renewed::Extended { .. })] => true,
        [Err(error)] if is_busy(error) => false,
        other => panic!("{other:?}"),
    };
    comes_through(&writer, renewed).await;
}

/// It is the very writer whom the claim is to stop.
#[tokio::test]
async fn a_claim_comes_through_beside_an_older_writer_who_begins_again_at_once() {
    for journal in ["WAL", "DELETE"] {
        let scratch = Scratch::in_memory();
        let data = Connection::open(scratch.file()).unwrap();
        data.pragma_update(None, "journal_mode", journal).unwrap();
        SqliteFence::install(&data).unwrap();
        let fence = SqliteFence::new(scratch.file(), Leases::Here).unwrap();
        let ledger = ResourceName::new("ledger").unwrap();
        let writer = BusyWriter::start(&scratch.file());
        let claimed = async |number| {
            let term = Term::new(name("job"), FencingToken::new(number + 7).unwrap());
            match fence.claim(&ledger, &term).await {
                Ok(Claimed::Raised { .. }) => true,
                Err(FenceError::Store(error)) if is_busy(&error) => false,
                other => panic!("{other:?}"),
            }
        };
        comes_through(&writer, claimed).await;
    }
}
