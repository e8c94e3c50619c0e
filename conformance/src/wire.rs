//! What every store at the other end of a connection is asked through a real proxy that loses and repeats its
//! requests: [`wire_suite!`](crate::wire_suite) makes the tests.

use crate::asking::{giving_back, renewal, request, seconds, take};
use std::any::Any;
use std::future::Future;
use std::time::Duration;
use tenure_core::{
    Certainty, Change, Fault as StoreFault, Interest, LeaseStore, Released, Renewed, Scope, WatchEvent,
};
use tenure_testkit::{Fault, FaultProxy, RequestFault, eventually, eventually_async};

/// A store's own bound on a request is 5 s; the rest is for a loaded machine.
pub const BOUND: Duration = Duration::from_secs(20);

/// A store behind a proxy, and the words by which the proxy knows its requests.
pub struct Wire {
    /// The store, connected through the proxy, which has renewed once.
    pub store: Box<dyn LeaseStore>,
    /// What stands between it and its server.
    pub proxy: FaultProxy,
    /// The command of an acquisition.
    pub acquire: &'static str,
    /// The commands of renewals: how many leases the batch has (1 or 2), and which command of it may be lost.
    pub renew: &'static [(usize, &'static str)],
    /// The command of a release.
    pub release: &'static str,
    /// What must live as long as the test.
    pub keep: Box<dyn Any + Send + Sync>,
}

/// Answers in bounded time, whatever happens.
///
/// # Panics
/// If it took longer than [`BOUND`].
pub async fn bounded<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(BOUND, work).await {
        Ok(answer) => answer,
        Err(_late) => panic!("{what} took more than {BOUND:?}"),
    }
}

/// For stores whose request is one round trip: an answer that is slow counts, and nothing is taken for lost;
/// one that comes after the store's own bound is told as unknown, and what it would have said stands.
/// `direct` is another store of the same leases, with nothing in between.
///
/// # Panics
/// If the store has the defect.
pub async fn delayed_answers_count_for_what_they_are(
    store: &dyn LeaseStore,
    proxy: &FaultProxy,
    direct: &dyn LeaseStore,
) {
    let asked = request("job", "holder", seconds(60));
    // Each connection is made before it is slow, as making one is many round trips.
    let first = take(store, &asked).await;
    let renewals = [renewal(&asked, first.token)];
    for (to_server, to_client) in [(SLOW, SLOW), (SLOW, Duration::ZERO)] {
        let renewed = store.renew(&renewals).await;
        assert!(matches!(renewed[0], Ok(Renewed::Extended { .. })), "{renewed:?}");
        let delayed = proxy.counts().delayed;
        proxy.set(Fault::Delay { to_server, to_client });
        let again = bounded("a slow acquisition", take(store, &asked)).await;
        assert!(again.again && again.token == first.token, "{again:?}");
        let renewed = bounded("a slow renewal", store.renew(&renewals)).await;
        assert!(matches!(renewed[0], Ok(Renewed::Extended { .. })), "{renewed:?}");
        assert!(proxy.counts().delayed > delayed, "the fault happened");
        proxy.heal();
    }
    for round in 0..ROUNDS_MAX {
        let late = request(&format!("late-{round}"), "holder", seconds(60));
        // Just used, the connections are believed to be there.
        let (_again, renewed) = tokio::join!(take(store, &asked), store.renew(&renewals));
        assert!(matches!(renewed[0], Ok(Renewed::Extended { .. })), "{renewed:?}");
        proxy.set(Fault::Delay {
            to_server: Duration::ZERO,
            to_client: BOUND,
        });
        let (lost, unheard) = tokio::join!(
            bounded("a late acquisition", store.acquire(&late)),
            bounded("a late renewal", store.renew(&renewals)),
        );
        let errors = [
            lost.expect_err("it comes too late"),
            unheard[0].clone().expect_err("it comes too late"),
        ];
        for error in &errors {
            assert_eq!(error.fault, StoreFault::TimedOut, "{error}");
        }
        if errors.iter().any(|error| error.certainty != Certainty::Unknown) {
            // On a machine so slow that a connection was asked first whether it is there, once more.
            proxy.heal();
            continue;
        }
        // It was applied, and whoever asks again finds its own.
        let written = direct.get(&late.name).await.expect("a read").expect("the record");
        proxy.heal();
        let grant = bounded("the next acquisition", take(store, &late)).await;
        assert_eq!((grant.token, grant.again), (written.token, true));
        return;
    }
    panic!("one was not sent, in each of {ROUNDS_MAX} rounds");
}

/// How often a machine may be too slow for what a case must meet.
const ROUNDS_MAX: u32 = 5;

/// Of a network that is slow, each way: an answer still comes within every bound, also of the question
/// whether a connection that was idle is there (a second).
const SLOW: Duration = Duration::from_millis(300);

