//! Users without a login, as those that are known by their certificates, where how a member stands is told to
//! the role root alone, as by etcd 3.5.28 to 3.5.30: of which cluster it is has to be learnt nevertheless.
use crate::common::{finding, request, seconds, take};
use crate::connect::with_users;
use crate::exchanged::asked_of;
use crate::http_proxy::HttpProxy;
use std::collections::BTreeMap;
use std::time::Duration;
use tenure_conformance::strangers::{
    self, exchange, fence_asks_nothing, leader_loses_nothing, standby_is_granted_nothing,
};
use tenure_core::{Fault, LeaseStore, Leases, StoreError, Verdict};
use tenure_etcd::{EtcdFence, EtcdStore, FencedTransaction};
use tenure_testkit::{Etcd, EtcdOptions, FaultProxy, SelfSigned, eventually_async};

const PATIENCE: Duration = Duration::from_secs(60);

/// Two servers, each a cluster of its own.
struct Pair {
    etcds: [Etcd; 2],
    /// What stands before each, where this etcd tells everybody how it stands.
    _denying: Vec<HttpProxy>,
    /// Where each is reached.
    hosts: [String; 2],
    scheme: &'static str,
    options: String,
    _certificates: Vec<SelfSigned>,
}

impl Pair {
    async fn behind_proxies() -> Self {
        let start = async || Etcd::start(EtcdOptions::default()).await.unwrap();
        let etcds = [start().await, start().await];
        let mut denying = Vec::new();
        for etcd in &etcds {
            denying.push(HttpProxy::denying_status(etcd).await);
        }
        Self {
            hosts: [0, 1].map(|number: usize| denying[number].address.to_string()),
            etcds,
            _denying: denying,
            scheme: "etcd",
            options: String::new(),
            _certificates: Vec::new(),
        }
    }

    async fn by_certificate() -> Self {
        let (ours, theirs) = (SelfSigned::new("etcd-ours"), SelfSigned::new("etcd-theirs"));
        let start = async || {
            let mut etcd = with_users("").await;
            let options = EtcdOptions {
                tls: Some(((&theirs.file).into(), (&theirs.key).into())),
                ..EtcdOptions::default()
            };
            let asking = format!("--client-cert-auth --trusted-ca-file {}", ours.file);
            etcd.restart_with(options.with(&asking)).await.unwrap();
            etcd
        };
        let etcds = [start().await, start().await];
        Self {
            hosts: [0, 1].map(|number: usize| named(&etcds[number].address(0))),
            etcds,
            _denying: Vec::new(),
            scheme: "etcds",
            options: format!("?ca={}&cert={}&key={}", theirs.file, ours.file, ours.key),
            _certificates: vec![ours, theirs],
        }
    }

    fn url(&self, hosts: &str) -> String {
        format!("{}://{hosts}{}", self.scheme, self.options)
    }
}

/// As the certificate names it.
fn named(address: &str) -> String {
    address.replace("127.0.0.1", "localhost")
}

/// An address that leads to the first.
struct Address {
    pair: Pair,
    /// What the other was asked before.
    asked: BTreeMap<String, String>,
    proxy: FaultProxy,
}

impl Address {
    fn of(pair: Pair) -> Self {
        let proxy = FaultProxy::bytes(pair.hosts[0].replace("localhost", "127.0.0.1")).unwrap();
        Self {
            asked: asked_in_earnest(&pair.etcds[1]),
            pair,
            proxy,
        }
    }

    fn url(&self) -> String {
        self.pair.url(&named(&self.proxy.address().to_string()))
    }

    async fn store(&self, url: &str) -> EtcdStore {
        eventually_async(PATIENCE, "a store", || EtcdStore::connect(url)).await
    }
}

impl strangers::Address for Address {
    const SAID: &str = "is of cluster";

    async fn lead_to_the_stranger(&self) {
        exchange(&self.proxy, self.pair.hosts[1].replace("localhost", "127.0.0.1")).await;
    }

    async fn lead_back(&self) {
        self.proxy
            .lead_to(self.pair.hosts[0].replace("localhost", "127.0.0.1"));
    }

    fn may_be_said_before(error: &StoreError) {
        assert_eq!(error.fault, Fault::Unreachable, "{error}");
    }

    async fn is_untouched(&self) {
        assert_eq!(
            asked_in_earnest(&self.pair.etcds[1]),
            self.asked,
            "the stranger was asked"
        );
    }
}

/// Beside what it is asked to learn of which cluster it is: for a session that nobody has.
fn asked_in_earnest(etcd: &Etcd) -> BTreeMap<String, String> {
    let mut asked = asked_of(etcd);
    asked.remove("LeaseTimeToLive");
    asked
}

async fn both() -> [Pair; 2] {
    [Pair::behind_proxies().await, Pair::by_certificate().await]
}

/// Each would have a leader of its own, and both of them the same token.
#[tokio::test]
async fn clusters_of_one_url_are_told_apart_where_only_root_is_told_how_they_stand() {
    for pair in both().await {
        let [one, other] = &pair.hosts;
        for hosts in [format!("{one},{other}"), format!("{other},{one}")] {
            let url = pair.url(&hosts);
            let refusal = async || match EtcdStore::connect(&url).await {
                Ok(_) => Err("it was taken".to_owned()),
                // Who is late tells nothing.
                Err(error) if error.fault == Fault::Unreachable => Err(error.to_string()),
                Err(error) => Ok(error),
            };
            let error = eventually_async(PATIENCE, "a refusal", refusal).await;
            assert_eq!(error.fault, Fault::Invalid, "{error}");
            for host in [one, other] {
                assert!(
                    error.message.contains(&format!("{host} is of cluster")),
                    "{error}"
                );
            }
        }
    }
}

#[tokio::test]
async fn standby_is_granted_nothing_by_a_stranger_that_tells_only_root_how_it_stands() {
    for pair in both().await {
        let address = Address::of(pair);
        let store = address.store(&address.url()).await;
        let leaders = address.store(&address.pair.url(&address.pair.hosts[0])).await;
        standby_is_granted_nothing(&address, &store, &leaders).await;
    }
}

#[tokio::test]
async fn leader_loses_nothing_to_a_stranger_that_tells_only_root_how_it_stands() {
    for pair in both().await {
        let address = Address::of(pair);
        let store = address.store(&address.url()).await;
        leader_loses_nothing(&address, &store).await;
    }
}

#[tokio::test]
async fn fence_asks_nothing_of_a_stranger_that_tells_only_root_how_it_stands() {
    for pair in both().await {
        let address = Address::of(pair);
        let fence = &EtcdFence::connect(&address.url(), Leases::Elsewhere)
            .await
            .unwrap();
        // In the user's own prefix.
        let transaction = &FencedTransaction::new().put("tenure/account", "7");
        let write = async |ledger: &_, term: &_| fence.write(ledger, term, transaction).await.map(drop);
        fence_asks_nothing(&address, fence, write).await;
    }
}

#[tokio::test]
async fn examination_names_the_cluster_where_only_root_is_told_how_it_stands() {
    for pair in both().await {
        let url = pair.url(&pair.hosts[0]);
        let store = eventually_async(PATIENCE, "a store", || EtcdStore::connect(&url)).await;
        take(&store, &request("job", "holder", seconds(60))).await;
        let findings = store.examine().await.unwrap();
        let cluster = finding(&findings, "cluster");
        assert_eq!(cluster.verdict, Verdict::Good, "{cluster:?}");
    }
}
