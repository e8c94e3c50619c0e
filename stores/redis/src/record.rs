//! The record of a lease: one hash, the same fields to every script and to this reader.

use crate::reply::{Fields, Reply};
use std::time::Duration;
use tenure_core::{
    Attempt, Candidate, CandidateId, End, Fault, FencingToken, Incarnation, Lease, LeaseName, Note,
    Predecessor, StoreError, Ttl,
};

/// The fields, in the order in which scripts answer with them. A field that a record lacks is none; those
/// that are not listed are kept.
pub(crate) const FIELDS: [&str; 18] = [
    "owner",
    "incarnation",
    "generation",
    "attempt",
    "terms",
    "ttlMs",
    "createdAt",
    "acquiredAt",
    "lastRenewedAt",
    "expiresAt",
    "releasedAt",
    "stepDownAskedAt",
    "note",
    "previousOwner",
    "previousGeneration",
    "previousEnd",
    "previousAt",
    "unconfirmed",
];

/// Longest key or value that a message shows, in characters.
const SHOWN_CHARACTERS_MAX: usize = 80;

/// Most digits of a time in milliseconds: what Lua's numbers keep exactly.
const TIME_DIGITS_MAX: usize = 15;

/// Reads a record strictly: every field, in its range. The rules are those of `lua/record.lua`.
///
/// `fields` is `None` for a key that is no hash.
///
/// # Errors
/// [`Fault::Unreadable`], not applied: it names lease, place, field and repair.
pub(crate) fn decode(
    key: &str,
    name: &str,
    fields: Option<&Fields>,
    now_ms: u64,
) -> Result<Lease, StoreError> {
    let Some(fields) = fields else {
        return Err(unreadable(key, name, "the key holds something else than a hash"));
    };
    let record = Record { fields, now_ms };
    record
        .lease(name)
        .map_err(|Wrong { field, why }| unreadable(key, name, &format!("field \"{field}\" {why}")))
}

/// What was found in the way of a lease.
pub(crate) fn unreadable(key: &str, name: &str, why: &str) -> StoreError {
    let (key, name) = (shown(key.as_bytes()), shown(name.as_bytes()));
    StoreError::not_applied(
        Fault::Unreadable,
        format!(
            "lease \"{name}\" at key \"{key}\": {why}; the record was left as it is; look at it with HGETALL, then mend \
             or remove it"
        ),
    )
}

/// The term before a granted one, as a script answers with it: token, end, time and owner.
///
/// # Errors
/// As [`decode`].
pub(crate) fn predecessor(
    key: &str,
    name: &str,
    told: &mut Reply,
    began_ms: u64,
) -> Result<Option<Predecessor>, StoreError> {
    let [generation, end, at, owner] = [(); 4].map(|()| told.text_if_any());
    let (Some(generation), Some(end), Some(at), Some(owner)) = (generation?, end?, at?, owner?) else {
        return Ok(None);
    };
    let bytes = |text: String| Some(text.into_bytes());
    let fields: Fields = vec![bytes(owner), bytes(generation), bytes(end), bytes(at)];
    let record = Record {
        fields: &fields,
        now_ms: began_ms,
    };
    record
        .previous(0, began_ms)
        .map_err(|Wrong { field, why }| unreadable(key, name, &format!("field \"{field}\" {why}")))
}

/// Whether this is a term, and not what a candidate has asked for in one member of a quorum and not yet got.
pub(crate) fn is_confirmed(fields: Option<&Fields>) -> bool {
    let place = place("unconfirmed");
    fields.is_some_and(|fields| fields.get(place).is_some_and(Option::is_none))
}

/// Reads a record; nothing where it is no term.
pub(crate) fn decode_term(
    key: &str,
    name: &str,
    fields: Option<&Fields>,
    now_ms: u64,
) -> Result<Option<Box<Lease>>, StoreError> {
    let lease = decode(key, name, fields, now_ms)?;
    Ok(is_confirmed(fields).then(|| Box::new(lease)))
}

