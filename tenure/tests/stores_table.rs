//! The table of stores is what the stores say of themselves, on real servers.
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tenure::contract::{Durability, StoreTraits, Timekeeper, TokenSource, WatchSource};
use tenure::mysql::MysqlStore;
use tenure::postgres::PostgresStore;
use tenure::{Registry, SharedStore};
use tenure_testkit::{
    Etcd, EtcdOptions, Mariadb, Mongod, NatsOptions, NatsServer, Postgres, RedisBuild, RedisCluster,
    RedisOptions, RedisSentinels, RedisServer, ReplicaSet, eventually_async,
};

/// Set, the documentation is written anew instead of being compared.
const WRITE: &str = "TENURE_WRITE_DOCS";

const SOON: Duration = Duration::from_secs(30);

/// One store, set up in one way.
struct Row {
    /// Its name in the tables, which leads to its README.
    set_up: &'static str,
    url: &'static str,
    /// What its verdict assumes that no store can find out by itself.
    as_long_as: &'static str,
    traits: StoreTraits,
}

impl Row {
    /// The set-up as a link to the README of its store.
    fn link(&self) -> String {
        let scheme = self.url.split([':', '+']).next().unwrap_or_default();
        format!("[{}](stores/{scheme}/README.md)", self.set_up)
    }

    async fn of(set_up: &'static str, shown: &'static str, as_long_as: &'static str, url: &str) -> Self {
        // A Redis that has just been told to keep a file writes that first, of which it says so.
        let settled = eventually_async(SOON, "the store's own words", || async {
            let store: SharedStore = Registry::connect(url).await.unwrap();
            let traits = store.traits();
            match traits.durability {
                Durability::FenceOnly(why) if why.contains("before its rewrite is done") => None,
                Durability::FenceOnly(_) | Durability::Safe => Some(traits),
            }
        });
        Self {
            set_up,
            url: shown,
            as_long_as,
            traits: settled.await,
        }
    }
}

/// What an entry of `FenceOnly` assumes wherever tokens stand on the server's clock.
const TOKENS: &str = "for tokens: the server's clock is not behind the last one (G4)";

async fn sqlite() -> Row {
    let folder = TempDir::new().unwrap();
    let url = format!("sqlite:{}", folder.path().join("leases.db").display());
    Row::of(
        "SQLite, a file on this machine",
        "sqlite:/PATH",
        "the disk keeps what it has synced (S4); one path leads to the file (S8); in a process that has it open nothing else opens \
         it (S7); for a file that was carried to another machine *Rate* (S2)",
        &url,
    )
    .await
}

async fn mongodb() -> Vec<Row> {
    let (set, alone) = (ReplicaSet::shared().await, Mongod::start().await.unwrap());
    let database = "mongodb://HOST,…/DATABASE";
    vec![
        Row::of(
            "MongoDB, a replica set",
            database,
            "*Rate*; *Step*, also between its members: they need NTP (G2); the disks keep what they have synced, and the server is MongoDB's \
             own, or Percona's (M1); an address of the URL leads to one store for good (M10)",
            &set.uri(),
        )
        .await,
        Row::of(
            "MongoDB, standalone",
            database,
            "*Rate*, *Step* (G2); its disk keeps what it has synced (M1), and its data are not put back; an address of the URL leads \
             to one store for good (M10)",
            &alone.uri(),
        )
        .await,
    ]
}

async fn postgres() -> Vec<Row> {
    let url = "postgres://HOST/DATABASE";
    let set_ups: [(&str, &str, &[&str]); 2] = [
        (
            "PostgreSQL 13 or later",
            "*Rate*, *Step* (G2, P8); the disk keeps what it has synced (P1); a standby that is promoted was synchronous, and \
             its clock is as right (P9); no subscription that writes to its tables is made after connecting (P19)",
            &["fsync=on", "full_page_writes=on"],
        ),
        ("PostgreSQL with fsync=off", TOKENS, &["fsync=off"]),
    ];
    let mut rows = Vec::new();
    for (set_up, as_long_as, settings) in set_ups {
        let server = Postgres::with_settings(settings).await.unwrap();
        PostgresStore::init(&server.uri()).await.unwrap();
        rows.push(Row::of(set_up, url, as_long_as, &server.uri()).await);
    }
    rows
}

