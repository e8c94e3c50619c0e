//! Scripts and reader judge a record by the same rules.

use crate::common::{Scratch, name, request, seconds};
use crate::records::{ask, set, vacant};
use tenure_core::{Acquired, CandidateId, Fault, LeaseStore};
use tenure_redis::fuzzing::{FIELDS, decode};

/// Texts on both sides of every rule.
fn texts() -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> = [
        "a",
        " a",
        "a ",
        "a b",
        "a/b",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "./a",
        "a/..",
        "...",
        "a/.b",
        "a/./b",
        "a/../b",
        "a/.",
        "a.",
        "a./b.",
        "a/-",
        "/",
        "-",
        "A1/b2:C3@d4_e5-f6.g7",
        "",
        "\u{a0}a",
        "a\u{a0}",
        "a\u{a0}b",
        "\u{1680}a",
        "a\u{2000}",
        "\u{2006}a",
        "a\u{200a}",
        "a\u{200b}",
        "\u{2028}a",
        "a\u{2029}",
        "a\u{202f}",
        "a\u{205f}",
        "\u{3000}a",
        "a\u{3000}",
        "\u{85}a",
        "a\u{9f}b",
        "a\u{7f}b",
        "a\nb",
        "a\tb",
        "a\0b",
        "ä",
        "日本",
        "🙂",
        "\u{feff}a",
        "a\u{180e}",
        "%s",
        "$1",
        "*?[]",
        "\"'\\",
        "{tenure}",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    texts.extend([253, 254].map(|length| vec![b'x'; length]));
    texts.extend([126, 127].map(|pairs| "ä".repeat(pairs).into_bytes()));
    // Not UTF-8: alone, overlong, cut off, a surrogate, too high.
    let broken: [&[u8]; 9] = [
        b"\x80",
        b"\xc0\x80",
        b"\xc3",
        b"\xe0\x80\x80",
        b"\xe2\x82",
        b"\xed\xa0\x80",
        b"\xf0\x80\x80\x80",
        b"\xf4\x90\x80\x80",
        b"a\xff",
    ];
    texts.extend(broken.map(<[u8]>::to_vec));
    texts
}

/// Whether a text is right in a field.
type Rule<'a> = &'a dyn Fn(&[u8]) -> bool;

/// What the reader refuses no script may overwrite, and what it takes every script must: the rules are
/// written twice.
#[tokio::test]
async fn scripts_and_reader_take_the_same_texts() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let texts = texts();
    let name_of = |text: &[u8]| std::str::from_utf8(text).is_ok_and(|text| CandidateId::new(text).is_ok());
    let note_of = |text: &[u8]| std::str::from_utf8(text).is_ok();
    let rules: [(&str, Rule<'_>); 3] = [
        ("owner", &name_of),
        ("previousOwner", &name_of),
        ("note", &note_of),
    ];
    for (field, is_right) in rules {
        for text in &texts {
            let _gone: i64 = ask(&scratch, &[b"DEL", scratch.key("job").as_bytes()]).await;
            vacant(&store).await;
            vacant(&store).await;
            set(&scratch, field, text).await;
            let before = scratch.raw("job").await;
            let acquired = store.acquire(&request("job", "rival", seconds(60))).await;
            let shown = String::from_utf8_lossy(text).escape_debug().to_string();
            if is_right(text) {
                assert!(
                    matches!(acquired, Ok(Acquired::Granted(_))),
                    "{field} \"{shown}\": {acquired:?}"
                );
            } else {
                let error = acquired.expect_err(&format!("{field} \"{shown}\" was understood"));
                assert_eq!(error.fault, Fault::Unreadable, "{field} \"{shown}\": {error}");
                assert_eq!(
                    scratch.raw("job").await,
                    before,
                    "{field} \"{shown}\" was overwritten"
                );
                assert!(store.get(&name("job")).await.is_err(), "{field} \"{shown}\"");
            }
        }
    }
}

