//! Another server at an address of the URL, since nobody asked last: one that has a bucket of its own, as any
//! process makes that connects there, which would give the lease away a second time, and call the leader's
//! lost. Each URL names one address.
use crate::common::{Scratch, in_time, request, seconds, shared, take};
use std::time::Duration;
use tenure_conformance::strangers::{
    self, Address as _, exchange, fence_asks_nothing, is_refused, leader_loses_nothing,
    standby_is_granted_nothing, watch_is_not_begun,
};
use tenure_core::{Acquired, LeaseStore, Leases};
use tenure_nats::NatsFence;
use tenure_testkit::{FaultProxy, NatsOptions, NatsServer, eventually_async};

const PATIENCE: Duration = Duration::from_secs(60);

/// Two servers, each alone, and an address that leads to the first.
struct Address {
    strange: NatsServer,
    proxy: FaultProxy,
    /// At that address.
    scratch: Scratch,
}

impl Address {
    /// The second one's bucket is made at once.
    async fn new() -> Self {
        let address = Self::with_an_empty_stranger().await;
        drop(address.at(&address.strange).store().await);
        address
    }

    async fn with_an_empty_stranger() -> Self {
        let strange = NatsServer::start(NatsOptions::default()).await.unwrap();
        let proxy = FaultProxy::nats(shared().await.address()).unwrap();
        let scratch = Scratch::on(&format!("nats://{}", proxy.address()));
        Self {
            strange,
            proxy,
            scratch,
        }
    }

    /// The bucket of the same name that this server has, whatever the address leads to.
    fn at(&self, server: &NatsServer) -> Scratch {
        Scratch {
            url: server.url(),
            bucket: self.scratch.bucket.clone(),
        }
    }
}

impl strangers::Address for Address {
    const SAID: &str = "another bucket of this name";

    async fn lead_to_the_stranger(&self) {
        exchange(&self.proxy, self.strange.address()).await;
    }

    async fn lead_back(&self) {
        self.proxy.lead_to(shared().await.address());
    }

    async fn is_untouched(&self) {
        let info = self.at(&self.strange).beneath().await.info().await;
        let (messages, watches) = (&info["state"]["messages"], &info["state"]["consumer_count"]);
        assert!(*messages == 0 && *watches == 0, "the stranger was asked: {info}");
    }
}

#[tokio::test]
async fn standby_is_granted_nothing_by_a_stranger_at_the_address_of_its_server() {
    let address = Address::new().await;
    let leaders = address.at(shared().await).store().await;
    standby_is_granted_nothing(&address, &address.scratch.store().await, &leaders).await;
}

#[tokio::test]
async fn leader_loses_nothing_to_a_stranger_at_the_address_of_its_server() {
    let address = Address::new().await;
    leader_loses_nothing(&address, &address.scratch.store().await).await;
}

#[tokio::test]
async fn watch_is_not_begun_at_a_stranger_at_the_address_of_its_server() {
    let address = Address::new().await;
    watch_is_not_begun(&address, &address.scratch.store().await).await;
}

#[tokio::test]
async fn fence_asks_nothing_of_a_stranger_at_the_address_of_its_server() {
    let address = Address::new().await;
    let url = address.scratch.store_url();
    let fence = &in_time("a fence", || NatsFence::connect(&url, Leases::Elsewhere)).await;
    let write = async |ledger: &_, term: &_| fence.put(ledger, term, "account", "7").await.map(drop);
    fence_asks_nothing(&address, fence, write).await;
}

/// As one whose disk was emptied: no process that has been connected makes the bucket there.
#[tokio::test]
async fn server_without_the_bucket_is_given_none_by_whoever_was_connected_before() {
    let address = Address::with_an_empty_stranger().await;
    let store = address.scratch.store().await;
    let asked = request("job", "holder", seconds(300));
    take(&store, &asked).await;
    address.lead_to_the_stranger().await;
    let gone = "the bucket is gone, or its cluster is starting: start every process anew";
    is_refused::<Address>(gone, async || store.acquire(&asked).await.err()).await;
    let info = address.at(&address.strange).beneath().await.info().await;
    assert!(info.get("error").is_some(), "{info}");
}

/// Of several addresses, that of a stranger is one that is away.
#[tokio::test]
async fn stranger_is_passed_over_for_another_server_of_the_url() {
    let address = Address::new().await;
    let url = format!("{},{}", address.scratch.url, shared().await.address());
    let scratch = Scratch {
        url,
        ..address.at(shared().await)
    };
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(300));
    let token = take(&store, &asked).await.token;
    address.lead_to_the_stranger().await;
    match eventually_async(PATIENCE, "the same term", || store.acquire(&asked)).await {
        Acquired::Granted(grant) => assert_eq!((grant.token, grant.again), (token, true)),
        other => panic!("{other:?}"),
    }
    address.is_untouched().await;
}

/// In it the lease is nobody's: whoever took it there would lead beside the holder. Over the connection of
/// before, too.
#[tokio::test]
async fn bucket_that_was_made_again_is_taken_by_nobody_for_the_one_before() {
    let scratch = Scratch::on(&shared().await.url());
    let store = scratch.store().await;
    take(&store, &request("job", "first", seconds(300))).await;
    let api = format!("STREAM.DELETE.{}", scratch.stream());
    scratch.beneath().await.call(&api, serde_json::Value::Null).await;
    let anew = scratch.store().await;
    let waiting = request("job", "second", seconds(300));
    // A reading of the leader's clock, which tells whose it is, is carried on for a second.
    tokio::time::sleep(Duration::from_secs(1)).await;
    is_refused::<Address>(Address::SAID, async || store.acquire(&waiting).await.err()).await;
    take(&anew, &waiting).await;
    let later = scratch.store().await;
    let held = later.acquire(&request("job", "third", seconds(300))).await;
    assert!(matches!(held, Ok(Acquired::Held(_))), "{held:?}");
}
