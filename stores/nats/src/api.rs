//! The calls of JetStream that leases need, each as one message and one answer.
//!
//! By hand and not by the driver's own layer for JetStream: that one reads from whichever replica is near where a bucket
//! allows it, waits by time-outs of its own, and tells no refusal from an answer that was lost.

use crate::connect::refused;
use crate::fault::{NO_MESSAGE, Refusal};
use crate::link::{Link, REQUEST_TIME_MAX, Sent};
use crate::moments::milliseconds;
use async_nats::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::Deed;

/// The condition of a write: the number of the last message of its subject, 0 where there is none.
pub(crate) const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
/// The stream that must take a message.
const EXPECTED_STREAM: &str = "Nats-Expected-Stream";
/// What a bucket's clients leave in place of a value that they removed.
const OPERATION: &str = "KV-Operation";

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
}

/// What a conditional write did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Put {
    /// It has this number.
    As(u64),
    /// The subject's last message is another.
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
        let payload = match request {
            Value::Null => Vec::new(),
            request => request.to_string().into_bytes(),
        };
        let sent = Sent {
            to: format!("$JS.API.{api}"),
            headers: None,
            payload,
        };
        let message = self.ask_within(allowed, &sent, deed, subject).await?;
        self.read(&message.payload, deed, subject)
    }

    fn read(&self, payload: &[u8], deed: Deed, subject: &str) -> Result<Result<Value, Refusal>, StoreError> {
        match serde_json::from_slice::<Value>(payload) {
            Ok(answer) => Ok(match Refusal::of(&answer) {
                Some(refusal) => Err(refusal),
                None => Ok(answer),
            }),
            Err(_) => Err(self.misunderstood(deed, subject)),
        }
    }

    /// The last message of a subject, as the stream's leader has it: never by a direct get, which any replica answers.
    pub(crate) async fn last(
        &self,
        stream: &str,
        of: &str,
        subject: &str,
    ) -> Result<Option<Stored>, StoreError> {
        let request = json!({ "last_by_subj": of });
        let answer = self
            .call(&format!("STREAM.MSG.GET.{stream}"), &request, Deed::Read, subject)
            .await?;
        match answer {
            Ok(answer) => {
                let stored = stored(&answer["message"]);
                stored
                    .map(Some)
                    .ok_or_else(|| self.misunderstood(Deed::Read, subject))
            }
            Err(refusal) if refusal.number == NO_MESSAGE => Ok(None),
            Err(refusal) => Err(refused(Deed::Read, subject, self.place(), &refusal)),
        }
    }

    /// What the stream's leader tells of the stream; with `of`, also which subjects that match it have messages, from the
    /// `offset`th.
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
        self.call(&format!("STREAM.INFO.{stream}"), &request, Deed::Read, subject)
            .await
    }

    /// Stores a message if the last one of `guard` (of its own subject, if `None`) has this number.
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
        let message = self.ask(&sent, Deed::Write, subject).await?;
        match self.read(&message.payload, Deed::Write, subject)? {
            Ok(answer) => match answer["seq"].as_u64() {
                Some(sequence) => Ok(Put::As(sequence)),
                None => Err(self.misunderstood(Deed::Write, subject)),
            },
            Err(refusal) if refusal.is_conflict() => Ok(Put::Conflict),
            Err(refusal) => Err(refused(Deed::Write, subject, self.place(), &refusal)),
        }
    }

    pub(crate) fn misunderstood(&self, deed: Deed, subject: &str) -> StoreError {
        let why = "the answer is none of JetStream's; check that a NATS server of 2.10 or later is there";
        deed.error(Fault::Internal, Certainty::Unknown, subject, self.place(), why)
    }
}

/// On what a message is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition<'a> {
    /// The number of the last message.
    pub(crate) sequence: u64,
    /// Further headers.
    pub(crate) further: &'a [(&'static str, &'a str)],
}

impl Condition<'_> {
    /// That the last message of the same subject has this number.
    pub(crate) fn last_is(sequence: u64) -> Self {
        Self {
            sequence,
            further: &[],
        }
    }
}

fn stored(message: &Value) -> Option<Stored> {
    let decoded = |field: &str| match message.get(field) {
        None => Some(Vec::new()),
        Some(text) => STANDARD.decode(text.as_str()?).ok(),
    };
    Some(Stored {
        subject: message["subject"].as_str()?.to_owned(),
        sequence: message["seq"].as_u64()?,
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
    lines.any(|(name, value)| name == OPERATION && is_removing(value.trim()))
}

/// Whether this value of the header `KV-Operation` says that the value was removed.
fn is_removing(operation: &str) -> bool {
    matches!(operation, "DEL" | "PURGE")
}

/// Whether the headers of a message that was delivered say that the value was removed.
pub(crate) fn removes(headers: Option<&HeaderMap>) -> bool {
    let operation = headers.and_then(|headers| headers.get(OPERATION));
    operation.is_some_and(|operation| is_removing(operation.as_str()))
}
