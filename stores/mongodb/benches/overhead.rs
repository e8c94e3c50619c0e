//! Acquire and release, beside the same two statements written straight on the driver: interleaved, in one
//! run, on a replica set of three. `cargo bench -p tenure-mongodb`.

use mongodb::bson::{Bson, Document, bson, doc};
use mongodb::options::{Acknowledgment, ReturnDocument, WriteConcern};
use mongodb::{Client, Collection};
use std::time::{Duration, Instant};
use tenure_core::{
    Acquire, Acquired, Attempt, Candidate, CandidateId, Incarnation, LeaseName, LeaseStore, Note, Release,
    Released, Ttl,
};
use tenure_mongodb::MongoStore;
use tenure_testkit::ReplicaSet;

/// Pairs measured on each side, after the warm-up.
const PAIRS: usize = 1000;

/// Pairs before the measurement: connections, plans, caches.
const WARM_UP: usize = 100;

/// What a careful person writes by hand: owner, token, expiry by `$$NOW`, confirmed by a majority.
struct ByHand(Collection<Document>);

impl ByHand {
    async fn acquire(&self, attempt: i64) -> Document {
        let mine = bson!({ "$eq": ["$nonce", attempt] });
        let free = bson!({ "$lte": [{ "$ifNull": ["$expiresAt", "$$NOW"] }, "$$NOW"] });
        let keep = |field: &str, value: Bson| bson!({ "$cond": ["$taken", value, field] });
        let pipeline = vec![
            doc! { "$set": { "taken": { "$or": [mine, free] } } },
            doc! { "$set": {
                "generation": keep("$generation", bson!({ "$add": [{ "$ifNull": ["$generation", 0_i64] }, 1_i64] })),
                "owner": keep("$owner", bson!({ "$literal": "bench" })),
                "nonce": keep("$nonce", Bson::Int64(attempt)),
                "expiresAt": keep("$expiresAt", bson!({ "$add": ["$$NOW", 30_000_i64] })),
            } },
            doc! { "$unset": "taken" },
        ];
        let answer = self
            .0
            .find_one_and_update(doc! { "_id": "job" }, pipeline)
            .upsert(true)
            .return_document(ReturnDocument::After)
            .projection(
                doc! { "generation": 1, "nonce": 1, "left": { "$subtract": ["$expiresAt", "$$NOW"] } },
            )
            .await;
        answer.expect("the server answers").expect("a record")
    }

    async fn release(&self, attempt: i64) {
        let filter = doc! { "_id": "job", "nonce": attempt };
        let released = self
            .0
            .find_one_and_update(filter, vec![doc! { "$set": { "expiresAt": "$$NOW" } }])
            .return_document(ReturnDocument::After)
            .await;
        released.expect("the server answers").expect("a record");
    }
}

async fn through_the_store(store: &MongoStore, request: &Acquire) {
    let answer = store.acquire(request).await.expect("the store answers");
    let Acquired::Granted(grant) = answer else {
        panic!("not granted: {answer:?}");
    };
    let release = Release {
        name: request.name.clone(),
        incarnation: request.candidate.incarnation,
        token: grant.token,
        attempt: request.attempt,
    };
    assert_eq!(store.release(&[release]).await[0], Ok(Released::Vacated));
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

async fn measure() {
    let set = ReplicaSet::shared().await;
    let store = MongoStore::connect(&set.uri()).await.expect("the store connects");
    let client = Client::with_uri_str(set.uri())
        .await
        .expect("the driver connects");
    let concern = WriteConcern::builder()
        .w(Acknowledgment::Majority)
        .journal(true)
        .build();
    let options = mongodb::options::CollectionOptions::builder()
        .write_concern(concern)
        .build();
    let by_hand = ByHand(
        client
            .database("tenure")
            .collection_with_options("by_hand", options),
    );
    let mut request = Acquire {
        name: LeaseName::new("job").expect("a name"),
        candidate: Candidate {
            id: CandidateId::new("bench").expect("an id"),
            incarnation: Incarnation::from_bits(1),
        },
        attempt: Attempt::FIRST,
        ttl: Ttl::from_secs(30).expect("a ttl"),
        note: Note::default(),
    };
    let (mut raw, mut ours) = (Vec::with_capacity(PAIRS), Vec::with_capacity(PAIRS));
    for pair in 0..WARM_UP + PAIRS {
        let attempt = i64::try_from(pair).expect("few pairs");
        let began = Instant::now();
        by_hand.acquire(attempt).await;
        by_hand.release(attempt).await;
        let raw_time = began.elapsed();
        let began = Instant::now();
        through_the_store(&store, &request).await;
        if pair >= WARM_UP {
            raw.push(raw_time);
            ours.push(began.elapsed());
        }
        request.attempt = request.attempt.next();
    }
    let (raw, ours) = (median(&mut raw), median(&mut ours));
    println!(
        "acquire + release, p50 of {PAIRS}: by hand {raw:.2?}, store {ours:.2?}, ratio {:.3}",
        ours.as_secs_f64() / raw.as_secs_f64()
    );
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(measure());
}
