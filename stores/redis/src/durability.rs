//! What an acknowledged write survives, read off the server's settings.

use crate::link::Link;
use crate::url::Set;
use redis::{Value, from_redis_value_ref};
use std::collections::BTreeMap;
use std::fmt;
use tenure_core::{Durability, StoreError};
use tenure_remote::is_emptied;

/// The server's settings and state that decide what a confirmed write is worth.
#[derive(Clone, Default, Debug)]
pub(crate) struct Settings {
    /// `CONFIG GET`; empty where the server does not tell them (as most that are run by somebody else).
    config: BTreeMap<String, String>,
    /// `INFO`.
    info: BTreeMap<String, String>,
}

/// A running server, whatever it is called. Another one after it was started again.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RunId(String);

impl RunId {
    /// As `INFO server` tells it.
    pub(crate) fn read(told: &str) -> Option<Self> {
        let id = told.lines().find_map(|line| line.strip_prefix("run_id:"))?.trim();
        (!id.is_empty()).then(|| Self(id.to_owned()))
    }
}

/// The replicas that may be promoted without what was confirmed last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Replicas {
    None,
    Connected(u64),
    /// None is connected now, and one was within `repl-backlog-ttl`, mostly an hour: it may come back, or be
    /// promoted.
    Away,
    /// The server does not tell.
    Unknown,
}

impl fmt::Display for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "0 replicas"),
            Self::Connected(count) => write!(f, "{count} replicas"),
            Self::Away => write!(
                f,
                "replicas that are away, or were there lately (repl_backlog_active)"
            ),
            Self::Unknown => write!(f, "an unknown number of replicas"),
        }
    }
}

/// What evicts keys when the memory is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Eviction {
    /// Nothing that has no time to live.
    Never,
    /// Any key: records, too.
    Possible,
    /// The server does not tell.
    Unknown,
}

/// How much of what was confirmed a crash of the server can take back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Persistence {
    /// Nothing: each write is on disk before it is confirmed.
    Always,
    /// What was not yet flushed: a second and more.
    Lagging,
    /// What came while a child process wrote a snapshot or a new file: each other write is on disk before it
    /// is confirmed.
    LaggingInRewrites,
    /// The file was switched on, and does not count before it is first written.
    NotYet,
    /// What it had confirmed, and not yet written, beside a script that was past `lua-time-limit`: a kill is
    /// enough.
    ConfirmedFirst,
    /// Everything, by a crash of the machine: what it calls its disk is memory, or a folder that systems
    /// empty.
    Emptied,
    /// All since the last snapshot, or everything.
    None,
    /// The server does not tell.
    Unknown,
}

impl Settings {
    /// Asks the server. What it refuses to tell is unknown, and no error.
    ///
    /// # Errors
    /// Only if the server does not answer.
    pub(crate) async fn ask(link: &Link, place: &str) -> Result<Self, StoreError> {
        let mut settings = Self::default();
        for key in CONFIGURATION {
            let mut command = redis::cmd("CONFIG");
            command.arg("GET").arg(key);
            let told = refused_is_silence(link.look(command, "reading its settings", place).await)?;
            let pairs = told.and_then(|told| from_redis_value_ref::<BTreeMap<String, String>>(&told).ok());
            settings.config.extend(pairs.unwrap_or_default());
        }
        // After the settings: of a file that was switched on between, this tells that it is not complete.
        for part in ["server", "persistence", "memory", "replication", "stats"] {
            let mut command = redis::cmd("INFO");
            command.arg(part);
            let told = refused_is_silence(link.look(command, "reading its settings", place).await)?;
            let text = told
                .and_then(|told| from_redis_value_ref::<String>(&told).ok())
                .unwrap_or_default();
            let pairs = text.lines().filter_map(|line| line.split_once(':'));
            settings
                .info
                .extend(pairs.map(|(key, value)| (key.to_owned(), value.trim().to_owned())));
        }
        Ok(settings)
    }

    pub(crate) fn info(&self, key: &str) -> Option<&str> {
        self.info.get(key).map(String::as_str)
    }

    pub(crate) fn config(&self, key: &str) -> Option<&str> {
        self.config.get(key).map(String::as_str)
    }

    pub(crate) fn run_id(&self) -> Option<RunId> {
        let told = self.info("run_id").filter(|id| !id.is_empty())?;
        Some(RunId(told.to_owned()))
    }

