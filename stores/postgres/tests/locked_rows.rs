//! Rows that another transaction keeps locked: who waits for one, who does not, and of which moment the
//! decision is.
use crate::announced::until_taken;
use crate::common::{Scratch, giving_back, name, renewal, request, seconds, take};
use crate::faults::proxied;
use std::sync::Arc;
use std::time::Duration;
use tenure_conformance::wire::bounded;
use tenure_core::{
    Acquire, Acquired, Certainty, Fault as StoreFault, Fence, FencingToken, Interest, LeaseStore, Occupancy,
    Released, Renew, Renewed, ResourceName, Scope, Term,
};
use tenure_postgres::{PostgresFence, PostgresStore};
use tenure_testkit::{Fault, in_one_of};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_postgres::Transaction;

/// What blocks the other connections, a row that somebody keeps locked, does not block renewals of other
/// leases.
#[tokio::test]
async fn locked_row_holds_up_nothing_but_its_own_lease() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let pair = pair();
    let renewals = announced(&store, &pair).await;
    let mut client = scratch.client().await;
    let transaction = client.transaction().await.unwrap();
    let lock = format!(
        "SELECT 1 FROM {}.leases WHERE name = 'one' FOR UPDATE",
        scratch.schema
    );
    transaction.execute(&lock, &[]).await.unwrap();
    let renewed = bounded("a batch", store.renew(&renewals)).await;
    let error = renewed[0].as_ref().unwrap_err();
    assert_eq!(
        (error.fault, error.certainty),
        (StoreFault::Busy, Certainty::NotApplied),
        "{error}"
    );
    assert!(matches!(renewed[1], Ok(Renewed::Extended { .. })), "{renewed:?}");
    let error = bounded("an acquisition", store.acquire(&pair[0]))
        .await
        .unwrap_err();
    assert_eq!(
        (error.fault, error.certainty),
        (StoreFault::Busy, Certainty::NotApplied),
        "{error}"
    );
    // Whoever only finds that it is held needs no lock.
    let rival = store
        .acquire(&request("one", "rival", seconds(60)))
        .await
        .unwrap();
    assert!(matches!(rival, Acquired::Held(_)), "{rival:?}");
    transaction.rollback().await.unwrap();
    assert!(matches!(
        store.renew(&renewals).await[0],
        Ok(Renewed::Extended { .. })
    ));
}

/// As a row is locked for a moment by who announces a term: what is free after the wait for another is
/// renewed no less.
#[tokio::test]
async fn row_that_is_let_go_while_another_stays_locked_is_renewed() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let pair = pair();
    let why = "the second row was not let go while the renewal waited for the first";
    in_one_of(ROUNDS_MAX, why, || {
        let_go_while_another_stays_locked(&scratch, &store, &pair)
    })
    .await;
}

async fn let_go_while_another_stays_locked(
    scratch: &Scratch,
    store: &PostgresStore,
    pair: &[Acquire; 2],
) -> bool {
    let renewals = announced(store, pair).await;
    let (mut stays, mut goes) = (scratch.client().await, scratch.client().await);
    let (stays, goes) = (
        stays.transaction().await.unwrap(),
        goes.transaction().await.unwrap(),
    );
    let lock = |name| {
        format!(
            "SELECT 1 FROM {}.leases WHERE name = '{name}' FOR UPDATE",
            scratch.schema
        )
    };
    stays.execute(&lock("one"), &[]).await.unwrap();
    goes.execute(&lock("two"), &[]).await.unwrap();
    let (renewed, is_in_time) = tokio::join!(bounded("a batch", store.renew(&renewals)), async {
        drop(timeout(WAIT_MAX, waited_for(&stays, 1)).await);
        goes.rollback().await.unwrap();
        waiting_for(&stays).await == 1
    });
    stays.rollback().await.unwrap();
    if is_in_time {
        let error = renewed[0].as_ref().unwrap_err();
        assert_eq!(error.fault, StoreFault::Busy, "{error}");
        assert!(matches!(renewed[1], Ok(Renewed::Extended { .. })), "{renewed:?}");
    }
    is_in_time
}

