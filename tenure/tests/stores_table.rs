//! The table of stores is what the stores say of themselves, on real servers.
use std::fmt::Write as _;
use std::path::Path;
use tempfile::TempDir;
use tenure::core::{Durability, StoreTraits, Timekeeper, TokenSource, WatchSource};
use tenure::mysql::MysqlStore;
use tenure::postgres::PostgresStore;
use tenure::{Registry, SharedStore};
use tenure_testkit::{
    Etcd, EtcdOptions, Mariadb, Mongod, NatsOptions, NatsServer, Postgres, RedisBuild, RedisOptions,
    RedisSentinels, RedisServer, ReplicaSet,
};

/// Set, the documentation is written anew instead of being compared.
const WRITE: &str = "TENURE_WRITE_DOCS";

/// One store, set up in one way.
struct Row {
    set_up: &'static str,
    url: &'static str,
    traits: StoreTraits,
}

impl Row {
    async fn of(set_up: &'static str, shown: &'static str, url: &str) -> Self {
        let store: SharedStore = Registry::connect(url).await.unwrap();
        Self {
            set_up,
            url: shown,
            traits: store.traits(),
        }
    }
}

async fn sqlite() -> Row {
    let folder = TempDir::new().unwrap();
    let url = format!("sqlite:{}", folder.path().join("leases.db").display());
    Row::of("SQLite, a file on this machine", "sqlite:/PATH", &url).await
}

async fn mongodb() -> Vec<Row> {
    let (set, alone) = (ReplicaSet::shared().await, Mongod::start().await.unwrap());
    let database = "mongodb://HOST,…/DATABASE";
    vec![
        Row::of("MongoDB, a replica set", database, &set.uri()).await,
        Row::of("MongoDB, standalone", database, &alone.uri()).await,
    ]
}

async fn postgres() -> Vec<Row> {
    let url = "postgres://HOST/DATABASE";
    let set_ups: [(&str, &[&str]); 2] = [
        ("PostgreSQL 12 or later", &["fsync=on", "full_page_writes=on"]),
        ("PostgreSQL with fsync=off", &["fsync=off"]),
    ];
    let mut rows = Vec::new();
    for (set_up, settings) in set_ups {
        let server = Postgres::with_settings(settings).await.unwrap();
        PostgresStore::init(&server.uri()).await.unwrap();
        rows.push(Row::of(set_up, url, &server.uri()).await);
    }
    rows
}

async fn redis() -> Vec<Row> {
    let start = async |options| RedisServer::start(options).await.unwrap();
    let durable = start(RedisOptions::durable()).await;
    let valkey = start(RedisOptions::durable().of(RedisBuild::Valkey)).await;
    let usual = start(RedisOptions::default()).await;
    let sentinels = RedisSentinels::start().await.unwrap();
    let mut hosts = Vec::new();
    let mut members = Vec::new();
    for _ in 0..3 {
        let member = start(RedisOptions::durable()).await;
        hosts.push(member.address());
        members.push(member);
    }
    let quorum = format!("redis+quorum://{}", hosts.join(","));
    let url = "redis://HOST";
    vec![
        Row::of("Redis, `appendfsync always`, no replica", url, &durable.url()).await,
        Row::of("Valkey, `appendfsync always`, no replica", url, &valkey.url()).await,
        Row::of("Redis as it comes", url, &usual.url()).await,
        Row::of(
            "Redis behind sentinels",
            "redis+sentinel://HOST,…?primary=NAME",
            &sentinels.url(),
        )
        .await,
        Row::of(
            "Redis, a quorum of durable servers",
            "redis+quorum://HOST,HOST,HOST",
            &quorum,
        )
        .await,
    ]
}

async fn mysql() -> Row {
    let server = Mariadb::start().await.unwrap();
    server.execute("CREATE DATABASE leases").await.unwrap();
    let uri = server.uri_of("leases");
    MysqlStore::init(&uri).await.unwrap();
    Row::of(
        "MySQL 8.0.29, MariaDB 10.6, or later",
        "mysql://HOST/DATABASE",
        &uri,
    )
    .await
}

async fn etcd() -> Row {
    let server = Etcd::start(EtcdOptions::default()).await.unwrap();
    Row::of("etcd 3.4 or later", "etcd://HOST,…", &server.url()).await
}

async fn nats() -> Vec<Row> {
    let url = "nats://HOST/BUCKET";
    let alone = NatsServer::start(NatsOptions::default()).await.unwrap();
    let durable = NatsServer::start(NatsOptions::durable()).await.unwrap();
    vec![
        Row::of(
            "NATS with `sync_interval: always`",
            "nats://HOST/BUCKET?monitor=HOST:8222",
            &format!("{}?monitor={}", durable.url(), durable.monitor_address()),
        )
        .await,
        Row::of("NATS as it comes", url, &alone.url()).await,
    ]
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "# The stores, in their own words\n\n\
         Written by `TENURE_WRITE_DOCS=1 cargo test -p tenure --all-features stores_table` from what each store says\n\
         of itself (`LeaseStore::traits`), connected to a real server that is set up so.\n\n\
         **Safe**: what a store has confirmed survives its crash and its fail-over, so leases exclude each other as far as\n\
         the assumptions of [GUARANTEES.md](GUARANTEES.md) hold, and tokens never repeat. **FenceOnly**: a confirmed write can\n\
         be lost, so two holders are possible, and only a fence in the data path protects; the reason stands behind it.\n\n\
         | store | URL | confirmed writes | who judges expiry | who waits is woken | tokens | leases a call | ttl |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for Row { set_up, url, traits } in rows {
        let durability = match traits.durability {
            Durability::Safe => "**Safe**".to_owned(),
            Durability::FenceOnly(why) => format!("**FenceOnly**: {why}"),
        };
        let timekeeper = match traits.timekeeper {
            Timekeeper::Server => "the server's clock, within the statement that decides",
            Timekeeper::Session => "the server's session",
            Timekeeper::Observer => "each candidate: how long the record has stayed the same",
        };
        let watch = match traits.watch {
            WatchSource::Push => "at once, by the store",
            WatchSource::Poll => "at once: something cheap is polled beside the records",
            WatchSource::Absent => "not; it waits for the remaining time, or looks",
        };
        let tokens = match traits.token_source {
            TokenSource::CounterAndClock => "a counter, never behind the store's clock",
            TokenSource::Revision => "the store's revision",
        };
        writeln!(
            text,
            "| {set_up} | `{url}` | {durability} | {timekeeper} | {watch} | {tokens} | {} | {} to {} |",
            traits.batch_max, traits.ttl_min, traits.ttl_max
        )
        .unwrap();
    }
    text
}

#[tokio::test]
async fn the_table_of_stores_is_what_they_say_of_themselves() {
    let mut rows = vec![sqlite().await];
    rows.extend(mongodb().await);
    rows.extend(postgres().await);
    rows.push(mysql().await);
    rows.extend(redis().await);
    rows.push(etcd().await);
    rows.extend(nats().await);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../STORES.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, table(&rows)).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, table(&rows), "write it anew: see its head");
}
