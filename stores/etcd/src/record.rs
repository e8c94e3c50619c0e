//! The record of a lease: what is written once a term. Its token and the count of terms are the key's own
//! revision and version, which nobody can write.

use crate::keys::shown;
use serde_json::{Map, Value};
use std::time::{SystemTime, UNIX_EPOCH};
use tenure_core::{Acquire, Attempt, Candidate, CandidateId, Fault, Incarnation, Note, StoreError, Ttl};

/// A record, read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    pub(crate) holder: Candidate,
    pub(crate) attempt: Attempt,
    pub(crate) ttl: Ttl,
    pub(crate) note: Note,
    /// When the term began, in milliseconds since 1970 by its holder's clock. For people: nothing is decided
    /// by it.
    pub(crate) acquired_at_ms: u64,
}

impl Record {
    /// The record of a term that begins now.
    pub(crate) fn begin(request: &Acquire, ttl: Ttl) -> Self {
        Self {
            holder: request.candidate.clone(),
            attempt: request.attempt,
            ttl,
            note: request.note.clone(),
            acquired_at_ms: wall_clock_ms(),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        set("owner", self.holder.id.to_string().into());
        set("incarnation", self.holder.incarnation.to_string().into());
        set("attempt", self.attempt.number().into());
        set("ttlMs", self.ttl.as_millis().into());
        set("note", self.note.to_string().into());
        set("acquiredAt", self.acquired_at_ms.into());
        Value::Object(fields).to_string().into_bytes()
    }

    /// Reads a record strictly: every field, in its range. Fields that are not known are passed over.
    ///
    /// # Errors
    /// [`Fault::Unreadable`], not applied: it names lease, key, field and repair.
    pub(crate) fn decode(key: &[u8], name: &str, value: &[u8]) -> Result<Self, StoreError> {
        let fields = match serde_json::from_slice::<Value>(value) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) | Err(_) => return Err(unreadable(key, name, "its value is not a JSON object")),
        };
        Fields(&fields)
            .record()
            .map_err(|Wrong { field, why }| unreadable(key, name, &format!("field \"{field}\" {why}")))
    }
}

/// What was found in the way of a lease.
pub(crate) fn unreadable(key: &[u8], name: &str, why: &str) -> StoreError {
    let (key, name) = (shown(key), shown(name.as_bytes()));
    StoreError::not_applied(
        Fault::Unreadable,
        format!(
            "lease \"{name}\" at key \"{key}\": {why}; the record was left as it is; look at it with etcdctl get, then mend it, or \
             remove it when its holder has stopped"
        ),
    )
}

/// A lease is held whose record somebody has removed.
pub(crate) fn without_record(key: &[u8], name: &str) -> StoreError {
    let (key, name) = (shown(key), shown(name.as_bytes()));
    StoreError::not_applied(
        Fault::Unreadable,
        format!(
            "lease \"{name}\" at key \"{key}\": the record is gone, and the lease is held; stop its holder: it is free when the \
             holder's session has ended"
        ),
    )
}

/// This machine's wall clock, in milliseconds since 1970. For people, and for the age of what a clean-up has
/// noted ([`Unused`](crate::unused::Unused)).
pub(crate) fn wall_clock_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

struct Wrong {
    field: &'static str,
    why: String,
}

fn wrong(field: &'static str, why: impl std::fmt::Display) -> Wrong {
    Wrong {
        field,
        why: format!("cannot be read: {why}"),
    }
}

struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn record(&self) -> Result<Record, Wrong> {
        Ok(Record {
            holder: Candidate {
                id: CandidateId::new(self.text("owner")?).map_err(|error| wrong("owner", error))?,
                incarnation: self
                    .text("incarnation")?
                    .parse::<Incarnation>()
                    .map_err(|error| wrong("incarnation", error))?,
            },
            attempt: self.attempt("attempt")?,
            ttl: Ttl::from_millis(self.number("ttlMs")?).map_err(|error| wrong("ttlMs", error))?,
            note: Note::beginning_of(self.text("note")?),
            acquired_at_ms: self.number("acquiredAt")?,
        })
    }

    fn value(&self, field: &'static str, wanted: &str) -> Result<&Value, Wrong> {
        self.0.get(field).ok_or_else(|| Wrong {
            field,
            why: format!("is missing; it must be {wanted}"),
        })
    }

    fn text(&self, field: &'static str) -> Result<&str, Wrong> {
        let value = self.value(field, "a text")?;
        value.as_str().ok_or_else(|| is(field, value, "a text"))
    }

    fn number(&self, field: &'static str) -> Result<u64, Wrong> {
        let wanted = "a whole number, not negative";
        let value = self.value(field, wanted)?;
        value.as_u64().ok_or_else(|| is(field, value, wanted))
    }

    fn attempt(&self, field: &'static str) -> Result<Attempt, Wrong> {
        let wanted = "a whole number from 1 to 2^63 - 1";
        let value = self.value(field, wanted)?;
        let number = value.as_u64().filter(|number| i64::try_from(*number).is_ok());
        number
            .and_then(Attempt::new)
            .ok_or_else(|| is(field, value, wanted))
    }
}

fn is(field: &'static str, value: &Value, wanted: &str) -> Wrong {
    Wrong {
        field,
        why: format!("is {}, not {wanted}", shown(value.to_string().as_bytes())),
    }
}
