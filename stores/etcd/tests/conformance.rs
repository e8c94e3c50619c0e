//! The suite that every store passes, on etcd.

use crate::common::{Scratch, put, range, remove, shared, value};
use serde_json::{Value, json};
use std::sync::Arc;
use tenure_conformance::{Corruption, Fixture, Hooked, Subject};
use tenure_core::{Answer, LeaseName, LeasePurge, LeaseStore};
use tenure_etcd::EtcdStore;
use tenure_testkit::Etcd;

struct EtcdSubject {
    stores: [Arc<EtcdStore>; 2],
    scratch: Scratch,
    etcd: &'static Etcd,
}

async fn fixture() -> Fixture {
    on(shared().await).await
}

/// Two stores in a place of their own.
pub async fn on(etcd: &'static Etcd) -> Fixture {
    let scratch = Scratch::on(&etcd.url());
    Fixture::new(EtcdSubject {
        stores: [Arc::new(scratch.store().await), Arc::new(scratch.store().await)],
        etcd,
        scratch,
    })
}

const REVISION: &str = "the token is the revision of the record's key, which nobody can write";
const REVISION_BY_HAND: &str =
    "whatever is written to the record by hand is another revision, and so another term";
const SESSION: &str = "the expiry is the session's, which nobody can write";

/// What a record becomes.
fn damaged(mut record: Value, corruption: Corruption) -> Result<String, &'static str> {
    let mut set = |field: &str, value: Value| record[field] = value;
    match corruption {
        Corruption::NegativeToken
        | Corruption::ZeroToken
        | Corruption::HugeToken
        | Corruption::TokenBeyondTheLast
        | Corruption::TokenIsText
        | Corruption::NoToken
        | Corruption::LastToken => return Err(REVISION),
        Corruption::ExpiryIsText | Corruption::NoExpiry | Corruption::ExpiryFarOff => return Err(SESSION),
        Corruption::HolderIsNumber => set("owner", json!(7)),
        Corruption::HolderIsMalformed => set("owner", json!("a\u{7}b")),
        Corruption::NoHolder => {
            record.as_object_mut().expect("an object").remove("owner");
        }
        Corruption::IncarnationIsMalformed => set("incarnation", json!("not-an-incarnation")),
        Corruption::NegativeAttempt => set("attempt", json!(-1)),
        Corruption::AttemptIsText => set("attempt", json!("first")),
        Corruption::ZeroTtl => set("ttlMs", json!(0)),
        Corruption::TtlIsText => set("ttlMs", json!("long")),
        Corruption::LongNote => return Err(REVISION_BY_HAND),
        Corruption::Alien => return Ok("green".to_owned()),
    }
    Ok(record.to_string())
}

impl Subject for EtcdSubject {
    fn store(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.stores[0]) as Arc<dyn LeaseStore>
    }

    fn other(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.stores[1]) as Arc<dyn LeaseStore>
    }

    fn clock_ms(&self) -> Answer<'_, Hooked<u64>> {
        Box::pin(async { Hooked::Unsupported("tokens are revisions: etcd tells no time") })
    }

    /// The holder's key does, which is on the session.
    fn renews_unread(&self) -> bool {
        true
    }

    fn raw<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<Option<String>>> {
        Box::pin(async {
            let (from, end) = (
                self.scratch.key(name.as_str(), ""),
                self.scratch.key(name.as_str(), "\n"),
            );
            let note = self.scratch.note(name.as_str());
            let keys = range(self.etcd, 0, &from, &end);
            let notes = range(self.etcd, 0, &note, &format!("{note}\0"));
            Hooked::Done((!keys.is_empty()).then(|| format!("{keys:?} {notes:?}")))
        })
    }

    fn corrupt<'a>(&'a self, name: &'a LeaseName, corruption: Corruption) -> Answer<'a, Hooked<()>> {
        Box::pin(async move {
            let key = self.scratch.key(name.as_str(), "");
            let record = value(self.etcd, 0, &key).expect("a record");
            match damaged(serde_json::from_str(&record).expect("JSON"), corruption) {
                Ok(record) => {
                    put(self.etcd, 0, &key, &record);
                    Hooked::Done(())
                }
                Err(reason) => Hooked::Unsupported(reason),
            }
        })
    }

    fn stray<'a>(&'a self, key: &'a str) -> Answer<'a, Hooked<()>> {
        Box::pin(async move {
            put(self.etcd, 0, &self.scratch.key(key, ""), "green");
            Hooked::Done(())
        })
    }

    fn purge<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<()>> {
        Box::pin(async {
            let (from, end) = (
                self.scratch.key(name.as_str(), ""),
                self.scratch.key(name.as_str(), "\n"),
            );
            let removed = remove(self.etcd, 0, &from, &end);
            assert!(removed >= 1, "a case removes a record that exists");
            Hooked::Done(())
        })
    }

    fn cleaner(&self) -> Hooked<Arc<dyn LeasePurge>> {
        Hooked::Done(Arc::clone(&self.stores[0]) as Arc<dyn LeasePurge>)
    }
}

tenure_conformance::suite!(fixture);
