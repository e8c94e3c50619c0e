//! What a fence keeps: one JSON object per mark, one per count of refusals.

use serde_json::{Value, json};
use tenure_core::{FencingToken, LeaseName, Refused, Term};

/// The form of both. A later one is not understood, and left alone.
const FORM: u64 = 1;

/// Whose tokens a mark compares, and how high it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MarkValue {
    /// `None` until the first claim.
    pub(super) lease: Option<LeaseName>,
    /// The term that claimed last, or what an operator has raised it to.
    pub(super) token: FencingToken,
    /// Whether an operator has raised it, and nobody has claimed since.
    bumped: bool,
}

impl MarkValue {
    /// As a term claims it.
    pub(super) fn claimed(term: &Term) -> Self {
        Self {
            lease: Some(term.lease.clone()),
            token: term.token,
            bumped: false,
        }
    }

    /// As an operator raises it.
    pub(super) fn lifted(lease: Option<LeaseName>, token: FencingToken) -> Self {
        Self {
            lease,
            token,
            bumped: true,
        }
    }

    /// Who has claimed the mark: nobody, where an operator has raised it.
    pub(super) fn claimant(&self) -> Option<&LeaseName> {
        self.lease.as_ref().filter(|_| !self.bumped)
    }

    /// As it is stored.
    pub(super) fn encode(&self) -> Vec<u8> {
        let lease = self.lease.as_ref().map(LeaseName::as_str);
        let mut value = json!({ "form": FORM, "lease": lease, "token": self.token.number() });
        if self.bumped {
            value["bumped"] = self.token.number().into();
        }
        value.to_string().into_bytes()
    }

    /// Reads a mark strictly.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let value = formed(bytes)?;
        let lease = match value.get("lease")? {
            Value::Null => None,
            lease => Some(LeaseName::new(lease.as_str()?).ok()?),
        };
        let token = FencingToken::new(value["token"].as_u64()?).ok()?;
        let bumped = match value.get("bumped") {
            None => false,
            Some(bumped) => bumped.as_u64()? == token.number(),
        };
        Some(Self { lease, token, bumped })
    }
}

/// A count of refusals as it is stored.
pub(super) fn encode_refused(refused: Refused) -> Vec<u8> {
    let count = json!({ "form": FORM, "refused": refused.count, "lastRefused": refused.last.number() });
    count.to_string().into_bytes()
}

/// Reads a count of refusals; what cannot be read counts as none: it decides nothing.
pub(super) fn decode_refused(bytes: &[u8]) -> Option<Refused> {
    let value = formed(bytes)?;
    Some(Refused {
        count: value["refused"].as_u64()?,
        last: FencingToken::new(value["lastRefused"].as_u64()?).ok()?,
    })
}

fn formed(bytes: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    (value.get("form")?.as_u64()? == FORM).then_some(value)
}
