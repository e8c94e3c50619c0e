//! The reader of PostgreSQL's rows and notifications: any values of the columns' types, and any payload.

use super::choices::Choices;
use super::text::assert_one_line;
use crate::Target;
use std::time::Duration;
use tenure_core::{CandidateId, Change, End, LeaseName, Ttl, WatchEvent};
use tenure_postgres::fuzzing::{Row, decode, notified};

/// This target.
pub const TARGET: Target = Target {
    name: "postgres_record",
    promise: "any row is understood as it is, within bounds, or is refused in one line; and so is any notification",
    judge,
    dictionary: &[
        "released",
        "expired",
        "vacated ",
        "taken ",
        "asked ",
        "gap",
        " 1 job",
        "\\",
        "\\0",
        "\\\\",
        "..",
        "0123456789abcdef0123456789abcdef",
    ],
};

const TOKEN_MAX: i64 = 253_402_300_799_999;

const INCARNATION: &str = "0123456789abcdef0123456789abcdef";

fn judge(input: &[u8]) {
    let mut choices = Choices::new(input);
    if choices.once_in(4) {
        return judge_notification(&String::from_utf8_lossy(choices.rest()));
    }
    let row = row(&mut choices);
    match decode(row.clone()) {
        Ok((lease, previous)) => {
            assert!(fits(&row), "a row out of bounds is understood: {row:?}");
            assert_eq!(lease.name.as_str(), row.texts[0]);
            assert_eq!(lease.holder.id.as_str(), row.texts[1]);
            assert_eq!(lease.holder.incarnation.to_string(), row.texts[2]);
            assert_eq!(lease.token.signed(), row.numbers[0]);
            assert_eq!(lease.terms, row.numbers[2].unsigned_abs());
            assert_eq!(lease.ttl.as_millis(), row.numbers[3].unsigned_abs());
            let remaining = if row.marks[0] {
                0
            } else {
                row.durations_us[0].max(0)
            };
            assert_eq!(lease.remaining, Duration::from_micros(remaining.unsigned_abs()));
            assert_eq!(
                (lease.released, lease.asked_to_step_down),
                (row.marks[0], row.marks[1])
            );
            assert!(lease.note.as_str().len() <= 1024);
            assert_eq!(previous.is_some(), row.previous.is_some());
            if let (Some(previous), Some((owner, token, end, _))) = (previous, row.previous) {
                assert_eq!(
                    (previous.candidate.as_str(), previous.token.signed()),
                    (&*owner, token)
                );
                assert_eq!(previous.end == End::Expired, end == "expired");
            }
        }
        Err(error) => {
            assert!(!fits(&row), "a sound row is refused: {error}");
            assert_one_line(&error.message);
        }
    }
}

/// The rules of a record, by other code than the product's.
fn fits(row: &Row) -> bool {
    let hexadecimal = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let previous = row.previous.as_ref().is_none_or(|(owner, token, end, _)| {
        CandidateId::new(owner).is_ok()
            && (1..=TOKEN_MAX).contains(token)
            && (end == "released" || end == "expired")
    });
    LeaseName::new(&row.texts[0]).is_ok()
        && CandidateId::new(&row.texts[1]).is_ok()
        && row.texts[2].len() == 32
        && row.texts[2].chars().all(hexadecimal)
        && row.numbers[..3].iter().all(|number| *number >= 1)
        && (100..=24 * 60 * 60 * 1000).contains(&row.numbers[3])
        && row.numbers[0] <= TOKEN_MAX
        && (row.marks[0] || row.durations_us[0] <= (row.numbers[3] + 24 * 60 * 60 * 1000) * 1000)
        && previous
}

fn row(choices: &mut Choices<'_>) -> Row {
    let name = |choices: &mut Choices<'_>| match choices.once_in(3) {
        true => choices.text(),
        false => "job".to_owned(),
    };
    let number = |choices: &mut Choices<'_>| match choices.once_in(3) {
        true => choices.signed(),
        false => 1 + i64::from(choices.byte()),
    };
    Row {
        texts: [
            name(choices),
            name(choices),
            choices.text_or(INCARNATION, |text| text.len() % 2 == 1),
            choices.text(),
        ],
        numbers: [
            number(choices),
            number(choices),
            number(choices),
            number(choices).saturating_add(Ttl::MIN.as_millis().cast_signed() - 1),
        ],
        durations_us: [choices.signed(), choices.signed(), choices.signed()],
        marks: [choices.once_in(2), choices.once_in(2)],
        previous: choices.once_in(2).then(|| {
            let end = match choices.below(5) {
                0 => choices.text(),
                1 | 2 => "released".to_owned(),
                _ => "expired".to_owned(),
            };
            (name(choices), number(choices), end, choices.signed())
        }),
    }
}

fn judge_notification(payload: &str) {
    match notified(payload) {
        None => assert_ne!(payload, "gap"),
        Some(WatchEvent::Gap) => assert_eq!(payload, "gap"),
        Some(WatchEvent::Changed { name, change, token }) => {
            let word = match change {
                Change::Vacated => "vacated",
                Change::Taken => "taken",
                Change::Asked => "asked",
            };
            assert!(
                payload.starts_with(word) && payload.ends_with(name.as_str()),
                "{payload:?}"
            );
            assert!(
                token.is_none_or(|token| payload.contains(&token.to_string())),
                "{payload:?}"
            );
        }
    }
}