/// For stores whose watch ends with its connection: that is told, whether it comes with a word or without
/// one, which is `when_silent`, and the next one hears.
///
/// # Panics
/// If the store has the defect.
pub async fn broken_watch_says_so_and_the_next_one_hears(
    store: &dyn LeaseStore,
    proxy: &FaultProxy,
    when_silent: StoreFault,
) {
    let scope = Scope::Prefix(String::new());
    for (fault, expected) in [
        (None, StoreFault::Unreachable),
        (Some(Fault::BlackHole), when_silent),
    ] {
        let mut watch = store.watch(&scope, Interest::Everything).await.expect("a watch");
        match fault {
            None => proxy.cut_connections(),
            Some(fault) => proxy.set(fault),
        }
        let error = bounded("the end of the watch", async {
            loop {
                if let Err(error) = watch.next().await {
                    return error;
                }
            }
        })
        .await;
        assert_eq!(error.fault, expected, "{error}");
        proxy.heal();
    }
    let mut watch = store.watch(&scope, Interest::Everything).await.expect("a watch");
    let asked = request("job", "holder", seconds(60));
    let grant = take(store, &asked).await;
    let released = store.release(&[giving_back(&asked, grant.token)]).await.remove(0);
    assert_eq!(released.expect("a release"), Released::Vacated);
    let told = bounded("the release", async {
        loop {
            let event = watch.next().await.expect("an event");
            if let WatchEvent::Changed {
                change: Change::Vacated,
                token,
                ..
            } = event
            {
                return token;
            }
        }
    });
    assert_eq!(told.await, Some(grant.token));
}

/// A lost reply is unknown, and the same attempt finds its own term.
///
/// # Panics
/// If the store has the defect; so do all below.
pub async fn lost_reply_of_an_acquisition_is_resolved_by_its_attempt(wire: Wire) {
    let store = &*wire.store;
    let asked = request("job", "holder", seconds(60));
    wire.proxy.next_commands(1, wire.acquire, RequestFault::CutAfter);
    let lost = bounded("the lost reply", store.acquire(&asked))
        .await
        .expect_err("the reply was lost");
    assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
    assert!(lost.message.contains("job"), "{lost}");
    assert_eq!(wire.proxy.counts().cut_after, 1, "the fault happened");
    let written = store
        .get(&asked.name)
        .await
        .expect("a read")
        .expect("it was applied all the same");
    let grant = take(store, &asked).await;
    assert_eq!((grant.token, grant.again, grant.terms), (written.token, true, 1));
}

/// A lost request is unknown, too, and leaves nothing.
pub async fn request_that_never_arrived_is_unknown_too_and_the_next_one_is_the_first(wire: Wire) {
    let asked = request("job", "holder", seconds(60));
    wire.proxy.next_commands(1, wire.acquire, RequestFault::CutBefore);
    let lost = bounded("the lost request", wire.store.acquire(&asked))
        .await
        .expect_err("the request was lost");
    assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
    let grant = take(&*wire.store, &asked).await;
    assert_eq!((grant.again, grant.terms), (false, 1));
}

/// The network repeats a request.
pub async fn request_that_arrives_twice_has_one_term(wire: Wire) {
    let asked = request("job", "holder", seconds(60));
    wire.proxy.next_commands(1, wire.acquire, RequestFault::Duplicate);
    let first = take(&*wire.store, &asked).await;
    assert_eq!(wire.proxy.counts().duplicated, 1, "the fault happened");
    let again = take(&*wire.store, &asked).await;
    assert_eq!((again.token, again.terms, again.again), (first.token, 1, true));
}

/// The network repeats an acquisition after the term was given back.
pub async fn late_duplicate_of_an_acquisition_revives_nothing(wire: Wire) {
    let asked = request("job", "holder", seconds(60));
    let late = RequestFault::DuplicateLater(Duration::from_secs(1));
    wire.proxy.next_commands(1, wire.acquire, late);
    let grant = take(&*wire.store, &asked).await;
    let released = wire.store.release(&[giving_back(&asked, grant.token)]).await;
    assert_eq!(released[0], Ok(Released::Vacated));
    eventually(Duration::from_secs(30), "the duplicate", || {
        wire.proxy.counts().duplicated == 1
    });
    let lease = wire.store.get(&asked.name).await.expect("a read");
    let lease = lease.expect("the record");
    assert!(lease.released, "a late duplicate took the lease again: {lease:?}");
}

