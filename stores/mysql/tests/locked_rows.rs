//! Rows that another transaction keeps locked: who waits for one, who does not, and of which moment the
//! decision is.
use crate::common::{
    Scratch, give_back, giving_back, name, proxied, renewal, request, row_locked, seconds, take,
};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, TxOpts};
use std::sync::Arc;
use std::time::Duration;
use tenure_conformance::wire::bounded;
use tenure_core::{
    Acquired, Certainty, Fault as StoreFault, Fence, FenceError, FencingToken, LeaseStore, Occupancy,
    Released, Renewed, ResourceName, Term,
};
use tenure_mysql::MysqlFence;
use tenure_testkit::Fault;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// What a row that somebody keeps locked holds up is its own lease alone, wherever it stands in a batch.
#[tokio::test]
async fn locked_row_of_mysql_holds_up_nothing_but_its_own_lease() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let mut batch = Vec::new();
    for label in ["one", "two", "three"] {
        let asked = request(label, "holder", seconds(60));
        let grant = take(&store, &asked).await;
        batch.push((renewal(&asked, grant.token), asked));
    }
    let renewals: Vec<_> = batch.iter().map(|(renewal, _)| renewal.clone()).collect();
    let mut client = scratch.client().await;
    let transaction = row_locked(&mut client, "two").await;
    let renewed = bounded("a batch", store.renew(&renewals)).await;
    let error = renewed[1].as_ref().unwrap_err();
    assert_eq!(
        (error.fault, error.certainty),
        (StoreFault::Busy, Certainty::NotApplied),
        "{error}"
    );
    for place in [0, 2] {
        assert!(
            matches!(renewed[place], Ok(Renewed::Extended { .. })),
            "{renewed:?}"
        );
    }
    let error = bounded("an acquisition", store.acquire(&batch[1].1))
        .await
        .unwrap_err();
    assert_eq!(
        (error.fault, error.certainty),
        (StoreFault::Busy, Certainty::NotApplied),
        "{error}"
    );
    // Whoever only finds that it is held needs no lock.
    let rival = store
        .acquire(&request("two", "rival", seconds(60)))
        .await
        .unwrap();
    assert!(matches!(rival, Acquired::Held(_)), "{rival:?}");
    // Nor does whoever wants another lease wait for it, in a table as small as this: who did would be told
    // that it is busy.
    assert!(take(&store, &batch[0].1).await.again);
    take(&store, &request("four", "holder", seconds(60))).await;
    transaction.rollback().await.unwrap();
    for renewed in store.renew(&renewals).await {
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    }
}

/// As an engine asks, for a tenth of the ttl: a lease that was taken after that would be nobody's for the
/// whole ttl.
#[tokio::test]
async fn acquisition_of_a_locked_row_of_mysql_is_told_that_it_is_busy_before_it_is_given_up() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let mut client = scratch.client().await;
    for round in 0..ROUNDS_MAX {
        // What was given up in an earlier round may take its lease when the row is free.
        let lease = format!("job-{round}");
        let [first, rival] = ["first", "rival"].map(|label| request(&lease, label, seconds(10)));
        let token = take(&store, &first).await.token;
        give_back(&store, &first, token).await;
        let request_time_max = first.ttl.duration() / 10;
        let transaction = row_locked(&mut client, &lease).await;
        let answer = timeout(request_time_max, store.acquire(&rival)).await;
        transaction.rollback().await.unwrap();
        let Ok(answer) = answer else {
            // On a machine that is too slow for it, once more.
            continue;
        };
        let error = answer.unwrap_err();
        assert_eq!(
            (error.fault, error.certainty),
            (StoreFault::Busy, Certainty::NotApplied),
            "{error}"
        );
        let lease = store.get(&first.name).await.unwrap().unwrap();
        assert_eq!((lease.token, lease.occupancy()), (token, Occupancy::Vacant));
        return;
    }
    panic!("each was given up, in {ROUNDS_MAX} rounds");
}

