//! The record of a lease: one JSON object, strictly read.

use serde_json::{Map, Value, json};
use tenure_core::{
    Attempt, Candidate, CandidateId, Entry, Fault, FencingToken, Incarnation, Note, StoreError, Ttl,
};

/// The form of the record. A later one is not understood, and left alone.
const FORM: u64 = 1;

/// Longest key or value that a message shows, in characters.
const SHOWN_CHARACTERS_MAX: usize = 80;

/// The record as it is stored.
pub(crate) fn encode(entry: &Entry) -> Vec<u8> {
    let record = json!({
        "form": FORM,
        "owner": entry.holder.id.as_str(),
        "incarnation": entry.holder.incarnation.to_string(),
        "generation": entry.token.number(),
        "attempt": entry.attempt.number(),
        "terms": entry.terms,
        "ttlMs": entry.ttl.as_millis(),
        "renewals": entry.renewals,
        "released": entry.released,
        "stepDownAsked": entry.asked_to_step_down,
        "note": entry.note.as_str(),
    });
    record.to_string().into_bytes()
}

/// Reads a record strictly: every field, in its range. Fields that are not known are passed over.
///
/// # Errors
/// [`Fault::Unreadable`], not applied: it names lease, key, field and repair.
pub(crate) fn decode(key: &str, name: &str, bytes: &[u8]) -> Result<Entry, StoreError> {
    let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let Value::Object(fields) = value else {
        return Err(unreadable(key, name, "it holds no JSON object"));
    };
    entry(&fields).map_err(|Wrong { field, wanted }| {
        let found = fields
            .get(field)
            .map_or_else(|| "nothing".to_owned(), |value| shown(&value.to_string()));
        unreadable(
            key,
            name,
            &format!("field \"{field}\" is {found} and no {wanted}"),
        )
    })
}

/// What was found in the way of a lease.
pub(crate) fn unreadable(key: &str, name: &str, why: &str) -> StoreError {
    let (key, name) = (shown(key), shown(name));
    StoreError::not_applied(
        Fault::Unreadable,
        format!(
            "lease \"{name}\" at key \"{key}\": {why}; the record was left as it is; look at it with `nats kv get`, then \
             mend or remove it"
        ),
    )
}

/// Text that a message shows.
pub(crate) fn shown(text: &str) -> String {
    text.chars()
        .take(SHOWN_CHARACTERS_MAX)
        .flat_map(char::escape_debug)
        .collect()
}

struct Wrong {
    field: &'static str,
    wanted: &'static str,
}

fn entry(fields: &Map<String, Value>) -> Result<Entry, Wrong> {
    let wrong = |field, wanted| Wrong { field, wanted };
    let number = |field, wanted| {
        fields
            .get(field)
            .and_then(Value::as_u64)
            .ok_or(wrong(field, wanted))
    };
    let text = |field, wanted| {
        fields
            .get(field)
            .and_then(Value::as_str)
            .ok_or(wrong(field, wanted))
    };
    let flag = |field| {
        let value = fields.get(field).and_then(Value::as_bool);
        value.ok_or(wrong(field, "true or false"))
    };
    if number("form", "form that this version knows")? != FORM {
        return Err(wrong("form", "form that this version knows"));
    }
    let owner = text("owner", "candidate id")?;
    let incarnation = text("incarnation", "incarnation")?;
    let terms = number("terms", "count of terms")?;
    Ok(Entry {
        holder: Candidate {
            id: CandidateId::new(owner).map_err(|_| wrong("owner", "candidate id"))?,
            incarnation: incarnation
                .parse::<Incarnation>()
                .map_err(|_| wrong("incarnation", "incarnation"))?,
        },
        token: FencingToken::new(number("generation", "token")?).map_err(|_| wrong("generation", "token"))?,
        attempt: Attempt::new(number("attempt", "attempt")?).ok_or(wrong("attempt", "attempt"))?,
        terms: Some(terms)
            .filter(|terms| *terms > 0)
            .ok_or(wrong("terms", "count of terms"))?,
        ttl: Ttl::from_millis(number("ttlMs", "ttl in milliseconds")?)
            .map_err(|_| wrong("ttlMs", "ttl in milliseconds"))?,
        renewals: number("renewals", "count of renewals")?,
        released: flag("released")?,
        asked_to_step_down: flag("stepDownAsked")?,
        note: Note::beginning_of(text("note", "note")?),
    })
}
