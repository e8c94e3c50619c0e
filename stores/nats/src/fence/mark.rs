//! What a fence keeps: one JSON object per mark, one per count of refusals.

use serde_json::{Value, json};
use tenure_core::{FencingToken, LeaseName, Refused};

/// The form of both. A later one is not understood, and left alone.
const FORM: u64 = 1;

/// A mark as it is stored.
pub(super) fn encode(lease: Option<&LeaseName>, token: FencingToken) -> Vec<u8> {
    let lease = lease.map(LeaseName::as_str);
    json!({ "form": FORM, "lease": lease, "token": token.number() })
        .to_string()
        .into_bytes()
}

/// Reads a mark strictly.
pub(super) fn decode(bytes: &[u8]) -> Option<(Option<LeaseName>, FencingToken)> {
    let value = formed(bytes)?;
    let lease = match value.get("lease")? {
        Value::Null => None,
        lease => Some(LeaseName::new(lease.as_str()?).ok()?),
    };
    let token = FencingToken::new(value["token"].as_u64()?).ok()?;
    Some((lease, token))
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
