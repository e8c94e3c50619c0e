//! The examination for an operator. It writes nothing.

use crate::connect::Hello;
use crate::durability::{Eviction, Persistence, Replicas, Settings};
use crate::fault::Deed;
use crate::script::{Arguments, RIGHTS};
use crate::site::Site;
use crate::url::Set;
use crate::watch::all_channels;
use redis::Value;
use std::time::{Duration, Instant, SystemTime};
use tenure_core::{Fault, Finding, LeaseName, StoreError};
use tenure_remote::findings::{bad, good, unknown, warning};

/// How many pings the round trip is the median of.
const PINGS: usize = 9;

/// A round trip above this makes short ttls unwise.
const ROUND_TRIP_SLOW: Duration = Duration::from_millis(100);

/// A clock that differs from ours by more is told. It is not wrong by that: ours may be.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_millis(250);

impl Site {
    /// Examines the server; see [`LeaseStore::examine`](tenure_core::LeaseStore::examine).
    ///
    /// # Errors
    /// Only if the server does not answer at all.
    pub(crate) async fn examine(&self) -> Result<Vec<Finding>, StoreError> {
        let open = self
            .in_time(Deed::Read, "the examination", self.requests.open())
            .await?;
        let mut findings = vec![self.round_trip().await?];
        let asking = Settings::ask(&self.requests, &self.place);
        let settings = self.in_time(Deed::Read, "the examination", asking).await?;
        findings.push(version(&settings, &open.connection.hello.version));
        if self.target.admission.is_none() {
            findings.push(self.which_store().await);
            findings.extend(self.examine_places().await);
        }
        let quorate = self.examine_quorum().await;
        findings.push(quorate.unwrap_or_else(|| self.topology(&settings, &open.connection.hello)));
        findings.push(persistence(&settings));
        findings.push(eviction(&settings));
        findings.push(self.clock().await);
        findings.push(self.privileges().await);
        Ok(findings)
    }

    async fn round_trip(&self) -> Result<Finding, StoreError> {
        let mut times = Vec::with_capacity(PINGS);
        for _ping in 0..PINGS {
            let sent = Instant::now();
            let ping = self.requests.look(redis::cmd("PING"), "a ping", &self.place);
            self.in_time(Deed::Read, "a ping", ping).await?;
            times.push(sent.elapsed());
        }
        times.sort();
        let (median, worst) = (times[PINGS / 2], times[PINGS - 1]);
        let detail = format!("{median:.1?} (median of {PINGS} pings), worst {worst:.1?}");
        Ok(match median > ROUND_TRIP_SLOW {
            true => warning(
                "round trip",
                detail,
                "run candidates nearer to the server, or take a ttl of 30s or more",
            ),
            false => good("round trip", detail),
        })
    }

    fn topology(
        &self,
        settings: &Settings,
        Hello {
            version, clustered, ..
        }: &Hello,
    ) -> Finding {
        let replicas = settings.replicas();
        let needed = settings.config("min-replicas-to-write").unwrap_or("unknown");
        if settings.writes_as_replica(*clustered) {
            return bad(
                "topology",
                "replica-read-only no: a server that is demoted goes on granting leases beside the one that rules then",
                "CONFIG SET replica-read-only yes on each server, then CONFIG REWRITE",
            );
        }
        let lossy = "replication is asynchronous, so a fail-over may give a lease to two: only the fence protects then";
        match self.target.set() {
            Set::Sentinels { primary } => {
                of_sentinels(settings, primary, version, &format!("{replicas}; {lossy}"))
            }
            Set::Server | Set::Independent if *clustered => warning(
                "topology",
                format!("a cluster, {replicas} of this member; {lossy}"),
                "fence every write",
            ),
            Set::Server | Set::Independent => match replicas {
                Replicas::None => good("topology", "one server: while it is down nobody is elected"),
                Replicas::Connected(_) | Replicas::Away => warning(
                    "topology",
                    format!("one primary with {replicas}, min-replicas-to-write {needed}; {lossy}"),
                    "fence every write, and never promote a replica while leases are held",
                ),
                Replicas::Unknown => warning(
                    "topology",
                    format!("one primary with {replicas}; {lossy}"),
                    "grant the right to INFO, or fence every write",
                ),
            },
        }
    }

