//! A primary that another one's changes are applied to, by a logical subscription: they are written around
//! every function.
use crate::common::{PATIENCE, Scratch};
use crate::fence::{ledger, term};
use tenure_conformance::asking::finding;
use tenure_core::{Claimed, Durability, Fault, Fence, FenceError, LeaseStore, Leases, Verdict};
use tenure_postgres::{PostgresFence, PostgresStore};
use tenure_testkit::{Postgres, eventually_async};

const LOGICAL: [&str; 2] = ["wal_level=logical", "wal_retrieve_retry_interval=100ms"];

/// A server whose tables of Tenure's are published, and one that subscribes to them; with what is at each.
struct Pair {
    publisher: Postgres,
    _subscriber: Postgres,
    here: Scratch,
    there: Scratch,
}

impl Pair {
    async fn published() -> Self {
        let publisher = Postgres::with_settings(&LOGICAL).await.unwrap();
        let subscriber = Postgres::with_settings(&LOGICAL).await.unwrap();
        let here = Scratch::on(&publisher.uri()).await;
        let there = Scratch {
            uri: subscriber.uri(),
            schema: here.schema.clone(),
        };
        PostgresStore::init(&there.url("")).await.unwrap();
        here.sql("CREATE PUBLICATION moving FOR TABLE {schema}.leases, {schema}.fences")
            .await;
        Self {
            publisher,
            _subscriber: subscriber,
            here,
            there,
        }
    }

    async fn subscribe(&self) {
        let subscribe = format!(
            "CREATE SUBSCRIPTION moving CONNECTION 'host=127.0.0.1 port={} user=postgres dbname=postgres' PUBLICATION moving",
            self.publisher.port()
        );
        self.there.sql(&subscribe).await;
    }
}

/// The subscriber's terms go on by themselves, as after a fail-over by such a subscription.
#[tokio::test]
async fn mark_is_not_lowered_by_what_a_subscription_applies() {
    let pair = Pair::published().await;
    let ours = PostgresFence::connect(&pair.here.url(""), Leases::Here)
        .await
        .unwrap();
    let theirs = PostgresFence::connect(&pair.there.url(""), Leases::Here)
        .await
        .unwrap();
    ours.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    pair.subscribe().await;
    eventually_async(PATIENCE, "the mark at the subscriber", async || {
        theirs.mark(&ledger()).await.unwrap().is_some()
    })
    .await;
    let (holder, stale) = (term("nightly", 9), term("nightly", 7));
    let claimed = theirs.claim(&ledger(), &holder).await;
    assert_eq!(
        claimed,
        Ok(Claimed::Raised {
            from: Some(term("nightly", 5).token)
        })
    );
    ours.claim(&ledger(), &stale).await.unwrap();
    // Applied, or refused.
    eventually_async(
        PATIENCE,
        "what becomes of the claim at the subscriber",
        async || {
            let refused =
                "SELECT sum(apply_error_count + sync_error_count)::bigint FROM pg_stat_subscription_stats";
            theirs.mark(&ledger()).await.unwrap().unwrap().token != holder.token
                || pair.there.value::<i64>(refused).await > 0
        },
    )
    .await;
    let refused = theirs.check(&ledger(), &stale).await;
    assert!(matches!(refused, Err(FenceError::Stale { .. })), "{refused:?}");
    assert_eq!(theirs.check(&ledger(), &holder).await, Ok(()));
}

/// Both primaries would give the leases away, and tell each other of it.
#[tokio::test]
async fn tables_that_a_subscription_writes_to_are_told_of_or_refused() {
    let pair = Pair::published().await;
    let published = finding(&pair.here.store().await, "tables").await;
    assert_eq!(published.verdict, Verdict::Warning, "{published:?}");
    assert!(published.detail.contains("published by moving"), "{published:?}");
    assert_eq!(declared(&pair.there).await, Durability::Safe);
    pair.subscribe().await;
    let url = pair.there.url("");
    let store = PostgresStore::connect(&url).await.err().unwrap();
    let fence = PostgresFence::connect(&url, Leases::Here).await.err().unwrap();
    for error in [store, fence] {
        assert_eq!(error.fault, Fault::Unsupported, "{error}");
        assert!(
            error.message.contains("a subscription applies to the table"),
            "{error}"
        );
    }
    pair.here
        .sql("ALTER PUBLICATION moving DROP TABLE {schema}.fences")
        .await;
    pair.there
        .sql("ALTER SUBSCRIPTION moving REFRESH PUBLICATION")
        .await;
    let durability = declared(&pair.there).await;
    assert!(
        matches!(durability, Durability::FenceOnly(why) if why.contains("subscription")),
        "{durability:?}"
    );
    pair.there.sql("DROP SUBSCRIPTION moving").await;
    assert_eq!(declared(&pair.there).await, Durability::Safe);
}

async fn declared(scratch: &Scratch) -> Durability {
    scratch.store().await.traits().durability
}
