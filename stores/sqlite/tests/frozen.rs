//! What a process that is frozen, or killed, in the middle of a write means for the others.

use crate::common::child::{in_role, role};
use crate::common::{Asker, PATIENCE, Scratch, grant, held, name};
use std::time::{Duration, Instant};
use tenure_core::{Certainty, Fault, LeaseStore, Page, StoreError};
use tenure_testkit::{Process, Warnings};

/// Half a write of a lease, and then nothing: what SIGSTOP at the worst moment leaves.
#[test]
fn as_a_child() {
    let Some((role, file)) = role() else { return };
    let connection = rusqlite::Connection::open(&file).unwrap();
    // Whoever waits for the end of the write does not wait for a disk besides.
    connection.execute_batch("PRAGMA synchronous = OFF").unwrap();
    connection
        .execute_batch("BEGIN IMMEDIATE; UPDATE lease SET owner = 'half-done', token = token + 1000000")
        .unwrap();
    println!("in the middle of a write");
    while role != THAWS || !file.with_extension(THAWS).exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    connection.execute_batch("COMMIT").unwrap();
}

/// The role of one that ends its write when there is a file of that extension, which it sees when it goes on.
const THAWS: &str = "thaws";

fn frozen_writer(scratch: &Scratch) -> Process {
    frozen_writer_that("never ends", scratch)
}

fn frozen_writer_that(role: &str, scratch: &Scratch) -> Process {
    let writer = Process::spawn(in_role(module_path!(), role, &scratch.file())).unwrap();
    drop(
        writer
            .wait_for_line("in the middle of a write", PATIENCE)
            .unwrap(),
    );
    writer.freeze();
    writer
}

fn assert_says_who(error: &StoreError, scratch: &Scratch) {
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Busy, Certainty::NotApplied),
        "{error}"
    );
    for part in ["fuser -v", "kill -KILL", scratch.file().to_str().unwrap()] {
        assert!(error.message.contains(part), "{part} is not in: {error}");
    }
}

/// How often a thread serves others, at least, in one wait of two seconds; and how often such a wait is
/// begun.
const SERVED_LEAST: u32 = 20;
const WAITS_MAX: usize = 5;

#[tokio::test(flavor = "current_thread")]
async fn a_frozen_writer_stops_writes_within_a_bound_and_no_reads() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let asker = Asker::new("first");
    let first = grant(&store, &asker, "job").await;
    let writer = frozen_writer(&scratch);

    // Reads go on, and see nothing of the half-done write; so do those who would get nothing anyway.
    let lease = store.get(&name("job")).await.unwrap().unwrap();
    assert_eq!((lease.token, lease.holder.id.as_str()), (first.token, "first"));
    let page = Page::first("", 10);
    assert_eq!(store.list(&page).await.unwrap().leases.len(), 1);
    let lease = held(&store, &Asker::new("second"), "job").await;
    assert_eq!(lease.token, first.token);

    // Writes wait, end, and say who stands in the way. Meanwhile this very thread serves others.
    let request = asker.acquire("another");
    let mut served_in_each = Vec::new();
    while served_in_each.iter().all(|served| *served <= SERVED_LEAST) {
        // A machine that stands still keeps it from serving, too.
        assert!(
            served_in_each.len() < WAITS_MAX,
            "the thread was blocked: it served {served_in_each:?} times"
        );
        let began = Instant::now();
        let mut served = 0;
        let waiting = store.acquire(&request);
        let serving = async {
            loop {
                tokio::time::sleep(Duration::from_millis(10)).await;
                served += 1;
            }
        };
        let refused = tokio::select! {
            refused = waiting => refused.unwrap_err(),
            () = serving => unreachable!("it never ends"),
        };
        assert_says_who(&refused, &scratch);
        assert!(refused.message.contains("another"), "{refused}");
        assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
        served_in_each.push(served);
    }
    let renewed = store.renew(&[asker.renew("job", first.token)]).await;
    assert_says_who(renewed[0].as_ref().unwrap_err(), &scratch);
    let released = store.release(&[asker.release("job", first.token)]).await;
    assert_says_who(released[0].as_ref().unwrap_err(), &scratch);

    // The way out that the message names.
    writer.kill_tree();
    let second = grant(&store, &asker, "another").await;
    assert!(second.token.number() > 0);
    let released = store.release(&[asker.release("job", first.token)]).await;
    assert!(released[0].is_ok(), "the half-done write is gone: {released:?}");
    let third = grant(&store, &Asker::new("second"), "job").await;
    assert!(third.token > first.token);
    assert_eq!(third.predecessor.unwrap().candidate.as_str(), "first");
}

