use super::{good, warning};
use crate::site::{Site, Topology};
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::{SelectionCriteria, ServerAddress};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenure_core::Finding;

/// Members whose clocks differ by more than this shift every expiry by as much when the primary changes.
const SKEW_MAX_MS: i64 = 500;

/// How long one member may take to tell its time.
const MEMBER_TIME_MAX: Duration = Duration::from_secs(2);

/// Most members that are asked.
const MEMBERS_MAX: usize = 50;

impl Site {
    /// The members' clocks, against each other and against ours. Ours decides nothing: it is only the
    /// measure by which they are compared.
    pub(super) async fn examine_clock(&self, hello: &Document) -> Vec<Finding> {
        let Topology::ReplicaSet { .. } = self.topology else {
            return vec![match ahead_ms(hello, now_ms()) {
                Some(ahead) => good(
                    "clock",
                    format!("the server's is {ahead} ms ahead of ours (which decides nothing)"),
                ),
                None => warning(
                    "clock",
                    "the server does not tell its time".to_owned(),
                    "look at its clock by hand; it judges every expiry",
                ),
            }];
        };
        let hosts = hello
            .get_array("hosts")
            .into_iter()
            .flatten()
            .filter_map(Bson::as_str)
            .take(MEMBERS_MAX);
        let mut clocks = Vec::new();
        let mut silent = Vec::new();
        for host in hosts {
            match self.clock_of(host).await {
                Some(ahead) => clocks.push((host, ahead)),
                None => silent.push(host),
            }
        }
        let mut findings = Vec::new();
        if !silent.is_empty() {
            findings.push(warning(
                "members",
                format!("no answer from {}", silent.join(", ")),
                "bring them up; with a majority down, no lease can be taken or renewed",
            ));
        }
        let (least, most) = (
            clocks.iter().map(|(_, ahead)| *ahead).min(),
            clocks.iter().map(|(_, ahead)| *ahead).max(),
        );
        if let (Some(least), Some(most)) = (least, most) {
            let skew = most - least;
            let detail = format!(
                "the clocks of {} members differ by {skew} ms, and are {least} to {most} ms ahead of ours (which decides nothing)",
                clocks.len()
            );
            findings.push(match skew > SKEW_MAX_MS {
                true => warning(
                    "clock",
                    format!("{detail}; a change of the primary shifts every expiry by as much"),
                    "synchronise the members' clocks (chrony or ntpd), or take ttls far longer",
                ),
                false => good("clock", detail),
            });
        }
        findings
    }

    /// How far a member's clock is ahead of ours, in milliseconds; `None` if it does not answer.
    async fn clock_of(&self, host: &str) -> Option<i64> {
        let wanted = ServerAddress::parse(host).ok()?;
        let this_one = SelectionCriteria::Predicate(Arc::new(move |server| *server.address() == wanted));
        let sent = now_ms();
        let admin = self.client.database("admin");
        let hello = admin
            .run_command(doc! { "hello": 1 })
            .selection_criteria(this_one);
        let hello = tokio::time::timeout(MEMBER_TIME_MAX, hello.into_future())
            .await
            .ok()?
            .ok()?;
        // The member looked at its clock somewhere between; the middle is the best guess.
        ahead_ms(&hello, i64::midpoint(sent, now_ms()))
    }
}

/// `None` where the answer holds no time: that is no sign of a clock that is right.
fn ahead_ms(hello: &Document, ours: i64) -> Option<i64> {
    let theirs = hello.get_datetime("localTime").ok()?;
    Some(theirs.timestamp_millis() - ours)
}

/// This machine's wall clock, in milliseconds since 1970; only ever shown.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
