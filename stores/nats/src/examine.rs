//! The examination for an operator. It writes nothing.

use crate::api::{Condition, Put};
use crate::bucket::begins_with_the_clock;
use crate::durability::{Syncs, judge, servers};
use crate::moments::told_ms;
use crate::one_bucket::created;
use crate::swap::Kv;
use serde_json::Value;
use std::time::{Duration, Instant, SystemTime};
use tenure_core::{Durability, Fault, Finding, Scope, StoreError};
use tenure_remote::findings::{bad, good, unknown, warning};
use tenure_remote::line;

/// How many looks the round trip is the median of.
const LOOKS: usize = 9;

/// A round trip above this makes short ttls unwise.
const ROUND_TRIP_SLOW: Duration = Duration::from_millis(100);

/// A clock that differs from ours by more is told. It is not wrong by that: ours may be.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_millis(250);

/// The last message of no subject: a write on this condition changes nothing.
const NEVER: u64 = i64::MAX.unsigned_abs();

/// It is never the last one's, over whatever connection.
const EVERY_EPOCH: u64 = u64::MAX;

const SUBJECT: &str = "the examination";

impl Kv {
    /// Examines the servers; see [`LeaseStore::examine`](tenure_core::LeaseStore::examine).
    ///
    /// # Errors
    /// Only if the bucket's leader does not answer at all.
    pub(crate) async fn findings(&self) -> Result<Vec<Finding>, StoreError> {
        let mut findings = vec![self.round_trip().await?];
        let (sent, here) = (Instant::now(), SystemTime::now());
        let info = self.link.existing_bucket(&self.keys, SUBJECT).await?;
        findings.push(clock(&info, here + sent.elapsed() / 2, sent.elapsed()));
        findings.extend(self.servers_of_the_url(&info).await);
        findings.push(identity(&info));
        findings.push(copies(&info));
        findings.push(numbers(&info));
        let syncs = Syncs::ask(&self.monitors).await;
        findings.push(durability(&info, &syncs));
        findings.push(self.room(&info, &syncs).await);
        findings.push(self.privileges().await);
        Ok(findings)
    }

    /// Where the URL names several: whether all that answer have this bucket.
    async fn servers_of_the_url(&self, info: &Value) -> Option<Finding> {
        let servers = self.link.servers();
        if !servers.are_several() {
            return None;
        }
        Some(match self.link.divided(&self.keys, info).await {
            Some(why) => bad("servers", why, "name the servers of one cluster in the URL"),
            None => good("servers", "those of the URL that answer are of one cluster"),
        })
    }

    async fn round_trip(&self) -> Result<Finding, StoreError> {
        let mut times = Vec::with_capacity(LOOKS);
        for _look in 0..LOOKS {
            let sent = Instant::now();
            self.clock_ms(SUBJECT).await?;
            times.push(sent.elapsed());
        }
        times.sort();
        let (median, worst) = (times[LOOKS / 2], times[LOOKS - 1]);
        let detail = format!("{median:.1?} to the bucket's leader (median of {LOOKS}), worst {worst:.1?}");
        Ok(match median > ROUND_TRIP_SLOW {
            true => warning(
                "round trip",
                detail,
                "run candidates nearer to the servers, or take a ttl of 30s or more",
            ),
            false => good("round trip", detail),
        })
    }

    /// Whether records may be watched, where they may be read and written: by a watch of names that nobody
    /// leads.
    async fn right_to_watch(&self) -> Finding {
        let harm = "so that nobody is woken when a lease is given back";
        let mut watch = match self.open_watch(&Scope::Prefix(SCRATCH.to_owned())).await {
            Ok(watch) => watch,
            Err(error) if matches!(error.fault, Fault::Forbidden | Fault::Full | Fault::Invalid) => {
                return warning(
                    "privileges",
                    format!("records may be read and written, and not watched, {harm}: {error}"),
                    "grant the rights in the README of tenure-nats, and allow a consumer for each candidate",
                );
            }
            Err(error) => return unknown("privileges", &error),
        };
        match watch.first_sign().await {
            Ok(()) => good("privileges", "records may be read, written and watched"),
            Err(error) => warning(
                "privileges",
                format!("records may be read and written, and a watch is told nothing, {harm}: {error}"),
                "grant subscribe _INBOX.>, and connect to the bucket's own account",
            ),
        }
    }