#[tokio::test]
async fn a_waiting_request_goes_through_when_the_writer_thaws_or_ends() {
    for role in [THAWS, "is killed"] {
        let scratch = Scratch::new();
        let store = scratch.open();
        let asker = Asker::new("first");
        let first = grant(&store, &asker, "job").await;
        let writer = frozen_writer_that(role, &scratch);
        let end = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            match role {
                THAWS => {
                    std::fs::write(scratch.file().with_extension(THAWS), "").unwrap();
                    writer.thaw();
                }
                _ => writer.kill_tree(),
            }
        };
        let (second, ()) = tokio::join!(grant(&store, &asker, "another"), end);
        assert_eq!(second.terms, 1);
        let (token, is_half_done) = scratch
            .raw()
            .query_row(
                "SELECT token, owner = 'half-done' FROM lease WHERE name = 'job'",
                [],
                |row| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?)),
            )
            .unwrap();
        let committed = token == first.token.signed() + 1_000_000;
        assert_eq!((committed, is_half_done), (role == THAWS, role == THAWS));
    }
}

#[tokio::test]
async fn a_dropped_request_leaves_nothing_locked() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let asker = Asker::new("first");
    let _first = grant(&store, &asker, "job").await;
    let writer = frozen_writer(&scratch);
    let request = asker.acquire("another");
    let began = Instant::now();
    let dropped = tokio::time::timeout(Duration::from_millis(100), store.acquire(&request)).await;
    // On a machine that stood still it has waited for as long as it may, and was refused.
    let was_refused = began.elapsed() >= Duration::from_secs(2) && matches!(dropped, Ok(Err(_)));
    assert!(dropped.is_err() || was_refused, "{dropped:?}");
    writer.kill_tree();
    let _granted = grant(&other, &Asker::new("second"), "another").await;
}

/// With a short ttl the engine waits but for a moment, and says of itself only that no answer came.
#[tokio::test]
async fn a_request_that_is_given_up_beside_a_frozen_writer_says_what_it_waited_for() {
    let warnings = Warnings::listen();
    let scratch = Scratch::new();
    let store = scratch.open();
    let asker = Asker::new("first");
    let first = grant(&store, &asker, "job").await;
    let _writer = frozen_writer(&scratch);
    let (renewals, another) = ([asker.renew("job", first.token)], asker.acquire("another"));
    let file = scratch.file();
    let about = || warnings.about(file.to_str().unwrap());
    let began = Instant::now();
    // A machine that stands still lets it wait for as long as it may, and it is told by its answer.
    let given_up = tokio::time::timeout(Duration::from_millis(300), store.renew(&renewals)).await;
    let told = about();
    match given_up {
        Err(_given_up) => assert_eq!(told.len(), 1, "{told:?}"),
        Ok(answers) => return assert_says_who(answers[0].as_ref().unwrap_err(), &scratch),
    }
    for part in ["lease \"job\"", "fuser -v", "kill -KILL", "given up"] {
        assert!(told[0].contains(part), "{part} is not in: {told:?}");
    }
    // What is asked again and again fills no log.
    let _given_up = tokio::time::timeout(Duration::from_millis(300), store.acquire(&another)).await;
    if began.elapsed() < Duration::from_secs(1) {
        assert_eq!(about(), told);
    }
}
