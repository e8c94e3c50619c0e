//! A number in a bucket of NATS, protected by the message that is stored only over the mark that its term has
//! claimed.
//!
//! A fenced write is one message under one key, and the bucket keeps the last of each key. So that number and
//! history are written in one step, each write is a key of its own, which says who wrote and what it had
//! read: the number is what the message that was stored last has left, and the history is all of them.

use super::register::{NotClaimed, Outcome, Register, Write, claim, resource};
use async_nats::Client;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use tenure::contract::Answer;
use tenure::nats::NatsFence;
use tenure::{Leases, Term};

/// How the stream's leader is asked for a message of the bucket that a URL without a path names.
const GET: &str = "$JS.API.STREAM.MSG.GET.KV_tenure";
/// The subjects of all writes.
const WRITES: &str = "$KV.tenure.write.>";
/// What an answer has where no message is, or none is left.
const NOT_FOUND: u64 = 10_037;

pub struct NatsRegister {
    fence: NatsFence,
    /// What looks, without the fence.
    client: Client,
    /// Writes of this register: each has a key of its own.
    attempts: AtomicU64,
}

impl NatsRegister {
    pub async fn open(url: &str) -> Self {
        Self {
            fence: NatsFence::connect(url, Leases::Elsewhere).await.unwrap(),
            client: async_nats::connect(url).await.unwrap(),
            attempts: AtomicU64::new(0),
        }
    }

    /// A message that the stream's leader has: its place in the stream, and the write; the inner `None` if it
    /// has none.
    async fn message(&self, asked: &Value) -> Option<Option<(u64, Write)>> {
        let answer = self.client.request(GET, asked.to_string().into()).await.ok()?;
        let answer: Value = serde_json::from_slice(&answer.payload).ok()?;
        if answer["error"]["err_code"] == NOT_FOUND {
            return Some(None);
        }
        let message = &answer["message"];
        let mut parts = message["subject"].as_str()?.split('.').skip(3);
        let write = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Some((message["seq"].as_u64()?, write)))
    }
}

impl Register for NatsRegister {
    fn claim<'a>(&'a self, term: &'a Term) -> Answer<'a, Result<(), NotClaimed>> {
        Box::pin(claim(&self.fence, term))
    }

    fn read<'a>(&'a self, _term: &'a Term) -> Answer<'a, Option<i64>> {
        Box::pin(async {
            let last = self.message(&json!({ "last_by_subj": WRITES })).await?;
            Some(last.map_or(0, |(_, (_, read))| read + 1))
        })
    }

    fn write<'a>(&'a self, term: &'a Term, read: i64) -> Answer<'a, Outcome> {
        Box::pin(async move {
            let attempt = self.attempts.fetch_add(1, Ordering::SeqCst);
            // No two processes write with one token.
            let key = format!("write.{}.{read}.{attempt}", term.token);
            match self.fence.put(&resource(), term, &key, "").await {
                Ok(_revision) => Outcome::Accepted,
                Err(error) => Outcome::of(&error),
            }
        })
    }

    fn write_bare(&self, read: i64) -> Option<Answer<'_, ()>> {
        Some(Box::pin(async move {
            let subject = format!("$KV.tenure.bare.1.{read}");
            let answer = self.client.request(subject, "".into()).await.unwrap();
            let stored: Value = serde_json::from_slice(&answer.payload).unwrap();
            assert!(stored["seq"].is_u64(), "{stored}");
        }))
    }

    fn history(&self) -> Answer<'_, Vec<Write>> {
        Box::pin(async {
            let (mut from, mut history) = (1, Vec::new());
            loop {
                let asked = json!({ "seq": from, "next_by_subj": WRITES });
                let Some((place, write)) = self.message(&asked).await.unwrap() else {
                    return history;
                };
                history.push(write);
                from = place + 1;
            }
        })
    }
}
