//! Each fault does what its name says, to a real server, and is counted.
//!
//! All tests increment a counter with `$inc`: its value tells how often a request was applied.

use std::future::ready;
use std::pin::pin;
use std::time::{Duration, Instant};

use mongodb::bson::{Document, doc};
use mongodb::error::Result;
use mongodb::{Client, Collection};
use tenure_testkit::{Counts, Fault, FaultProxy, ReplicaSet, RequestFault, eventually, eventually_async};

#[tokio::test]
async fn healthy_proxy_passes_everything() {
    let bench = Bench::new("pass").await;

    bench.increment().await.unwrap();

    assert_eq!(bench.value().await, 1);
    let counts = bench.proxy.counts();
    assert!(counts.connections > 0 && counts.requests > 0, "{counts:?}");
    let nothing_else = Counts {
        connections: counts.connections,
        requests: counts.requests,
        ..Counts::default()
    };
    assert_eq!(counts, nothing_else);
}

#[tokio::test]
async fn delay_makes_requests_and_replies_wait() {
    let bench = Bench::new("delay").await;
    let (to_server, to_client) = (Duration::from_millis(150), Duration::from_millis(100));

    bench.proxy.set(Fault::Delay { to_server, to_client });
    let start = Instant::now();
    bench.increment().await.unwrap();

    assert!(start.elapsed() >= to_server + to_client, "{:?}", start.elapsed());
    assert!(bench.proxy.counts().delayed >= 2);
}

#[tokio::test]
async fn request_cut_before_is_not_applied() {
    let bench = Bench::new("cut_before").await;

    bench.proxy.next_requests(1, RequestFault::CutBefore);
    bench.increment().await.unwrap_err();

    assert_eq!(bench.value().await, 0);
    assert_eq!(bench.proxy.counts().cut_before, 1);
    assert_eq!(bench.proxy.faults_left(), 0);
    bench.increment().await.unwrap();
    assert_eq!(bench.value().await, 1);
}

#[tokio::test]
async fn request_cut_after_is_applied_and_fails() {
    let bench = Bench::new("cut_after").await;

    bench.proxy.next_requests(1, RequestFault::CutAfter);
    bench.increment().await.unwrap_err();

    assert_eq!(bench.value().await, 1);
    assert_eq!(bench.proxy.counts().cut_after, 1);
}

#[tokio::test]
async fn retryable_write_cut_after_is_applied_once_and_succeeds() {
    let bench = Bench::retrying("cut_after_retried").await;

    bench.proxy.next_requests(1, RequestFault::CutAfter);
    bench.increment().await.unwrap();

    assert_eq!(bench.value().await, 1);
    assert_eq!(bench.proxy.counts().cut_after, 1);
}

#[tokio::test]
async fn every_request_is_cut_until_the_proxy_heals() {
    let bench = Bench::new("every_request").await;

    bench.proxy.set(Fault::EveryRequest(RequestFault::CutBefore));
    bench.increment().await.unwrap_err();
    bench.increment().await.unwrap_err();
    bench.proxy.heal();
    bench.increment().await.unwrap();

    assert_eq!(bench.value().await, 1);
    assert_eq!(bench.proxy.counts().cut_before, 2);
}

#[tokio::test]
async fn fault_for_one_command_leaves_others_alone() {
    let bench = Bench::new("one_command").await;

    bench
        .proxy
        .next_commands(1, "findAndModify", RequestFault::CutBefore);
    bench.increment().await.unwrap();
    assert_eq!(bench.proxy.faults_left(), 1);
    bench
        .counter
        .find_one_and_delete(doc! { "_id": 1 })
        .await
        .unwrap_err();

    assert_eq!(bench.value().await, 1);
    assert_eq!(bench.proxy.counts().cut_before, 1);
}

#[tokio::test]
async fn black_hole_swallows_requests_and_new_connections_work_after_it() {
    let bench = Bench::new("black_hole").await;

    bench.proxy.set(Fault::BlackHole);
    bench.increment_in_vain(|counts| counts.swallowed_requests).await;
    bench.proxy.heal();

    bench.increment_until_it_works().await;
    assert_eq!(bench.value().await, 1, "the swallowed request was applied");
}

#[tokio::test]
async fn half_open_connection_applies_requests_and_stays_silent() {
    let bench = Bench::new("half_open").await;

    bench.proxy.set(Fault::HalfOpen);
    bench.increment_in_vain(|counts| counts.swallowed_replies).await;

    bench.wait_for_value(1).await;
}

#[tokio::test]
async fn held_request_is_applied_late_though_its_client_gave_up() {
    let bench = Bench::new("hold").await;

    bench.proxy.set(Fault::Hold);
    bench.increment_in_vain(|counts| counts.held).await;
    assert_eq!(bench.value().await, 0);
    bench.proxy.heal();

    bench.wait_for_value(1).await;
}

#[tokio::test]
async fn refused_connections_are_reset_and_old_ones_go_on() {
    let bench = Bench::new("refuse").await;

    bench.proxy.set(Fault::Refuse);
    bench.increment().await.unwrap();
    let uri = format!("{}&serverSelectionTimeoutMS=300", bench.proxy.mongodb_uri());
    let newcomer = Client::with_uri_str(uri).await.unwrap();
    newcomer
        .database("admin")
        .run_command(doc! { "ping": 1 })
        .await
        .unwrap_err();

    assert!(bench.proxy.counts().refused > 0);
}

