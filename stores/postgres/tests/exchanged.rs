//! Another server at an address of the URL, since nobody asked last: one of another cluster, which would give the lease away a second
//! time, and call the leader's lost.
use crate::common::{PATIENCE, Scratch, name, renewal, request, seconds, take};
use tenure_core::{
    Acquired, Certainty, Fault, Fence, FenceError, FencingToken, LeaseStore, Renewed, ResourceName, Scope,
    StoreError, Term,
};
use tenure_postgres::{PostgresFence, PostgresStore};
use tenure_testkit::{FaultProxy, Postgres, eventually_async};

/// How often the two servers change places: the driver may not have heard of the end of its connection when it is asked next, and
/// then it fails of that.
const ROUNDS: usize = 3;

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

    async fn lead_to_the_stranger(&self) {
        self.proxy.lead_to(self.strange.address());
        let before = self.proxy.counts().cut_connections;
        self.proxy.cut_connections();
        let is_cut = async || (self.proxy.counts().cut_connections > before).then_some(());
        eventually_async(PATIENCE, "the end of the connections", is_cut).await;
    }

    /// Whoever was refused is not connected.
    async fn lead_back(&self) {
        self.proxy.lead_to(Postgres::shared().await.address());
    }

    async fn is_untouched(&self) {
        let strange = Scratch {
            uri: self.strange.uri(),
            schema: self.ours.schema.clone(),
        };
        let written =
            "SELECT (SELECT count(*) FROM {schema}.leases) + (SELECT count(*) FROM {schema}.fences)";
        assert_eq!(strange.value::<i64>(written).await, 0, "the stranger was asked");
    }
}

/// At last it is said who stands there; until then that the connection has ended.
async fn is_refused(answer: impl AsyncFn() -> Option<StoreError>) {
    eventually_async(PATIENCE, "a refusal", async || {
        let error = answer().await.expect("it is another cluster");
        if !error.message.contains("is of cluster") {
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
async fn standby_is_granted_nothing_by_a_stranger_at_the_address_of_its_postgres() {
    let address = Address::new().await;
    let store = address.store().await;
    let leading = request("job", "leader", seconds(300));
    take(&address.ours.store().await, &leading).await;
    let waiting = request("job", "standby", seconds(300));
    for _round in 0..ROUNDS {
        match eventually_async(PATIENCE, "an answer", || store.acquire(&waiting)).await {
            Acquired::Held(lease) => assert_eq!(lease.holder, leading.candidate),
            other => panic!("{other:?}"),
        }
        address.lead_to_the_stranger().await;
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
async fn leader_loses_nothing_to_a_stranger_at_the_address_of_its_postgres() {
    let address = Address::new().await;
    let store = address.store().await;
    let asked = request("job", "holder", seconds(300));
    let beat = [renewal(&asked, take(&store, &asked).await.token)];
    for _round in 0..ROUNDS {
        let renewing = async || store.renew(&beat).await.remove(0);
        let renewed = eventually_async(PATIENCE, "a renewal", renewing).await;
        assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
        address.lead_to_the_stranger().await;
        is_refused(async || match store.renew(&beat).await.remove(0) {
            Ok(answer) => panic!("a stranger has answered: {answer:?}"),
            Err(error) => Some(error),
        })
        .await;
        address.lead_back().await;
    }
}

/// It would hear of nothing that happens.
#[tokio::test]
async fn watch_is_not_begun_at_a_stranger_at_the_address_of_its_postgres() {
    let address = Address::new().await;
    let store = address.store().await;
    let everything = Scope::Prefix(String::new());
    for _round in 0..ROUNDS {
        let watching = async || store.watch(&everything).await;
        let mut watch = eventually_async(PATIENCE, "a watch", watching).await;
        address.lead_to_the_stranger().await;
        let told = tokio::time::timeout(PATIENCE, watch.next()).await;
        told.expect("in time").expect_err("its connection has ended");
        is_refused(async || store.watch(&everything).await.err()).await;
        address.lead_back().await;
    }
}

/// It has marks of its own, so that any token would be admitted.
#[tokio::test]
async fn fence_asks_nothing_of_a_stranger_at_the_address_of_its_postgres() {
    let address = Address::new().await;
    let fence = PostgresFence::connect(&address.url()).await.unwrap();
    let fence = fence.with_leases_elsewhere();
    let ledger = ResourceName::new("ledger").unwrap();
    let term = Term::new(name("job"), FencingToken::new(7).unwrap());
    let claim = async || match fence.claim(&ledger, &term).await.err()? {
        FenceError::Store(error) => Some(error),
        other => panic!("{other}"),
    };
    for _round in 0..ROUNDS {
        eventually_async(PATIENCE, "a claim", async || claim().await.map_or(Ok(()), Err)).await;
        address.lead_to_the_stranger().await;
        is_refused(claim).await;
        address.is_untouched().await;
        address.lead_back().await;
    }
}

/// Of several hosts, that of a stranger is one that is away: also where ours is too slow, or has no connection left.
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
    for proxy in [&address.proxy, &other] {
        proxy.cut_connections();
    }
    is_refused(async || store.acquire(&asked).await.err()).await;
    address.is_untouched().await;
    other.lead_to(Postgres::shared().await.address());
    match eventually_async(PATIENCE, "the same term", || store.acquire(&asked)).await {
        Acquired::Granted(grant) => assert_eq!((grant.token, grant.again), (token, true)),
        other => panic!("{other:?}"),
    }
    address.is_untouched().await;
}