fn pair() -> [Acquire; 2] {
    ["one", "two"].map(|lease| request(lease, "holder", seconds(60)))
}

/// Takes both, or the same terms again, and answers their renewals when nobody locks the rows any more to
/// announce them.
async fn announced(store: &PostgresStore, pair: &[Acquire; 2]) -> [Renew; 2] {
    let scope = Scope::Prefix(String::new());
    let mut watch = store.watch(&scope, Interest::Everything).await.unwrap();
    let [one, two] = pair.each_ref().map(async |asked| {
        let token = take(store, asked).await.token;
        renewal(asked, token)
    });
    let renewals = [one.await, two.await];
    for _ in pair {
        until_taken(&mut watch).await;
    }
    renewals
}

/// Whoever waits for the row already is waited for first: both waits together are within the bound of a
/// request, so that what was refused is told as refused, and not as unknown.
#[tokio::test]
async fn request_that_waits_behind_another_for_a_locked_row_is_told_that_it_is_busy() {
    let (proxy, scratch, behind) = proxied().await;
    let first = scratch.store().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&first, &asked).await;
    let beat = [renewal(&asked, grant.token)];
    take(&behind, &asked).await;
    // Has the connection of the renewals be made before it is slow.
    assert!(matches!(
        behind.renew(&beat).await[0],
        Ok(Renewed::Extended { .. })
    ));
    let mut client = scratch.client().await;
    let transaction = client.transaction().await.unwrap();
    let lock = format!("SELECT 1 FROM {}.leases FOR UPDATE", scratch.schema);
    transaction.execute(&lock, &[]).await.unwrap();
    proxy.set(Fault::Delay {
        to_server: Duration::ZERO,
        to_client: Duration::from_millis(300),
    });
    // One that was given up already is told as busy, and whoever comes then is too.
    let first_waits = || timeout(WAIT_MAX, waited_for(&transaction, 1));
    let (ahead, late, renewed) = tokio::join!(
        first.acquire(&asked),
        async {
            drop(first_waits().await);
            behind.acquire(&asked).await
        },
        async {
            drop(first_waits().await);
            behind.renew(&beat).await.remove(0)
        },
    );
    for error in [ahead.unwrap_err(), late.unwrap_err(), renewed.unwrap_err()] {
        assert_eq!(
            (error.fault, error.certainty),
            (StoreFault::Busy, Certainty::NotApplied),
            "{error}"
        );
    }
}

/// As an engine asks, for a tenth of the ttl: a lease that was taken after that would be nobody's for the
/// whole ttl.
#[tokio::test]
async fn acquisition_of_a_locked_row_of_postgres_is_told_that_it_is_busy_before_it_is_given_up() {
    let scratch = Scratch::new().await;
    let (one, two) = (scratch.store().await, scratch.store().await);
    take(&two, &request("another", "holder", seconds(60))).await;
    let mut client = scratch.client().await;
    for round in 0..ROUNDS_MAX {
        // What was given up in an earlier round may take its lease when the row is free.
        let lease = format!("job-{round}");
        let [first, ahead, behind] =
            ["first", "ahead", "behind"].map(|label| request(&lease, label, seconds(10)));
        let token = take(&one, &first).await.token;
        let released = one.release(&[giving_back(&first, token)]).await.remove(0);
        assert_eq!(released, Ok(Released::Vacated));
        let request_time_max = first.ttl.duration() / 10;
        let transaction = client.transaction().await.unwrap();
        let lock = format!("SELECT 1 FROM {}.leases FOR UPDATE", scratch.schema);
        transaction.execute(&lock, &[]).await.unwrap();
        let answers = tokio::join!(
            timeout(request_time_max, one.acquire(&ahead)),
            timeout(request_time_max, two.acquire(&behind)),
        );
        transaction.rollback().await.unwrap();
        let (Ok(ahead), Ok(behind)) = answers else {
            // On a machine that is too slow for it, once more.
            continue;
        };
        for error in [ahead.unwrap_err(), behind.unwrap_err()] {
            assert_eq!(
                (error.fault, error.certainty),
                (StoreFault::Busy, Certainty::NotApplied),
                "{error}"
            );
        }
        let lease = one.get(&first.name).await.unwrap().unwrap();
        assert_eq!((lease.token, lease.occupancy()), (token, Occupancy::Vacant));
        return;
    }
    panic!("each was given up, in {ROUNDS_MAX} rounds");
}