/// The term before, by what the record of a candidacy keeps of it; nothing where there was none. The token is
/// the highest that this member has confirmed. Of who held it there is the name alone: it is shown under an
/// incarnation that no process has.
///
/// # Errors
/// As [`decode`].
pub(crate) fn term_before(
    key: &str,
    candidacy: &Lease,
    fields: Option<&Fields>,
    now_ms: u64,
) -> Result<Option<Lease>, StoreError> {
    let Some(fields) =
        fields.filter(|fields| Record { fields, now_ms }.value("unconfirmed") == Some(b"later"))
    else {
        return Ok(None);
    };
    let before = Record { fields, now_ms }
        .previous(place("previousOwner"), now_ms)
        .map_err(|Wrong { field, why }| {
            unreadable(key, candidacy.name.as_str(), &format!("field \"{field}\" {why}"))
        })?;
    Ok(before.map(|before| Lease {
        name: candidacy.name.clone(),
        holder: Candidate {
            id: before.candidate,
            incarnation: Incarnation::from_bits(0),
        },
        token: candidacy.token,
        attempt: Attempt::FIRST,
        terms: candidacy.terms,
        ttl: candidacy.ttl,
        remaining: Duration::ZERO,
        released: before.end == End::Released,
        held_for: before.vacant_for,
        renewed_ago: before.vacant_for,
        asked_to_step_down: false,
        note: Note::default(),
    }))
}

/// Text that a message shows.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars()
        .take(SHOWN_CHARACTERS_MAX)
        .flat_map(char::escape_debug)
        .collect()
}

struct Wrong {
    field: &'static str,
    why: String,
}

struct Record<'a> {
    fields: &'a Fields,
    now_ms: u64,
}

/// Where a field stands in [`FIELDS`].
fn place(field: &'static str) -> usize {
    FIELDS
        .iter()
        .position(|listed| *listed == field)
        .expect("the field is listed")
}