    /// The difference of its clock to ours, give or take the round trip.
    async fn clock(&self) -> Finding {
        let (sent, here) = (Instant::now(), SystemTime::now());
        let asking = self.requests.look(redis::cmd("TIME"), "its clock", &self.place);
        let told = match self.in_time(Deed::Read, "its clock", asking).await {
            Ok(told) => redis::from_redis_value::<(u64, u64)>(told).ok(),
            Err(error) => return unknown("clock", &error),
        };
        let here = here.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + sent.elapsed() / 2;
        let Some((seconds, microseconds)) = told else {
            return warning(
                "clock",
                "the server tells no time",
                "check that it is a Redis or Valkey server",
            );
        };
        let there = Duration::from_secs(seconds) + Duration::from_micros(microseconds);
        let difference = here.abs_diff(there);
        let detail = format!(
            "differs from ours by {difference:.1?}, give or take {:.1?}",
            sent.elapsed() / 2
        );
        match difference > CLOCK_DIFFERENCE_MAX {
            true => warning(
                "clock",
                format!("{detail}; a step of the server's clock ends leases early, or keeps them"),
                "synchronise the server's clock with ntpd, or chrony and maxslewrate 500",
            ),
            false => good("clock", detail),
        }
    }

    /// The commands of terms that the user may not give there, where the server can tell without their being
    /// given.
    async fn missing_rights(&self, name: &LeaseName) -> Result<Vec<String>, StoreError> {
        let arguments = Arguments::on([self.keys.index(), self.keys.record(name)])
            .with(self.keys.channel(name))
            .with(all_channels(self));
        let mut reply = self
            .run(&RIGHTS, &arguments, Deed::Read, "its privileges")
            .await?;
        let mut missing = Vec::new();
        while !reply.is_empty() {
            missing.push(reply.word()?);
        }
        Ok(missing)
    }

    /// Whether the user may run the scripts: tried on a name that nobody has, where it writes nothing.
    async fn privileges(&self) -> Finding {
        let user = redis::cmd("ACL").arg("WHOAMI").to_owned();
        let who = self.requests.look(user, "its privileges", &self.place);
        let who = self.in_time(Deed::Read, "its privileges", who).await;
        let name = LeaseName::new(SCRATCH).expect("this is a name");
        match self.get(&name).await {
            Ok(_) => match self.missing_rights(&name).await {
                Ok(missing) if missing.is_empty() => {}
                Ok(missing) if missing == ["untold"] => {
                    return warning(
                        "privileges",
                        "the user may look; whether it may lead, servers before Redis 7 do not tell",
                        "compare with ACL GETUSER the rights in the README of tenure-redis; or upgrade the server",
                    );
                }
                Ok(missing) => {
                    return warning(
                        "privileges",
                        format!(
                            "the user may look, and lacks what whoever leads needs: it may not {}",
                            missing.join(", ")
                        ),
                        "grant whoever leads the rights in the README of tenure-redis",
                    );
                }
                Err(error) => return unknown("privileges", &error),
            },
            Err(error) if error.fault == Fault::Forbidden => {
                return bad(
                    "privileges",
                    error.message,
                    "grant the rights in the README of tenure-redis",
                );
            }
            Err(error) => return unknown("privileges", &error),
        }
        match who {
            Ok(Value::BulkString(user)) if user == b"default" => warning(
                "privileges",
                "the user is \"default\"; unless the network is closed, others may take and break every lease",
                "give each service a user of its own: ACL SETUSER, as in the README of tenure-redis",
            ),
            Ok(_) | Err(_) => good("privileges", "the user may run the scripts"),
        }
    }
}

/// A primary that is cut off from its sentinels and replicas goes on taking writes while another rules,
/// unless it must have a replica.
fn of_sentinels(settings: &Settings, primary: &str, version: &str, more: &str) -> Finding {
    let needed = settings.config("min-replicas-to-write");
    let detail = format!(
        "primary \"{}\" of sentinels, min-replicas-to-write {}, {more}",
        primary.escape_debug(),
        needed.unwrap_or("unknown")
    );
    if needed == Some("0") {
        return bad(
            "topology",
            format!(
                "{detail}; a primary that is cut off from its sentinels and replicas goes on granting leases beside the next one"
            ),
            "CONFIG SET min-replicas-to-write 1 and CONFIG SET min-replicas-max-lag 2 on each server, then CONFIG REWRITE; and \
             fence every write",
        );
    }
    if WITHOUT_MIN_REPLICAS.contains(&version) {
        return bad(
            "topology",
            format!(
                "{detail}; Redis {version} does not apply min-replicas-to-write to scripts (redis #9993)"
            ),
            "go on to Redis 6.2.7 or later, and fence every write",
        );
    }
    warning(
        "topology",
        detail,
        "fence every write; min-replicas-to-write 1 and min-replicas-max-lag 2 shorten the time",
    )
}