/// The decision is of the moment after the wait for the row: what has expired meanwhile is not extended, and
/// what was renewed meanwhile is not taken, nor shown with more time than it has.
#[tokio::test]
async fn decision_of_postgres_is_of_the_moment_after_the_wait_for_the_row() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let mut client = scratch.client().await;
    for round in 0..ROUNDS_MAX {
        let asked = |label| request(&format!("{label}-{round}"), "holder", seconds(60));
        let (again, renewed, revived) = (asked("again"), asked("renewed"), asked("revived"));
        let first = take(&store, &again).await;
        let renewals = [renewal(&renewed, take(&store, &renewed).await.token)];
        // Has the connection of the renewals be made before the wait.
        assert!(matches!(
            store.renew(&renewals).await[0],
            Ok(Renewed::Extended { .. })
        ));
        let last = take(&store, &revived).await.token;
        store
            .release(&[giving_back(&revived, last)])
            .await
            .remove(0)
            .unwrap();
        let transaction = client.transaction().await.unwrap();
        let all = format!("SELECT 1 FROM {}.leases FOR UPDATE", scratch.schema);
        transaction.execute(&all, &[]).await.unwrap();
        let rival = request(revived.name.as_str(), "rival", seconds(60));
        let (taken, extended, found, ()) = tokio::join!(
            store.acquire(&again),
            store.renew(&renewals),
            store.acquire(&rival),
            passed_while_three_wait(&scratch, transaction)
        );
        if [
            taken.as_ref().err(),
            extended[0].as_ref().err(),
            found.as_ref().err(),
        ]
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
        let Ok(Acquired::Held(lease)) = found else {
            panic!("{found:?}")
        };
        assert!(lease.remaining <= Duration::from_secs(60), "{lease:?}");
        return;
    }
    panic!("no wait was short enough in {ROUNDS_MAX} rounds");
}

/// Lets all leases expire but the one that was given back, which is renewed, as soon as three requests wait
/// for their rows.
async fn passed_while_three_wait(scratch: &Scratch, transaction: Transaction<'_>) {
    // One that was given up already is told as busy.
    drop(timeout(WAIT_MAX, waited_for(&transaction, 3)).await);
    let passes = format!(
        "UPDATE {}.leases SET released_at = NULL, expires_at = clock_timestamp() \
         + CASE WHEN released_at IS NULL THEN interval '0' ELSE interval '60 s' END",
        scratch.schema
    );
    transaction.execute(&passes, &[]).await.unwrap();
    transaction.commit().await.unwrap();
}

/// Waits until so many others wait for what this transaction has locked.
pub async fn waited_for(transaction: &Transaction<'_>, count: i64) {
    while waiting_for(transaction).await < count {
        sleep(PAUSE).await;
    }
}

/// How many others wait for what this transaction has locked.
async fn waiting_for(transaction: &Transaction<'_>) -> i64 {
    let waiting =
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))";
    transaction.query_one(waiting, &[]).await.unwrap().get(0)
}

