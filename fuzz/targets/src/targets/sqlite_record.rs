//! The reader of SQLite's lease table: any row, of any types.

use super::choices::Choices;
use super::text::assert_one_line;
use crate::Target;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::time::Duration;
use tenure_core::{CandidateId, FencingToken, LeaseName, Moment, Note, Ttl};
use tenure_sqlite::fuzzing::{Understood, read};

/// This target.
pub const TARGET: Target = Target {
    name: "sqlite_record",
    promise: "any row is understood within bounds and comes back as it was, or is refused in one line",
    judge,
    dictionary: &[
        "nothing",
        "step-down",
        "our-boot",
        "0123456789abcdef0123456789abcdef",
        "job/a",
    ],
};

/// The columns, in the order in which the store reads them.
const COLUMNS: usize = 15;

/// Whole numbers at which columns end.
const EDGES: [i64; 6] = [i64::MIN, -1, 0, 1, i64::MAX - 1, i64::MAX];

/// Which of them is the note.
const NOTE: usize = 13;

/// Which of them hold texts.
const TEXTS: [usize; 6] = [0, 1, 2, 7, 12, NOTE];

/// The boot whose clock the reader has.
const OUR_BOOT: &str = "our-boot";

/// A row of the table, and which of its blobs are to be texts: a foreign hand can leave text that is no
/// UTF-8.
struct Row {
    values: [Value; COLUMNS],
    blobs_to_texts: bool,
    valid: bool,
}

fn judge(input: &[u8]) {
    let mut choices = Choices::new(input);
    let row = row(&mut choices);
    let now = Moment::from_nanos(choices.number());
    let first_seen = choices.once_in(2).then(|| Moment::from_nanos(choices.number()));
    match understood(&row, now, first_seen) {
        Err(message) => {
            assert!(!row.valid, "a valid row is refused: {message}");
            assert_one_line(&message);
        }
        Ok(understood) => {
            check(&understood, now, first_seen);
            let mut shown = row.values;
            if let Value::Text(note) = &mut shown[NOTE] {
                // As far as it fits.
                *note = Note::beginning_of(note).to_string();
            }
            assert_eq!(
                encoded(&understood),
                shown,
                "the row does not come back as it was"
            );
        }
    }
}

fn understood(row: &Row, now: Moment, first_seen: Option<Moment>) -> Result<Understood, String> {
    thread_local! {
        static CONNECTION: Connection = Connection::open_in_memory().expect("SQLite opens in memory");
    }
    CONNECTION.with(|connection| {
        let mut statement = connection
            .prepare_cached(&select())
            .expect("the statement is right");
        let parameters = row
            .values
            .iter()
            .cloned()
            .chain([Value::Integer(row.blobs_to_texts.into())]);
        let mut rows = statement
            .query(rusqlite::params_from_iter(parameters))
            .expect("every value binds");
        let row = rows.next().expect("a row can be computed").expect("there is one");
        read(row, OUR_BOOT, now, first_seen)
    })
}

fn select() -> String {
    let column = |number: usize| {
        format!("iif(?16 AND typeof(?{number}) = 'blob', CAST(?{number} AS TEXT), ?{number})")
    };
    let columns: Vec<String> = (1..=COLUMNS).map(column).collect();
    format!("SELECT {}", columns.join(", "))
}

/// A row that a store may have written, with up to three columns exchanged for anything.
fn row(choices: &mut Choices<'_>) -> Row {
    // First, so that no long text before leaves nothing of the input for it.
    let damages: Vec<(usize, Value)> = (0..choices.below(4)).map(|_| damage(choices)).collect();
    let valid = damages.is_empty();
    let mut values = written(choices);
    for (column, value) in damages {
        values[column] = value;
    }
    let blobs_to_texts = choices.once_in(2);
    for value in &mut values {
        // SQLite makes the same text of it; what is no UTF-8 stays a blob, and becomes one in SQLite alone.
        if let (true, Value::Blob(bytes)) = (blobs_to_texts, &*value)
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            *value = Value::Text(text.to_owned());
        }
    }
    Row {
        values,
        blobs_to_texts,
        valid,
    }
}

/// A column, and what stands there instead: mostly of the right type.
fn damage(choices: &mut Choices<'_>) -> (usize, Value) {
    let column = choices.below(COLUMNS);
    let value = match choices.byte() % 6 {
        0 => Value::Null,
        1..=3 if TEXTS.contains(&column) => Value::Text(choices.text()),
        1 | 2 => Value::Integer(choices.signed()),
        3 => Value::Integer(*choices.pick(&EDGES)),
        4 => Value::Real(f64::from_bits(choices.number())),
        _ => Value::Blob(choices.blob()),
    };
    (column, value)
}

