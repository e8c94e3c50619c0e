//! Another server at an address of the URL, since nobody asked last: one of another cluster, which would give
//! the lease away a second time, and call the leader's lost.
use crate::common::{PATIENCE, Scratch, request, seconds, take};
use tenure_conformance::strangers::{
    self, Address as _, cut, exchange, fence_asks_nothing, is_refused, leader_loses_nothing,
    standby_is_granted_nothing, watch_is_not_begun,
};
use tenure_core::{Acquired, Fence, LeaseStore, Leases};
use tenure_postgres::{PostgresFence, PostgresStore};
use tenure_testkit::{FaultProxy, Postgres, eventually_async};

/// Two servers, each with the schema, and an address that leads to the first.
struct Address {
    strange: Postgres,
    proxy: FaultProxy,
    ours: Scratch,
}

impl Address {
    async fn new() -> Self {
        let ours = Scratch::new().await;
        let strange = Postgres::start().await.unwrap();
        PostgresStore::init(&ours.url_on(&strange.uri(), ""))
            .await
            .unwrap();
        let proxy = FaultProxy::postgres(Postgres::shared().await.address()).unwrap();
        Self { strange, proxy, ours }
    }

    fn url(&self) -> String {
        let uri = format!("postgres://postgres@{}/postgres", self.proxy.address());
        self.ours.url_on(&uri, "")
    }

    async fn store(&self) -> PostgresStore {
        PostgresStore::connect(&self.url()).await.unwrap()
    }
}

/// Panics if a lease or a mark was written there, in the schema of ours.
pub async fn nothing_is_written_at(stranger: &Postgres, ours: &Scratch) {
    let strange = Scratch {
        uri: stranger.uri(),
        schema: ours.schema.clone(),
    };
    let written = "SELECT (SELECT count(*) FROM {schema}.leases) + (SELECT count(*) FROM {schema}.fences)";
    assert_eq!(strange.value::<i64>(written).await, 0, "the stranger was asked");
}

impl strangers::Address for Address {
    const SAID: &str = "is of cluster";

    async fn lead_to_the_stranger(&self) {
        exchange(&self.proxy, self.strange.address()).await;
    }

    async fn lead_back(&self) {
        self.proxy.lead_to(Postgres::shared().await.address());
    }

    async fn is_untouched(&self) {
        nothing_is_written_at(&self.strange, &self.ours).await;
    }
}

#[tokio::test]
async fn standby_is_granted_nothing_by_a_stranger_at_the_address_of_its_postgres() {
    let address = Address::new().await;
    let leaders = address.ours.store().await;
    standby_is_granted_nothing(&address, &address.store().await, &leaders).await;
}

#[tokio::test]
async fn leader_loses_nothing_to_a_stranger_at_the_address_of_its_postgres() {
    let address = Address::new().await;
    leader_loses_nothing(&address, &address.store().await).await;
}

#[tokio::test]
async fn watch_is_not_begun_at_a_stranger_at_the_address_of_its_postgres() {
    let address = Address::new().await;
    watch_is_not_begun(&address, &address.store().await).await;
}

#[tokio::test]
async fn fence_asks_nothing_of_a_stranger_at_the_address_of_its_postgres() {
    let address = Address::new().await;
    let fence = &PostgresFence::connect(&address.url(), Leases::Elsewhere)
        .await
        .unwrap();
    fence_asks_nothing(&address, fence, async |ledger, term| {
        fence.check(ledger, term).await
    })
    .await;
}

/// Of several hosts, that of a stranger is one that is away: also where ours is too slow, or has no
/// connection left.
#[tokio::test]
async fn stranger_is_passed_over_for_another_host_of_postgres() {
    let address = Address::new().await;
    let other = FaultProxy::postgres(Postgres::shared().await.address()).unwrap();
    let both = format!(
        "postgres://postgres@{},{}/postgres",
        address.proxy.address(),
        other.address()
    );
    let store = PostgresStore::connect(&address.ours.url_on(&both, ""))
        .await
        .unwrap();
    let asked = request("job", "holder", seconds(300));
    let token = take(&store, &asked).await.token;
    // Whichever of the two it is connected to, nothing is left but the stranger.
    address.proxy.lead_to(address.strange.address());
    other.lead_to(format!("127.0.0.1:{}", tenure_testkit::free_port()));
    cut(&[&address.proxy, &other]).await;
    is_refused::<Address>(Address::SAID, async || store.acquire(&asked).await.err()).await;
    address.is_untouched().await;
    other.lead_to(Postgres::shared().await.address());
    match eventually_async(PATIENCE, "the same term", || store.acquire(&asked)).await {
        Acquired::Granted(grant) => assert_eq!((grant.token, grant.again), (token, true)),
        other => panic!("{other:?}"),
    }
    address.is_untouched().await;
}