/// Requests that hang on every other connection do not delay a renewal.
#[tokio::test]
async fn renewals_to_postgres_have_a_connection_of_their_own() {
    let scratch = Scratch::new().await;
    let url = scratch.url(&format!("application_name={}", scratch.schema));
    let store = Arc::new(PostgresStore::connect(&url).await.unwrap());
    let (stuck, held) = (
        request("stuck", "holder", seconds(60)),
        request("held", "holder", seconds(60)),
    );
    take(&*store, &stuck).await;
    let beat = [renewal(&held, take(&*store, &held).await.token)];
    let (mut client, looker) = (scratch.client().await, scratch.client().await);
    let transaction = client.transaction().await.unwrap();
    let lock = format!(
        "SELECT 1 FROM {}.leases WHERE name = 'stuck' FOR UPDATE",
        scratch.schema
    );
    transaction.execute(&lock, &[]).await.unwrap();
    for _round in 0..ROUNDS_MAX {
        let mut hanging = JoinSet::new();
        for _ in 0..2 * REQUEST_SESSIONS {
            let (store, stuck) = (Arc::clone(&store), stuck.clone());
            hanging.spawn(async move { store.acquire(&stuck).await });
        }
        drop(timeout(WAIT_MAX, until_all_wait(&looker, &scratch.schema)).await);
        let renewed = store.renew(&beat).await.remove(0);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        let sessions = "SELECT count(*) FILTER (WHERE query LIKE '%.renew(%'), count(*) FILTER (WHERE query LIKE '%.take(%'), \
             count(*) FROM pg_stat_activity WHERE application_name = $1";
        // One listens. A session that has just been closed may be shown for a moment.
        let wanted = (1_i64, REQUEST_SESSIONS, REQUEST_SESSIONS + 2);
        let own_one = async {
            loop {
                let row = looker.query_one(sessions, &[&scratch.schema]).await.unwrap();
                if (row.get(0), row.get(1), row.get(2)) == wanted {
                    return;
                }
                sleep(PAUSE).await;
            }
        };
        if timeout(WAIT_MAX, own_one).await.is_ok() {
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
async fn claims_of_postgres_that_wait_hold_up_no_lease() {
    let scratch = Scratch::new().await;
    let url = scratch.url(&format!("application_name={}", scratch.schema));
    let store = PostgresStore::connect(&url).await.unwrap();
    let fence = PostgresFence::beside(&store);
    let (mut client, looker) = (scratch.client().await, scratch.client().await);
    let old = Term::new(name("nightly"), FencingToken::new(5).unwrap());
    let resources: Vec<ResourceName> = (0..REQUEST_SESSIONS)
        .map(|number| ResourceName::new(format!("ledger/{number}")).unwrap())
        .collect();
    let transaction = client.transaction().await.unwrap();
    for resource in &resources {
        fence.claim(resource, &old).await.unwrap();
        fence.enter(&transaction, resource, &old).await.unwrap();
    }
    for round in 0..ROUNDS_MAX {
        let mut claims = JoinSet::new();
        for resource in &resources {
            let (fence, resource) = (fence.clone(), resource.clone());
            let new = Term::new(name("nightly"), FencingToken::new(6).unwrap());
            claims.spawn(async move { fence.claim(&resource, &new).await });
        }
        drop(timeout(WAIT_MAX, until_all_wait(&looker, &scratch.schema)).await);
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

/// As many sessions of a store as there are for requests wait for locks.
async fn until_all_wait(looker: &tokio_postgres::Client, application: &str) {
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'";
    while looker
        .query_one(waiting, &[&application])
        .await
        .unwrap()
        .get::<_, i64>(0)
        < REQUEST_SESSIONS
    {
        sleep(PAUSE).await;
    }
}

/// Of one store, for everything but renewals and notifications.
const REQUEST_SESSIONS: i64 = 4;

/// How often a machine may be too slow for what a test must meet.
const ROUNDS_MAX: u32 = 5;

const PAUSE: Duration = Duration::from_millis(10);

/// Longer than a request waits for a row.
const WAIT_MAX: Duration = Duration::from_secs(3);