/// The decision is of the moment after the wait for the row: what has expired meanwhile is taken, and not
/// extended.
#[tokio::test]
async fn decision_is_of_the_moment_after_the_wait_for_the_row() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let (mut client, mut looker) = (scratch.client().await, scratch.client().await);
    let own = [client.id(), looker.id()];
    for round in 0..ROUNDS_MAX {
        let asked = |label| request(&format!("{label}-{round}"), "holder", seconds(60));
        let (again, renewed) = (asked("again"), asked("renewed"));
        let (first, second) = (take(&store, &again).await, take(&store, &renewed).await);
        let mut transaction = client.start_transaction(TxOpts::default()).await.unwrap();
        transaction
            .query_drop("SELECT 1 FROM tenure_leases FOR UPDATE")
            .await
            .unwrap();
        let renewals = [renewal(&renewed, second.token)];
        let (taken, extended, ()) = tokio::join!(store.acquire(&again), store.renew(&renewals), async {
            let both_wait = async {
                while sessions(&mut looker, &scratch, own).await.0 < 2 {
                    sleep(PAUSE).await;
                }
            };
            // One that was given up already is told as busy.
            drop(timeout(WAIT_MAX, both_wait).await);
            // From the begin of a procedure to its wait.
            sleep(Duration::from_millis(100)).await;
            let passes = "UPDATE tenure_leases SET expires_us = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
            transaction.query_drop(passes).await.unwrap();
            transaction.commit().await.unwrap();
        });
        let errors = [taken.as_ref().err(), extended[0].as_ref().err()];
        if errors
            .into_iter()
            .flatten()
            .any(|error| error.fault == StoreFault::Busy)
        {
            // On a machine where the wait was too long for it, once more.
            continue;
        }
        let Ok(Acquired::Granted(grant)) = taken else {
            panic!("{taken:?}")
        };
        assert!(!grant.again && grant.token > first.token, "{grant:?}");
        assert!(
            matches!(&extended[0], Ok(Renewed::Lost(Some(lease))) if lease.remaining.is_zero()),
            "{extended:?}"
        );
        return;
    }
    panic!("no wait was short enough in {ROUNDS_MAX} rounds");
}

/// Requests that hang on every other connection do not delay a renewal.
#[tokio::test]
async fn renewals_to_mysql_have_connections_of_their_own() {
    let scratch = Scratch::new().await;
    let store = Arc::new(scratch.store().await);
    let (stuck, held) = (
        request("stuck", "holder", seconds(60)),
        request("held", "holder", seconds(60)),
    );
    take(&*store, &stuck).await;
    let beat = [renewal(&held, take(&*store, &held).await.token)];
    let (mut client, mut looker) = (scratch.client().await, scratch.client().await);
    let own = [client.id(), looker.id()];
    let transaction = row_locked(&mut client, "stuck").await;
    for _round in 0..ROUNDS_MAX {
        let mut hanging = JoinSet::new();
        for _ in 0..2 * REQUEST_SESSIONS {
            let (store, stuck) = (Arc::clone(&store), stuck.clone());
            hanging.spawn(async move { store.acquire(&stuck).await });
        }
        let all_hang = async {
            while sessions(&mut looker, &scratch, own).await.0 < REQUEST_SESSIONS {
                sleep(PAUSE).await;
            }
        };
        drop(timeout(WAIT_MAX, all_hang).await);
        let renewed = store.renew(&beat).await.remove(0);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        // The server may show the renewal's statement for a moment after its answer.
        let own_one = async {
            while sessions(&mut looker, &scratch, own).await != (REQUEST_SESSIONS, REQUEST_SESSIONS + 1) {
                sleep(PAUSE).await;
            }
        };
        if timeout(WAIT_MAX, own_one).await.is_ok() {
            transaction.rollback().await.unwrap();
            return;
        }
        // The bound on a wait for a row has passed: on a slow machine, once more.
        hanging.join_all().await;
    }
    panic!("no renewal had a session of its own beside requests that hung, in {ROUNDS_MAX} rounds");
}

