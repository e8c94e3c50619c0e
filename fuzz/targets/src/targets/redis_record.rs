//! The reader of Redis's lease hashes: any fields, of any bytes.

use super::choices::Choices;
use super::text::assert_one_line;
use crate::Target;
use std::time::Duration;
use tenure_core::{CandidateId, FencingToken, Lease, Note, Ttl};
use tenure_redis::fuzzing::{FIELDS, decode};

/// This target.
pub const TARGET: Target = Target {
    name: "redis_record",
    promise: "any hash is understood within bounds and comes back as it was, or is refused in one line",
    judge,
    dictionary: &[
        "0",
        "1",
        "100",
        "86400000",
        "9223372036854775807",
        "9223372036854775808",
        "253402300799999",
        "253402300800000",
        "999999999999999",
        "released",
        "expired",
        "0123456789abcdef0123456789abcdef",
        "\u{a0}",
        "\u{2028}",
        "..",
    ],
};

/// The latest time that a record can have, in milliseconds: the digits that the scripts count with.
const TIME_MAX: u64 = 999_999_999_999_999;

type Fields = Vec<Option<Vec<u8>>>;

fn judge(input: &[u8]) {
    let mut choices = Choices::new(input);
    let now_ms = choices.number() % TIME_MAX;
    let name = choices.text_or("nightly", |text| tenure_core::LeaseName::new(text).is_ok());
    let damages = choices.below(5);
    let mut fields = written(&mut choices, now_ms);
    for _damage in 0..damages {
        let place = choices.below(FIELDS.len());
        fields[place] = match choices.byte() % 4 {
            0 => None,
            1 => Some(choices.number().to_string().into_bytes()),
            _ => Some(choices.blob()),
        };
    }
    match decode(&name, &fields, now_ms) {
        Err(error) => {
            assert!(damages > 0, "a valid record is refused: {error}");
            assert_one_line(&error.message);
        }
        Ok(lease) => {
            assert!(
                lease.terms >= 1 && i64::try_from(lease.terms).is_ok(),
                "{} terms",
                lease.terms
            );
            let longest = Duration::from_millis(TIME_MAX);
            for time in [lease.remaining, lease.held_for, lease.renewed_ago] {
                assert!(time <= longest, "a record tells of {time:?}");
            }
            assert!(
                !lease.released || lease.remaining.is_zero(),
                "a vacant lease has time left"
            );
            let again =
                decode(&name, &encoded(&lease, now_ms), now_ms).expect("what was understood can be written");
            assert_eq!(again, lease, "the record does not come back as it was");
        }
    }
}

/// A record that a script may have written.
fn written(choices: &mut Choices<'_>, now_ms: u64) -> Fields {
    let incarnation = u128::from(choices.number()) << 64 | u128::from(choices.number());
    let count = |choices: &mut Choices<'_>| text(choices.number().clamp(1, i64::MAX.unsigned_abs()));
    let token = |choices: &mut Choices<'_>| text(choices.number().clamp(1, FencingToken::MAX.number()));
    let time = |choices: &mut Choices<'_>| text(choices.number() % TIME_MAX);
    let sometimes = |choices: &mut Choices<'_>| choices.once_in(3).then(|| time(choices)).flatten();
    let owner = choices.text_or("node-a", |text| CandidateId::new(text).is_ok());
    let note = choices.text_or("", |text| Note::new(text).is_ok());
    let ttl = choices.number().clamp(Ttl::MIN.as_millis(), Ttl::MAX.as_millis());
    let mut fields = vec![
        Some(owner.clone().into_bytes()),
        Some(format!("{incarnation:032x}").into_bytes()),
        token(choices),
        count(choices),
        count(choices),
        text(ttl),
        time(choices),
        time(choices),
        sometimes(choices),
        text(choices.number() % TIME_MAX.min(now_ms + ttl)),
        sometimes(choices),
        sometimes(choices),
        Some(note.into_bytes()),
    ];
    match choices.byte() % 3 {
        0 => fields.extend([None, None, None, None]),
        end => {
            let end = if end == 1 { "released" } else { "expired" };
            let end = Some(end.as_bytes().to_vec());
            fields.extend([Some(owner.into_bytes()), token(choices), end, time(choices)]);
        }
    }
    let unconfirmed = [None, Some("first"), Some("later")][choices.below(3)];
    fields.push(unconfirmed.map(|text| text.as_bytes().to_vec()));
    fields
}

/// The record that says what was understood.
fn encoded(lease: &Lease, now_ms: u64) -> Fields {
    let ago = |time: Duration| text(now_ms.saturating_sub(milliseconds(time)));
    // What was later than the clock by which it was read is told as now.
    vec![
        Some(lease.holder.id.as_str().as_bytes().to_vec()),
        Some(lease.holder.incarnation.to_string().into_bytes()),
        text(lease.token.number()),
        text(lease.attempt.number()),
        text(lease.terms),
        text(lease.ttl.as_millis()),
        text(0),
        ago(lease.held_for),
        ago(lease.renewed_ago),
        text(now_ms + milliseconds(lease.remaining)),
        lease.released.then(|| text(now_ms)).flatten(),
        lease.asked_to_step_down.then(|| text(now_ms)).flatten(),
        Some(lease.note.as_str().as_bytes().to_vec()),
        None,
        None,
        None,
        None,
        None,
    ]
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("times of records are small")
}

fn text(number: impl ToString) -> Option<Vec<u8>> {
    Some(number.to_string().into_bytes())
}