/// Of one server that keeps what it confirms.
const DURABLE_REDIS: &str = "*Rate*, *Step* (G2, R8); the disk keeps what it has synced; no setting of persistence or \
                             eviction changes, and no replica is attached, after connecting (R3); one address leads to one \
                             server, or to servers whose ids tell them apart (R15)";

async fn redis() -> Vec<Row> {
    let start = async |options| RedisServer::start(options).await.unwrap();
    let durable = start(RedisOptions::durable()).await;
    let valkey = start(RedisOptions::durable().of(RedisBuild::Valkey)).await;
    let usual = start(RedisOptions::default()).await;
    let mut sentinels = RedisSentinels::start().await.unwrap();
    for server in sentinels.servers() {
        // As durable as the first: what is left is that replicas follow later.
        for setting in ["appendonly yes", "appendfsync always"] {
            assert_eq!(server.ask(&format!("CONFIG SET {setting}")).unwrap(), "+OK");
        }
    }
    let cluster = RedisCluster::start(RedisBuild::Redis).await.unwrap();
    for server in cluster.members() {
        for setting in ["appendonly yes", "appendfsync always"] {
            assert_eq!(server.ask(&format!("CONFIG SET {setting}")).unwrap(), "+OK");
        }
    }
    let mut hosts = Vec::new();
    let mut members = Vec::new();
    for _ in 0..3 {
        let member = start(RedisOptions::durable()).await;
        hosts.push(member.address());
        members.push(member);
    }
    let quorum = format!("redis+quorum://{}", hosts.join(","));
    let url = "redis://HOST";
    let set_up = "Redis 7.0 or later, or Valkey, `appendfsync always`, no replica";
    let durable_row = Row::of(set_up, url, DURABLE_REDIS, &durable.url()).await;
    let of_valkey = Row::of(set_up, url, DURABLE_REDIS, &valkey.url()).await;
    assert_eq!(
        (verdict(&durable_row), details(&durable_row)),
        (verdict(&of_valkey), details(&of_valkey)),
        "one row stands for both"
    );
    vec![
        durable_row,
        Row::of("Redis as it comes", url, TOKENS, &usual.url()).await,
        Row::of(
            "Redis behind sentinels, `appendfsync always`",
            "redis+sentinel://HOST,…?primary=NAME",
            TOKENS,
            &sentinels.url(),
        )
        .await,
        Row::of(
            "Redis Cluster, `appendfsync always`",
            "redis://HOST,HOST,…",
            TOKENS,
            &cluster.url(),
        )
        .await,
        Row::of(
            "Redis 7.0 or later, or Valkey, a quorum of durable servers",
            "redis+quorum://HOST,HOST,HOST",
            "*Rate*; *Step* on each member (R7, R8); members are exchanged by `tenure store init` alone (R7); no member is put back or \
             replaced by an empty one while leases are held; every member stays without replica and `appendfsync always` (R3). \
             The store's clock is that of the slowest of any majority, less a second (R7)",
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
        "MariaDB 10.6 or later, MySQL 8.0.29 or later (run: MariaDB 10.11, MySQL 9.7)",
        "mysql://HOST/DATABASE",
        "*Rate*, *Step* (G2, Y9); the disk keeps what it has synced; one server takes writes (Y2, Y5); a replica that is \
         promoted was semi-synchronous, and its clock is as right (Y11)",
        &uri,
    )
    .await
}

/// The two kinds of etcd. The tests' server is one of them; the row of the other is compared where
/// `TESTKIT_ETCD` is such a one, as in `.ci/other-servers`.
const ETCD: [&str; 2] = [
    "etcd 3.4.31, 3.5.13 or later",
    "etcd before 3.4.31 or 3.5.13, as Debian 12 has it",
];

async fn etcd() -> Row {
    let server = Etcd::start(EtcdOptions::default()).await.unwrap();
    let (url, [sound, unsound]) = ("etcd://HOST,…", ETCD);
    let row = Row::of(
        sound,
        url,
        "*Rate* (E9); a snapshot is restored with `--bump-revision` (E1); the URL names every member, none is replaced by an older \
         one, and none runs with `--unsafe-no-fsync` (E10); the disks keep what they have synced (E1). The shortest ttl is one \
         and a half times `--election-timeout`, here 500 ms: 2 s as etcd comes",
        &server.url(),
    )
    .await;
    match row.traits.durability {
        Durability::Safe => row,
        Durability::FenceOnly(_) => Row {
            set_up: unsound,
            as_long_as: "for tokens: a snapshot is restored with `--bump-revision` (E1). The shortest ttl as above",
            ..row
        },
    }
}

/// The lines of a table for these rows. Of the two kinds of etcd, that of the other than runs is as it was
/// `written` under this head.
fn lines(rows: &[Row], head: &str, written: &str, line: fn(&Row) -> String) -> String {
    let written = written.split_once(head).map_or("", |(_, rest)| rest);
    let of_other_etcd = |set_up: &str| {
        let is_of_it = |line: &&str| line.starts_with(&format!("| [{set_up}]"));
        let line = written.lines().find(is_of_it);
        let line = line.expect(
            "the row of the other etcd stands under this head: a new head is put there by hand first",
        );
        format!("{line}\n")
    };
    let lines = rows.iter().map(|row| match ETCD.contains(&row.set_up) {
        true => ETCD
            .iter()
            .map(|set_up| match *set_up == row.set_up {
                true => line(row),
                false => of_other_etcd(set_up),
            })
            .collect(),
        false => line(row),
    });
    format!("{head}{}", lines.collect::<String>())
}

const TOKENS_OF_NATS: &str = "for tokens: the clock of the stream's leader is not behind the last one (N6)";

async fn nats() -> Vec<Row> {
    let url = "nats://HOST/BUCKET";
    let alone = NatsServer::start(NatsOptions::default()).await.unwrap();
    let durable = NatsServer::start(NatsOptions::durable()).await.unwrap();
    vec![
        Row::of(
            "NATS 2.12.12, 2.14.3 or later (one copy: 2.11.2) with `sync_interval: always`",
            "nats://HOST/BUCKET?monitor=HOST:8222",
            "*Rate* (N1); every server with a copy is named in `monitor=`, and keeps its settings (N6); the bucket is not put \
             back (N7)",
            &format!("{}?monitor={}", durable.url(), durable.monitor_address()),
        )
        .await,
        Row::of("NATS as it comes", url, TOKENS_OF_NATS, &alone.url()).await,
    ]
}

fn table(rows: &[Row], written: &str) -> String {
    let verdicts = lines(rows, VERDICTS, written, verdict);
    let details = lines(rows, DETAILS, written, details);
    format!("{HEAD}{verdicts}{details}{FENCES}")
}

const HEAD: &str = "# The stores, in their own words

**How to choose.** First the server that has the data which the job changes, if its row says *Safe*: lease, fence and data are then one
system. (Not so with SQLite: there a transaction on the data keeps every renewal out, so that the leases have [a file of their
own](stores/sqlite/README.md#set-up).) Read that store's README, and ask `tenure doctor` about your
server. Where it is *FenceOnly*, fence every write, or take another store for the leases.

Each row is what a store says of itself, connected to a real server that is set up so:

- **Safe**: what the store has confirmed survives its crash and its fail-over. So leases alone exclude each other, as far
  as the assumptions of [GUARANTEES.md](GUARANTEES.md) hold, and tokens never repeat.
- **FenceOnly**: a confirmed write can be lost, for the reason that is given. So two holders are possible, and only
  a fence in the data path protects.
- **As long as**: what the verdict assumes and the store cannot see by itself. The numbers lead to the promises.
- *Rate*: no clock, of a server or a candidate, runs more than 0.05 % too fast or too slow.
- *Step*: the store's clock jumps by less than 50 ms within one ttl, with a ttl below 2.5 s by less than a fiftieth of it.

*Rate* and *Step* are the defaults; a timing can allow for more ([GUARANTEES.md](GUARANTEES.md) has the exact words).

";

const VERDICTS: &str = "| store | leases alone are | as long as |
|---|---|---|
";

/// One line of the first table.
fn verdict(row: &Row) -> String {
    let durability = match row.traits.durability {
        Durability::Safe => "**Safe**".to_owned(),
        Durability::FenceOnly(why) => format!("**FenceOnly**: {why}"),
    };
    format!(
        "| {} | {durability} | {} |\n",
        row.link(),
        with_links(row.as_long_as)
    )
}

const DETAILS: &str = "
## How each works

| store | URL | expiry is judged by | a waiter is woken | tokens | leases a call | ttl |
|---|---|---|---|---|---|---|
";

/// One line of the second table.
fn details(row: &Row) -> String {
    let Row { url, traits, .. } = row;
    let timekeeper = match traits.timekeeper {
        Timekeeper::Server => "its clock, within the statement that decides",
        Timekeeper::Session => "its session",
        Timekeeper::Observer => "each candidate: how long the record has stayed the same",
    };
    let watch = match traits.watch {
        WatchSource::Push => "at once",
        WatchSource::Poll => "within tens of milliseconds, by polling something cheap",
        WatchSource::Absent => "no: it waits for the remaining time, or looks",
    };
    let tokens = match traits.token_source {
        TokenSource::CounterAndClock => "a counter, never behind its clock",
        TokenSource::Revision => "its revision",
    };
    let hours = traits.ttl_max.duration().as_secs() / 3600;
    format!(
        "| {} | `{url}` | {timekeeper} | {watch} | {tokens} | {} | {} to {hours}h |\n",
        row.link(),
        traits.batch_max,
        traits.ttl_min
    )
}

/// What stands below the tables.
const FENCES: &str = "
## Fences

What the fence of each can guard, and who can enter it:

| data in | guarded | who enters |
|---|---|---|
| PostgreSQL | any transaction in that database, and tables by triggers | any language: `SELECT tenure.enter(…)` |
| MySQL, MariaDB | any transaction in that database, and tables by triggers | any language: `CALL tenure_enter_1(…)` |
| SQLite | any transaction in that file, and tables by triggers | Rust; any language by the column of a guarded table |
| MongoDB | a transaction of that deployment (there is none on a standalone server), and single documents, also in bulk | Rust |
| Redis, Valkey | what one script writes, on that server or in that slot of a cluster | Rust |
| etcd | keys of that cluster, in one transaction | Rust |
| NATS | messages of one stream, by a header | Rust |
| a service over HTTP | what its handler does | any language: the header `Fencing-Token`; the service itself is in Rust |
| a process | what it does while it is admitted, by a `Watermark`, in memory or in a file | Rust |

Where it says Rust, programs in other languages go through a service behind the fence over HTTP.

This page is written by `TENURE_WRITE_DOCS=1 cargo test -p tenure --all-features stores_table`. *Leases alone are* and *How each
works* are from `LeaseStore::traits`; the set-ups, *as long as* and *Fences* are from us.
";

/// Where a promise is, as the contents of GUARANTEES.md say.
fn link_to(number: &str) -> Option<String> {
    let contents = include_str!("../../GUARANTEES.md");
    let begins = format!("- [{number}](");
    let to = contents
        .lines()
        .find_map(|line| line.strip_prefix(&begins))?
        .split(')')
        .next()?;
    let file = if to.starts_with('#') { "GUARANTEES.md" } else { "" };
    Some(format!("[{number}]({file}{to})"))
}

/// The same text with each number of a guarantee as a link to it.
fn with_links(text: &str) -> String {
    let mut parts = text.split('(');
    let mut linked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (list, rest) = part.split_once(')').unwrap();
        let links: Vec<String> = list.split(", ").filter_map(link_to).collect();
        write!(linked, "({}){rest}", links.join(", ")).unwrap();
    }
    linked
}

/// The numbers of guarantees, as `G2`, that stand in parentheses.
fn numbers_in(text: &str) -> Vec<&str> {
    let inside = text
        .split('(')
        .skip(1)
        .filter_map(|rest| Some(rest.split_once(')')?.0));
    inside.flat_map(|list| list.split(", ")).collect()
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for row in &rows {
        let numbers = numbers_in(row.as_long_as);
        assert!(!numbers.is_empty(), "{}: which guarantees say so?", row.set_up);
        for number in numbers {
            assert!(
                link_to(number).is_some(),
                "{}: GUARANTEES.md has no {number}",
                row.set_up
            );
        }
    }
    let path = folder.join("STORES.md");
    let mut written = std::fs::read_to_string(&path).unwrap_or_default();
    let table = table(&rows, &written);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &table).unwrap();
        written = table.clone();
    }
    assert_eq!(written, table, "write it anew: see its head");
}