/// Claims that wait for an open transaction, as many as there are connections for them, keep no lease
/// waiting.
#[tokio::test]
async fn claims_of_mysql_that_wait_hold_up_no_lease() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let fence = MysqlFence::beside(&store);
    let (mut client, mut looker) = (scratch.client().await, scratch.client().await);
    let own = [client.id(), looker.id()];
    let old = Term::new(name("nightly"), FencingToken::new(5).unwrap());
    let resources: Vec<ResourceName> = (0..REQUEST_SESSIONS)
        .map(|number| ResourceName::new(format!("ledger/{number}")).unwrap())
        .collect();
    for resource in &resources {
        fence.claim(resource, &old).await.unwrap();
    }
    let mut transaction = client.start_transaction(TxOpts::default()).await.unwrap();
    for resource in &resources {
        fence.enter(&mut transaction, resource, &old).await.unwrap();
    }
    for round in 0..ROUNDS_MAX {
        let mut claims = JoinSet::new();
        for resource in &resources {
            let (fence, resource) = (fence.clone(), resource.clone());
            let new = Term::new(name("nightly"), FencingToken::new(6).unwrap());
            claims.spawn(async move { fence.claim(&resource, &new).await });
        }
        let all_wait = async {
            while sessions(&mut looker, &scratch, own).await.0 < REQUEST_SESSIONS {
                sleep(PAUSE).await;
            }
        };
        drop(timeout(WAIT_MAX, all_wait).await);
        let asked = request(&format!("job-{round}"), "holder", seconds(60));
        let grant = take(&store, &asked).await;
        let released = store.release(&[giving_back(&asked, grant.token)]).await.remove(0);
        assert_eq!(released, Ok(Released::Vacated));
        // On a machine where all that took as long as a claim may wait, once more.
        if claims.try_join_next().is_none() {
            transaction.rollback().await.unwrap();
            return;
        }
        claims.join_all().await;
    }
    panic!("every lease waited for a claim, in {ROUNDS_MAX} rounds");
}

/// As long as an answer takes to come, and the store still waits for it: then nothing of it is unknown.
#[tokio::test]
async fn claim_of_mysql_that_waits_in_vain_is_told_so_over_a_slow_connection_too() {
    let (proxy, scratch, store) = proxied().await;
    let fence = MysqlFence::beside(&store);
    let mut client = scratch.client().await;
    let resource = ResourceName::new("ledger").unwrap();
    let [old, new] = [5, 6].map(|token| Term::new(name("nightly"), FencingToken::new(token).unwrap()));
    fence.claim(&resource, &old).await.unwrap();
    let mut transaction = client.start_transaction(TxOpts::default()).await.unwrap();
    fence.enter(&mut transaction, &resource, &old).await.unwrap();
    for _round in 0..ROUNDS_MAX {
        // Just used, the connection is believed to be there.
        fence.claim(&resource, &old).await.unwrap();
        proxy.set(Fault::Delay {
            to_server: Duration::ZERO,
            to_client: Duration::from_millis(1_200),
        });
        let claimed = fence.claim(&resource, &new).await;
        proxy.heal();
        let Err(FenceError::Store(error)) = claimed else {
            panic!("{claimed:?}")
        };
        if error.fault == StoreFault::Busy {
            assert_eq!(error.certainty, Certainty::NotApplied, "{error}");
            return;
        }
        // A machine may be too slow for that, and MySQL looks only once a second who has waited long enough.
        assert_eq!(error.fault, StoreFault::TimedOut, "{error}");
    }
    panic!("each was given up, in {ROUNDS_MAX} rounds");
}

/// Sessions of the store: those that run an acquisition, and all. The test's own are no part of them.
async fn sessions(looker: &mut Conn, scratch: &Scratch, own: [u32; 2]) -> (i64, i64) {
    let [one, two] = own;
    let look = format!(
        "SELECT COALESCE(SUM(INFO IS NOT NULL), 0), COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = '{}' AND ID NOT IN \
         ({one}, {two})",
        scratch.database
    );
    looker.query_first(look).await.unwrap().unwrap()
}

/// Of one store, for everything but renewals and watches.
const REQUEST_SESSIONS: i64 = 6;

/// How often a machine may be too slow for what a test must meet.
const ROUNDS_MAX: u32 = 5;

const PAUSE: Duration = Duration::from_millis(10);

/// Longer than a request waits for a row.
const WAIT_MAX: Duration = Duration::from_secs(3);