#[tokio::test]
async fn cut_connections_are_replaced_by_new_ones() {
    let bench = Bench::new("cut_connections").await;
    let before = bench.proxy.counts().connections;

    bench.proxy.cut_connections();

    eventually(LONG, "cut connections", || {
        bench.proxy.counts().cut_connections > 0
    });
    bench.increment_until_it_works().await;
    assert!(bench.proxy.counts().connections > before);
}

#[tokio::test]
async fn duplicated_request_is_applied_twice() {
    let bench = Bench::new("duplicate").await;

    bench.proxy.next_requests(1, RequestFault::Duplicate);
    bench.increment().await.unwrap();

    assert_eq!(bench.value().await, 2);
    assert_eq!(bench.proxy.counts().duplicated, 1);
}

#[tokio::test]
async fn server_recognises_the_duplicate_of_a_retryable_write() {
    let bench = Bench::retrying("duplicate_retried").await;

    bench.proxy.next_requests(1, RequestFault::Duplicate);
    bench.increment().await.unwrap();

    assert_eq!(bench.value().await, 1);
    assert_eq!(bench.proxy.counts().duplicated, 1);
}

#[tokio::test]
async fn late_duplicate_comes_after_the_client_has_its_reply() {
    let bench = Bench::new("duplicate_later").await;

    bench
        .proxy
        .next_requests(1, RequestFault::DuplicateLater(Duration::from_millis(300)));
    bench.increment().await.unwrap();

    bench.wait_for_value(2).await;
    eventually(LONG, "the count", || bench.proxy.counts().duplicated == 1);
}

/// A client behind a proxy, and another that looks past it.
struct Bench {
    proxy: FaultProxy,
    counter: Collection<Document>,
    direct: Collection<Document>,
}

impl Bench {
    /// The client sends each write once.
    async fn new(name: &str) -> Bench {
        Bench::with_option(name, "retryWrites=false").await
    }

    /// The client sends a write again when its connection fails.
    async fn retrying(name: &str) -> Bench {
        Bench::with_option(name, "retryWrites=true").await
    }

    async fn with_option(name: &str, option: &str) -> Bench {
        let set = ReplicaSet::shared_single().await;
        let proxy = FaultProxy::mongodb(set.address(0)).expect("loopback has a free port");
        let collection = |uri: String| async move {
            let client = Client::with_uri_str(uri)
                .await
                .expect("the address is well-formed");
            client.database("fault_proxy").collection::<Document>(name)
        };
        let counter = collection(format!("{}&{option}", proxy.mongodb_uri())).await;
        let direct = collection(set.uri()).await;
        // Connections are open and the counter is there before any fault.
        counter
            .insert_one(doc! { "_id": 1, "value": 0 })
            .await
            .expect("nothing is broken yet");
        Bench {
            proxy,
            counter,
            direct,
        }
    }

    async fn increment(&self) -> Result<()> {
        self.counter
            .update_one(doc! { "_id": 1 }, doc! { "$inc": { "value": 1 } })
            .await
            .map(drop)
    }

    /// Sends an increment that gets no answer, and gives it up when the proxy has counted what it did with
    /// it.
    async fn increment_in_vain(&self, count: impl Fn(Counts) -> u64) {
        let mut answer = pin!(self.increment());
        let counted = eventually_async(LONG, "what the proxy did", || {
            ready(count(self.proxy.counts()) > 0)
        });
        tokio::select! {
            answer = &mut answer => panic!("an answer came through: {answer:?}"),
            () = counted => {}
        }
        // Long enough for one that goes on to come; and what was counted may have been the client's own look
        // at the server.
        let answer = tokio::time::timeout(Duration::from_millis(500), answer).await;
        assert!(answer.is_err(), "an answer came through: {answer:?}");
    }

    /// Sends one increment after the connections that went silent, or were cut, are out of the way.
    async fn increment_until_it_works(&self) {
        let ping = || async {
            let ping = self
                .counter
                .client()
                .database("admin")
                .run_command(doc! { "ping": 1 })
                .await;
            ping.map_err(|error| error.to_string())
        };
        let bounded = || async {
            match tokio::time::timeout(Duration::from_secs(2), ping()).await {
                Ok(answer) => answer.map(drop),
                Err(_) => Err("no answer".to_owned()),
            }
        };
        eventually_async(LONG, "an answer", bounded).await;
        self.increment().await.expect("the server answers");
    }

    /// The counter as the server has it.
    async fn value(&self) -> i32 {
        let found = self
            .direct
            .find_one(doc! { "_id": 1 })
            .await
            .expect("the server answers");
        found
            .and_then(|counter| counter.get_i32("value").ok())
            .expect("the counter is there")
    }

    async fn wait_for_value(&self, expected: i32) {
        eventually_async(LONG, "the counter", || async {
            let value = self.value().await;
            if value == expected { Ok(()) } else { Err(value) }
        })
        .await;
    }
}

/// Never reached on a machine that makes any progress.
const LONG: Duration = Duration::from_secs(60);