    pub(crate) fn replicas(&self) -> Replicas {
        let told = self.info("connected_slaves").and_then(|count| count.parse().ok());
        match (told, self.info("repl_backlog_active")) {
            (Some(0), Some("0")) => Replicas::None,
            // What a replica that comes back has missed is kept for it.
            (Some(0), Some(_)) => Replicas::Away,
            (Some(count), _) if count > 0 => Replicas::Connected(count),
            _ => Replicas::Unknown,
        }
    }

    /// Whether it would go on taking writes, and granting leases, where it is made a replica. One of a
    /// cluster would not.
    pub(crate) fn writes_as_replica(&self, clustered: bool) -> bool {
        !clustered && self.config("replica-read-only") == Some("no")
    }

    pub(crate) fn eviction(&self) -> Eviction {
        let bounded = self
            .config("maxmemory")
            .or_else(|| self.info("maxmemory"))
            .map(|bytes| bytes != "0");
        let policy = self
            .config("maxmemory-policy")
            .or_else(|| self.info("maxmemory_policy"));
        match (policy, bounded) {
            (Some(policy), Some(true)) if policy.starts_with("allkeys") => Eviction::Possible,
            // Keys with a time to live: with purgeAfter, records have one.
            (Some(policy), Some(true)) if policy.starts_with("volatile") => Eviction::Possible,
            (Some(_), Some(_)) => Eviction::Never,
            (_, Some(false)) => Eviction::Never,
            (None, _) | (_, None) => Eviction::Unknown,
        }
    }

    pub(crate) fn persistence(&self) -> Persistence {
        let appends = self.config("appendonly").map(|set| set == "yes");
        match appends.or_else(|| self.info("aof_enabled").map(|set| set == "1")) {
            Some(true) => match self.config("appendfsync") {
                Some("always") => self.persistence_of_always(),
                Some(_) => Persistence::Lagging,
                None => Persistence::Unknown,
            },
            Some(false) => Persistence::None,
            None => Persistence::Unknown,
        }
    }

    /// Of a server that syncs each write, but for what else it is told, and for where it writes.
    fn persistence_of_always(&self) -> Persistence {
        // Switched on while the server runs, the file is of no use before its first rewrite is done, and an
        // older one beside it lacks what came while it was off. An ordinary rewrite looks alike.
        for rewrite in ["aof_rewrite_in_progress", "aof_rewrite_scheduled"] {
            match self.info(rewrite) {
                Some("0") => {}
                Some(_) => return Persistence::NotYet,
                None => return Persistence::Unknown,
            }
        }
        match self.config("no-appendfsync-on-rewrite") {
            Some("no") if self.config("dir").is_some_and(is_emptied) => return Persistence::Emptied,
            Some("no") => {}
            Some(_) => return Persistence::LaggingInRewrites,
            None => return Persistence::Unknown,
        }
        match self.major_version() {
            Some(major) if major < WRITES_FIRST => Persistence::ConfirmedFirst,
            Some(_) => Persistence::Always,
            None => Persistence::Unknown,
        }
    }

    /// Of Redis, or of the one with which the server says that it agrees: every Valkey names 7.2.4.
    fn major_version(&self) -> Option<u32> {
        self.info("redis_version")?.split('.').next()?.parse().ok()
    }