fn written(choices: &mut Choices<'_>) -> [Value; COLUMNS] {
    let positive = |choices: &mut Choices<'_>| (choices.signed() & i64::MAX).max(1);
    let acquired = choices.signed() & i64::MAX;
    let renewed = acquired.saturating_add(choices.signed() & i64::MAX);
    let ttl = 100 + (choices.number() % (86_400_000 - 99)).cast_signed();
    let ends = renewed.saturating_add(ttl * 1_000_000);
    let incarnation = u128::from(choices.number()) << 64 | u128::from(choices.number());
    let boot = if choices.once_in(2) {
        OUR_BOOT
    } else {
        "another-boot"
    };
    [
        Value::Text(choices.text_or("job", |text| LeaseName::new(text).is_ok())),
        Value::Text(choices.text_or("host", |text| CandidateId::new(text).is_ok())),
        Value::Text(format!("{incarnation:032x}")),
        Value::Integer(positive(choices).min(FencingToken::MAX.signed())),
        Value::Integer(positive(choices)),
        Value::Integer(positive(choices)),
        Value::Integer(ttl),
        Value::Text(choices.text_or(boot, |text| (1..=64).contains(&text.len()))),
        Value::Integer(acquired),
        Value::Integer(renewed),
        Value::Integer(ends.saturating_sub(choices.signed() & i64::MAX).max(0)),
        Value::Integer(choices.once_in(2).into()),
        Value::Text(
            if choices.once_in(2) {
                "step-down"
            } else {
                "nothing"
            }
            .to_owned(),
        ),
        Value::Text(choices.text_or("", |text| Note::new(text).is_ok())),
        Value::Integer(positive(choices).min(i64::MAX - 1)),
    ]
}

/// What holds of every row that was understood, by this file's own arithmetic.
fn check(understood: &Understood, now: Moment, first_seen: Option<Moment>) {
    let Understood {
        lease,
        boot_id,
        acquired,
        renewed,
        expires,
        version,
        observation,
    } = understood;
    let ttl = lease.ttl.duration();
    assert!((Ttl::MIN..=Ttl::MAX).contains(&lease.ttl), "ttl {ttl:?}");
    assert!(
        i64::try_from(lease.token.number()).is_ok(),
        "token {}",
        lease.token
    );
    assert!(lease.terms >= 1 && lease.attempt.number() >= 1);
    assert!(
        (1..i64::MAX).contains(version),
        "the next version does not fit: {version}"
    );
    assert!(acquired <= renewed, "renewed before acquired");
    assert!(
        expires.since(*renewed) <= ttl,
        "expires later than its ttl allows"
    );
    let ours = boot_id == OUR_BOOT && *renewed <= now;
    let (remaining_max, remaining) = if lease.released {
        (Duration::ZERO, Duration::ZERO)
    } else if ours {
        (ttl, expires.since(now))
    } else {
        let slowest = ttl + ttl / 2000 + Duration::from_millis(1);
        let seen_for = first_seen.map_or(Duration::ZERO, |seen| now.since(seen));
        (slowest, observation.saturating_sub(seen_for))
    };
    assert!(
        *observation >= ttl,
        "a record of another boot is observed for less than its ttl"
    );
    assert_eq!(lease.remaining, remaining, "the remaining time is wrong");
    assert!(
        remaining <= remaining_max,
        "{remaining:?} remain of a ttl of {ttl:?}"
    );
}

fn encoded(understood: &Understood) -> [Value; COLUMNS] {
    let lease = &understood.lease;
    let number =
        |number: u64| Value::Integer(i64::try_from(number).expect("every number of a record is signed"));
    [
        Value::Text(lease.name.to_string()),
        Value::Text(lease.holder.id.to_string()),
        Value::Text(lease.holder.incarnation.to_string()),
        Value::Integer(lease.token.signed()),
        number(lease.attempt.number()),
        number(lease.terms),
        number(lease.ttl.as_millis()),
        Value::Text(understood.boot_id.clone()),
        number(understood.acquired.as_nanos()),
        number(understood.renewed.as_nanos()),
        number(understood.expires.as_nanos()),
        Value::Integer(lease.released.into()),
        Value::Text(
            if lease.asked_to_step_down {
                "step-down"
            } else {
                "nothing"
            }
            .to_owned(),
        ),
        Value::Text(lease.note.to_string()),
        Value::Integer(understood.version),
    ]
}
