//! Another server at the address of the URL, since nobody asked last: one that was set up by itself, which
//! would give the lease away a second time, and call the leader's lost.
use crate::common::{PATIENCE, Scratch, request, seconds, take};
use mysql_async::prelude::Queryable as _;
use tenure_conformance::asking::finding;
use tenure_conformance::strangers::{
    self, Address as _, exchange, fence_asks_nothing, is_refused, leader_loses_nothing,
    standby_is_granted_nothing, watch_is_not_begun,
};
use tenure_core::{Fence, LeaseStore, Leases, Verdict};
use tenure_mysql::{MysqlFence, MysqlStore};
use tenure_testkit::{FaultProxy, Mariadb, eventually_async};

/// Two servers, each set up by itself, and an address that leads to the first.
struct Address {
    _stranger: Mariadb,
    strange: Scratch,
    proxy: FaultProxy,
    ours: Scratch,
}

impl Address {
    async fn new() -> Self {
        let ours = Scratch::new().await;
        let stranger = Mariadb::start().await.unwrap();
        let strange = Scratch {
            address: stranger.address(),
            database: ours.database.clone(),
        };
        let create = format!("CREATE DATABASE {}", ours.database);
        stranger.execute(&create).await.unwrap();
        MysqlStore::init(&strange.url()).await.unwrap();
        let proxy = FaultProxy::mysql(ours.address.clone()).unwrap();
        Self {
            _stranger: stranger,
            strange,
            proxy,
            ours,
        }
    }

    fn url(&self) -> String {
        self.ours.url_at("root", &self.proxy.address().to_string())
    }

    async fn store(&self) -> MysqlStore {
        MysqlStore::connect(&self.url()).await.unwrap()
    }
}

impl strangers::Address for Address {
    const SAID: &str = "is of store";

    async fn lead_to_the_stranger(&self) {
        exchange(&self.proxy, self.strange.address.clone()).await;
    }

    async fn lead_back(&self) {
        self.proxy.lead_to(self.ours.address.clone());
    }

    async fn is_untouched(&self) {
        let mut client = self.strange.client().await;
        let written = "SELECT (SELECT COUNT(*) FROM tenure_leases) + (SELECT COUNT(*) FROM tenure_fences)";
        let written: Option<u64> = client.query_first(written).await.unwrap();
        assert_eq!(written, Some(0), "the stranger was asked");
    }
}

#[tokio::test]
async fn standby_is_granted_nothing_by_a_stranger_at_the_address_of_its_mysql() {
    let address = Address::new().await;
    let leaders = address.ours.store().await;
    standby_is_granted_nothing(&address, &address.store().await, &leaders).await;
}

#[tokio::test]
async fn leader_loses_nothing_to_a_stranger_at_the_address_of_its_mysql() {
    let address = Address::new().await;
    leader_loses_nothing(&address, &address.store().await).await;
}

#[tokio::test]
async fn watch_is_not_begun_at_a_stranger_at_the_address_of_its_mysql() {
    let address = Address::new().await;
    watch_is_not_begun(&address, &address.store().await).await;
}

#[tokio::test]
async fn fence_asks_nothing_of_a_stranger_at_the_address_of_its_mysql() {
    let address = Address::new().await;
    let fence = &MysqlFence::connect(&address.url(), Leases::Elsewhere)
        .await
        .unwrap();
    fence_asks_nothing(&address, fence, async |ledger, term| {
        fence.check(ledger, term).await
    })
    .await;
}

/// Where the tables were made anew, or none are there yet, it is not the store that was connected to either.
#[tokio::test]
async fn tables_without_the_number_of_their_store_are_a_strangers_once_it_is_known() {
    let address = Address::new().await;
    let store = address.store().await;
    let asked = request("job", "holder", seconds(300));
    take(&store, &asked).await;
    for statement in [
        "DELETE FROM tenure_setup WHERE one = 2",
        "DROP TABLE tenure_setup",
    ] {
        address.strange.sql(statement).await;
        address.lead_to_the_stranger().await;
        let refused = async || store.acquire(&asked).await.err();
        is_refused::<Address>("start this process anew", refused).await;
        address.is_untouched().await;
        address.lead_back().await;
        let ours = eventually_async(PATIENCE, "ours", || store.get(&asked.name)).await;
        assert!(ours.is_some());
    }
}

/// As an earlier Tenure has made them, which one that knows of it goes on with; beside it, nothing changes.
#[tokio::test]
async fn tables_without_a_number_keep_leases_and_are_given_one_that_stays() {
    let scratch = Scratch::new().await;
    scratch.sql("DELETE FROM tenure_setup WHERE one = 2").await;
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(300));
    let token = take(&store, &asked).await.token;
    let told = finding(&store, "store number").await;
    assert_eq!(told.verdict, Verdict::Warning, "{told:?}");
    let mut client = scratch.client().await;
    let mut number = async || -> i64 {
        let asked = "SELECT version FROM tenure_setup WHERE one = 2";
        client.query_first(asked).await.unwrap().unwrap()
    };
    MysqlStore::init(&scratch.url()).await.unwrap();
    let given = number().await;
    assert!(given > 0);
    MysqlStore::init(&scratch.url()).await.unwrap();
    assert_eq!(number().await, given);
    for store in [store, scratch.store().await] {
        let again = take(&store, &asked).await;
        assert_eq!((again.token, again.again), (token, true));
    }
    let told = finding(&scratch.store().await, "server").await;
    assert_eq!(told.verdict, Verdict::Good);
    assert!(told.detail.contains(&format!("store {given}")), "{told:?}");
}
