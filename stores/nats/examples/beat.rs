//! What one beat of 10,000 leases costs on a real server: `cargo run --release -p tenure-nats --example
//! beat`.
#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made may stop")]

use std::sync::Arc;
use std::time::Instant;
use tenure_core::{
    Acquire, Acquired, Attempt, Candidate, CandidateId, Incarnation, LeaseName, LeaseStore, Note, Renew,
    Renewed, Ttl,
};
use tenure_nats::NatsStore;
use tenure_testkit::{FaultProxy, NatsOptions, NatsServer};
use tokio::task::JoinSet;

const LEASES: usize = 10_000;
const TAKEN_AT_ONCE: usize = 50;

#[tokio::main]
async fn main() {
    for (what, options) in [
        ("synced within two minutes", NatsOptions::default()),
        ("each write synced", NatsOptions::durable()),
    ] {
        let server = NatsServer::start(options).await.unwrap();
        let counted = FaultProxy::nats(server.address()).unwrap();
        let (asked, renewals) = take_all(&server.url()).await;
        let direct = NatsStore::connect(&server.url()).await.unwrap();
        let began = Instant::now();
        beat(&direct, &renewals).await;
        let took = began.elapsed();
        let store = NatsStore::connect(&format!("nats://{}", counted.address()))
            .await
            .unwrap();
        let before = counted.counts().requests;
        beat(&store, &renewals).await;
        let requests = counted.counts().requests - before;
        println!("{what}: {asked} leases, one beat: {requests} requests in {took:.2?}");
    }
}

async fn take_all(url: &str) -> (usize, Vec<Renew>) {
    let store = Arc::new(NatsStore::connect(url).await.unwrap());
    let mut renewals = Vec::new();
    for first in (0..LEASES).step_by(TAKEN_AT_ONCE) {
        let mut taking = JoinSet::new();
        for number in first..first + TAKEN_AT_ONCE {
            let store = Arc::clone(&store);
            taking.spawn(async move { take(&store, number).await });
        }
        renewals.extend(taking.join_all().await);
    }
    (renewals.len(), renewals)
}

async fn take(store: &NatsStore, number: usize) -> Renew {
    let request = Acquire {
        name: LeaseName::new(format!("lease-{number:05}")).unwrap(),
        candidate: Candidate {
            id: CandidateId::new("holder").unwrap(),
            incarnation: Incarnation::from_bits(1),
        },
        attempt: Attempt::FIRST,
        ttl: Ttl::from_secs(600).unwrap(),
        note: Note::default(),
    };
    let Acquired::Granted(grant) = store.acquire(&request).await.unwrap() else {
        panic!("it is free")
    };
    Renew {
        name: request.name,
        incarnation: request.candidate.incarnation,
        token: grant.token,
        attempt: request.attempt,
        ttl: request.ttl,
    }
}

/// As the engine's heart: as many leases at once as the store takes, call by call.
async fn beat(store: &NatsStore, renewals: &[Renew]) {
    for batch in renewals.chunks(store.traits().batch_max.get()) {
        for answer in store.renew(batch).await {
            assert!(matches!(answer, Ok(Renewed::Extended { .. })), "{answer:?}");
        }
    }
}
