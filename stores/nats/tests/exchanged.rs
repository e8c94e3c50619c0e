//! Another server at an address of the URL, since nobody asked last: one that has a bucket of its own, as any process makes that
//! connects there, which would give the lease away a second time, and call the leader's lost. Each URL names one address.
use crate::common::{Scratch, in_time, name, renewal, request, seconds, shared, take};
use std::time::Duration;
use tenure_core::{
    Acquired, Certainty, Fault, Fence, FenceError, FencingToken, LeaseStore, Renewed, ResourceName, Scope,
    StoreError, Term,
};
use tenure_nats::NatsFence;
use tenure_testkit::{FaultProxy, NatsOptions, NatsServer, eventually_async};

const PATIENCE: Duration = Duration::from_secs(60);

/// How often the two servers change places: the driver may not have heard of the end of its connection when it is asked next, and
/// then it fails of that.
const ROUNDS: usize = 3;

/// What is said of a bucket that is not ours.
const STRANGE: &str = "another bucket of this name";

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

    /// Leads to this server from now on. Whoever is connected has nothing under way.
    async fn lead_to(&self, server: &NatsServer) {
        self.proxy.lead_to(server.address());
        let before = self.proxy.counts().cut_connections;
        self.proxy.cut_connections();
        let is_cut = async || (self.proxy.counts().cut_connections > before).then_some(());
        eventually_async(PATIENCE, "the end of the connections", is_cut).await;
        // For the driver to hear of it.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    /// Whoever was refused is not connected.
    async fn lead_back(&self) {
        self.proxy.lead_to(shared().await.address());
    }

    async fn is_untouched(&self) {
        let info = self.at(&self.strange).beneath().await.info().await;
        let (messages, watches) = (&info["state"]["messages"], &info["state"]["consumer_count"]);
        assert!(*messages == 0 && *watches == 0, "the stranger was asked: {info}");
    }
}

/// At last it is said who stands there; until then that the connection has ended. Whoever waits for the store waits for this, too.
async fn is_refused(answer: impl AsyncFn() -> Option<StoreError>) {
    is_refused_for(STRANGE, answer).await;
}

async fn is_refused_for(why: &str, answer: impl AsyncFn() -> Option<StoreError>) {
    eventually_async(PATIENCE, "a refusal", async || {
        let error = answer().await.expect("it is another server");
        if !error.message.contains(why) {
            return Err(error);
        }
        assert_eq!(
            (error.fault, error.certainty),
            (Fault::Unreachable, Certainty::NotApplied),
            "{error}"
        );
        Ok(())
    })
    .await;
}

/// While its leader leads on at the true server.
#[tokio::test]
async fn standby_is_granted_nothing_by_a_stranger_at_the_address_of_its_server() {
    let address = Address::new().await;
    let store = address.scratch.store().await;
    let leading = request("job", "leader", seconds(300));
    take(&address.at(shared().await).store().await, &leading).await;
    let waiting = request("job", "standby", seconds(300));
    for _round in 0..ROUNDS {
        match eventually_async(PATIENCE, "an answer", || store.acquire(&waiting)).await {
            Acquired::Held(lease) => assert_eq!(lease.holder, leading.candidate),
            other => panic!("{other:?}"),
        }
        address.lead_to(&address.strange).await;
        is_refused(async || match store.acquire(&waiting).await {
            Ok(Acquired::Granted(grant)) => panic!("a second leader: {grant:?}"),
            answer => answer.err(),
        })
        .await;
        address.is_untouched().await;
        address.lead_back().await;
    }
}

/// It would end its work, and nobody would lead before its ttl is over.
#[tokio::test]
async fn leader_loses_nothing_to_a_stranger_at_the_address_of_its_server() {
    let address = Address::new().await;
    let store = address.scratch.store().await;
    let asked = request("job", "holder", seconds(300));
    let beat = [renewal(&asked, take(&store, &asked).await.token)];
    for _round in 0..ROUNDS {
        let renewing = async || store.renew(&beat).await.remove(0);
        let renewed = eventually_async(PATIENCE, "a renewal", renewing).await;
        assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
        address.lead_to(&address.strange).await;
        is_refused(async || match store.renew(&beat).await.remove(0) {
            Ok(answer) => panic!("a stranger has answered: {answer:?}"),
            Err(error) => Some(error),
        })
        .await;
        address.is_untouched().await;
        address.lead_back().await;
    }
}

/// It would hear of nothing that happens.
#[tokio::test]
async fn watch_is_not_begun_at_a_stranger_at_the_address_of_its_server() {
    let address = Address::new().await;
    let store = address.scratch.store().await;
    let everything = Scope::Prefix(String::new());
    for _round in 0..ROUNDS {
        let watching = async || store.watch(&everything).await;
        let mut watch = eventually_async(PATIENCE, "a watch", watching).await;
        address.lead_to(&address.strange).await;
        let told = tokio::time::timeout(PATIENCE, watch.next()).await;
        told.expect("in time").expect_err("its connection has ended");
        is_refused(async || store.watch(&everything).await.err()).await;
        address.is_untouched().await;
        address.lead_back().await;
    }
}

/// It has marks of its own, so that any token would be admitted.
#[tokio::test]
async fn fence_asks_nothing_of_a_stranger_at_the_address_of_its_server() {
    let address = Address::new().await;
    let url = address.scratch.store_url();
    let fence = in_time("a fence", || NatsFence::connect(&url)).await;
    let fence = fence.with_leases_elsewhere();
    let ledger = ResourceName::new("ledger").unwrap();
    let term = Term::new(name("job"), FencingToken::new(7).unwrap());
    let error = |refused: FenceError| match refused {
        FenceError::Store(error) => error,
        other => panic!("{other}"),
    };
    let claim = async || fence.claim(&ledger, &term).await.err().map(error);
    let write = async || {
        let written = fence.put(&ledger, &term, "account", "7").await;
        written.err().map(error)
    };
    for _round in 0..ROUNDS {
        eventually_async(PATIENCE, "a claim", async || claim().await.map_or(Ok(()), Err)).await;
        address.lead_to(&address.strange).await;
        is_refused(claim).await;
        address.is_untouched().await;
        address.lead_back().await;
        eventually_async(PATIENCE, "a write", async || write().await.map_or(Ok(()), Err)).await;
        address.lead_to(&address.strange).await;
        is_refused(write).await;
        address.is_untouched().await;
        address.lead_back().await;
    }
}

/// As one whose disk was emptied: no process that has been connected makes the bucket there.
#[tokio::test]
async fn server_without_the_bucket_is_given_none_by_whoever_was_connected_before() {
    let address = Address::with_an_empty_stranger().await;
    let store = address.scratch.store().await;
    let asked = request("job", "holder", seconds(300));
    take(&store, &asked).await;
    address.lead_to(&address.strange).await;
    let gone = "the bucket is gone";
    is_refused_for(gone, async || store.acquire(&asked).await.err()).await;
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
    address.lead_to(&address.strange).await;
    match eventually_async(PATIENCE, "the same term", || store.acquire(&asked)).await {
        Acquired::Granted(grant) => assert_eq!((grant.token, grant.again), (token, true)),
        other => panic!("{other:?}"),
    }
    address.is_untouched().await;
}

/// In it the lease is nobody's: whoever took it there would lead beside the holder. Over the connection of before, too.
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
    is_refused(async || store.acquire(&waiting).await.err()).await;
    take(&anew, &waiting).await;
    let later = scratch.store().await;
    let held = later.acquire(&request("job", "third", seconds(300))).await;
    assert!(matches!(held, Ok(Acquired::Held(_))), "{held:?}");
}
