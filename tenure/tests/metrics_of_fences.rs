//! What every kind of fence counts when it refuses.
use metrics_exporter_prometheus::PrometheusBuilder;
use std::sync::Arc;
use tenure::contract::Answer;
use tenure::{Fence, FencingToken, LeaseName, Leases, ResourceName, Term, Watermark};
use tenure_testkit::{
    Etcd, EtcdOptions, Mariadb, NatsOptions, NatsServer, Postgres, RedisOptions, RedisServer, ReplicaSet,
    Size,
};

fn term(lease: &str, token: u64) -> Term {
    Term::new(LeaseName::new(lease).unwrap(), FencingToken::new(token).unwrap())
}

fn ledger() -> ResourceName {
    ResourceName::new("ledger").unwrap()
}

/// The term whose write is refused: a later one has claimed.
fn stale() -> Term {
    term("nightly", 5)
}

/// A fence, and a write that it refuses, told as its text.
struct Kind {
    what: &'static str,
    fence: Arc<dyn Fence>,
    write: Box<dyn Fn() -> Answer<'static, Result<(), String>>>,
}

impl Kind {
    fn new<F: Fence + 'static>(
        what: &'static str,
        fence: F,
        write: impl Fn(Arc<F>) -> Answer<'static, Result<(), String>> + 'static,
    ) -> Self {
        let fence = Arc::new(fence);
        let writes = Arc::clone(&fence);
        Self {
            what,
            fence,
            write: Box::new(move || write(Arc::clone(&writes))),
        }
    }
}

/// Has the fence refuse two stale claims and a foreign one, and a gate before it one more.
async fn refuse_three(fence: &dyn Fence) {
    for (lease, token, is_admitted) in [
        ("nightly", 5, true),
        ("nightly", 9, true),
        ("nightly", 5, false),
        ("nightly", 6, false),
        ("hourly", 9, false),
        ("nightly", 9, true),
    ] {
        let claimed = fence.claim(&ledger(), &term(lease, token)).await;
        assert_eq!(claimed.is_ok(), is_admitted, "{lease} {token}: {claimed:?}");
        if let (5, Err(refusal)) = (token, claimed) {
            // One more, which a gate before the fence has refused by what it knows.
            fence.count_refusal(&refusal);
        }
    }
}

fn told<T>(outcome: Result<T, impl std::fmt::Display>) -> Result<(), String> {
    outcome.map(drop).map_err(|refused| refused.to_string())
}

/// A watermark, and the fences in SQL.
async fn kinds_of_this_machine_and_of_sql(folder: &std::path::Path) -> Vec<Kind> {
    let file = folder.join("fence.db");
    tenure::sqlite::SqliteFence::install(&rusqlite::Connection::open(&file).unwrap()).unwrap();
    let sqlite = tenure::sqlite::SqliteFence::new(&file, Leases::Here).unwrap();
    let postgres = Postgres::shared().await.uri();
    let its_url = format!("{postgres}?schema=counted");
    tenure::postgres::PostgresStore::init(&its_url).await.unwrap();
    let its_fence = tenure::postgres::PostgresFence::connect(&its_url, Leases::Here)
        .await
        .unwrap();
    let mariadb = Mariadb::shared().await;
    mariadb.execute("CREATE DATABASE counted").await.unwrap();
    let url = format!("mysql://root@{}/counted", mariadb.address());
    tenure::mysql::MysqlStore::init(&url).await.unwrap();
    let fence = tenure::mysql::MysqlFence::connect(&url, Leases::Here)
        .await
        .unwrap();
    vec![
        Kind::new("a watermark", Watermark::new(), |fence| {
            Box::pin(async move { told(fence.admit(&ledger(), &stale())) })
        }),
        Kind::new("SQLite", sqlite, move |fence| {
            let mut connection = rusqlite::Connection::open(&file).unwrap();
            let transaction = connection.transaction().unwrap();
            let entered = told(fence.enter(&transaction, &ledger(), &stale()));
            Box::pin(std::future::ready(entered))
        }),
        Kind::new("PostgreSQL", its_fence, move |fence| {
            let url = postgres.clone();
            Box::pin(async move {
                let mut client = Postgres::client(&url).await.unwrap();
                let transaction = client.transaction().await.unwrap();
                told(fence.enter(&transaction, &ledger(), &stale()).await)
            })
        }),
        Kind::new("MariaDB", fence, move |fence| {
            let url = url.clone();
            Box::pin(async move {
                let mut client = Mariadb::client(&url).await.unwrap();
                let mut transaction = client.start_transaction(Default::default()).await.unwrap();
                told(fence.enter(&mut transaction, &ledger(), &stale()).await)
            })
        }),
    ]
}