fn version(settings: &Settings, told: &str) -> Finding {
    let valkey = settings
        .info("valkey_version")
        .map(|version| format!("Valkey {version}"));
    good("version", valkey.unwrap_or_else(|| format!("Redis {told}")))
}

fn persistence(settings: &Settings) -> Finding {
    let repair = "CONFIG SET appendonly yes, CONFIG SET appendfsync always, CONFIG SET no-appendfsync-on-rewrite no, then \
                  CONFIG REWRITE";
    let folder = settings.config("dir").map_or("its dir".to_owned(), |dir| {
        format!("its dir \"{}\"", dir.escape_debug())
    });
    match settings.persistence() {
        Persistence::Always => good(
            "durability",
            format!(
                "each write is on disk before it is confirmed (appendfsync always), as long as {folder} is on one"
            ),
        ),
        Persistence::ConfirmedFirst => {
            let version = settings.info("redis_version").unwrap_or("before 7.0");
            warning(
                "durability",
                format!(
                    "Redis {} may confirm what it has not written, while a script is past lua-time-limit (redis/redis#9678): a kill \
                     of the server takes that back, though appendfsync is always",
                    version.escape_debug()
                ),
                "upgrade the server to Redis 7.0 or later, or to Valkey",
            )
        }
        Persistence::Emptied => warning(
            "durability",
            format!(
                "the files of the server are where systems have memory, or remove files ({folder}): a crash of its machine may \
                 lose everything"
            ),
            "give the server a dir on a disk, such as /var/lib/redis",
        ),
        Persistence::Lagging => {
            let every = settings.config("appendfsync").unwrap_or("unknown");
            warning(
                "durability",
                format!("appendfsync {every}: a crash of the machine loses the last writes"),
                repair,
            )
        }
        Persistence::LaggingInRewrites => warning(
            "durability",
            "no-appendfsync-on-rewrite yes: a crash of the machine while the server rewrites its file or saves loses what was \
             confirmed meanwhile, though appendfsync is always",
            repair,
        ),
        Persistence::NotYet => warning(
            "durability",
            "the append-only file is being rewritten, perhaps as it was just switched on: then a crash loses what came since it \
             was off",
            "wait until INFO persistence shows neither aof_rewrite_in_progress nor aof_rewrite_scheduled, then connect anew",
        ),
        Persistence::None => warning(
            "durability",
            "no append-only file: a restart forgets leases, and two may lead until the first one's deadline",
            repair,
        ),
        Persistence::Unknown => warning(
            "durability",
            "the server does not tell its settings, so nothing is promised of its crash",
            "ask who runs it for appendonly yes, appendfsync always and no-appendfsync-on-rewrite no, and for the rights to \
             INFO and CONFIG GET",
        ),
    }
}

fn eviction(settings: &Settings) -> Finding {
    let policy = settings
        .config("maxmemory-policy")
        .or_else(|| settings.info("maxmemory_policy"))
        .unwrap_or("unknown");
    match settings.eviction() {
        Eviction::Never => good("eviction", format!("records are not evicted ({policy})")),
        Eviction::Possible => bad(
            "eviction",
            format!("maxmemory-policy {policy}: a full server removes records of leases that are held"),
            "CONFIG SET maxmemory-policy noeviction, or give leases a server of their own",
        ),
        Eviction::Unknown => warning(
            "eviction",
            "the server does not tell whether it evicts keys",
            "ask who runs it for maxmemory-policy noeviction",
        ),
    }
}

/// They do not apply `min-replicas-to-write` to what a script writes.
const WITHOUT_MIN_REPLICAS: [&str; 7] = ["6.2.0", "6.2.1", "6.2.2", "6.2.3", "6.2.4", "6.2.5", "6.2.6"];

/// A name that nobody leads.
const SCRATCH: &str = "tenure-examination";
