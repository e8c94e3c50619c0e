//! The history of what terms wrote that followed each other behind the fence: the stream keeps every write.

use crate::common::{Beneath, Scratch};
use std::sync::Arc;
use tenure_conformance::register::{Register, terms_follow_each_other};
use tenure_core::{Answer, FenceError, Leases, ResourceName, Term};
use tenure_nats::NatsFence;

const KEY: &str = "number";

/// One number, whose values are what a term wrote: its token, and what it had read.
struct Number {
    fence: NatsFence,
    beneath: Beneath,
    stream: String,
}

impl Number {
    async fn of(scratch: &Scratch) -> Self {
        let fence = NatsFence::connect(&scratch.store_url(), Leases::Elsewhere).await;
        Self {
            fence: fence.expect("the fence connects"),
            beneath: scratch.beneath().await,
            stream: scratch.stream(),
        }
    }
}

fn ledger() -> ResourceName {
    ResourceName::new("ledger").expect("a test gives a valid name")
}

fn written(value: &[u8]) -> (u64, u64) {
    let text = String::from_utf8(value.to_vec()).expect("text");
    let (token, read) = text.split_once(' ').expect("two numbers");
    (token.parse().expect("a number"), read.parse().expect("a number"))
}

impl Register for Number {
    fn read(&mut self) -> Answer<'_, u64> {
        Box::pin(async {
            let last = self.beneath.last(KEY).await;
            last.map_or(0, |(_, value)| written(&value).1 + 1)
        })
    }

    fn write<'a>(&'a mut self, term: &'a Term, read: u64) -> Answer<'a, Result<(), FenceError>> {
        Box::pin(async move {
            let value = format!("{} {read}", term.token);
            self.fence
                .put(&ledger(), term, KEY, value)
                .await
                .map(|_revision| ())
        })
    }

    fn history(&mut self) -> Answer<'_, Vec<(u64, u64)>> {
        Box::pin(async {
            let info = self.beneath.info().await;
            let last = info["state"]["last_seq"].as_u64().expect("a number");
            let mut history = Vec::new();
            for sequence in 1..=last {
                let request = serde_json::json!({ "seq": sequence });
                let message = format!("STREAM.MSG.GET.{}", self.stream);
                let answer = self.beneath.call(&message, request).await;
                if answer["message"]["subject"] == self.beneath.subject(KEY) {
                    let value = answer["message"]["data"].as_str().unwrap_or_default();
                    let value = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, value);
                    history.push(written(&value.expect("base64")));
                }
            }
            history
        })
    }
}

#[tokio::test]
async fn no_accepted_write_is_lost_between_two_terms_in_nats() {
    let scratch = Scratch::new().await;
    let keeps_all = serde_json::json!({ "max_msgs_per_subject": -1 });
    scratch.beneath().await.make(keeps_all).await;
    let mut terms = Vec::new();
    for _ in 0..16 {
        terms.push(Number::of(&scratch).await);
    }
    let judge = Number::of(&scratch).await;
    let fence = Arc::new(Number::of(&scratch).await.fence);
    terms_follow_each_other(fence, &ledger(), terms, judge).await;
}