/// The others' servers, which end with their guards.
struct Servers {
    etcd: Etcd,
    nats: NatsServer,
    redis: RedisServer,
    mongodb: ReplicaSet,
}

impl Servers {
    async fn start() -> Self {
        Self {
            etcd: Etcd::start(EtcdOptions::default()).await.unwrap(),
            nats: NatsServer::start(NatsOptions::default()).await.unwrap(),
            redis: RedisServer::start(RedisOptions::durable()).await.unwrap(),
            mongodb: ReplicaSet::start(Size::One).await.unwrap(),
        }
    }

    async fn kinds(&self) -> Vec<Kind> {
        let url = format!("{}?prefix=counted", self.redis.url());
        let redis = tenure::redis::RedisFence::connect(&url, Leases::Here)
            .await
            .unwrap();
        let etcd = tenure::etcd::EtcdFence::connect(&self.etcd.url(), Leases::Here)
            .await
            .unwrap();
        let url = format!("{}/counted", self.nats.url());
        // The bucket is made by the store.
        tenure::nats::NatsStore::connect(&url).await.unwrap();
        let nats = tenure::nats::NatsFence::connect(&url, Leases::Here)
            .await
            .unwrap();
        let client = mongodb::Client::with_uri_str(self.mongodb.uri()).await.unwrap();
        let mongodb = tenure::mongodb::MongoFence::new(&client.database("counted"), Leases::Elsewhere);
        vec![
            Kind::new("Redis", redis, |fence| {
                let writes = tenure::redis::FencedWrites::new();
                let writes = writes.command(&["{counted}:key"], ["SET", "{counted}:key", "1"]);
                Box::pin(async move { told(fence.write(&ledger(), &stale(), &writes).await) })
            }),
            Kind::new("etcd", etcd, |fence| {
                let writes = tenure::etcd::FencedTransaction::new().put("key", "1");
                Box::pin(async move { told(fence.write(&ledger(), &stale(), &writes).await) })
            }),
            Kind::new("NATS", nats, |fence| {
                Box::pin(async move { told(fence.put(&ledger(), &stale(), "key", "1").await) })
            }),
            Kind::new("MongoDB", mongodb, move |fence| {
                let client = client.clone();
                Box::pin(async move {
                    let mut session = client.start_session().await.unwrap();
                    session.start_transaction().await.unwrap();
                    told(fence.enter(&mut session, &ledger(), &stale()).await)
                })
            }),
        ]
    }
}

#[test]
fn refused_writes_are_counted_by_their_reason_by_every_kind_of_fence() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let servers = runtime.block_on(Servers::start());
    let mut kinds = runtime.block_on(kinds_of_this_machine_and_of_sql(folder.path()));
    kinds.extend(runtime.block_on(servers.kinds()));
    for Kind { what, fence, write } in kinds {
        let recorder = PrometheusBuilder::new().build_recorder();
        let counted = recorder.handle();
        let written = metrics::with_local_recorder(&recorder, || {
            runtime.block_on(refuse_three(&*fence));
            runtime.block_on(write())
        });
        let refused = written.expect_err(what);
        assert!(refused.contains("stale"), "{what}: {refused}");
        let counted = counted.render();
        for line in [
            "lease_fence_refusals{reason=\"stale\"} 4",
            "lease_fence_refusals{reason=\"foreign\"} 1",
        ] {
            assert!(counted.contains(line), "{what}: {counted}");
        }
    }
}
