use super::STORE_NOW;
use crate::shell::in_the_shell;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Document};
use std::time::Duration;
use tenure_core::{
    Attempt, Candidate, CandidateId, End, Fault, FencingToken, Incarnation, Lease, LeaseName, Note,
    Predecessor, StoreError, Ttl, Wish,
};

/// A record that was understood.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// What the contract shows of it.
    pub(crate) lease: Lease,
    /// The term before this one.
    pub(crate) previous: Option<Predecessor>,
    /// Which batch extended it last; nothing else sets it.
    pub(crate) renewal: Option<ObjectId>,
    /// Whether it was extended since its term began: by a renewal, or by a repeated acquisition.
    pub(crate) extended: bool,
}

impl Record {
    /// Whether this is the very term, held or not.
    pub(crate) fn is_term(&self, incarnation: Incarnation, token: FencingToken, attempt: Attempt) -> bool {
        self.lease.holder.incarnation == incarnation
            && self.lease.token == token
            && self.lease.attempt == attempt
    }

    /// Whether somebody holds it, by the server's clock of the answer.
    pub(crate) fn is_held(&self) -> bool {
        !self.lease.released && !self.lease.remaining.is_zero()
    }

    /// What others ask of the holder.
    pub(crate) fn wish(&self) -> Wish {
        if self.lease.asked_to_step_down {
            Wish::StepDown
        } else {
            Wish::Nothing
        }
    }
}

/// The server's clock of the command that gave `document`; `None` in the replayed answer of a write that
/// the driver sent twice: the server keeps the document, not what was computed beside it.
fn store_now(document: &Document) -> Option<DateTime> {
    document.get_datetime(STORE_NOW).ok().copied()
}

/// The text by which people find a record whose key is no lease name.
pub(crate) fn shown_key(document: &Document) -> String {
    match document.get("_id") {
        Some(Bson::String(text)) => text
            .chars()
            .take(KEY_CHARACTERS_MAX)
            .flat_map(char::escape_debug)
            .collect(),
        Some(key) => shortened(key),
        None => "no _id".to_owned(),
    }
}

/// Reads a record strictly: every field, of its type, in its range.
///
/// `collection` is `database.collection`, for the message.
///
/// # Errors
/// [`Fault::Unreadable`], not applied: it names lease, collection, field and repair. A missing server clock
/// is [`Fault::Internal`], unknown: asking again with the same attempt resolves it.
pub(crate) fn decode(document: &Document, collection: &str) -> Result<Record, StoreError> {
    let Some(now) = store_now(document) else {
        return Err(StoreError::unknown(
            Fault::Internal,
            format!(
                "lease \"{}\" in {collection}: the answer was a replayed one, without the server's clock; ask again",
                shown_key(document)
            ),
        ));
    };
    let fields = Fields { document, now };
    fields.record().map_err(|Wrong { field, why }| {
        // A database has no dot in its name, and a collection may.
        let (_database, name) = collection.split_once('.').unwrap_or(("", collection));
        let (key, leases) = (shown_key(document), in_the_shell(name));
        StoreError::not_applied(
            Fault::Unreadable,
            format!(
                "lease \"{key}\" in {collection}: field \"{field}\" {why}; the record was left as it is; \
                 look at it with {leases}.find({{_id: \"{key}\"}}), then mend or remove it"
            ),
        )
    })
}

/// Longest key or value that a message shows, in characters.
const KEY_CHARACTERS_MAX: usize = 80;

struct Wrong {
    field: &'static str,
    why: String,
}

struct Fields<'a> {
    document: &'a Document,
    now: DateTime,
}

