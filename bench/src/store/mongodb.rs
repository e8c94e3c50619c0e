//! MongoDB, on a replica set of three: the bare driver takes the lease with one `findOneAndUpdate` of a
//! pipeline on `$$NOW`, and gives it back with another, both with majority and journal.

use super::compare;
use mongodb::bson::{Document, doc};
use mongodb::options::{Acknowledgment, ClientOptions, CollectionOptions, ReturnDocument, WriteConcern};
use mongodb::{Client, Collection};
use tenure::mongodb::MongoStore;
use tenure_testkit::{ReplicaSet, Size};

pub async fn measure(rounds: u32) {
    let set = ReplicaSet::start(Size::Three)
        .await
        .expect("three nodes of mongod");
    let store = MongoStore::connect(&set.uri()).await.unwrap();
    let bare = Bare::connect(&set.uri()).await;
    compare("MongoDB, three nodes", rounds, &store, async |round| {
        bare.turn(round.into()).await
    })
    .await;
}

pub struct Bare {
    leases: Collection<Document>,
}

impl Bare {
    pub async fn connect(uri: &str) -> Self {
        let mut options = ClientOptions::parse(uri).await.unwrap();
        // As the store: the server keeps an image of each retryable write, which costs it another write.
        options.retry_writes = Some(false);
        options.retry_reads = Some(false);
        let client = Client::with_options(options).unwrap();
        let concern = WriteConcern::builder()
            .w(Acknowledgment::Majority)
            .journal(true)
            .build();
        let options = CollectionOptions::builder().write_concern(concern).build();
        Self {
            leases: client.database("bench").collection_with_options("bare", options),
        }
    }

    pub async fn turn(&self, attempt: i64) {
        let free = doc! { "$or": [
            { "$eq": [{ "$type": "$generation" }, "missing"] },
            { "$lte": ["$expiresAt", "$$NOW"] },
        ] };
        let term = doc! {
            "owner": "bench",
            "incarnation": "7",
            "attempt": attempt,
            "generation": { "$max": [{ "$add": [{ "$ifNull": ["$generation", 0_i64] }, 1_i64] }, { "$toLong": "$$NOW" }] },
            "expiresAt": { "$add": ["$$NOW", 30_000_i64] },
            "ttlMs": 30_000_i64,
            "createdAt": { "$ifNull": ["$createdAt", "$$NOW"] },
        };
        let take = vec![
            doc! { "$replaceWith": { "$cond": [free, { "$mergeObjects": ["$$ROOT", term] }, "$$ROOT"] } },
        ];
        let projection = doc! {
            "owner": 1, "incarnation": 1, "attempt": 1, "generation": 1,
            "remaining": { "$subtract": ["$expiresAt", "$$NOW"] },
        };
        let taken = self
            .leases
            .find_one_and_update(doc! { "_id": "bench" }, take)
            .upsert(true)
            .return_document(ReturnDocument::After)
            .projection(projection)
            .await
            .unwrap()
            .unwrap();
        let generation = taken.get_i64("generation").unwrap();
        let vacate = vec![doc! { "$set": { "expiresAt": "$$NOW", "owner": null } }];
        self.leases
            .find_one_and_update(
                doc! { "_id": "bench", "generation": generation, "attempt": attempt },
                vacate,
            )
            .return_document(ReturnDocument::After)
            .await
            .unwrap()
            .unwrap();
    }
}
