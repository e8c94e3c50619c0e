//! The suite that every store passes, on one server and on a cluster of three.

use crate::common::{Beneath, Scratch, key, shared, shared_cluster};
use serde_json::{Value, json};
use std::sync::Arc;
use tenure_conformance::{Corruption, Fixture, Hooked, Subject};
use tenure_core::{Answer, FencingToken, LeaseName, LeasePurge, LeaseStore};
use tenure_nats::NatsStore;

struct NatsSubject {
    stores: [Arc<NatsStore>; 2],
    beneath: Beneath,
}

async fn fixture_on(scratch: Scratch) -> Fixture {
    Fixture::new(NatsSubject {
        stores: [Arc::new(scratch.store().await), Arc::new(scratch.store().await)],
        beneath: scratch.beneath().await,
    })
}

impl Subject for NatsSubject {
    fn store(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.stores[0]) as Arc<dyn LeaseStore>
    }

    fn other(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.stores[1]) as Arc<dyn LeaseStore>
    }

    fn clock_ms(&self) -> Answer<'_, Hooked<u64>> {
        Box::pin(async {
            let info = self.beneath.info().await;
            let told = info["ts"].as_str().expect("the server tells the time");
            let time = time::OffsetDateTime::parse(told, &time::format_description::well_known::Rfc3339);
            let nanoseconds = time.expect("a time").unix_timestamp_nanos();
            Hooked::Done(u64::try_from(nanoseconds / 1_000_000).expect("after 1970"))
        })
    }

    fn raw<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<Option<String>>> {
        Box::pin(async {
            let last = self.beneath.last(&key(name.as_str())).await;
            Hooked::Done(last.map(|(number, value)| format!("{number} {}", String::from_utf8_lossy(&value))))
        })
    }

    fn corrupt<'a>(&'a self, name: &'a LeaseName, corruption: Corruption) -> Answer<'a, Hooked<()>> {
        Box::pin(async move {
            let key = key(name.as_str());
            let (_, value) = self
                .beneath
                .last(&key)
                .await
                .expect("a case damages a record that exists");
            let mut record: Value = serde_json::from_slice(&value).expect("the store writes JSON");
            let (field, damage) = match corruption {
                Corruption::NegativeToken => ("generation", json!(-7)),
                Corruption::ZeroToken => ("generation", json!(0)),
                Corruption::HugeToken => ("generation", json!(1e300)),
                Corruption::TokenBeyondTheLast => ("generation", json!(Corruption::BEYOND_THE_LAST)),
                Corruption::TokenIsText => ("generation", json!("seven")),
                Corruption::NoToken => ("generation", Value::Null),
                Corruption::HolderIsNumber => ("owner", json!(7)),
                Corruption::HolderIsMalformed => ("owner", json!("a\u{7}b")),
                Corruption::NoHolder => ("owner", Value::Null),
                Corruption::IncarnationIsMalformed => ("incarnation", json!("not-an-incarnation")),
                Corruption::NegativeAttempt => ("attempt", json!(-1)),
                Corruption::AttemptIsText => ("attempt", json!("first")),
                Corruption::ExpiryIsText | Corruption::NoExpiry | Corruption::ExpiryFarOff => {
                    return Hooked::Unsupported("no record here has an expiry: it is observed");
                }
                Corruption::ZeroTtl => ("ttlMs", json!(0)),
                Corruption::TtlIsText => ("ttlMs", json!("long")),
                Corruption::Alien => ("", json!({ "colour": "green" })),
                Corruption::LongNote => ("note", json!(Corruption::long_note())),
                Corruption::LastToken => ("generation", json!(FencingToken::MAX.number())),
            };
            if field.is_empty() {
                record = damage;
            } else {
                record[field] = damage;
            }
            let put = self.beneath.put(&key, record.to_string().as_bytes(), &[]).await;
            assert!(put["seq"].is_u64(), "{put}");
            Hooked::Done(())
        })
    }

    fn stray<'a>(&'a self, key: &'a str) -> Answer<'a, Hooked<()>> {
        Box::pin(async move {
            let put = self.beneath.put(&crate::common::key(key), b"green", &[]).await;
            assert!(put["seq"].is_u64(), "{put}");
            Hooked::Done(())
        })
    }

    fn purge<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<()>> {
        Box::pin(async {
            // As `nats kv purge` does.
            let headers = [("KV-Operation", "PURGE"), ("Nats-Rollup", "sub")];
            let put = self.beneath.put(&key(name.as_str()), b"", &headers).await;
            assert!(put["seq"].is_u64(), "{put}");
            Hooked::Done(())
        })
    }

    fn cleaner(&self) -> Hooked<Arc<dyn LeasePurge>> {
        Hooked::Done(Arc::clone(&self.stores[0]) as Arc<dyn LeasePurge>)
    }
}

mod on_one_server {
    use super::{Fixture, Scratch, fixture_on, shared};

    async fn fixture() -> Fixture {
        fixture_on(Scratch::on(&shared().await.url())).await
    }

    tenure_conformance::suite!(fixture);
}

mod on_a_cluster_of_three {
    use super::{Fixture, Scratch, fixture_on, shared_cluster};

    /// One bucket for all cases: its three copies take seconds to elect their leader.
    async fn fixture() -> Fixture {
        fixture_on(Scratch::shared_on(shared_cluster().await)).await
    }

    tenure_conformance::suite!(fixture);
}
