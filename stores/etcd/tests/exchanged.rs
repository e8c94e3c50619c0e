//! Another server at the address of a member, since nobody asked last: one of another cluster, which would give the lease away
//! a second time, and call the leader's lost. Each URL names one address.
use crate::common::{Scratch, name, renewal, request, seconds, take};
use std::collections::BTreeMap;
use std::time::Duration;
use tenure_core::{
    Acquired, Certainty, Fault, Fence, FenceError, FencingToken, LeaseStore, Renewed, ResourceName, Scope,
    StoreError, Term,
};
use tenure_etcd::{EtcdFence, EtcdStore, FencedTransaction};
use tenure_testkit::{Etcd, EtcdOptions, FaultProxy, eventually_async, in_one_of};

const PATIENCE: Duration = Duration::from_secs(60);

/// How often the two servers change places: the driver may not have heard of the end of its connection when it is asked next, and
/// then it fails of that.
const ROUNDS: usize = 3;

/// Two servers, each a cluster of its own, and an address that leads to the first.
struct Address {
    ours: Etcd,
    strange: Etcd,
    /// What the other was asked before.
    asked: BTreeMap<String, String>,
    proxy: FaultProxy,
}

impl Address {
    async fn new() -> Self {
        let start = async || Etcd::start(EtcdOptions::default()).await.unwrap();
        let (ours, strange) = (start().await, start().await);
        let proxy = FaultProxy::http2(ours.address(0)).unwrap();
        Self {
            asked: asked_of(&strange),
            ours,
            strange,
            proxy,
        }
    }

    fn url(&self) -> String {
        format!("etcd://{}", self.proxy.address())
    }

    /// Leads to this server from now on. Whoever is connected has nothing under way.
    async fn lead_to(&self, etcd: &Etcd) {
        self.proxy.lead_to(etcd.address(0));
        let before = self.proxy.counts().cut_connections;
        self.proxy.cut_connections();
        let is_cut = async || (self.proxy.counts().cut_connections > before).then_some(());
        eventually_async(PATIENCE, "the end of the connections", is_cut).await;
        // For the driver to hear of it.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    /// Whoever was refused is not connected.
    fn lead_back(&self) {
        self.proxy.lead_to(self.ours.address(0));
    }

    /// Nor is it asked for anything: a request that writes would have written by then.
    fn is_untouched(&self) {
        assert_eq!(asked_of(&self.strange), self.asked, "the stranger was asked");
    }
}

/// How often a server was asked what, beside who it is.
fn asked_of(etcd: &Etcd) -> BTreeMap<String, String> {
    let metrics = etcd.metrics(0).expect("the test can ask");
    let counted = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("grpc_server_started_total{"));
    let by_method = counted.map(|counted| {
        let (labels, count) = counted.rsplit_once(' ').expect("a count");
        let method = labels.split("grpc_method=\"").nth(1).expect("a method");
        let method = method.split('"').next().expect("its name");
        (method.to_owned(), count.to_owned())
    });
    let asked: BTreeMap<String, String> = by_method
        .filter(|(method, _)| !["Status", "MemberList"].contains(&method.as_str()))
        .collect();
    assert!(asked.contains_key("Range"), "{asked:?}");
    asked
}

/// At last it is said who stands there; until then that the connection has ended. Whoever waits for the store waits for this, too.
async fn is_refused(answer: impl AsyncFn() -> Option<StoreError>) {
    eventually_async(PATIENCE, "a refusal", async || {
        let error = answer().await.expect("it is another cluster");
        assert_eq!(error.fault, Fault::Unreachable, "{error}");
        if !error.message.contains("is of cluster") {
            return Err(error);
        }
        assert_eq!(error.certainty, Certainty::NotApplied, "{error}");
        Ok(())
    })
    .await;
}

/// While its leader leads on in the true cluster.
#[tokio::test]
async fn standby_is_granted_nothing_by_a_stranger_at_the_address_of_its_member() {
    let address = Address::new().await;
    let scratch = Scratch::on(&address.url());
    let store = scratch.store().await;
    let leader = Scratch {
        url: address.ours.url(),
        ..scratch
    };
    let leading = request("job", "leader", seconds(300));
    take(&leader.store().await, &leading).await;
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
        address.is_untouched();
        address.lead_back();
    }
}

/// It would end its work, and nobody would lead before its ttl is over.
#[tokio::test]
async fn leader_loses_nothing_to_a_stranger_at_the_address_of_its_member() {
    let address = Address::new().await;
    let store = Scratch::on(&address.url()).store().await;
    let asked = request("job", "holder", seconds(300));
    let beat = [renewal(&asked, take(&store, &asked).await.token)];
    for _round in 0..ROUNDS {
        let renewing = async || store.renew(&beat).await.remove(0);
        let renewed = eventually_async(PATIENCE, "a renewal", renewing).await;
        assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
        address.lead_to(&address.strange).await;
        is_refused(async || store.renew(&beat).await.remove(0).err()).await;
        address.is_untouched();
        address.lead_back();
    }
}

/// It would hear of nothing that happens.
#[tokio::test]
async fn watch_does_not_go_on_with_a_stranger_at_the_address_of_its_member() {
    let address = Address::new().await;
    let store = Scratch::on(&address.url()).store().await;
    let mut watch = store.watch(&Scope::Prefix(String::new())).await.unwrap();
    address.lead_to(&address.strange).await;
    let told = tokio::time::timeout(PATIENCE, watch.next()).await;
    let over = told.expect("in time").expect_err("it is another cluster");
    assert!(over.message.contains("is of cluster"), "{over}");
    address.is_untouched();
}

/// It has marks of its own, so that any token would be admitted.
#[tokio::test]
async fn fence_asks_nothing_of_a_stranger_at_the_address_of_its_member() {
    let address = Address::new().await;
    let fence = EtcdFence::connect(&address.url())
        .await
        .unwrap()
        .with_leases_elsewhere();
    let ledger = ResourceName::new("ledger").unwrap();
    let term = Term::new(name("job"), FencingToken::new(7).unwrap());
    let error = |refused: FenceError| match refused {
        FenceError::Store(error) => error,
        other => panic!("{other}"),
    };
    let claim = async || fence.claim(&ledger, &term).await.err().map(error);
    let transaction = FencedTransaction::new().put("account", "7");
    let write = async || fence.write(&ledger, &term, &transaction).await.err().map(error);
    for _round in 0..ROUNDS {
        eventually_async(PATIENCE, "a claim", async || claim().await.map_or(Ok(()), Err)).await;
        address.lead_to(&address.strange).await;
        is_refused(claim).await;
        address.is_untouched();
        address.lead_back();
        eventually_async(PATIENCE, "a write", async || write().await.map_or(Ok(()), Err)).await;
        address.lead_to(&address.strange).await;
        is_refused(write).await;
        address.is_untouched();
        address.lead_back();
    }
}

/// As after a restart of the server, or where a proxy has ended what nobody used.
#[tokio::test]
async fn call_that_finds_its_connection_ended_is_made_on_another() {
    let address = &Address::new().await;
    let store = &EtcdStore::connect(&address.url()).await.unwrap();
    let asked = &request("job", "holder", seconds(300));
    let beat = &[renewal(asked, take(store, asked).await.token)];
    in_one_of(5, "no call was made on another connection", || async {
        eventually_async(PATIENCE, "a renewal", async || store.renew(beat).await.remove(0)).await;
        address.lead_to(&address.ours).await;
        store.renew(beat).await.remove(0).is_ok()
    })
    .await;
}