#[tokio::test]
async fn scripts_and_reader_take_the_same_numbers() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let texts = [
        "0",
        "1",
        "01",
        "-1",
        "+1",
        "1.0",
        "1e3",
        " 1",
        "0x10",
        "99",
        "100",
        "86400000",
        "86400001",
        "999999999999999",
        "1000000000000000",
        "253402300799998",
        "253402300799999",
        "253402300800000",
        "9223372036854775806",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "",
    ];
    let fields = [
        "generation",
        "attempt",
        "terms",
        "ttlMs",
        "createdAt",
        "acquiredAt",
        "expiresAt",
        "lastRenewedAt",
        "releasedAt",
        "stepDownAskedAt",
        "previousGeneration",
        "previousAt",
        "previousEnd",
    ];
    for field in fields {
        for text in texts {
            let _gone: i64 = ask(&scratch, &[b"DEL", scratch.key("job").as_bytes()]).await;
            vacant(&store).await;
            vacant(&store).await;
            set(&scratch, field, text.as_bytes()).await;
            let before = scratch.raw("job").await;
            let read = store.get(&name("job")).await;
            let acquired = store.acquire(&request("job", "rival", seconds(60))).await;
            let unreadable = |error: &tenure_core::StoreError| error.fault == Fault::Unreadable;
            assert_eq!(
                read.as_ref().is_err_and(unreadable),
                acquired.as_ref().is_err_and(unreadable),
                "{field} \"{text}\": {read:?} {acquired:?}"
            );
            if read.is_err() {
                assert_eq!(
                    scratch.raw("job").await,
                    before,
                    "{field} \"{text}\" was overwritten"
                );
            }
        }
    }
}

/// Chance that is the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }

    fn of<'a>(&mut self, values: &[&'a str]) -> &'a str {
        values[self.below(values.len())]
    }
}

/// Of the scripts many conditions are one: what is wrong in one field must not be hidden by another.
#[tokio::test]
async fn scripts_and_reader_take_the_same_records() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let key = scratch.key("job");
    let right = |field: &str| match field {
        "owner" | "previousOwner" => "a/b",
        "incarnation" => "0123456789abcdef0123456789abcdef",
        "note" => "",
        "previousEnd" => "expired",
        "unconfirmed" => "later",
        "ttlMs" => "30000",
        _ => "1764000000000",
    };
    let wrong = [
        "",
        "0",
        "1",
        "01",
        "a",
        "-1",
        "1.0",
        " 1",
        "1 ",
        "a//b",
        "a/.",
        "a ",
        "first",
        "released",
        "0123456789abcdef0123456789abcdeF",
        "99999999999999999999",
        "000000000000000",
        "0000000000000001",
        "253402300799999",
        "253402300800000",
    ];
    let (mut chance, mut understood) = (Chance(7), 0);
    for round in 0..3_000 {
        let _gone: i64 = ask(&scratch, &[b"DEL", key.as_bytes()]).await;
        let is_first = chance.below(3) == 0;
        let mut fields: Vec<Option<Vec<u8>>> = Vec::new();
        for field in FIELDS {
            let lacks = match field {
                "previousOwner" | "previousGeneration" | "previousEnd" | "previousAt" => is_first,
                "lastRenewedAt" | "releasedAt" | "stepDownAskedAt" | "unconfirmed" => chance.below(2) == 0,
                _ => false,
            };
            fields.push((!lacks).then(|| right(field).as_bytes().to_vec()));
        }
        for _field in 0..chance.below(3) {
            let place = chance.below(FIELDS.len());
            fields[place] = match chance.below(6) {
                0 => None,
                _ => Some(chance.of(&wrong).as_bytes().to_vec()),
            };
        }
        let mut words: Vec<&[u8]> = vec![b"HSET", key.as_bytes()];
        for (field, value) in FIELDS.iter().zip(&fields) {
            if let Some(value) = value {
                words.extend([field.as_bytes(), value.as_slice()]);
            }
        }
        let _set: i64 = ask(&scratch, &words).await;
        let acquired = store.acquire(&request("job", "rival", seconds(60))).await;
        let by_script = !acquired
            .as_ref()
            .is_err_and(|error| error.fault == Fault::Unreadable);
        let by_reader = decode("job", &fields, 1_764_000_000_000).is_ok();
        understood += i32::from(by_reader);
        let shown: Vec<_> = fields
            .iter()
            .map(|value| value.as_ref().map(|value| String::from_utf8_lossy(value)))
            .collect();
        assert_eq!(by_script, by_reader, "round {round}: {shown:?}: {acquired:?}");
    }
    assert!(
        (500..2_500).contains(&understood),
        "{understood} of 3,000 were right"
    );
}
