//! The reader of the records in a bucket of NATS: any bytes, and a record with some of its fields exchanged.

use super::choices::Choices;
use super::text::assert_one_line;
use crate::Target;
use serde_json::{Value, json};
use tenure_core::LeaseName;
use tenure_nats::fuzzing::{decode, encode, key};

/// This target.
pub const TARGET: Target = Target {
    name: "nats_record",
    promise: "any value is understood within bounds and comes back as it was, or is refused in one line; names are keys",
    judge,
    dictionary: &[
        "0",
        "1",
        "100",
        "86400000",
        "9223372036854775807",
        "9223372036854775808",
        "1e300",
        "null",
        "true",
        "0123456789abcdef0123456789abcdef",
        "\u{2028}",
        "=2E",
        "generation",
        "{\"form\":1",
    ],
};

/// The fields of a record.
const FIELDS: [&str; 11] = [
    "form",
    "owner",
    "incarnation",
    "generation",
    "attempt",
    "terms",
    "ttlMs",
    "renewals",
    "released",
    "stepDownAsked",
    "note",
];

fn judge(input: &[u8]) {
    let mut choices = Choices::new(input);
    let name = choices.text_or("nightly", |text| LeaseName::new(text).is_ok());
    let (key, back) = key(&name);
    assert_eq!(back.as_deref(), Some(name.as_str()), "{key} leads elsewhere");
    assert!(
        !key.contains(['.', '*', '>', ' ']),
        "{key} is no part of a subject"
    );
    if choices.once_in(2) {
        let damages = choices.below(4);
        let record = record(&mut choices, damages);
        read(&name, record.to_string().as_bytes(), damages);
    } else {
        read(&name, choices.rest(), 1);
    }
}

fn read(name: &str, bytes: &[u8], damages: usize) {
    match decode(name, bytes) {
        Err(error) => {
            assert!(damages > 0, "a valid record is refused: {error}");
            assert_one_line(&error.message);
        }
        Ok(entry) => {
            let again = decode(name, &encode(&entry)).expect("what was understood can be written");
            assert_eq!(again, entry, "the record does not come back as it was");
        }
    }
}

/// A record that the store may have written, some fields of which are exchanged then.
fn record(choices: &mut Choices<'_>, damages: usize) -> Value {
    let bits = u128::from(choices.number()) << 64 | u128::from(choices.number());
    let count = |choices: &mut Choices<'_>| choices.number().clamp(1, i64::MAX.unsigned_abs());
    let mut record = json!({
        "form": 1,
        "owner": choices.text_or("node-a", |text| tenure_core::CandidateId::new(text).is_ok()),
        "incarnation": format!("{bits:032x}"),
        "generation": count(choices).min(tenure_core::FencingToken::MAX.number()),
        "attempt": count(choices),
        "terms": count(choices),
        "ttlMs": choices.number().clamp(tenure_core::Ttl::MIN.as_millis(), tenure_core::Ttl::MAX.as_millis()),
        "renewals": choices.number(),
        "released": choices.once_in(2),
        "stepDownAsked": choices.once_in(2),
        "note": choices.text_or("", |text| tenure_core::Note::new(text).is_ok()),
    });
    for _damage in 0..damages {
        let field = FIELDS[choices.below(FIELDS.len())];
        record[field] = match choices.byte() % 6 {
            0 => Value::Null,
            1 => json!(choices.number()),
            2 => json!(-1),
            3 => json!(1e300),
            4 => json!(choices.once_in(2)),
            _ => json!(choices.text()),
        };
    }
    record
}