impl Record<'_> {
    fn lease(&self, name: &str) -> Result<Lease, Wrong> {
        let released = self.optional("releasedAt", Self::date)?.is_some();
        let (acquired, expires) = (self.date("acquiredAt")?, self.date("expiresAt")?);
        self.date("createdAt")?;
        let renewed = self.optional("lastRenewedAt", Self::date)?;
        self.previous(place("previousOwner"), acquired)?;
        if let Some(other) = self
            .value("unconfirmed")
            .filter(|value| ![&b"first"[..], b"later"].contains(value))
        {
            return Err(is("unconfirmed", other, "\"first\" or \"later\""));
        }
        let ttl = Ttl::from_millis(self.number("ttlMs")?).map_err(|error| wrong("ttlMs", error))?;
        let remaining = match released {
            true => Duration::ZERO,
            false => between(self.now_ms, expires),
        };
        if !ttl.may_leave(remaining) {
            return Err(is(
                "expiresAt",
                expires.to_string().as_bytes(),
                "within a day of the ttl",
            ));
        }
        Ok(Lease {
            name: LeaseName::new(name).map_err(|error| wrong("name", error))?,
            holder: Candidate {
                id: CandidateId::new(self.text("owner")?).map_err(|error| wrong("owner", error))?,
                incarnation: self
                    .text("incarnation")?
                    .parse::<Incarnation>()
                    .map_err(|error| wrong("incarnation", error))?,
            },
            token: self.token("generation", self.value("generation"))?,
            attempt: Attempt::new(self.number("attempt")?).expect("it is in the range of numbers"),
            terms: self.number("terms")?,
            ttl,
            remaining,
            released,
            held_for: between(acquired, self.now_ms),
            renewed_ago: between(renewed.unwrap_or(acquired), self.now_ms),
            asked_to_step_down: self.optional("stepDownAskedAt", Self::date)?.is_some(),
            note: Note::beginning_of(self.text("note")?),
        })
    }

    /// The term before, whose four fields begin at `first`.
    fn previous(&self, first: usize, began_ms: u64) -> Result<Option<Predecessor>, Wrong> {
        let [owner, generation, end, at] =
            [0, 1, 2, 3].map(|offset| self.fields.get(first + offset).and_then(|value| value.as_deref()));
        let end = match end {
            Some(b"released") => End::Released,
            Some(b"expired") => End::Expired,
            Some(other) => return Err(is("previousEnd", other, "\"released\" or \"expired\"")),
            None if owner.or(generation).or(at).is_none() => return Ok(None),
            None => return Err(missing("previousEnd", "\"released\" or \"expired\"")),
        };
        let owner = self.utf8("previousOwner", owner)?;
        Ok(Some(Predecessor {
            candidate: CandidateId::new(owner).map_err(|error| wrong("previousOwner", error))?,
            token: self.token("previousGeneration", generation)?,
            end,
            vacant_for: between(self.time("previousAt", at)?, began_ms),
        }))
    }

    fn value(&self, field: &'static str) -> Option<&[u8]> {
        self.fields.get(place(field)).and_then(|value| value.as_deref())
    }

    fn optional<T>(
        &self,
        field: &'static str,
        read: impl Fn(&Self, &'static str) -> Result<T, Wrong>,
    ) -> Result<Option<T>, Wrong> {
        self.value(field).map(|_| read(self, field)).transpose()
    }

    fn text(&self, field: &'static str) -> Result<&str, Wrong> {
        self.utf8(field, self.value(field))
    }

    fn utf8<'v>(&self, field: &'static str, value: Option<&'v [u8]>) -> Result<&'v str, Wrong> {
        let value = value.ok_or_else(|| missing(field, "a text"))?;
        std::str::from_utf8(value).map_err(|_| is(field, value, "UTF-8"))
    }

    fn number(&self, field: &'static str) -> Result<u64, Wrong> {
        let wanted = "a whole number from 1 to 2^63 - 1";
        let value = self.value(field).ok_or_else(|| missing(field, wanted))?;
        let number = whole(value).filter(|number| i64::try_from(*number).is_ok());
        number.ok_or_else(|| is(field, value, wanted))
    }

    fn token(&self, field: &'static str, value: Option<&[u8]>) -> Result<FencingToken, Wrong> {
        let wanted = format!("a whole number from 1 to {}", FencingToken::MAX);
        let value = value.ok_or_else(|| missing(field, &wanted))?;
        let token = whole(value).and_then(|number| FencingToken::new(number).ok());
        token.ok_or_else(|| is(field, value, &wanted))
    }

    fn date(&self, field: &'static str) -> Result<u64, Wrong> {
        self.time(field, self.value(field))
    }

    fn time(&self, field: &'static str, value: Option<&[u8]>) -> Result<u64, Wrong> {
        let wanted = "a time in milliseconds since 1970";
        let value = value.ok_or_else(|| missing(field, wanted))?;
        let plain = value.len() <= TIME_DIGITS_MAX && value.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(value)
            .ok()
            .filter(|_| plain)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| is(field, value, wanted))
    }
}

/// A number from 1 in its one form: no sign, no leading zero.
fn whole(value: &[u8]) -> Option<u64> {
    let plain = value.iter().all(u8::is_ascii_digit) && value.first() != Some(&b'0');
    let text = std::str::from_utf8(value).ok().filter(|_| plain)?;
    text.parse().ok()
}

/// From `earlier` to `later`; zero if they are the other way round, as after a step of the server's clock.
fn between(earlier_ms: u64, later_ms: u64) -> Duration {
    Duration::from_millis(later_ms.saturating_sub(earlier_ms))
}

fn wrong(field: &'static str, why: impl std::fmt::Display) -> Wrong {
    Wrong {
        field,
        why: format!("cannot be read: {why}"),
    }
}

fn is(field: &'static str, found: &[u8], wanted: &str) -> Wrong {
    Wrong {
        field,
        why: format!("is \"{}\", not {wanted}", shown(found)),
    }
}

fn missing(field: &'static str, wanted: &str) -> Wrong {
    Wrong {
        field,
        why: format!("is missing; it must be {wanted}"),
    }
}
