//! The reader of MongoDB's lease documents: any bytes, and any document.

use super::choices::Choices;
use super::text::assert_one_line;
use crate::Target;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Document, doc};
use std::time::Duration;
use tenure_core::{CandidateId, End, FencingToken, LeaseName, Note, Predecessor, Ttl};
use tenure_mongodb::fuzzing::{Understood, decode};

/// This target.
pub const TARGET: Target = Target {
    name: "mongodb_record",
    promise: "any document is understood within bounds and comes back as it was, or is refused in one line",
    judge,
    dictionary: &[
        "_id",
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
        "released",
        "stepDownAsked",
        "note",
        "previous",
        "renewal",
        "storeNow",
        "end",
        "at",
        "expired",
        "0123456789abcdef0123456789abcdef",
    ],
};

const FIELDS: [&str; 17] = [
    "_id",
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
    "released",
    "stepDownAsked",
    "note",
    "previous",
    "renewal",
    "storeNow",
];

/// Deepest nesting of the values that this target makes.
const DEPTH_MAX: u8 = 4;

fn judge(input: &[u8]) {
    let mut choices = Choices::new(input);
    let (document, valid) = if choices.once_in(4) {
        match Document::from_reader(choices.rest()) {
            Ok(document) => (document, false),
            Err(_) => return,
        }
    } else {
        damaged(&mut choices)
    };
    match decode(&document) {
        Err(error) => {
            assert!(!valid, "a valid record is refused: {error}");
            assert_one_line(&error.message);
        }
        Ok(understood) => {
            check(&understood);
            let now = document
                .get_datetime("storeNow")
                .expect("nothing is understood without the server's clock");
            let again = decode(&encoded(&understood, *now)).expect("what was understood can be written");
            assert_eq!(again, understood, "the record does not come back as it was");
        }
    }
}

/// A record that a store may have written, with up to three fields exchanged for anything; and whether none
/// was.
fn damaged(choices: &mut Choices<'_>) -> (Document, bool) {
    // First, so that no long text before leaves nothing of the input for it.
    let damages: Vec<Damage> = (0..choices.below(4)).map(|_| Damage::of(choices)).collect();
    let valid = damages.is_empty();
    let mut document = written(choices);
    for damage in damages {
        damage.inflict(&mut document);
    }
    (document, valid)
}

