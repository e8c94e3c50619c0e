//! Another server at an address of the URL, since nobody asked last. The URL names one address, and ties to
//! it, as for a tunnel.

use crate::common::{Scratch, persist, renewal, request, seconds};
use mongodb::Client;
use mongodb::bson::{Document, doc};
use std::time::Duration;
use tenure_conformance::strangers::{
    self, Address as _, cut, exchange, is_refused, leader_loses_nothing, standby_is_granted_nothing,
    watch_is_not_begun,
};
use tenure_core::{Fault, Interest, LeaseStore, Renew, Scope, Verdict, Watch};
use tenure_mongodb::MongoStore;
use tenure_testkit::{FaultProxy, ReplicaSet, Size, eventually_async};

const PATIENCE: Duration = Duration::from_secs(60);

/// Two sets of the same name, each of one server, and an address that leads to the first.
struct Address {
    ours: ReplicaSet,
    strange: ReplicaSet,
    proxy: FaultProxy,
    /// At that address.
    scratch: Scratch,
}

impl Address {
    /// The second one has leases of its own.
    async fn new() -> Self {
        let address = Self::with_an_empty_stranger().await;
        let store = address.at(&address.strange).store().await;
        persist(&store, &request("theirs", "other", seconds(300))).await;
        address
    }

    async fn with_an_empty_stranger() -> Self {
        let (ours, strange) = tokio::join!(ReplicaSet::start(Size::One), ReplicaSet::start(Size::One));
        let (ours, strange) = (ours.expect("a set"), strange.expect("a set"));
        let proxy = FaultProxy::mongodb(ours.address(0)).expect("a proxy");
        Self {
            scratch: Scratch::new(proxy.mongodb_uri()),
            ours,
            strange,
            proxy,
        }
    }

    /// The collection of the same name that this set has, whatever the address leads to.
    fn at(&self, set: &ReplicaSet) -> Scratch {
        Scratch {
            uri: set.uri(),
            database: self.scratch.database.clone(),
        }
    }
}

impl strangers::Address for Address {
    const SAID: &str = "another store answers";

    async fn lead_to_the_stranger(&self) {
        exchange(&self.proxy, self.strange.address(0)).await;
    }

    async fn lead_back(&self) {
        self.proxy.lead_to(self.ours.address(0));
        self.proxy.cut_connections();
    }

    async fn is_untouched(&self) {
        let client = Client::with_uri_str(self.strange.uri()).await.expect("a client");
        let leases = client
            .database(&self.scratch.database)
            .collection::<Document>("job_leases");
        let ours = leases.find_one(doc! { "_id": "job" }).await.expect("a look");
        assert_eq!(ours, None, "the stranger was asked");
    }
}

#[tokio::test]
async fn standby_is_granted_nothing_by_a_stranger_at_the_address_of_its_mongodb() {
    let address = Address::new().await;
    let leaders = address.at(&address.ours).store().await;
    let store = address.scratch.store().await;
    // The store is known by its first lease.
    persist(&leaders, &request("first", "leader", seconds(300))).await;
    standby_is_granted_nothing(&address, &store, &leaders).await;
}

#[tokio::test]
async fn leader_loses_nothing_to_a_stranger_at_the_address_of_its_mongodb() {
    let address = Address::new().await;
    leader_loses_nothing(&address, &address.scratch.store().await).await;
}

#[tokio::test]
async fn watch_is_not_begun_at_a_stranger_at_the_address_of_its_mongodb() {
    let address = Address::new().await;
    let store = address.scratch.store().await;
    persist(&store, &request("first", "leader", seconds(300))).await;
    watch_is_not_begun(&address, &store).await;
}

impl Address {
    /// From now on each new connection leads to the stranger, and the only one that there is goes on to ours:
    /// the watch that is returned keeps it busy.
    async fn lead_new_connections_to_the_stranger(&self, store: &MongoStore) -> Box<dyn Watch> {
        cut(&[&self.proxy]).await;
        let everything = Scope::Prefix(String::new());
        let watch = eventually_async(PATIENCE, "a watch", || {
            store.watch(&everything, Interest::Everything)
        })
        .await;
        self.proxy.lead_to(self.strange.address(0));
        watch
    }
}

