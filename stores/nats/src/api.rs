//! The calls of JetStream that leases need, each as one message and one answer.
//!
//! By hand and not by the driver's own layer for JetStream: that one reads from whichever replica is near
//! where a bucket allows it, waits by time-outs of its own, and tells no refusal from an answer that was
//! lost.

use crate::connect::{nobody_there, refused};
use crate::dialled::Sent;
use crate::fault::{NO_MESSAGE, Refusal};
use crate::link::{Link, REQUEST_TIME_MAX, Told};
use crate::moments::milliseconds;
use async_nats::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::Deed;

/// The condition of a write: the number of the last message of its subject, 0 where there is none.
pub(crate) const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
/// The stream that must take a message.
const EXPECTED_STREAM: &str = "Nats-Expected-Stream";
/// What a bucket's clients leave in place of a value that they removed.
const OPERATION: &str = "KV-Operation";
/// What the servers themselves leave in place of what they removed, where a bucket is told to.
const MARKER: &str = "Nats-Marker-Reason";

/// Most answers with subjects that are asked for, each of up to 100,000: what is beyond that many is not
/// listed.
const ANSWERS_MAX: usize = 100;

/// The last message of a subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Stored {
    pub(crate) subject: String,
    /// Its number in the stream: the revision.
    pub(crate) sequence: u64,
    /// When it was stored, by the clock of the leader that stored it, in milliseconds since 1970.
    pub(crate) time_ms: u64,
    /// `None` where it says that the value was removed.
    pub(crate) value: Option<Vec<u8>>,
    /// The epoch in which it was the last.
    pub(crate) epoch: u64,
}

/// What a conditional write did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Put {
    /// It has this number.
    As {
        sequence: u64,
        /// The epoch in which it was stored.
        epoch: u64,
    },
    /// The subject's last message is another, or may be.
    Conflict,
}

impl Link {
    /// One call of JetStream's.
    ///
    /// # Errors
    /// [`StoreError`] if there was no answer; a refusal of JetStream's is the inner result.
    pub(crate) async fn call(
        &self,
        api: &str,
        request: &Value,
        deed: Deed,
        subject: &str,
    ) -> Result<Result<Value, Refusal>, StoreError> {
        self.call_within(REQUEST_TIME_MAX, api, request, deed, subject)
            .await
    }

    /// The same where the servers may take longer.
    pub(crate) async fn call_within(
        &self,
        allowed: Duration,
        api: &str,
        request: &Value,
        deed: Deed,
        subject: &str,
    ) -> Result<Result<Value, Refusal>, StoreError> {
        let told = self.tell(allowed, api, request, deed, subject).await?;
        self.read(&told, deed, subject)
    }

    async fn tell(
        &self,
        allowed: Duration,
        api: &str,
        request: &Value,
        deed: Deed,
        subject: &str,
    ) -> Result<Told, StoreError> {
        let payload = match request {
            Value::Null => Vec::new(),
            request => request.to_string().into_bytes(),
        };
        let sent = Sent {
            to: format!("$JS.API.{api}"),
            headers: None,
            payload,
        };
        self.ask(allowed, &sent, deed, subject).await
    }

    fn read(&self, told: &Told, deed: Deed, subject: &str) -> Result<Result<Value, Refusal>, StoreError> {
        match serde_json::from_slice::<Value>(&told.message.payload) {
            Ok(answer) => Ok(match Refusal::of(&answer) {
                Some(refusal) => {
                    if refusal.is_of_a_server_alone() {
                        self.look_elsewhere(&told.open);
                    }
                    Err(refusal)
                }
                None => Ok(answer),
            }),
            Err(_) => Err(self.misunderstood(deed, subject)),
        }
    }

    /// The last message of a subject, as the stream's leader has it: never by a direct get, which any replica
    /// answers.
    pub(crate) async fn last(
        &self,
        stream: &str,
        of: &str,
        subject: &str,
    ) -> Result<Option<Stored>, StoreError> {
        let request = json!({ "last_by_subj": of });
        let api = format!("STREAM.MSG.GET.{stream}");
        let told = self
            .tell(REQUEST_TIME_MAX, &api, &request, Deed::Read, subject)
            .await?;
        match self.read(&told, Deed::Read, subject)? {
            Ok(answer) => {
                let stored = stored(&answer["message"], told.epoch);
                stored
                    .map(Some)
                    .ok_or_else(|| self.misunderstood(Deed::Read, subject))
            }
            Err(refusal) if refusal.number == NO_MESSAGE => Ok(None),
            Err(refusal) => Err(refused(Deed::Read, subject, self.place(), &refusal)),
        }
    }

