//! A pooler that leads to another cluster since, under connections of ours that live on: each statement may
//! be the first that comes there.
use crate::common::Scratch;
use crate::exchanged::nothing_is_written_at;
use tenure_conformance::strangers::{
    self, exchange, fence_asks_nothing, leader_loses_nothing, standby_is_granted_nothing,
};
use tenure_core::{Fence, Leases};
use tenure_postgres::{PostgresFence, PostgresStore};
use tenure_testkit::{FaultProxy, PgBouncer, Postgres};

/// Two servers, each with the schema, and a pooler whose way leads to the first.
struct Pooled {
    strange: Postgres,
    /// Between the pooler and the servers.
    proxy: FaultProxy,
    pooler: PgBouncer,
    ours: Scratch,
}

impl Pooled {
    async fn new() -> Self {
        let ours = Scratch::new().await;
        let strange = Postgres::start().await.unwrap();
        PostgresStore::init(&ours.url_on(&strange.uri(), ""))
            .await
            .unwrap();
        let proxy = FaultProxy::postgres(Postgres::shared().await.address()).unwrap();
        Self {
            strange,
            pooler: PgBouncer::before(proxy.address().port(), 3).await.unwrap(),
            proxy,
            ours,
        }
    }

    fn url(&self) -> String {
        self.ours.url_on(&self.pooler.uri_of("postgres"), "listen=off")
    }

    async fn store(&self) -> PostgresStore {
        PostgresStore::connect(&self.url()).await.unwrap()
    }
}

impl strangers::Address for Pooled {
    const SAID: &str = "is of cluster";

    async fn lead_to_the_stranger(&self) {
        exchange(&self.proxy, self.strange.address()).await;
    }

    /// The pooler stays connected to whom it has met.
    async fn lead_back(&self) {
        exchange(&self.proxy, Postgres::shared().await.address()).await;
    }

    async fn is_untouched(&self) {
        nothing_is_written_at(&self.strange, &self.ours).await;
    }
}

#[tokio::test]
async fn standby_is_granted_nothing_where_a_pooler_leads_to_another_cluster() {
    let pooled = Pooled::new().await;
    let leaders = pooled.ours.store().await;
    standby_is_granted_nothing(&pooled, &pooled.store().await, &leaders).await;
}

#[tokio::test]
async fn leader_loses_nothing_where_a_pooler_leads_to_another_cluster() {
    let pooled = Pooled::new().await;
    leader_loses_nothing(&pooled, &pooled.store().await).await;
}

#[tokio::test]
async fn fence_goes_by_no_mark_where_a_pooler_leads_to_another_cluster() {
    let pooled = Pooled::new().await;
    let fence = &PostgresFence::connect(&pooled.url(), Leases::Elsewhere)
        .await
        .unwrap();
    fence_asks_nothing(&pooled, fence, async |ledger, term| {
        fence.check(ledger, term).await
    })
    .await;
}
