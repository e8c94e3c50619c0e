//! A server that has run out of space: what it refuses it may have done.
use crate::common::{Scratch, finding, request, seconds, value};
use crate::sessions::{renewals, take_many};
use std::sync::Arc;
use tenure_core::{
    Certainty, Fault, Fence, FenceError, FencingToken, LeaseName, LeaseStore, Leases, Renewed, ResourceName,
    StoreError, Term, Verdict,
};
use tenure_etcd::{EtcdFence, FencedTransaction};
use tenure_testkit::{Etcd, EtcdOptions};

/// Who writes at a time.
const WRITERS: usize = 32;

/// How large one value is, in bytes.
const VALUE_BYTES: usize = 20_000;

/// How often a stall of the disk may outlast a writer's request.
const STALLS_MAX: u32 = 20;

/// How many servers are filled until one refuses what it has done. The first did in most of our runs.
const SERVERS_MAX: usize = 16;

/// The server makes a transaction first, and says then that it has no space; from the alarm on it makes none.
#[tokio::test]
async fn write_that_a_full_etcd_refuses_may_have_been_made_and_is_told_as_unknown() {
    for _server in 0..SERVERS_MAX {
        let etcd = Etcd::start(EtcdOptions::default().with("--quota-backend-bytes 8388608"))
            .await
            .unwrap();
        let refused = fill(&etcd).await;
        assert!(!refused.is_empty(), "the server takes everything");
        for (key, error) in &refused {
            assert_eq!(
                (error.fault, error.certainty),
                (Fault::Full, Certainty::Unknown),
                "{key}: {error}"
            );
        }
        if refused.iter().any(|(key, _)| value(&etcd, 0, key).is_some()) {
            return;
        }
    }
    panic!("none of {SERVERS_MAX} servers has refused what it had done: nothing was shown");
}

/// Writes behind a fence until there is no space; each writer's refused key, and what was said of it.
async fn fill(etcd: &Etcd) -> Vec<(String, StoreError)> {
    let fence = EtcdFence::connect(&Scratch::on(&etcd.url()).store_url(), Leases::Here).await;
    let fence = Arc::new(fence.unwrap());
    let ledger = ResourceName::new("ledger").unwrap();
    let term = Term::new(LeaseName::new("job").unwrap(), FencingToken::new(1).unwrap());
    fence.claim(&ledger, &term).await.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (fence, ledger, term) = (Arc::clone(&fence), ledger.clone(), term.clone());
        writers.spawn(async move {
            let mut stalls = 0;
            for number in 0_u64.. {
                let key = format!("filler/{writer}/{number}");
                let writing = FencedTransaction::new().put(key.clone(), "x".repeat(VALUE_BYTES));
                match fence.write(&ledger, &term, &writing).await {
                    Ok(_written) => {}
                    Err(FenceError::Store(error)) if is_stall(&error) && stalls < STALLS_MAX => stalls += 1,
                    Err(FenceError::Store(error)) => return (key, error),
                    Err(refused) => panic!("{refused}"),
                }
            }
            unreachable!("it ends with an error")
        });
    }
    writers.join_all().await
}

/// The server was not heard in time, and has refused nothing.
fn is_stall(error: &StoreError) -> bool {
    matches!(error.fault, Fault::TimedOut | Fault::Unreachable)
}

/// Servers before 3.4.20 and 3.5.7 refuse every transaction while they are full, also one that only reads.
#[tokio::test]
async fn renewal_of_one_lease_and_of_many_makes_no_transaction() {
    let etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    let store = Arc::new(Scratch::on(&etcd.url()).store().await);
    let held = take_many(&store, 150).await;
    let before = transactions(&etcd);
    assert!(before >= 150.0, "{before}");
    let beat = renewals(&held);
    for beat in [&beat[..1], &beat] {
        for verdict in store.renew(beat).await {
            assert!(matches!(verdict, Ok(Renewed::Extended { .. })), "{verdict:?}");
        }
        assert!(transactions(&etcd) <= before, "to renew {} leases", beat.len());
    }
}

/// How many transactions were asked of a server.
fn transactions(etcd: &Etcd) -> f64 {
    let metrics = etcd.post(0, "/metrics", "").unwrap();
    let started = metrics
        .lines()
        .find(|line| line.starts_with("grpc_server_started_total") && line.contains("grpc_method=\"Txn\""))
        .expect("the server counts its requests");
    started.rsplit(' ').next().unwrap().parse().unwrap()
}

/// As after a disk that has lost what it had synced: whoever looks for the reason is told.
#[tokio::test]
async fn etcd_whose_members_differ_is_examined_and_its_alarm_told() {
    let etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    let alarm = r#"{ "action": "ACTIVATE", "memberID": "1", "alarm": "CORRUPT" }"#;
    let rung = etcd.post(0, "/v3/maintenance/alarm", alarm).unwrap();
    assert!(rung.contains("CORRUPT"), "{rung}");
    let store = Scratch::on(&etcd.url()).store().await;
    let error = store
        .acquire(&request("job", "a", seconds(60)))
        .await
        .unwrap_err();
    assert!(
        error.message.contains("CORRUPT") && error.message.contains("disarm"),
        "{error}"
    );
    let findings = store.examine().await.unwrap();
    let space = finding(&findings, "space");
    assert_eq!(space.verdict, Verdict::Bad, "{space:?}");
    assert!(space.detail.contains("CORRUPT"), "{space:?}");
}
