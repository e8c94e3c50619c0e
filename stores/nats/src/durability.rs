//! What a confirmed write survives, as the servers' settings have it.

use crate::url::Host;
use crate::version::Version;
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tenure_core::Durability;
use tenure_remote::is_emptied;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// How long one server's monitoring may take to answer.
const LOOK_TIME_MAX: Duration = Duration::from_secs(1);

/// Most bytes of a monitoring answer that are read.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;

/// When a server has on disk what it confirms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sync {
    /// Before it confirms.
    Always,
    /// Within this time.
    Within(Duration),
    /// Whenever it is, the server may come up without it: see [`Version::may_forget`].
    InVain,
    /// Before or after, to a folder of which systems remove what is there.
    Nowhere,
}

/// What a server tells of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Told {
    sync: Sync,
    version: Version,
    /// How many bytes of JetStream's it has on disk, and how many it may have.
    on_disk: Option<[u64; 2]>,
    in_memory: Option<[u64; 2]>,
}

/// Where a bucket is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kept {
    OnDisk,
    InMemory,
}

impl Kept {
    pub(crate) fn of(info: &Value) -> Self {
        match info["config"]["storage"].as_str() {
            Some("file") => Self::OnDisk,
            _ => Self::InMemory,
        }
    }
}

/// What the servers tell of when they write to disk, by their names.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Syncs(BTreeMap<String, Told>);

impl Syncs {
    /// Asks every server; who does not answer is not in it.
    pub(crate) async fn ask(monitors: &[Host]) -> Self {
        let looks = monitors
            .iter()
            .map(|monitor| tokio::time::timeout(LOOK_TIME_MAX, look(monitor)));
        // Together: connecting waits for the slowest of them, and not for each.
        let told = join_all(looks).await;
        Self(told.into_iter().filter_map(Result::ok).flatten().collect())
    }

    /// Of the servers that keep the bucket, those of which nothing is known, or that do not write before they
    /// confirm.
    fn of(&self, servers: &[String]) -> Worst {
        let told = servers.iter().map(|server| Some(self.0.get(server)?.sync));
        // Who keeps the bucket must be known: nothing follows from nobody.
        let mut worst = if servers.is_empty() {
            Worst::Unknown
        } else {
            Worst::Always
        };
        for sync in told {
            match sync {
                None => return Worst::Unknown,
                Some(Sync::InVain) => return Worst::InVain,
                Some(Sync::Nowhere) => worst = Worst::Nowhere,
                Some(Sync::Within(_)) if worst == Worst::Nowhere => {}
                Some(Sync::Within(_)) => worst = Worst::Later,
                Some(Sync::Always) => {}
            }
        }
        worst
    }

    /// Whether the copy of one of these servers may lack what the others have.
    fn may_lack(&self, servers: &[String]) -> bool {
        servers
            .iter()
            .any(|server| self.0.get(server).is_some_and(|told| told.version.may_lack()))
    }

    /// How many bytes of JetStream's a server has where it keeps such a bucket, and how many it may have.
    /// `None` if it does not tell.
    pub(crate) fn filled(&self, server: &str, kept: Kept) -> Option<[u64; 2]> {
        let told = self.0.get(server)?;
        match kept {
            Kept::OnDisk => told.on_disk,
            Kept::InMemory => told.in_memory,
        }
    }