impl Fields<'_> {
    fn record(&self) -> Result<Record, Wrong> {
        let name = match self.document.get("_id") {
            Some(Bson::String(text)) => LeaseName::new(text).map_err(|error| wrong("_id", error))?,
            other => return Err(not_a("_id", other, "a lease name")),
        };
        let expires = self.date(self.document, "expiresAt")?;
        let acquired = self.date(self.document, "acquiredAt")?;
        let renewed = self.optional_date("lastRenewedAt")?;
        self.date(self.document, "createdAt")?;
        let released = self.mark("released", "released.generation", "released.at")?;
        let asked = self.mark("stepDownAsked", "stepDownAsked.generation", "stepDownAsked.at")?;
        let previous = self.previous(acquired)?;
        let ttl = u64::try_from(self.number("ttlMs")?)
            .ok()
            .and_then(|ms| Ttl::from_millis(ms).ok())
            .ok_or_else(|| wrong("ttlMs", "is not from 100 to 86400000"))?;
        let remaining = match released {
            true => Duration::ZERO,
            false => between(self.now, expires),
        };
        if !ttl.may_leave(remaining) {
            let expires = self.document.get("expiresAt");
            return Err(not_a("expiresAt", expires, "within a day of the ttl"));
        }
        let lease = Lease {
            name,
            holder: Candidate {
                id: self.candidate_id(self.document, "owner")?,
                incarnation: self
                    .text("incarnation")?
                    .parse()
                    .map_err(|why| wrong("incarnation", why))?,
            },
            token: self.token(self.document, "generation")?,
            attempt: u64::try_from(self.number("attempt")?)
                .ok()
                .and_then(Attempt::new)
                .ok_or_else(|| wrong("attempt", "is not a whole number from 1"))?,
            terms: u64::try_from(self.number("terms")?)
                .ok()
                .filter(|terms| *terms >= 1)
                .ok_or_else(|| wrong("terms", "is not a whole number from 1"))?,
            ttl,
            remaining,
            released,
            held_for: between(acquired, self.now),
            renewed_ago: between(renewed.unwrap_or(acquired), self.now),
            asked_to_step_down: asked,
            note: Note::beginning_of(self.text("note")?),
        };
        Ok(Record {
            lease,
            previous,
            renewal: match self.document.get("renewal") {
                Some(Bson::ObjectId(id)) => Some(*id),
                Some(Bson::Null) | None => None,
                other => return Err(not_a("renewal", other, "an ObjectId")),
            },
            extended: renewed.is_some(),
        })
    }

    fn previous(&self, acquired: DateTime) -> Result<Option<Predecessor>, Wrong> {
        let term = match self.document.get("previous") {
            Some(Bson::Document(term)) => term,
            Some(Bson::Null) => return Ok(None),
            other => return Err(not_a("previous", other, "a document or null")),
        };
        Ok(Some(Predecessor {
            candidate: self.candidate_id(term, "previous.owner")?,
            token: self.token(term, "previous.generation")?,
            end: match term.get_str("end") {
                Ok("released") => End::Released,
                Ok("expired") => End::Expired,
                _ => {
                    return Err(not_a(
                        "previous.end",
                        term.get("end"),
                        "\"released\" or \"expired\"",
                    ));
                }
            },
            vacant_for: between(self.date(term, "previous.at")?, acquired),
        }))
    }

    /// Whether the mark is set; it holds the generation it was set for, and when.
    fn mark(&self, field: &'static str, generation: &'static str, at: &'static str) -> Result<bool, Wrong> {
        match self.document.get(field) {
            Some(Bson::Document(mark)) => {
                self.token(mark, generation)?;
                self.date(mark, at)?;
                Ok(true)
            }
            Some(Bson::Null) => Ok(false),
            other => Err(not_a(field, other, "a document or null")),
        }
    }

    fn text(&self, field: &'static str) -> Result<&str, Wrong> {
        match self.document.get(field) {
            Some(Bson::String(text)) => Ok(text),
            other => Err(not_a(field, other, "a string")),
        }
    }

    fn candidate_id(&self, document: &Document, field: &'static str) -> Result<CandidateId, Wrong> {
        match document.get(last_part(field)) {
            Some(Bson::String(text)) => CandidateId::new(text).map_err(|error| wrong(field, error)),
            other => Err(not_a(field, other, "a string")),
        }
    }

    fn number(&self, field: &'static str) -> Result<i64, Wrong> {
        match self.document.get(field) {
            Some(Bson::Int64(number)) => Ok(*number),
            other => Err(not_a(field, other, "a 64-bit integer (Long)")),
        }
    }

    fn token(&self, document: &Document, field: &'static str) -> Result<FencingToken, Wrong> {
        let wanted = format!("a 64-bit integer (Long) from 1 to {}", FencingToken::MAX);
        match document.get(last_part(field)) {
            Some(value @ Bson::Int64(number)) => {
                FencingToken::from_signed(*number).map_err(|_| not_a(field, Some(value), &wanted))
            }
            other => Err(not_a(field, other, &wanted)),
        }
    }

    fn date(&self, document: &Document, field: &'static str) -> Result<DateTime, Wrong> {
        match document.get(last_part(field)) {
            Some(Bson::DateTime(date)) => Ok(*date),
            other => Err(not_a(field, other, "a Date")),
        }
    }

    fn optional_date(&self, field: &'static str) -> Result<Option<DateTime>, Wrong> {
        match self.document.get(field) {
            Some(Bson::DateTime(date)) => Ok(Some(*date)),
            Some(Bson::Null) => Ok(None),
            other => Err(not_a(field, other, "a Date or null")),
        }
    }
}

/// The name of a field within the document that a path like `released.at` leads to.
fn last_part(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// From `earlier` to `later`; zero if they are the other way round, as after a step of the server's clock.
fn between(earlier: DateTime, later: DateTime) -> Duration {
    let milliseconds = later
        .timestamp_millis()
        .saturating_sub(earlier.timestamp_millis());
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}

fn wrong(field: &'static str, why: impl std::fmt::Display) -> Wrong {
    Wrong {
        field,
        why: format!("cannot be read: {why}"),
    }
}

fn not_a(field: &'static str, found: Option<&Bson>, wanted: &str) -> Wrong {
    let why = match found {
        Some(value) => format!(
            "is {} ({:?}), not {wanted}",
            shortened(value),
            value.element_type()
        ),
        None => format!("is missing; it must be {wanted}"),
    };
    Wrong { field, why }
}

fn shortened(value: &Bson) -> String {
    let shown: String = value.to_string().chars().take(KEY_CHARACTERS_MAX).collect();
    shown.escape_debug().to_string()
}