/// The network repeats an acquisition and a release within the next term.
pub async fn late_duplicates_leave_the_next_term_alone(wire: Wire) {
    let asked = request("job", "holder", seconds(60));
    for command in [wire.acquire, wire.release] {
        let late = RequestFault::DuplicateLater(Duration::from_secs(1));
        wire.proxy.next_commands(1, command, late);
        if wire.acquire == wire.release {
            break;
        }
    }
    let grant = take(&*wire.store, &asked).await;
    if wire.acquire == wire.release {
        let late = RequestFault::DuplicateLater(Duration::from_secs(1));
        wire.proxy.next_commands(1, wire.release, late);
    }
    let released = wire.store.release(&[giving_back(&asked, grant.token)]).await;
    assert_eq!(released[0], Ok(Released::Vacated));
    let later = take(&*wire.store, &request("job", "next", seconds(60))).await;
    eventually(Duration::from_secs(30), "the duplicates", || {
        wire.proxy.counts().duplicated == 2
    });
    let lease = wire.store.get(&asked.name).await.expect("a read");
    let lease = lease.expect("the record");
    assert_eq!((lease.token, lease.released), (later.token, false), "{lease:?}");
}

/// Whether a renewal or a release whose reply was lost was applied is found by asking again.
pub async fn lost_replies_of_renewal_and_release_are_resolved_by_asking_again(wire: Wire) {
    let store = &*wire.store;
    let asked = request("job", "holder", seconds(60));
    let grant = take(store, &asked).await;
    let renewals = [
        renewal(&asked, grant.token),
        renewal(&request("none", "holder", seconds(60)), grant.token),
    ];
    for (size, command) in wire.renew {
        for fault in [RequestFault::CutBefore, RequestFault::CutAfter] {
            let batch = &renewals[..*size];
            wire.proxy.next_commands(1, command, fault);
            let lost = bounded("the lost reply", store.renew(batch)).await;
            assert_eq!(lost.len(), batch.len());
            let error = lost[0].as_ref().expect_err("the reply was lost");
            assert_eq!(error.certainty, Certainty::Unknown, "{error}");
            assert_eq!(wire.proxy.faults_left(), 0, "the fault of {command} happened");
            let again = store.renew(batch).await;
            assert!(matches!(again[0], Ok(Renewed::Extended { .. })), "{again:?}");
            assert!(
                again[1..].iter().all(|answer| *answer == Ok(Renewed::Lost(None))),
                "a term that never was is extended: {again:?}"
            );
        }
    }
    wire.proxy.next_commands(1, wire.release, RequestFault::CutAfter);
    let back = [giving_back(&asked, grant.token)];
    let lost = bounded("the lost reply", store.release(&back)).await;
    let error = lost[0].as_ref().expect_err("the reply was lost");
    assert_eq!(error.certainty, Certainty::Unknown, "{error}");
    assert_eq!(store.release(&back).await[0], Ok(Released::Vacated));
}

/// Whoever gives up while the connection is still being made has asked for nothing: sent when it is there, it
/// would take what nobody looks for any more.
pub async fn request_that_was_given_up_before_its_connection_was_there_is_never_sent(wire: Wire) {
    let store = &*wire.store;
    let asked = request("job", "holder", seconds(60));
    // First no connection is there any more: what is asked on one that is about to be cut may be applied.
    wire.proxy.set(Fault::Refuse);
    wire.proxy.cut_connections();
    let is_cut = || async { store.get(&asked.name).await.is_err() };
    eventually_async(BOUND, "the cut", is_cut).await;
    tokio::time::sleep(AWAY / 10).await;
    wire.proxy.set(Fault::Delay {
        to_server: Duration::ZERO,
        to_client: AWAY,
    });
    let waits = || async {
        // One may only notice that its connection was cut.
        let acquired = tokio::time::timeout(AWAY / 10, store.acquire(&asked)).await;
        assert!(!matches!(acquired, Ok(Ok(_))), "it need not wait: {acquired:?}");
        acquired.is_err()
    };
    eventually_async(BOUND, "a request that waits", waits).await;
    wire.proxy.heal();
    for _look in 0..2 {
        let read = eventually_async(BOUND, "an answer", || store.get(&asked.name)).await;
        assert_eq!(read, None, "it was sent");
        tokio::time::sleep(AWAY).await;
    }
}

/// How long a connection is away from whoever asks.
const AWAY: Duration = Duration::from_secs(1);

/// Makes a test of every case here. Takes an `async fn() -> Wire`, called once per test.
#[macro_export]
macro_rules! wire_suite {
    ($setup:expr) => {
        $crate::wire_suite! { [$setup]
            lost_reply_of_an_acquisition_is_resolved_by_its_attempt
            request_that_never_arrived_is_unknown_too_and_the_next_one_is_the_first
            request_that_arrives_twice_has_one_term
            late_duplicate_of_an_acquisition_revives_nothing
            late_duplicates_leave_the_next_term_alone
            lost_replies_of_renewal_and_release_are_resolved_by_asking_again
            request_that_was_given_up_before_its_connection_was_there_is_never_sent
        }
    };
    ([$setup:expr] $($name:ident)*) => {
        $(
            #[::tokio::test]
            async fn $name() {
                $crate::wire::$name($setup().await).await;
            }
        )*
    };
}
