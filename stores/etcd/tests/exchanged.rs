//! Another server at the address of a member, since nobody asked last: one of another cluster, which would
//! give the lease away a second time, and call the leader's lost. Each URL names one address.
use crate::common::{Scratch, renewal, request, seconds, take};
use std::collections::BTreeMap;
use std::time::Duration;
use tenure_conformance::strangers::{
    self, Address as _, exchange, fence_asks_nothing, leader_loses_nothing, standby_is_granted_nothing,
};
use tenure_core::{Fault, Interest, LeaseStore, Leases, Scope, StoreError};
use tenure_etcd::{EtcdFence, EtcdStore, FencedTransaction};
use tenure_testkit::{Etcd, EtcdOptions, FaultProxy, eventually_async, in_one_of};

const PATIENCE: Duration = Duration::from_secs(60);

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
        exchange(&self.proxy, etcd.address(0)).await;
    }
}

impl strangers::Address for Address {
    const SAID: &str = "is of cluster";

    async fn lead_to_the_stranger(&self) {
        self.lead_to(&self.strange).await;
    }

    async fn lead_back(&self) {
        self.proxy.lead_to(self.ours.address(0));
    }

    fn may_be_said_before(error: &StoreError) {
        assert_eq!(error.fault, Fault::Unreachable, "{error}");
    }

    /// Nor is it asked for anything: a request that writes would have written by then.
    async fn is_untouched(&self) {
        assert_eq!(asked_of(&self.strange), self.asked, "the stranger was asked");
    }
}

/// How often a server was asked what, beside who it is.
pub fn asked_of(etcd: &Etcd) -> BTreeMap<String, String> {
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

#[tokio::test]
async fn standby_is_granted_nothing_by_a_stranger_at_the_address_of_its_member() {
    let address = Address::new().await;
    let scratch = Scratch::on(&address.url());
    let store = scratch.store().await;
    let leader = Scratch {
        url: address.ours.url(),
        ..scratch
    };
    standby_is_granted_nothing(&address, &store, &leader.store().await).await;
}

#[tokio::test]
async fn leader_loses_nothing_to_a_stranger_at_the_address_of_its_member() {
    let address = Address::new().await;
    let store = Scratch::on(&address.url()).store().await;
    leader_loses_nothing(&address, &store).await;
}

/// It would hear of nothing that happens.
#[tokio::test]
async fn watch_does_not_go_on_with_a_stranger_at_the_address_of_its_member() {
    let address = Address::new().await;
    let store = Scratch::on(&address.url()).store().await;
    let mut watch = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .unwrap();
    address.lead_to_the_stranger().await;
    let told = tokio::time::timeout(PATIENCE, watch.next()).await;
    let over = told.expect("in time").expect_err("it is another cluster");
    assert!(over.message.contains(Address::SAID), "{over}");
    address.is_untouched().await;
}

#[tokio::test]
async fn fence_asks_nothing_of_a_stranger_at_the_address_of_its_member() {
    let address = Address::new().await;
    let fence = &EtcdFence::connect(&address.url(), Leases::Elsewhere)
        .await
        .unwrap();
    let transaction = &FencedTransaction::new().put("account", "7");
    let write = async |ledger: &_, term: &_| fence.write(ledger, term, transaction).await.map(drop);
    fence_asks_nothing(&address, fence, write).await;
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
