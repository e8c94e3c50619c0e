//! What the store decides on a real replica set, beyond the suite of all stores.

use crate::common::{
    Scratch, giving_back, name, persist, raw, renewal, request, seconds, take, until_a_write_waits,
};
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::IndexOptions;
use mongodb::{Collection, IndexModel};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::{Acquired, Ask, Asked, LeaseStore, Released, Renewed, Ttl, Verdict};
use tenure_mongodb::MongoStore;
use tenure_testkit::{ReplicaSet, eventually_async, in_one_of};

async fn scratch() -> Scratch {
    Scratch::new(ReplicaSet::shared().await.uri())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_candidates_for_a_new_name_have_one_winner_and_no_error() {
    let scratch = scratch().await;
    let store = Arc::new(scratch.store().await);
    for round in 0..10 {
        let candidates = (0..16).map(|number| {
            let (store, request) = (
                Arc::clone(&store),
                request(
                    &format!("race/{round}"),
                    &format!("candidate-{number}"),
                    seconds(60),
                ),
            );
            tokio::spawn(async move { store.acquire(&request).await })
        });
        let candidates: Vec<_> = candidates.collect();
        let mut winners = 0;
        for candidate in candidates {
            match candidate.await.expect("no panic").expect("no error") {
                Acquired::Granted(_) => winners += 1,
                Acquired::Held(_) => {}
                Acquired::Superseded => panic!("superseded, with one attempt each"),
            }
        }
        assert_eq!(winners, 1, "round {round}");
    }
}

/// The clock shows whole milliseconds, and hides how much of this one is over: counted from its begin, a
/// lease would be given to another up to a millisecond before its ttl is over.
#[tokio::test]
async fn lease_of_mongodb_counts_from_the_end_of_the_millisecond_that_the_clock_shows() {
    let scratch = scratch().await;
    let store = scratch.store().await;
    let leases = scratch.leases().await;
    let asked = request("job", "a", seconds(60));
    let token = take(&store, &asked).await.token;
    assert_eq!(lasts_since(&leases, "acquiredAt").await, 60_001);
    let renewed = store.renew(&[renewal(&asked, token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    assert_eq!(lasts_since(&leases, "lastRenewedAt").await, 60_001);
}

/// How many milliseconds of the server's clock the lease lasts since then.
async fn lasts_since(leases: &Collection<Document>, field: &str) -> i64 {
    let record = raw(leases, "job").await.expect("a record");
    let moment = |field: &str| record.get_datetime(field).expect("a moment").timestamp_millis();
    moment("expiresAt") - moment(field)
}

/// As after the clock was set back, or on a primary with another one: no term takes a millisecond alone, so
/// that nothing else shows it.
#[tokio::test]
async fn token_of_mongodb_that_is_ahead_of_the_clock_is_followed_by_the_next_number() {
    let scratch = scratch().await;
    let store = scratch.store().await;
    let asked = request("job", "a", seconds(60));
    let token = take(&store, &asked).await.token;
    let released = store.release(&[giving_back(&asked, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    let ahead = token.signed() + 3_600_000;
    let changes = doc! { "$set": { "generation": ahead, "released.generation": ahead } };
    let changed = scratch
        .leases()
        .await
        .update_one(doc! { "_id": "job" }, changes)
        .await;
    assert_eq!(changed.expect("it may").modified_count, 1);
    // Of another process, which has not seen the record.
    let elsewhere = scratch.store().await;
    let next = take(&elsewhere, &request("job", "b", seconds(60))).await.token;
    assert_eq!(next.signed(), ahead + 1);
}

/// The TTL monitor of the server wakes every 60 s; a take-over that waited for it could not pass.
#[tokio::test]
async fn take_over_of_an_expired_lease_does_not_wait_for_any_clean_up() {
    let scratch = scratch().await;
    let store = scratch.store().await;
    // Makes the collection, for which the server has more time than for a short ttl.
    take(&store, &request("another", "first", seconds(60))).await;
    let first = request("job", "first", Ttl::from_millis(300).expect("a ttl"));
    let lost = persist(&store, &first).await;
    let began = Instant::now();
    let second = request("job", "second", seconds(60));
    let won = eventually_async(Duration::from_secs(30), "the take-over", || async {
        match store.acquire(&second).await {
            Ok(Acquired::Granted(grant)) => Ok(grant),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    assert!(won.token > lost.token);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[tokio::test]
async fn ttl_index_on_the_expiry_is_reported_with_its_repair() {
    let scratch = scratch().await;
    let leases = scratch.leases().await;
    let options = IndexOptions::builder()
        .expire_after(Duration::from_secs(3600))
        .name("stale".to_owned())
        .build();
    let index = IndexModel::builder()
        .keys(doc! { "expiresAt": 1 })
        .options(options)
        .build();
    leases.create_index(index).await.expect("the index");
    let store = scratch.store().await;
    let findings = store.examine().await.expect("an examination");
    let found = findings
        .iter()
        .find(|finding| finding.subject == "ttl index" && finding.verdict == Verdict::Bad)
        .unwrap_or_else(|| panic!("the index is not reported: {findings:?}"));
    assert_eq!(
        found.repair.as_deref(),
        Some("db.getCollection(\"job_leases\").dropIndex(\"stale\")")
    );
    assert!(found.detail.contains("expiresAt"), "{}", found.detail);
    leases.drop_index("stale").await.expect("the repair");
    let findings = store.examine().await.expect("an examination");
    assert!(
        findings.iter().all(|finding| finding.verdict != Verdict::Bad),
        "{findings:?}"
    );
}

#[tokio::test]
async fn token_rises_after_the_record_was_purged() {
    let scratch = scratch().await;
    let store = scratch.store().await;
    let first = request("job", "first", seconds(60));
    let before = take(&store, &first).await.token;
    scratch
        .leases()
        .await
        .delete_one(doc! { "_id": "job" })
        .await
        .expect("purged");
    let after = take(&store, &request("job", "second", seconds(60))).await;
    assert!(after.token > before);
    assert_eq!((after.terms, after.predecessor), (1, None));
}

#[tokio::test]
async fn purging_is_dated_far_beyond_the_last_activity_and_only_where_asked_for() {
    let scratch = scratch().await;
    let leases = scratch.leases().await;
    let store = MongoStore::connect(&scratch.url("purgeAfter=2d"))
        .await
        .expect("connects");
    let first = request("job", "first", seconds(60));
    let grant = take(&store, &first).await;
    let dated = |record: &Document| record.get_datetime("purgeAt").expect("a date").timestamp_millis();
    let record = raw(&leases, "job").await.expect("the record");
    let acquired = record
        .get_datetime("acquiredAt")
        .expect("a date")
        .timestamp_millis();
    assert_eq!(dated(&record) - acquired, 2 * 24 * 60 * 60 * 1000);
    // A long ttl counts ten times.
    let long = request("long", "first", Ttl::MAX);
    take(&store, &long).await;
    let record = raw(&leases, "long").await.expect("the record");
    let acquired = record
        .get_datetime("acquiredAt")
        .expect("a date")
        .timestamp_millis();
    assert_eq!(dated(&record) - acquired, 10 * 24 * 60 * 60 * 1000);
    // Also when it is given back.
    let token = tenure_core::FencingToken::from_signed(record.get_i64("generation").expect("a token"));
    let given_back = giving_back(&long, token.expect("a token"));
    assert_eq!(
        store.release(&[given_back]).await.remove(0),
        Ok(Released::Vacated)
    );
    let record = raw(&leases, "long").await.expect("the record");
    let ended = record
        .get_document("released")
        .and_then(|released| released.get_datetime("at"));
    let ended = ended.expect("a date").timestamp_millis();
    assert_eq!(dated(&record) - ended, 10 * 24 * 60 * 60 * 1000);
    // What is given back has ended, whatever was left of it.
    let expires = record.get_datetime("expiresAt").expect("a date");
    assert!(expires.timestamp_millis() <= ended, "{record}");
    // A store that purges nothing takes the date away: it must not end a term in use.
    let other = scratch.store().await;
    let renewed = other.renew(&[renewal(&first, grant.token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    assert_eq!(
        raw(&leases, "job").await.expect("the record").get("purgeAt"),
        Some(&Bson::Null)
    );
}

#[tokio::test]
async fn generation_ahead_of_the_clock_is_never_purged_before_the_clock_has_passed_it() {
    let scratch = scratch().await;
    let leases = scratch.leases().await;
    let store = MongoStore::connect(&scratch.url("purgeAfter=1d"))
        .await
        .expect("connects");
    let first = request("job", "first", seconds(60));
    let grant = take(&store, &first).await;
    let ahead = grant.token.signed() + 10 * 24 * 60 * 60 * 1000;
    let key = doc! { "_id": "job" };
    leases
        .update_one(key, doc! { "$set": { "generation": ahead } })
        .await
        .expect("set");
    let token = tenure_core::FencingToken::from_signed(ahead).expect("a token");
    let released = store.release(&[giving_back(&first, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    let record = raw(&leases, "job").await.expect("the record");
    let purge = record.get_datetime("purgeAt").expect("a date").timestamp_millis();
    assert_eq!(purge, ahead + 24 * 60 * 60 * 1000);
}

#[tokio::test]
async fn batch_of_a_thousand_is_renewed_with_a_verdict_each() {
    let scratch = scratch().await;
    let store = scratch.store().await;
    let mut renewals = Vec::new();
    for number in 0..50 {
        let asked = request(&format!("job/{number}"), "holder", seconds(60));
        let grant = take(&store, &asked).await;
        renewals.push(renewal(&asked, grant.token));
    }
    // Names that do not exist fill the batch.
    for number in 50..1000 {
        let asked = request(&format!("job/{number}"), "nobody", seconds(60));
        renewals.push(renewal(&asked, renewals[0].token));
    }
    let ask = Ask {
        name: name("job/7"),
        token: renewals[7].token,
    };
    assert_eq!(store.ask(&ask).await, Ok(Asked::Noted));
    // A machine that stalls leaves some of so many without an answer in time; asked again, they have the same
    // one.
    let verdicts = eventually_async(Duration::from_secs(90), "a verdict on each", || async {
        let verdicts = store.renew(&renewals).await;
        verdicts.into_iter().collect::<Result<Vec<_>, _>>()
    })
    .await;
    assert_eq!(verdicts.len(), 1000);
    for (number, verdict) in verdicts.iter().enumerate() {
        let wish = if number == 7 {
            tenure_core::Wish::StepDown
        } else {
            tenure_core::Wish::Nothing
        };
        let expected = match number < 50 {
            true => Renewed::Extended {
                ttl: seconds(60),
                wish,
            },
            false => Renewed::Lost(None),
        };
        assert_eq!(verdict, &expected, "lease {number}");
    }
}

#[tokio::test]
async fn collection_and_database_come_from_the_url() {
    let scratch = scratch().await;
    let store = MongoStore::connect(&scratch.url("collection=posts"))
        .await
        .expect("connects");
    take(&store, &request("job", "holder", seconds(60))).await;
    let posts = scratch
        .client()
        .await
        .database(&scratch.database)
        .collection("posts");
    assert!(raw(&posts, "job").await.is_some());
    let location = store.traits().location;
    assert!(
        location.ends_with(&format!("{}.posts", scratch.database)),
        "{location}"
    );
}

/// A transaction that somebody leaves open keeps the first statement of a batch waiting, and the server
/// judges the second by the clock at which the batch arrived.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delayed_batch_takes_back_nothing_of_a_later_renewal() {
    in_one_of(
        ROUNDS_MAX,
        "the time of each batch was over before the record that it waited for was free",
        delayed_batch_takes_back_nothing,
    )
    .await;
}

/// How often a batch's time may be over on a slow machine.
const ROUNDS_MAX: u32 = 3;

/// Not, on a machine so slow that the batch's time was over before.
async fn delayed_batch_takes_back_nothing() -> bool {
    let scratch = scratch().await;
    let store = Arc::new(scratch.store().await);
    let candidate = request("any", "holder", seconds(60)).candidate;
    let mut renewals = Vec::new();
    // One more than a statement takes, so that the last is in the second.
    for number in 0..65 {
        let mut asked = request(&format!("job/{number}"), "holder", seconds(60));
        asked.candidate = candidate.clone();
        let grant = take(store.as_ref(), &asked).await;
        renewals.push(renewal(&asked, grant.token));
    }
    let leases = scratch.leases().await;
    let client = leases.client().clone();
    let mut session = client.start_session().await.expect("a session");
    session.start_transaction().await.expect("a transaction");
    leases
        .update_one(doc! { "_id": "job/0" }, doc! { "$set": { "foreign": 1 } })
        .session(&mut session)
        .await
        .expect("a lock");
    let (delayed, batch) = (Arc::clone(&store), renewals.clone());
    let delayed = tokio::spawn(async move { delayed.renew(&batch).await });
    // The order of the two at the server; were it the other one, there would be nothing to take back.
    let waits = until_a_write_waits(&leases);
    if tokio::time::timeout(Duration::from_secs(3), waits).await.is_err() {
        session.abort_transaction().await.expect("aborted");
        drop(delayed.await.expect("no panic"));
        return false;
    }
    let verdicts = store.renew(&[renewals[64].clone(), renewals[63].clone()]).await;
    assert!(
        matches!(verdicts[0], Ok(Renewed::Extended { .. })),
        "{verdicts:?}"
    );
    let ends = async || {
        let record = raw(&leases, "job/64").await.expect("the record");
        let date = |field| record.get_datetime(field).expect("a date").timestamp_millis();
        (date("expiresAt"), date("lastRenewedAt"))
    };
    let confirmed = ends().await;
    session.abort_transaction().await.expect("aborted");
    let verdicts = delayed.await.expect("no panic");
    let after = ends().await;
    assert!(
        after.0 >= confirmed.0 && after.1 >= confirmed.1,
        "{after:?} after {confirmed:?}"
    );
    match &verdicts[0] {
        Ok(Renewed::Extended { .. }) => true,
        Ok(other) => panic!("{other:?}"),
        Err(_late) => false,
    }
}

/// The server judges a renewal by the clock at which it arrived, whenever it gets at the record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_that_a_locked_record_kept_waiting_revives_for_a_third_of_its_ttl_at_most() {
    let scratch = scratch().await;
    let store = Arc::new(scratch.store().await);
    let leases = scratch.leases().await;
    let mut renewals = Vec::new();
    // Makes the collection, for which the server has more time than for a short ttl.
    take(store.as_ref(), &request("another", "holder", seconds(60))).await;
    for lease in ["alone", "with another"] {
        let asked = request(lease, "holder", seconds(3));
        let grant = persist(&store, &asked).await;
        renewals.push(renewal(&asked, grant.token));
    }
    let mut session = leases.client().start_session().await.expect("a session");
    session.start_transaction().await.expect("a transaction");
    leases
        .update_many(doc! {}, doc! { "$set": { "foreign": 1 } })
        .session(&mut session)
        .await
        .expect("locks");
    // So late that a third of the ttl is over before the lease's own end, and the whole would not be.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let nobody = renewal(&request("nobody", "holder", seconds(60)), renewals[1].token);
    let batches = [vec![renewals[0].clone()], vec![renewals[1].clone(), nobody]];
    let waiting = batches.map(|batch| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.renew(&batch).await.remove(0) })
    });
    for renewal in &renewals {
        eventually_async(Duration::from_secs(30), "the end", || async {
            let lease = store
                .get(&renewal.name)
                .await
                .expect("a read")
                .expect("the record");
            match lease.remaining {
                Duration::ZERO => Ok(()),
                remaining => Err(format!("{remaining:?} remain")),
            }
        })
        .await;
    }
    // A renewal that arrived at the last moment may revive the lease for a third of its ttl, and no longer.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    session.abort_transaction().await.expect("aborted");
    for (waiting, renewal) in waiting.into_iter().zip(&renewals) {
        let verdict = waiting.await.expect("no panic");
        assert!(!matches!(verdict, Ok(Renewed::Extended { .. })), "{verdict:?}");
        let lease = store
            .get(&renewal.name)
            .await
            .expect("a read")
            .expect("the record");
        assert_eq!(lease.remaining, Duration::ZERO, "{lease:?}");
    }
}
