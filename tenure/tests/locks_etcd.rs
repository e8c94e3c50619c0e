//! Locks in etcd: many, and contended.
use crate::harness::{many, soon};
use std::sync::Arc;
use std::time::Duration;
use tenure::core::Release;
use tenure::etcd::EtcdStore;
use tenure::{LeaseName, SharedStore};
use tenure_testkit::{Etcd, EtcdOptions};

async fn connect(url: &str) -> SharedStore {
    Arc::new(soon("connecting", EtcdStore::connect(url)).await.unwrap())
}

#[tokio::test]
async fn a_beat_extends_all_locks_in_etcd_and_one_that_is_lost_disturbs_none() {
    let etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    let operator = connect(&etcd.url()).await;
    let tamper = || async {
        let victim = LeaseName::new(many::VICTIM).unwrap();
        let lease = operator.get(&victim).await.unwrap().unwrap();
        let release = Release {
            name: victim,
            incarnation: lease.holder.incarnation,
            token: lease.token,
            attempt: lease.attempt,
        };
        operator.release(&[release]).await.remove(0).unwrap();
    };
    let ttl = Duration::from_secs(20);
    many::a_beat_extends_all_and_one_that_is_lost_disturbs_none(connect(&etcd.url()).await, ttl, tamper)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_tasks_lose_no_update_in_etcd() {
    let etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    let url = etcd.url();
    let stores = [
        connect(&url).await,
        connect(&url).await,
        connect(&url).await,
        connect(&url).await,
    ];
    many::sixty_four_tasks_lose_no_update(stores).await;
}