    /// What the stream's leader tells of the stream; with `of`, also which subjects that match it have
    /// messages, from the `offset`th.
    pub(crate) async fn info(
        &self,
        stream: &str,
        of: Option<(&str, usize)>,
        subject: &str,
    ) -> Result<Result<Value, Refusal>, StoreError> {
        let request = of.map_or(
            Value::Null,
            |(of, offset)| json!({ "subjects_filter": of, "offset": offset }),
        );
        let api = format!("STREAM.INFO.{stream}");
        let told = self
            .tell(REQUEST_TIME_MAX, &api, &request, Deed::Read, subject)
            .await?;
        match self.read(&told, Deed::Read, subject)? {
            Ok(answer) if !is_told_by_the_leader(&answer) => {
                self.look_elsewhere(&told.open);
                Err(nobody_there(Deed::Read, subject, self.place()))
            }
            Ok(answer) => {
                self.believe(&told.open, &answer, subject)?;
                Ok(Ok(answer))
            }
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// What `pick` takes of the subjects that match `of` and have messages.
    pub(crate) async fn subjects<Picked>(
        &self,
        stream: &str,
        of: &str,
        subject: &str,
        mut pick: impl FnMut(&str) -> Option<Picked>,
    ) -> Result<Vec<Picked>, StoreError> {
        let mut picked = Vec::new();
        let mut offset = 0;
        for _answer in 0..ANSWERS_MAX {
            let info = self.info(stream, Some((of, offset)), subject).await?;
            let info = info.map_err(|refusal| refused(Deed::Read, subject, self.place(), &refusal))?;
            let subjects = info["state"]["subjects"].as_object();
            let count = subjects.map_or(0, serde_json::Map::len);
            offset += count;
            picked.extend(
                subjects
                    .into_iter()
                    .flatten()
                    .filter_map(|(subject, _count)| pick(subject)),
            );
            let total = info["total"]
                .as_u64()
                .and_then(|total| usize::try_from(total).ok());
            if count == 0 || total.is_none_or(|total| offset >= total) {
                break;
            }
        }
        Ok(picked)
    }

    /// Stores a message on a condition. It is sent over a connection that is older than the epoch in which
    /// the number of the condition was shown, or not at all: another may lead to a server that has lost the
    /// message of that number, and has given the number to another.
    ///
    /// A cluster refuses it while it is just storing another that the condition is about: then it is sent
    /// again after a short pause, as nothing was stored.
    pub(crate) async fn put(
        &self,
        stream: &str,
        to: &str,
        value: Vec<u8>,
        condition: Condition<'_>,
        subject: &str,
    ) -> Result<Put, StoreError> {
        let mut headers = HeaderMap::new();
        headers.insert(EXPECTED, condition.sequence.to_string());
        headers.insert(EXPECTED_STREAM, stream);
        for (name, text) in condition.further {
            headers.insert(*name, *text);
        }
        let sent = Sent {
            to: to.to_owned(),
            headers: Some(headers),
            payload: value,
        };
        let until = Instant::now() + REQUEST_TIME_MAX;
        loop {
            let allowed = until.saturating_duration_since(Instant::now());
            match self.try_to_put(allowed, &sent, condition, subject).await? {
                Ok(put) => return Ok(put),
                Err(refusal) if refusal.is_in_process() && Instant::now() + LAST_TRY_MIN < until => {
                    tokio::time::sleep(pause()).await;
                }
                Err(refusal) => return Err(refused(Deed::Write, subject, self.place(), &refusal)),
            }
        }
    }

    async fn try_to_put(
        &self,
        allowed: Duration,
        sent: &Sent,
        condition: Condition<'_>,
        subject: &str,
    ) -> Result<Result<Put, Refusal>, StoreError> {
        let open = self.open().await?;
        if condition.sequence != NONE && !open.connection.is_older_than(condition.epoch) {
            return Ok(Ok(Put::Conflict));
        }
        let told = self.ask_on(&open, allowed, sent, Deed::Write, subject).await?;
        match self.read(&told, Deed::Write, subject)? {
            Ok(answer) => match answer["seq"].as_u64() {
                Some(sequence) => Ok(Ok(Put::As {
                    sequence,
                    epoch: told.epoch,
                })),
                None => Err(self.misunderstood(Deed::Write, subject)),
            },
            Err(refusal) if refusal.is_conflict() => Ok(Ok(Put::Conflict)),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    pub(crate) fn misunderstood(&self, deed: Deed, subject: &str) -> StoreError {
        let why = "the answer is none of JetStream's; check that a NATS server of 2.11.2 or later is there";
        deed.error(Fault::Internal, Certainty::Unknown, subject, self.place(), why)
    }
}

/// How long to wait before something is sent again that met another write: some time between these, so that
/// those who have met do not meet again.
const PAUSE_MS: RangeInclusive<u64> = 2..=50;

/// Nothing is sent again that has less time than this for its answer: a refusal is worth more than a doubt.
const LAST_TRY_MIN: Duration = Duration::from_secs(1);

fn pause() -> Duration {
    let chance = RandomState::new().build_hasher().finish();
    let (shortest, longest) = (PAUSE_MS.start(), PAUSE_MS.end());
    Duration::from_millis(shortest + chance % (longest - shortest + 1))
}

/// The number of no message: that there is none is true of every epoch.
pub(crate) const NONE: u64 = 0;

/// On what a message is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition<'a> {
    /// The number of the last message.
    pub(crate) sequence: u64,
    /// The epoch in which it was shown.
    pub(crate) epoch: u64,
    /// Further headers.
    pub(crate) further: &'a [(&'static str, &'a str)],
}

impl Condition<'_> {
    /// That the last message of the same subject has this number, which was shown in this epoch.
    pub(crate) fn last_is(sequence: u64, epoch: u64) -> Self {
        Self {
            sequence,
            epoch,
            further: &[],
        }
    }

    /// That the last message of the same subject is still this one.
    pub(crate) fn last_stored(stored: Option<&Stored>) -> Self {
        let (sequence, epoch) = stored.map_or((NONE, 0), |stored| (stored.sequence, stored.epoch));
        Self::last_is(sequence, epoch)
    }
}

/// Whether the stream's leader has told this of the stream: while there is none, any of its servers does, of
/// whatever it has. Each names the others that keep the stream, and who leads.
fn is_told_by_the_leader(info: &Value) -> bool {
    let cluster = &info["cluster"];
    let Some(cluster) = cluster.as_object() else {
        return true;
    };
    let leader = cluster.get("leader").and_then(Value::as_str).unwrap_or_default();
    let others = cluster.get("replicas").and_then(Value::as_array);
    let is_another = others.into_iter().flatten().any(|other| other["name"] == leader);
    !leader.is_empty() && !is_another
}

fn stored(message: &Value, epoch: u64) -> Option<Stored> {
    let decoded = |field: &str| match message.get(field) {
        None => Some(Vec::new()),
        Some(text) => STANDARD.decode(text.as_str()?).ok(),
    };
    Some(Stored {
        subject: message["subject"].as_str()?.to_owned(),
        sequence: message["seq"].as_u64()?,
        epoch,
        time_ms: milliseconds(message["time"].as_str()?)?,
        value: match is_removal(&decoded("hdrs")?) {
            true => None,
            false => Some(decoded("data")?),
        },
    })
}

/// Whether the headers say that the value was removed.
fn is_removal(headers: &[u8]) -> bool {
    let text = String::from_utf8_lossy(headers);
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.any(|(name, value)| name == MARKER || (name == OPERATION && is_removing(value.trim())))
}

/// Whether this value of the header `KV-Operation` says that the value was removed.
fn is_removing(operation: &str) -> bool {
    matches!(operation, "DEL" | "PURGE")
}

/// Whether the headers of a message that was delivered say that the value was removed.
pub(crate) fn removes(headers: Option<&HeaderMap>) -> bool {
    let header = |name: &str| headers.and_then(|headers| headers.get(name));
    header(MARKER).is_some() || header(OPERATION).is_some_and(|operation| is_removing(operation.as_str()))
}

#[cfg(test)]
mod tests {
    use super::is_told_by_the_leader;
    use serde_json::json;

    #[test]
    fn what_the_leader_tells_is_told_from_what_any_of_the_servers_does() {
        let others = |names: &[&str]| {
            names
                .iter()
                .map(|name| json!({ "name": name }))
                .collect::<Vec<_>>()
        };
        for of_the_leader in [
            json!({}),
            json!({ "cluster": { "leader": "one" } }),
            json!({ "cluster": { "leader": "one", "replicas": others(&["two", "three"]) } }),
        ] {
            assert!(is_told_by_the_leader(&of_the_leader), "{of_the_leader}");
        }
        for of_another in [
            json!({ "cluster": { "name": "c" } }),
            json!({ "cluster": { "leader": "", "replicas": others(&["two", "three"]) } }),
            json!({ "cluster": { "replicas": others(&["two", "three"]) } }),
            json!({ "cluster": { "leader": "two", "replicas": others(&["two", "three"]) } }),
        ] {
            assert!(!is_told_by_the_leader(&of_another), "{of_another}");
        }
    }
}
