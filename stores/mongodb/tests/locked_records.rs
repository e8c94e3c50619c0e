//! Records that a transaction of somebody else's keeps locked.

use crate::common::{Scratch, giving_back, renewal, request, seconds, take, until_a_write_waits};
use crate::faults::proxied;
use mongodb::ClientSession;
use mongodb::bson::doc;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Certainty, Fault, LeaseStore, Occupancy, Released, Renew, Renewed};
use tenure_mongodb::MongoStore;
use tenure_testkit::{Fault as NetworkFault, ReplicaSet};

const LEASES: usize = 100;

async fn many(store: &MongoStore, ttl: u64) -> Vec<Renew> {
    let candidate = request("any", "holder", seconds(ttl)).candidate;
    let mut renewals = Vec::new();
    for number in 0..LEASES {
        let mut asked = request(&format!("job/{number:03}"), "holder", seconds(ttl));
        asked.candidate = candidate.clone();
        let grant = take(store, &asked).await;
        renewals.push(renewal(&asked, grant.token));
    }
    renewals
}

async fn locked(scratch: &Scratch, names: &[&str]) -> ClientSession {
    let leases = scratch.leases().await;
    let mut session = leases.client().start_session().await.expect("a session");
    session.start_transaction().await.expect("a transaction");
    leases
        .update_many(
            doc! { "_id": { "$in": names } },
            doc! { "$set": { "foreign": 1 } },
        )
        .session(&mut session)
        .await
        .expect("locks");
    session
}

fn failed<'a>(renewals: &'a [Renew], verdicts: &[Result<Renewed, tenure_core::StoreError>]) -> Vec<&'a str> {
    let failed = renewals.iter().zip(verdicts);
    failed
        .filter(|(_, verdict)| !matches!(verdict, Ok(Renewed::Extended { .. })))
        .map(|(renewal, _)| renewal.name.as_str())
        .collect()
}

/// Within a tenth of the ttl, as the engine waits no longer by default.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locked_records_of_a_batch_keep_no_other_lease_from_being_extended_in_time() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let store = scratch.store().await;
    let renewals = many(&store, 90).await;
    // One in the middle of the first statement, and so many in the second that not all of them go at the same
    // time.
    let mut names = vec!["job/010".to_owned()];
    names.extend((70..85).map(|number| format!("job/{number:03}")));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut session = locked(&scratch, &names).await;
    // What one call has not come to, the next one does, since it knows who keeps it waiting; on a loaded
    // machine one of the next.
    let mut verdicts = Vec::new();
    for _call in 0..6 {
        let renewing = tokio::time::timeout(Duration::from_secs(9), store.renew(&renewals));
        verdicts = renewing.await.expect("before nobody waits any more");
        if failed(&renewals, &verdicts) == names {
            break;
        }
    }
    assert_eq!(failed(&renewals, &verdicts), names, "{verdicts:?}");
    session.abort_transaction().await.expect("aborted");
    let verdicts = store.renew(&renewals).await;
    assert_eq!(failed(&renewals, &verdicts), Vec::<&str>::new(), "{verdicts:?}");
    let verdicts = store.renew(&renewals).await;
    assert_eq!(failed(&renewals, &verdicts), Vec::<&str>::new(), "{verdicts:?}");
}

/// What the server broke off once must not be hurried for ever: here each answer takes longer than a lone
/// renewal is given beside a batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_was_kept_waiting_once_is_extended_over_a_slow_connection() {
    let (proxy, scratch, store) = proxied().await;
    let (direct, candidate) = (
        scratch.store().await,
        request("any", "holder", seconds(10)).candidate,
    );
    let mut renewals = Vec::new();
    for name in ["first", "second"] {
        let mut asked = request(name, "holder", seconds(60));
        asked.candidate = candidate.clone();
        let grant = take(&direct, &asked).await;
        let mut renewing = renewal(&asked, grant.token);
        renewing.ttl = seconds(10);
        renewals.push(renewing);
    }
    let mut session = locked(&scratch, &["first", "second"]).await;
    let verdicts = store.renew(&renewals).await;
    assert_eq!(failed(&renewals, &verdicts), ["first", "second"], "{verdicts:?}");
    session.abort_transaction().await.expect("aborted");
    proxy.set(NetworkFault::Delay {
        to_server: Duration::ZERO,
        to_client: Duration::from_millis(700),
    });
    // A server that has not begun with one in half a second leaves it to the next call.
    let mut verdicts = Vec::new();
    for _call in 0..6 {
        verdicts = store.renew(&renewals).await;
        if failed(&renewals, &verdicts).is_empty() {
            break;
        }
    }
    assert_eq!(failed(&renewals, &verdicts), Vec::<&str>::new(), "{verdicts:?}");
}

/// By then who asked has given it up and has looked for what it took.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquisition_that_a_locked_record_kept_waiting_takes_nothing_after_its_time() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let store = Arc::new(scratch.store().await);
    let before = request("job", "before", seconds(24));
    let grant = take(store.as_ref(), &before).await;
    let released = store.release(&[giving_back(&before, grant.token)]).await;
    assert_eq!(released, [Ok(Released::Vacated)]);
    let mut session = locked(&scratch, &["job"]).await;
    let leases = scratch.leases().await;
    let (asking, asked) = (Arc::clone(&store), request("job", "late", seconds(24)));
    let asking = tokio::spawn(async move { asking.acquire(&asked).await });
    // One whose time was over before a look at it has waited all the same: it is told so.
    let waits = until_a_write_waits(&leases);
    let _seen = tokio::time::timeout(Duration::from_secs(2), waits).await;
    // Two seconds more than the server gives it, and one less than a request may take at all.
    tokio::time::sleep(Duration::from_secs(4)).await;
    session.abort_transaction().await.expect("aborted");
    let error = asking.await.expect("no panic").expect_err("it came too late");
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::TimedOut, Certainty::Unknown),
        "{error}"
    );
    let lease = store
        .get(&before.name)
        .await
        .expect("a read")
        .expect("the record");
    assert_eq!((lease.token, lease.occupancy()), (grant.token, Occupancy::Vacant));
}
