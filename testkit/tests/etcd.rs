//! etcd servers: they start, answer, keep what they confirmed, and elect another leader.

use std::time::Duration;

use tenure_testkit::{Etcd, EtcdOptions, eventually, is_alive};

/// As a loaded machine may need it.
const LONG: Duration = Duration::from_secs(60);

/// `{"key":"key","value":"value"}` in base64.
const PUT: &str = r#"{"key":"a2V5","value":"dmFsdWU="}"#;
const RANGE: &str = r#"{"key":"a2V5"}"#;

#[tokio::test]
async fn member_keeps_what_it_confirmed_through_a_kill_and_ends_with_its_guard() {
    let mut etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    etcd.post(0, "/v3/kv/put", PUT).unwrap();
    etcd.restart(0).await.unwrap();
    let found = etcd.post(0, "/v3/kv/range", RANGE).unwrap();
    assert!(found.contains("dmFsdWU="), "{found}");
    let pid = etcd.pid(0).unwrap();
    drop(etcd);
    eventually(LONG, "the server's end", || !is_alive(pid));
}

#[tokio::test]
async fn cluster_without_its_leader_elects_another_and_answers() {
    let mut etcd = Etcd::start(EtcdOptions::three()).await.unwrap();
    let first = etcd.leader().expect("a leader");
    etcd.kill(first);
    let second = eventually(LONG, "another leader", || etcd.leader());
    assert_ne!(first, second);
    // Where there is another election at once, it answers with an error.
    eventually(LONG, "a write", || {
        etcd.post(second, "/v3/kv/put", PUT)
            .is_ok_and(|answer| answer.contains("revision"))
    });
}

#[tokio::test]
async fn frozen_member_does_not_answer_until_it_is_thawed() {
    let etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    etcd.freeze(0);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| etcd.post(0, "/v3/kv/range", RANGE));
        std::thread::sleep(Duration::from_secs(2));
        assert!(!asking.is_finished(), "a frozen member answered");
        etcd.thaw(0);
    });
    eventually(LONG, "an answer", || etcd.post(0, "/v3/kv/range", RANGE).is_ok());
}