/// What renews two terms of one holder.
async fn two_terms(store: &MongoStore) -> [Renew; 2] {
    let asked = ["job", "other job"].map(|name| request(name, "holder", seconds(300)));
    let granted = [persist(store, &asked[0]).await, persist(store, &asked[1]).await];
    [0, 1].map(|which| renewal(&asked[which], granted[which].token))
}

/// Nothing has ended for the driver to clear its pool, as where a name begins to lead elsewhere.
#[tokio::test]
async fn standby_is_granted_nothing_over_a_new_connection_beside_one_to_its_mongodb() {
    let address = Address::new().await;
    let store = address.scratch.store().await;
    let _held = two_terms(&store).await;
    let _watch = address.lead_new_connections_to_the_stranger(&store).await;
    let waiting = request("job", "standby", seconds(300));
    let refused = store.acquire(&waiting).await.expect_err("it is a stranger");
    assert_eq!(refused.fault, Fault::AnotherStore, "{refused}");
}

/// The stranger finds neither term, and would end the work of both.
#[tokio::test]
async fn leader_of_two_loses_neither_over_a_new_connection_beside_one_to_its_mongodb() {
    let address = Address::new().await;
    let store = address.scratch.store().await;
    let beat = two_terms(&store).await;
    let _watch = address.lead_new_connections_to_the_stranger(&store).await;
    for renewed in store.renew(&beat).await {
        let refused = renewed.expect_err("it is a stranger");
        assert_eq!(refused.fault, Fault::AnotherStore, "{refused}");
    }
}

/// As one whose disk was emptied. It is made no store of ours by who was connected before; who connects now
/// goes by it.
#[tokio::test]
async fn server_without_the_mark_is_given_none_by_who_was_connected_before() {
    let address = Address::with_an_empty_stranger().await;
    let store = address.scratch.store().await;
    let asked = request("job", "holder", seconds(300));
    persist(&store, &asked).await;
    address.lead_to_the_stranger().await;
    is_refused::<Address>("it has no mark", async || store.acquire(&asked).await.err()).await;
    address.is_untouched().await;
    let anew = address.scratch.store().await;
    persist(&anew, &asked).await;
    is_refused::<Address>(Address::MARKED, async || store.acquire(&asked).await.err()).await;
}

impl Address {
    const MARKED: &str = "and the one that was connected to first is";
}

/// Two operators compare it.
#[tokio::test]
async fn the_examination_shows_which_store_it_is() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let store = scratch.store().await;
    persist(&store, &request("job", "holder", seconds(300))).await;
    let other = scratch.store().await;
    let mut told = Vec::new();
    for store in [store, other] {
        let findings = store.examine().await.expect("an examination");
        let found = findings.into_iter().find(|finding| finding.subject == "store");
        let found = found.expect("it is examined");
        assert_eq!(found.verdict, Verdict::Good, "{found:?}");
        told.push(found.detail);
    }
    assert_eq!(told[0], told[1]);
}

/// Who has it open stays locked out by the driver for ever: it takes the new set's primary for a deposed one.
#[tokio::test]
async fn a_set_that_was_made_anew_is_told_as_another_store() {
    let mut set = ReplicaSet::start(Size::One).await.expect("a set");
    // A later configuration than a new set has.
    set.become_patient().await.expect("a patient set");
    set.become_patient().await.expect("a patient set");
    let scratch = Scratch::new(set.uri());
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(300));
    persist(&store, &asked).await;
    set.make_anew().await.expect("a set");
    let refused = eventually_async(PATIENCE, "that it is another", async || {
        match store.acquire(&asked).await {
            Err(error) if error.fault == Fault::AnotherStore => Ok(error),
            // A deposed primary is left out in the same words.
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    assert!(refused.message.contains("start this process anew"), "{refused}");
    // At once, however short the ttl and with it the patience of who asks.
    let began = std::time::Instant::now();
    for _again in 0..20 {
        store.acquire(&asked).await.expect_err("it is another");
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let anew = MongoStore::connect(&scratch.url(""))
        .await
        .expect("who is started anew");
    persist(&anew, &asked).await;
}
