//! The reader of etcd's keys of a lease, and of a fence's mark: any keys, of any bytes.

use super::choices::Choices;
use super::text::assert_one_line;
use crate::Target;
use std::time::Duration;
use tenure_core::{CandidateId, FencingToken, LeaseName, Note, Ttl};
use tenure_etcd::fuzzing::{Row, decode, decode_mark};

/// This target.
pub const TARGET: Target = Target {
    name: "etcd_record",
    promise: "any keys of a lease are understood within bounds or refused in one line, and a mark has one form",
    judge,
    dictionary: &[
        "{",
        "}",
        "\"owner\":",
        "\"incarnation\":",
        "\"attempt\":",
        "\"ttlMs\":",
        "\"note\":",
        "\"acquiredAt\":",
        "\"token\":",
        "\"lease\":",
        "0123456789abcdef0123456789abcdef",
        "9223372036854775807",
        "9223372036854775808",
        "1e300",
        "-1",
        "null",
        "\\u0000",
        "\tterm",
        "\tholder",
        "\twish",
    ],
};

fn judge(input: &[u8]) {
    let mut choices = Choices::new(input);
    let name = choices.text_or("nightly", |text| LeaseName::new(text).is_ok());
    let name = LeaseName::new(name).expect("it was checked");
    let damages = choices.below(4);
    let mut rows = written(&mut choices);
    for _damage in 0..damages {
        let place = choices.below(rows.len());
        let row = &mut rows[place];
        match choices.byte() % 4 {
            0 => row.part = choices.blob(),
            1 => row.value = choices.blob(),
            2 => row.revision = choices.number().cast_signed(),
            _ => row.version = choices.number().cast_signed(),
        }
    }
    match decode(&name, &rows) {
        Err(error) => {
            assert!(damages > 0, "valid keys are refused: {error}");
            assert_one_line(&error.message);
        }
        Ok(None) => assert!(damages > 0, "a record is not seen"),
        Ok(Some(lease)) => {
            assert_eq!(lease.name, name);
            assert!(
                i64::try_from(lease.terms).is_ok() && lease.terms >= 1,
                "{lease:?}"
            );
            assert!((Ttl::MIN..=Ttl::MAX).contains(&lease.ttl), "{lease:?}");
            assert!(lease.remaining <= Duration::from_secs(5), "{lease:?}");
            assert!(
                !lease.released || lease.remaining.is_zero(),
                "a vacant lease has time left"
            );
            assert!(lease.renewed_ago <= lease.held_for, "{lease:?}");
            let held = !lease.remaining.is_zero();
            assert!(held || !lease.asked_to_step_down, "nobody is asked: {lease:?}");
        }
    }
    match decode_mark(&choices.blob()) {
        Ok((_lease, token)) => assert!(token.number() >= 1),
        Err(error) => assert_one_line(&error.message),
    }
}

/// Keys that the store may have written.
fn written(choices: &mut Choices<'_>) -> Vec<Row> {
    let incarnation = u128::from(choices.number()) << 64 | u128::from(choices.number());
    let attempt = choices.number().clamp(1, i64::MAX.unsigned_abs());
    let owner = choices.text_or("node-a", |text| CandidateId::new(text).is_ok());
    let note = choices.text_or("", |text| Note::new(text).is_ok());
    let ttl = choices.number().clamp(Ttl::MIN.as_millis(), Ttl::MAX.as_millis());
    let acquired_at = choices.number();
    let record = format!(
        "{{\"owner\":{},\"incarnation\":\"{incarnation:032x}\",\"attempt\":{attempt},\"ttlMs\":{ttl},\"note\":{},\
         \"acquiredAt\":{acquired_at}}}",
        quoted(&owner),
        quoted(&note),
    );
    let revision = choices
        .number()
        .clamp(1, FencingToken::MAX.number())
        .cast_signed();
    let row = |part: &str, value: String, session: i64| Row {
        part: part.as_bytes().to_vec(),
        value: value.into_bytes(),
        revision,
        version: 1,
        session,
    };
    let mut rows = vec![row("", record, 0)];
    if choices.once_in(2) {
        rows.push(row("\tterm", String::new(), 0));
    }
    if choices.once_in(2) {
        rows.push(row("\tholder", format!("{{\"ttlMs\":{ttl}}}"), 7));
    }
    if choices.once_in(3) {
        rows.push(row("\twish", format!("{{\"token\":{revision}}}"), 7));
    }
    rows
}

/// A text in JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if u32::from(control) < 0x20 => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            other => quoted.push(other),
        }
    }
    quoted + "\""
}