    /// One line for people.
    pub(crate) fn shown(&self) -> String {
        let each = self.0.iter().map(|(server, told)| match told.sync {
            Sync::Always => format!("{server} always"),
            Sync::Within(time) => format!("{server} every {time:?}"),
            Sync::InVain => format!("{server} is before NATS 2.11.2"),
            Sync::Nowhere => format!("{server} to a folder that is emptied"),
        });
        match self.0.is_empty() {
            true => "no server told its version and sync_interval".to_owned(),
            false => format!("sync_interval: {}", each.collect::<Vec<_>>().join(", ")),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Worst {
    Always,
    Later,
    Nowhere,
    InVain,
    Unknown,
}

/// The name of a server, and what it tells of itself, by its monitoring. One whose version cannot be read has
/// told nothing: by the version alone can be said whether it keeps what it syncs.
async fn look(monitor: &Host) -> Option<(String, Told)> {
    let mut stream = TcpStream::connect((monitor.name.as_str(), monitor.port))
        .await
        .ok()?;
    let request = format!("GET /varz HTTP/1.0\r\nHost: {monitor}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream
        .take(ANSWER_BYTES_MAX)
        .read_to_end(&mut answer)
        .await
        .ok()?;
    let text = String::from_utf8(answer).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    head.lines().next().filter(|status| status.contains(" 200 "))?;
    let told: Value = serde_json::from_str(body).ok()?;
    let config = &told["jetstream"]["config"];
    let version = Version::read(told["version"].as_str()?)?;
    let sync = match config["sync_always"].as_bool() {
        _ if version.may_forget() => Sync::InVain,
        _ if config["store_dir"].as_str().is_some_and(is_emptied) => Sync::Nowhere,
        Some(true) => Sync::Always,
        Some(false) | None => Sync::Within(Duration::from_nanos(config["sync_interval"].as_u64()?)),
    };
    let name = told["server_name"].as_str()?.to_owned();
    let used = &told["jetstream"]["stats"];
    let filled = |kind: &str, max: &str| Some([used[kind].as_u64()?, config[max].as_u64()?]);
    let told = Told {
        sync,
        version,
        on_disk: filled("storage", "max_storage"),
        in_memory: filled("memory", "max_memory"),
    };
    Some((name, told))
}

/// What a confirmed write of this bucket survives.
pub(crate) fn judge(info: &Value, syncs: &Syncs) -> Durability {
    let config = &info["config"];
    if Kept::of(info) == Kept::InMemory {
        return Durability::FenceOnly(
            "the bucket is in memory: a restart of its servers forgets leases, and makes it another, for which each process is to \
             be started anew",
        );
    }
    // Such a stream is not synced before it is confirmed, whatever its servers are set to: not even written.
    if config["persist_mode"]
        .as_str()
        .is_some_and(|mode| mode != "default")
    {
        return Durability::FenceOnly(
            "persist_mode is not \"default\": a crash of the server can lose what it confirmed last; no edit changes it, so \
             name another bucket",
        );
    }
    let servers = servers(info);
    let copies = config["num_replicas"].as_u64().unwrap_or(1);
    let is_replicated = copies >= REPLICAS_MIN;
    match (syncs.of(&servers), is_replicated) {
        (Worst::Always, _) if copies > 1 && syncs.may_lack(&servers) => Durability::FenceOnly(
            "several copies, one on a server that may lead without what the others have confirmed (nats-io/nats-server#8265, \
             #7698, #7955): upgrade every server to NATS 2.12.12, 2.14.3 or later",
        ),
        (Worst::Always, _) => Durability::Safe,
        (Worst::Later, false) => Durability::FenceOnly(
            "one copy, and its sync_interval is not \"always\": a crash of its machine loses what it confirmed last",
        ),
        (Worst::Later, true) => Durability::FenceOnly(
            "sync_interval is not \"always\" on every server: crashes of machines can lose what a majority confirmed",
        ),
        (Worst::Nowhere, _) => Durability::FenceOnly(
            "a server keeps its data where its machine may have memory, or remove files; set store_dir to a folder on a disk",
        ),
        (Worst::InVain, _) => Durability::FenceOnly(
            "a server is older than NATS 2.11.2: killed, it may come up without what it has confirmed; upgrade every server",
        ),
        (Worst::Unknown, _) => Durability::FenceOnly(
            "the servers do not tell their version and sync_interval; name their monitoring addresses with monitor=host:8222,…",
        ),
    }
}

/// The names of the servers that keep the bucket.
pub(crate) fn servers(info: &Value) -> Vec<String> {
    let cluster = &info["cluster"];
    let replicas = cluster["replicas"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|replica| &replica["name"]);
    let names = std::iter::once(&cluster["leader"]).chain(replicas);
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// From how many copies on one of them may be lost.
const REPLICAS_MIN: u64 = 3;
