//! A disk that takes what is written and fails to keep it: what must survive a power cut is not confirmed.

use crate::common::{Asker, Scratch, grant};
use rusqlite::Connection;
use tenure_core::{
    Bump, Certainty, Fault, Fence, FenceError, FencingToken, LeaseName, LeaseStore, Leases, Released,
    Renewed, ResourceName, Term,
};
use tenure_sqlite::SqliteFence;
use tenure_testkit::on_a_disk_that_fails_to_sync;

fn run<Outcome>(work: impl Future<Output = Outcome>) -> Outcome {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

/// How long the log of the file is.
fn log_of(scratch: &Scratch) -> impl Fn() -> u64 + use<> {
    let log = scratch.file().with_extension("db-wal");
    move || std::fs::metadata(&log).unwrap().len()
}

#[test]
fn a_token_that_does_not_reach_the_disk_is_not_granted() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let asker = Asker::new("first");
    let held = run(grant(&store, &asker, "held"));
    on_a_disk_that_fails_to_sync(|| {
        run(async {
            let failed = store.acquire(&asker.acquire("job")).await.unwrap_err();
            assert_eq!(
                (failed.fault, failed.certainty),
                (Fault::Internal, Certainty::Unknown),
                "{failed}"
            );
            assert!(failed.message.contains("see the disk"), "{failed}");
            // What was written is not trusted any more, and cannot be written elsewhere either.
            let again = store.acquire(&asker.acquire("job")).await.unwrap_err();
            assert_eq!(
                (again.fault, again.certainty),
                (Fault::Internal, Certainty::NotApplied),
                "{again}"
            );
            // A power cut that took these away would end the boot as well, by whose clock they were written.
            let renewed = store.renew(&[asker.renew("held", held.token)]).await;
            assert!(
                matches!(renewed[..], [Ok(Renewed::Extended { .. })]),
                "{renewed:?}"
            );
            let released = store.release(&[asker.release("held", held.token)]).await;
            assert_eq!(released, [Ok(Released::Vacated)]);
        });
    });
    // A later sync that succeeds would not prove that what failed before is on the disk: the log begins anew.
    let length = log_of(&scratch);
    let before = length();
    for (asker, lease) in [
        (asker.clone().next_attempt(), "job"),
        (asker.next_attempt(), "held"),
    ] {
        let after = run(grant(&store, &asker, lease));
        assert!(after.token > held.token);
        assert!(length() < before, "{} bytes, {before} before", length());
    }
}

/// The thread that asks has a disk that fails, and the one of the store does not: so which of them has waited
/// shows.
#[test]
fn who_may_have_a_term_to_renew_does_not_wait_for_the_disk() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let asker = Asker::new("first");
    let held = run(async {
        let held = grant(&store, &asker, "held").await;
        // Later its thread would have the disk of the one that starts it.
        let other = grant(&store, &asker, "other").await;
        let released = store.release(&[asker.release("other", other.token)]).await;
        assert_eq!(released, [Ok(Released::Vacated)]);
        held
    });
    on_a_disk_that_fails_to_sync(|| {
        run(async {
            let job = grant(&store, &asker, "job").await;
            for (lease, token) in [("held", held.token), ("job", job.token)] {
                let released = store.release(&[asker.release(lease, token)]).await;
                assert_eq!(released, [Ok(Released::Vacated)]);
            }
            // Nothing is left that could be late, and a thread would cost more than a disk that is quick.
            let alone = store.acquire(&asker.clone().next_attempt().acquire("job")).await;
            alone.expect_err("it was waited for elsewhere");
        });
    });
}

#[test]
fn a_mark_that_does_not_reach_the_disk_is_not_claimed() {
    let scratch = Scratch::new();
    let connection = Connection::open(scratch.file()).unwrap();
    // The journal in which less than this would do without the disk.
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    SqliteFence::install(&connection).unwrap();
    // Data that is left to a later sync.
    connection.pragma_update(None, "synchronous", "NORMAL").unwrap();
    connection
        .execute_batch("CREATE TABLE data (value BLOB)")
        .unwrap();
    let fence = SqliteFence::new(scratch.file(), Leases::Here).unwrap();
    let resource = ResourceName::new("ledger").unwrap();
    let term = Term::new(LeaseName::new("nightly").unwrap(), FencingToken::new(7).unwrap());
    let (log, claim) = (log_of(&scratch), || run(fence.claim(&resource, &term)));
    let write = || connection.execute("INSERT INTO data VALUES (zeroblob(100000))", []);
    write().unwrap();
    let failed = on_a_disk_that_fails_to_sync(claim).unwrap_err();
    assert!(
        matches!(&failed, FenceError::Store(error) if error.certainty == Certainty::Unknown),
        "{failed}"
    );
    // What the disk may have lost with it stands before the next mark no more: the log begins anew.
    let before = log();
    run(fence.claim(&resource, &term)).unwrap();
    assert!(log() < before, "{} bytes, {before} before", log());
    run(fence.check(&resource, &term)).unwrap();
    // Once.
    write().unwrap();
    let before = log();
    let bump = Bump {
        resource: resource.clone(),
        lease: None,
        above: None,
    };
    run(fence.bump(&bump)).unwrap();
    assert!(log() >= before, "{} bytes, {before} before", log());
}