    /// What the store may promise. The gravest reason is told.
    pub(crate) fn durability(&self, set: &Set, clustered: bool) -> Durability {
        if self.eviction() == Eviction::Possible {
            return Durability::FenceOnly("the server evicts keys when its memory is full");
        }
        match self.persistence() {
            Persistence::None => return Durability::FenceOnly("the server forgets leases when it restarts"),
            Persistence::Emptied => {
                return Durability::FenceOnly(
                    "a crash of the server's machine may lose everything: its dir is where systems have memory, or remove files; \
                     set dir to a folder on a disk",
                );
            }
            Persistence::Lagging => {
                return Durability::FenceOnly("a crash of the server loses its last second or more");
            }
            Persistence::LaggingInRewrites => {
                return Durability::FenceOnly(
                    "a crash of the server while it rewrites its file or saves loses what was confirmed meanwhile",
                );
            }
            Persistence::ConfirmedFirst => {
                return Durability::FenceOnly(
                    "Redis before 7.0 may confirm what it has not written, while a script is past lua-time-limit (redis/redis#9678), \
                     and a kill takes that back: upgrade to 7.0 or later",
                );
            }
            Persistence::NotYet => {
                return Durability::FenceOnly(
                    "the server's append-only file is not complete before its rewrite is done",
                );
            }
            Persistence::Unknown => {
                return Durability::FenceOnly("the server does not tell what its crash would lose");
            }
            Persistence::Always => {}
        }
        if self.writes_as_replica(clustered) {
            return Durability::FenceOnly("the server goes on granting leases when it is demoted");
        }
        let fails_over = matches!(set, Set::Sentinels { .. }) || clustered;
        match self.replicas() {
            Replicas::Connected(_) | Replicas::Away => {}
            _ if fails_over => {}
            Replicas::Unknown => {
                return Durability::FenceOnly("the server does not tell whether it has replicas");
            }
            Replicas::None if self.eviction() == Eviction::Unknown => {
                return Durability::FenceOnly("the server does not tell whether it evicts keys");
            }
            Replicas::None => return Durability::Safe,
        }
        Durability::FenceOnly("a fail-over loses what had not reached the replica")
    }
}

/// A server that is run by somebody else seldom tells its settings.
fn refused_is_silence(told: Result<Value, StoreError>) -> Result<Option<Value>, StoreError> {
    match told {
        Ok(told) => Ok(Some(told)),
        Err(error)
            if matches!(
                error.fault,
                tenure_core::Fault::Forbidden | tenure_core::Fault::Internal
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The first major version that writes its file before it answers also beside a script that is past
/// `lua-time-limit`.
const WRITES_FIRST: u32 = 7;

const CONFIGURATION: [&str; 9] = [
    "dir",
    "appendonly",
    "appendfsync",
    "no-appendfsync-on-rewrite",
    "maxmemory",
    "maxmemory-policy",
    "min-replicas-to-write",
    "replica-read-only",
    "save",
];

// The servers that the tests have are of later versions.
#[cfg(test)]
mod tests {
    use super::{Persistence, Settings};
    use crate::url::Set;
    use tenure_core::Durability;

    /// One that is set up as it should be, and says that it is of this version.
    fn durable(version: Option<&str>) -> Settings {
        let map = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().copied();
            pairs
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect()
        };
        let mut settings = Settings {
            config: map(&[
                ("dir", "/var/lib/redis"),
                ("appendonly", "yes"),
                ("appendfsync", "always"),
                ("no-appendfsync-on-rewrite", "no"),
                ("maxmemory", "0"),
                ("maxmemory-policy", "noeviction"),
                ("replica-read-only", "yes"),
            ]),
            info: map(&[
                ("aof_rewrite_in_progress", "0"),
                ("aof_rewrite_scheduled", "0"),
                ("connected_slaves", "0"),
                ("repl_backlog_active", "0"),
            ]),
        };
        let version = version.map(|version| ("redis_version".to_owned(), version.to_owned()));
        settings.info.extend(version);
        settings
    }

    #[test]
    fn server_that_may_confirm_before_it_writes_says_fence_only() {
        for (version, persistence) in [
            (Some("6.2.0"), Persistence::ConfirmedFirst),
            (Some("6.2.14"), Persistence::ConfirmedFirst),
            (Some("7.0.0"), Persistence::Always),
            // As every Valkey says.
            (Some("7.2.4"), Persistence::Always),
            (Some("8.0.2"), Persistence::Always),
            (Some("10.0.0"), Persistence::Always),
            (Some("unstable"), Persistence::Unknown),
            (None, Persistence::Unknown),
        ] {
            let settings = durable(version);
            assert_eq!(settings.persistence(), persistence, "{version:?}");
            let told = settings.durability(&Set::Server, false);
            let is_safe = persistence == Persistence::Always;
            assert_eq!(told == Durability::Safe, is_safe, "{version:?}: {told:?}");
        }
        let old = durable(Some("6.2.14"));
        for set in [Set::Server, Set::Independent] {
            let told = old.durability(&set, false);
            assert!(
                matches!(told, Durability::FenceOnly(why) if why.contains("upgrade to 7.0")),
                "{told:?}"
            );
        }
    }
}