    /// What the user may do; whether a record may be written by a write that can only be refused.
    async fn privileges(&self) -> Finding {
        let to = self.keys.subject(&format!("lease.{SCRATCH}"));
        let condition = Condition::last_is(NEVER, EVERY_EPOCH);
        match self
            .link
            .put(&self.stream, &to, Vec::new(), condition, SUBJECT)
            .await
        {
            Ok(Put::Conflict) => self.right_to_watch().await,
            Ok(Put::As { sequence, .. }) => bad(
                "privileges",
                format!(
                    "a write whose condition cannot hold was stored as {sequence}: the servers do not compare"
                ),
                "check which servers these are; Tenure needs NATS 2.11.2 or later",
            ),
            Err(error) if error.fault == Fault::Forbidden => bad(
                "privileges",
                error.message,
                "grant the rights in the README of tenure-nats",
            ),
            // Whatever else is the matter says nothing of the rights.
            Err(error) => unknown("privileges", &error),
        }
    }
}

fn clock(info: &Value, here: SystemTime, took: Duration) -> Finding {
    let Some(there) = told_ms(info) else {
        let repair = "check that it is a NATS server of 2.11.2 or later";
        return bad(
            "clock",
            "the bucket's leader tells no time, which tokens begin with",
            repair,
        );
    };
    let here = here.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let difference = here.abs_diff(Duration::from_millis(there));
    let detail = format!(
        "differs from ours by {difference:.1?}, give or take {:.1?}",
        took / 2
    );
    match difference > CLOCK_DIFFERENCE_MAX {
        true => warning(
            "clock",
            format!("{detail}; no lease depends on it, but tokens begin with it"),
            "synchronise the servers' clocks with ntpd, or chrony and maxslewrate 500",
        ),
        false => good("clock", detail),
    }
}

/// To be compared with what is said by who was connected to another one.
fn identity(info: &Value) -> Finding {
    let name = info["config"]["name"].as_str().unwrap_or_default();
    let made = created(info).unwrap_or("at no time that it tells");
    let detail = format!("{}, made {made}", line(name));
    // A server asks its own domain, and makes a bucket there: nothing else shows that there is another.
    match info["domain"].as_str() {
        Some(domain) if !domain.is_empty() => warning(
            "bucket",
            format!(
                "{detail}, of JetStream domain \"{}\": whoever connects to a server of another domain, as to a leaf node, has a \
                 bucket of his own, and leads beside",
                line(domain.escape_debug())
            ),
            "have every candidate connect to servers of this one domain, and compare what doctor says where each runs",
        ),
        Some(_) | None => good("bucket", detail),
    }
}

fn copies(info: &Value) -> Finding {
    let config = &info["config"];
    let number = |field: &str| config[field].as_i64().unwrap_or(0);
    let (replicas, history) = (number("num_replicas"), number("max_msgs_per_subject"));
    let lagging: Vec<&str> = info["cluster"]["replicas"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|replica| replica["current"] != true || replica["offline"] == true)
        .filter_map(|replica| replica["name"].as_str())
        .collect();
    // What those name who meet another bucket of this name.
    let made = created(info).unwrap_or("at no time that is told");
    let detail = format!(
        "{replicas} on {}, of a bucket made {made}",
        servers(info).join(", ")
    );
    if !lagging.is_empty() {
        let repair = "bring them up: while a majority is missing nobody is elected";
        return warning(
            "copies",
            format!("{detail}; behind or gone: {}", lagging.join(", ")),
            repair,
        );
    }
    if history != 1 {
        let kept = match history {
            1.. => history.to_string(),
            _ => "all".to_owned(),
        };
        let detail = format!("{detail}; {kept} revisions of each record are kept, of which leases need one");
        return warning(
            "copies",
            detail,
            "give leases a bucket of their own, with a history of 1",
        );
    }
    match replicas {
        1 => warning(
            "copies",
            format!("{detail}: while that server is down nobody is elected"),
            "in a cluster: nats stream edit KV_BUCKET --replicas=3",
        ),
        // Of two both are the majority.
        2 => warning(
            "copies",
            format!("{detail}: while one of them is down nobody is elected"),
            "nats stream edit KV_BUCKET --replicas=3",
        ),
        _ => good("copies", detail),
    }
}

fn numbers(info: &Value) -> Finding {
    match begins_with_the_clock(&info["config"]) {
        true => good(
            "numbers",
            "the bucket's numbers begin with the clock: they do not come again if it is made again",
        ),
        false => warning(
            "numbers",
            "the bucket's numbers begin with 1: if it is removed and made again while somebody leads, they come again, and \
             stand for other writes",
            "let Tenure make the bucket, or make it with \"first_seq\" set to the clock's microseconds",
        ),
    }
}

fn durability(info: &Value, syncs: &Syncs) -> Finding {
    let shown = syncs.shown();
    match judge(info, syncs) {
        Durability::Safe => good(
            "durability",
            format!("each write is on disk before it is confirmed; {shown}"),
        ),
        Durability::FenceOnly(why) => warning(
            "durability",
            format!("{why}; {shown}"),
            "set `sync_interval: always` in the jetstream block of every server, name monitor= in the URL, fence every write",
        ),
    }
}

/// A name that nobody leads.
const SCRATCH: &str = "tenure-examination";
