//! The reader of MySQL's lease rows: any values of their columns' types.

use super::choices::Choices;
use super::text::assert_one_line;
use crate::Target;
use std::time::Duration;
use tenure_core::{CandidateId, End, FencingToken, Lease, LeaseName, Note, Predecessor, Ttl};
use tenure_mysql::fuzzing::{Row, decode};

/// This target.
pub const TARGET: Target = Target {
    name: "mysql_record",
    promise: "any row is understood within bounds and comes back as it was, or is refused in one line",
    judge,
    dictionary: &[
        "released",
        "expired",
        "0123456789abcdef0123456789abcdef",
        "\u{a0}",
        "\u{2028}",
        "..",
    ],
};

fn judge(input: &[u8]) {
    let mut choices = Choices::new(input);
    let damages = choices.below(4);
    let mut row = written(&mut choices);
    for _damage in 0..damages {
        damage(&mut row, &mut choices);
    }
    match decode(row) {
        Err(error) => {
            assert!(damages > 0, "a valid record is refused: {error}");
            assert_one_line(&error.message);
        }
        Ok((lease, previous)) => {
            assert!(lease.terms >= 1, "{} terms", lease.terms);
            assert!(
                !lease.released || lease.remaining.is_zero(),
                "a vacant lease has time left"
            );
            let again =
                decode(encoded(&lease, previous.as_ref())).expect("what was understood can be written");
            assert_eq!(
                again,
                (lease, previous),
                "the record does not come back as it was"
            );
        }
    }
}

/// A row that the store may have written.
fn written(choices: &mut Choices<'_>) -> Row {
    let incarnation = u128::from(choices.number()) << 64 | u128::from(choices.number());
    let owner = choices.text_or("node-a", |text| CandidateId::new(text).is_ok());
    let ttl = choices.number().clamp(Ttl::MIN.as_millis(), Ttl::MAX.as_millis());
    let end = match choices.byte() % 3 {
        0 => None,
        1 => Some("released"),
        _ => Some("expired"),
    };
    Row {
        texts: [
            choices.text_or("nightly", |text| LeaseName::new(text).is_ok()),
            owner.clone(),
            format!("{incarnation:032x}"),
            choices.text_or("", |text| Note::new(text).is_ok()),
        ],
        numbers: [token(choices), count(choices), count(choices), signed(ttl)],
        durations_us: [any(choices).min(signed(ttl * 1_000)), any(choices), any(choices)],
        marks: [choices.once_in(3), choices.once_in(3)],
        previous: end.map(|end| (owner, token(choices), end.to_owned(), any(choices))),
    }
}

fn damage(row: &mut Row, choices: &mut Choices<'_>) {
    match choices.byte() % 4 {
        0 => row.texts[choices.below(4)] = choices.text(),
        1 => row.numbers[choices.below(4)] = any(choices),
        2 => row.previous = Some((choices.text(), any(choices), choices.text(), any(choices))),
        _ => {
            if let Some((_, token, _, _)) = &mut row.previous {
                *token = any(choices);
            }
        }
    }
}

/// The row that says what was understood.
fn encoded(lease: &Lease, previous: Option<&Predecessor>) -> Row {
    let us = |time: Duration| i64::try_from(time.as_micros()).expect("times of records fit");
    let end = |end| match end {
        End::Released => "released",
        End::Expired => "expired",
    };
    Row {
        texts: [
            lease.name.as_str().to_owned(),
            lease.holder.id.as_str().to_owned(),
            lease.holder.incarnation.to_string(),
            lease.note.as_str().to_owned(),
        ],
        numbers: [
            lease.token.signed(),
            signed(lease.attempt.number()),
            signed(lease.terms),
            signed(lease.ttl.as_millis()),
        ],
        durations_us: [us(lease.remaining), us(lease.held_for), us(lease.renewed_ago)],
        marks: [lease.released, lease.asked_to_step_down],
        previous: previous.map(|term| {
            let owner = term.candidate.as_str().to_owned();
            (
                owner,
                term.token.signed(),
                end(term.end).to_owned(),
                us(term.vacant_for),
            )
        }),
    }
}

fn count(choices: &mut Choices<'_>) -> i64 {
    signed(choices.number().clamp(1, i64::MAX.unsigned_abs()))
}

fn token(choices: &mut Choices<'_>) -> i64 {
    count(choices).min(FencingToken::MAX.signed())
}

fn any(choices: &mut Choices<'_>) -> i64 {
    choices.number().cast_signed()
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).expect("what a record counts fits")
}