/// What a foreign hand does to a record.
enum Damage {
    Remove(&'static str),
    Set(&'static str, Bson),
    /// A part of what lies deeper, if something does.
    SetWithin(&'static str, &'static str, Bson),
}

impl Damage {
    fn of(choices: &mut Choices<'_>) -> Self {
        let field = *choices.pick(&FIELDS);
        match choices.byte() % 6 {
            0 => Self::Remove(field),
            1 | 2 => {
                let field = *choices.pick(&["released", "stepDownAsked", "previous"]);
                let part = *choices.pick(&["owner", "generation", "end", "at"]);
                Self::SetWithin(field, part, value(choices, 0))
            }
            _ => Self::Set(field, value(choices, 0)),
        }
    }

    fn inflict(self, document: &mut Document) {
        match self {
            Self::Remove(field) => drop(document.remove(field)),
            Self::Set(field, value) => drop(document.insert(field, value)),
            Self::SetWithin(field, part, value) => {
                if let Some(Bson::Document(inner)) = document.get_mut(field) {
                    inner.insert(part, value);
                }
            }
        }
    }
}

fn written(choices: &mut Choices<'_>) -> Document {
    let incarnation = u128::from(choices.number()) << 64 | u128::from(choices.number());
    let mark = |choices: &mut Choices<'_>| match choices.once_in(3) {
        true => Bson::Document(doc! { "generation": token(choices), "at": date(choices) }),
        false => Bson::Null,
    };
    let (now, ttl_ms) = (
        date(choices),
        100 + (choices.number() % (86_400_000 - 99)).cast_signed(),
    );
    let expires_ms = choices
        .signed()
        .min(now.timestamp_millis().saturating_add(ttl_ms));
    let mut document = doc! {
        "_id": choices.text_or("job", |text| LeaseName::new(text).is_ok()),
        "owner": choices.text_or("host", |text| CandidateId::new(text).is_ok()),
        "incarnation": format!("{incarnation:032x}"),
        "generation": token(choices),
        "attempt": positive(choices),
        "terms": positive(choices),
        "ttlMs": ttl_ms,
        "createdAt": date(choices),
        "acquiredAt": date(choices),
        "lastRenewedAt": if choices.once_in(2) { Bson::DateTime(date(choices)) } else { Bson::Null },
        "expiresAt": DateTime::from_millis(expires_ms),
        "released": mark(choices),
        "stepDownAsked": mark(choices),
        "note": choices.text_or("", |text| Note::new(text).is_ok()),
        "previous": Bson::Null,
        "storeNow": now,
    };
    if choices.once_in(2) {
        document.insert(
            "previous",
            doc! {
                "owner": choices.text_or("host", |text| CandidateId::new(text).is_ok()),
                "generation": token(choices),
                "end": *choices.pick(&["released", "expired"]),
                "at": date(choices),
            },
        );
    }
    if choices.once_in(3) {
        document.insert("renewal", object_id(choices));
    }
    document
}

fn positive(choices: &mut Choices<'_>) -> i64 {
    (choices.signed() & i64::MAX).max(1)
}

fn token(choices: &mut Choices<'_>) -> i64 {
    positive(choices).min(FencingToken::MAX.signed())
}

fn date(choices: &mut Choices<'_>) -> DateTime {
    DateTime::from_millis(choices.signed())
}

fn object_id(choices: &mut Choices<'_>) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&choices.number().to_le_bytes());
    ObjectId::from_bytes(bytes)
}

fn value(choices: &mut Choices<'_>, depth: u8) -> Bson {
    match choices.byte() % 14 {
        0 => Bson::Null,
        1 => Bson::String(choices.text()),
        2 => Bson::Int64(choices.signed()),
        3 => Bson::DateTime(date(choices)),
        4 => Bson::Double(f64::from_bits(choices.number())),
        5 => Bson::Boolean(choices.once_in(2)),
        6 => Bson::Int32(choices.signed() as i32),
        7 => Bson::ObjectId(object_id(choices)),
        8 => Bson::Undefined,
        9 => Bson::MaxKey,
        10 => Bson::Symbol(choices.text()),
        11 => Bson::JavaScriptCode(choices.text()),
        12 if depth < DEPTH_MAX => {
            let count = choices.below(4);
            Bson::Array((0..count).map(|_| value(choices, depth + 1)).collect())
        }
        13 if depth < DEPTH_MAX => {
            let mut inner = Document::new();
            for _ in 0..choices.below(4) {
                inner.insert(choices.text(), value(choices, depth + 1));
            }
            Bson::Document(inner)
        }
        _ => Bson::MinKey,
    }
}

fn check(understood: &Understood) {
    let lease = &understood.lease;
    assert!((Ttl::MIN..=Ttl::MAX).contains(&lease.ttl), "ttl {:?}", lease.ttl);
    assert!(
        i64::try_from(lease.token.number()).is_ok(),
        "token {}",
        lease.token
    );
    assert!(lease.terms >= 1 && lease.attempt.number() >= 1);
    assert!(
        !lease.released || lease.remaining.is_zero(),
        "a vacant record has time left"
    );
    assert!(
        lease.renewed_ago <= lease.held_for || understood.extended,
        "renewed before the term began, and never renewed"
    );
}

/// A document that says the same; what a record does not keep is taken from the least that fits.
fn encoded(understood: &Understood, now: DateTime) -> Document {
    let lease = &understood.lease;
    let before = |moment: i64, by: Duration| moment.saturating_sub(by.as_millis() as i64);
    let now = now.timestamp_millis();
    let vacant_for = understood
        .previous
        .as_ref()
        .map_or(Duration::ZERO, |term| term.vacant_for);
    let acquired = if lease.held_for.is_zero() {
        // It began now or later, and late enough for the time it was vacant before.
        now.max(i64::MIN.saturating_add(vacant_for.as_millis() as i64))
    } else {
        before(now, lease.held_for)
    };
    let mark = |set: bool| match set {
        true => Bson::Document(doc! { "generation": 1_i64, "at": DateTime::from_millis(0) }),
        false => Bson::Null,
    };
    let long = |number: u64| i64::try_from(number).expect("every number of a record is signed");
    let mut document = doc! {
        "_id": lease.name.as_str(),
        "owner": lease.holder.id.as_str(),
        "incarnation": lease.holder.incarnation.to_string(),
        "generation": lease.token.signed(),
        "attempt": long(lease.attempt.number()),
        "terms": long(lease.terms),
        "ttlMs": long(lease.ttl.as_millis()),
        "createdAt": DateTime::from_millis(0),
        "acquiredAt": DateTime::from_millis(acquired),
        "lastRenewedAt": match understood.extended {
            true => Bson::DateTime(DateTime::from_millis(before(now, lease.renewed_ago))),
            false => Bson::Null,
        },
        "expiresAt": DateTime::from_millis(now.saturating_add(lease.remaining.as_millis() as i64)),
        "released": mark(lease.released),
        "stepDownAsked": mark(lease.asked_to_step_down),
        "note": lease.note.as_str(),
        "previous": understood.previous.as_ref().map_or(Bson::Null, |term| previous(term, before(acquired, vacant_for))),
        "storeNow": DateTime::from_millis(now),
    };
    if let Some(id) = understood.renewal {
        document.insert("renewal", id);
    }
    document
}

fn previous(term: &Predecessor, ended: i64) -> Bson {
    Bson::Document(doc! {
        "owner": term.candidate.as_str(),
        "generation": term.token.signed(),
        "end": match term.end { End::Released => "released", End::Expired => "expired" },
        "at": DateTime::from_millis(ended),
    })
}
