//! The suite that every store passes, on a replica set of three and on a standalone server.

use crate::common::{Scratch, random_bits};
use mongodb::bson::{Bson, Document, doc};
use mongodb::{Client, Collection};
use std::sync::Arc;
use tenure_conformance::{Corruption, Fixture, Hooked, Subject};
use tenure_core::{Answer, FencingToken, LeaseName, LeasePurge, LeaseStore};
use tenure_mongodb::MongoStore;
use tenure_testkit::{Mongod, ReplicaSet};
use tokio::sync::OnceCell;

struct MongoSubject {
    stores: [Arc<MongoStore>; 2],
    client: Client,
    leases: Collection<Document>,
    _scratch: Scratch,
}

async fn fixture_at(uri: String) -> Fixture {
    let scratch = Scratch::new(uri);
    let client = scratch.client().await;
    // Else the first lease does, for which the server has a second where its ttl is short.
    let database = client.database(&scratch.database);
    let made = database.create_collection("job_leases").await;
    made.expect("a collection");
    Fixture::new(MongoSubject {
        stores: [Arc::new(scratch.store().await), Arc::new(scratch.store().await)],
        leases: database.collection("job_leases"),
        client,
        _scratch: scratch,
    })
}

impl MongoSubject {
    async fn change(&self, name: &LeaseName, update: Document) {
        let changed = self
            .leases
            .update_one(doc! { "_id": name.as_str() }, update)
            .await
            .expect("the test can write");
        assert_eq!(changed.modified_count, 1, "the record to damage exists");
    }
}

impl Subject for MongoSubject {
    fn store(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.stores[0]) as Arc<dyn LeaseStore>
    }

    fn other(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.stores[1]) as Arc<dyn LeaseStore>
    }

    fn clock_ms(&self) -> Answer<'_, Hooked<u64>> {
        Box::pin(async {
            let hello = self
                .client
                .database("admin")
                .run_command(doc! { "hello": 1 })
                .await;
            let now = hello
                .expect("the server says hello")
                .get_datetime("localTime")
                .expect("and its time")
                .timestamp_millis();
            Hooked::Done(u64::try_from(now).expect("after 1970"))
        })
    }

    fn raw<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<Option<String>>> {
        Box::pin(async {
            let record = crate::common::raw(&self.leases, name.as_str()).await;
            Hooked::Done(record.map(|record| format!("{record:?}")))
        })
    }

    fn corrupt<'a>(&'a self, name: &'a LeaseName, corruption: Corruption) -> Answer<'a, Hooked<()>> {
        let set = |field: &str, value: Bson| doc! { "$set": { field: value } };
        let update = match corruption {
            Corruption::NegativeToken => set("generation", Bson::Int64(-7)),
            Corruption::ZeroToken => set("generation", Bson::Int64(0)),
            Corruption::HugeToken => set("generation", Bson::Double(1e300)),
            Corruption::TokenBeyondTheLast => set("generation", Bson::Int64(Corruption::BEYOND_THE_LAST)),
            Corruption::TokenIsText => set("generation", "seven".into()),
            Corruption::NoToken => doc! { "$unset": { "generation": "" } },
            Corruption::HolderIsNumber => set("owner", Bson::Int32(7)),
            Corruption::HolderIsMalformed => set("owner", "a\u{7}b".into()),
            Corruption::NoHolder => doc! { "$unset": { "owner": "" } },
            Corruption::IncarnationIsMalformed => set("incarnation", "not-an-incarnation".into()),
            Corruption::NegativeAttempt => set("attempt", Bson::Int64(-1)),
            Corruption::AttemptIsText => set("attempt", "first".into()),
            Corruption::ExpiryIsText => set("expiresAt", "tomorrow".into()),
            Corruption::ExpiryFarOff => {
                let far_off = mongodb::bson::DateTime::from_millis(Corruption::FAR_OFF_MS);
                set("expiresAt", far_off.into())
            }
            Corruption::NoExpiry => doc! { "$unset": { "expiresAt": "" } },
            Corruption::ZeroTtl => set("ttlMs", Bson::Int64(0)),
            Corruption::TtlIsText => set("ttlMs", "long".into()),
            Corruption::Alien => doc! { "_id": name.as_str(), "colour": "green" },
            Corruption::LongNote => set("note", Corruption::long_note().into()),
            Corruption::LastToken => set("generation", Bson::Int64(FencingToken::MAX.signed())),
        };
        Box::pin(async move {
            if corruption == Corruption::Alien {
                let key = doc! { "_id": name.as_str() };
                self.leases
                    .replace_one(key, update)
                    .await
                    .expect("the test can write");
            } else {
                self.change(name, update).await;
            }
            Hooked::Done(())
        })
    }

    fn stray<'a>(&'a self, key: &'a str) -> Answer<'a, Hooked<()>> {
        Box::pin(async move {
            let stray = doc! { "_id": key, "colour": "green" };
            self.leases.insert_one(stray).await.expect("the test can write");
            Hooked::Done(())
        })
    }

    fn purge<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<()>> {
        Box::pin(async {
            self.leases
                .delete_one(doc! { "_id": name.as_str() })
                .await
                .expect("the test can write");
            Hooked::Done(())
        })
    }

    fn cleaner(&self) -> Hooked<Arc<dyn LeasePurge>> {
        Hooked::Done(Arc::clone(&self.stores[0]) as Arc<dyn LeasePurge>)
    }
}

async fn standalone() -> String {
    static SERVER: OnceCell<Mongod> = OnceCell::const_new();
    let started = SERVER.get_or_init(|| async { Mongod::start().await.expect("a standalone server starts") });
    started.await.uri()
}

mod replica_set_of_three {
    use super::{Fixture, ReplicaSet, fixture_at};

    async fn fixture() -> Fixture {
        fixture_at(ReplicaSet::shared().await.uri()).await
    }

    tenure_conformance::suite!(fixture);
}

mod standalone_server {
    use super::{Fixture, fixture_at, standalone};

    async fn fixture() -> Fixture {
        fixture_at(standalone().await).await
    }

    tenure_conformance::suite!(fixture);
}

#[test]
fn scratch_databases_differ() {
    assert_ne!(random_bits(), random_bits());
}
