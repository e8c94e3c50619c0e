//! Records: exact numbers, the same rules for scripts and reader, and clean-up.

use crate::common::{Scratch, giving_back, granted, name, renewal, request, seconds, take};
use redis::FromRedisValue;
use tenure_core::{Acquired, CandidateId, Fault, FencingToken, LeaseStore, Listed, Note, Page, Renewed};
use tenure_redis::RedisStore;
use tenure_redis::fuzzing::{FIELDS, decode};
use tenure_testkit::{RedisOptions, RedisServer};

async fn ask<T: FromRedisValue>(scratch: &Scratch, words: &[&[u8]]) -> T {
    let mut command = redis::cmd(std::str::from_utf8(words[0]).expect("a command"));
    for word in &words[1..] {
        command.arg(*word);
    }
    command
        .query_async(&mut scratch.connection().await)
        .await
        .expect("the test can ask")
}

async fn set(scratch: &Scratch, field: &str, value: &[u8]) {
    let key = scratch.key("job");
    let _set: i64 = ask(scratch, &[b"HSET", key.as_bytes(), field.as_bytes(), value]).await;
}

/// A vacant record, whose owner and note a test may change.
async fn vacant(store: &RedisStore) {
    let asked = request("job", "holder", seconds(60));
    let token = take(store, &asked).await.token;
    store
        .release(&[giving_back(&asked, token)])
        .await
        .remove(0)
        .expect("released");
}

/// Lua's own numbers are exact up to 2^53 only: a token would repeat.
#[tokio::test]
async fn tokens_attempts_and_counts_above_two_to_the_53_are_exact() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    vacant(&store).await;
    let beyond = "9007199254740993";
    set(&scratch, "generation", beyond.as_bytes()).await;
    set(&scratch, "terms", beyond.as_bytes()).await;
    let mut asked = request("job", "a", seconds(60));
    asked.attempt = tenure_core::Attempt::new(9_007_199_254_740_993).expect("an attempt");
    let grant = take(&store, &asked).await;
    assert_eq!(grant.token.number(), 9_007_199_254_740_994);
    assert_eq!(grant.terms, 9_007_199_254_740_994);
    assert_eq!(
        grant.predecessor.expect("a term before").token.number(),
        9_007_199_254_740_993
    );
    let mut earlier = asked.clone();
    earlier.attempt = tenure_core::Attempt::new(9_007_199_254_740_992).expect("an attempt");
    assert_eq!(store.acquire(&earlier).await, Ok(Acquired::Superseded));
    let mut close = renewal(&asked, grant.token);
    close.attempt = earlier.attempt;
    assert!(matches!(
        store.renew(&[close]).await[0],
        Ok(Renewed::Lost(Some(_)))
    ));
}

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

/// What the reader refuses no script may overwrite, and what it takes every script must: the rules are written twice.
#[tokio::test]
async fn scripts_and_reader_take_the_same_texts() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let texts = texts();
    let name_of = |text: &[u8]| std::str::from_utf8(text).is_ok_and(|text| CandidateId::new(text).is_ok());
    let note_of = |text: &[u8]| std::str::from_utf8(text).is_ok_and(|text| Note::new(text).is_ok());
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

#[tokio::test]
async fn fields_that_are_not_listed_are_kept() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    vacant(&store).await;
    set(&scratch, "colour", b"green").await;
    let asked = request("job", "a", seconds(60));
    let grant = take(&store, &asked).await;
    store
        .renew(&[renewal(&asked, grant.token)])
        .await
        .remove(0)
        .expect("renewed");
    store
        .release(&[giving_back(&asked, grant.token)])
        .await
        .remove(0)
        .expect("released");
    assert_eq!(scratch.raw("job").await["colour"], b"green");
}

/// Nothing has a time to live, unless it is wished; and whoever does not wish it takes it away.
#[tokio::test]
async fn records_outlive_their_leases_and_are_purged_only_if_that_is_wished() {
    let scratch = Scratch::new().await;
    let keeping = scratch.store().await;
    let url = format!("{}&purgeAfter=2d", scratch.store_url());
    let purging = RedisStore::connect(&url).await.expect("connects");
    let left = || async { ask::<i64>(&scratch, &[b"PTTL", scratch.key("job").as_bytes()]).await };
    let asked = request("job", "a", seconds(60));
    let grant = take(&keeping, &asked).await;
    assert_eq!(left().await, -1, "a record has a time to live");
    purging
        .renew(&[renewal(&asked, grant.token)])
        .await
        .remove(0)
        .expect("renewed");
    let two_days = 2 * 24 * 60 * 60 * 1000;
    assert!(
        (two_days - 60_000..=two_days).contains(&left().await),
        "{}",
        left().await
    );
    keeping
        .release(&[giving_back(&asked, grant.token)])
        .await
        .remove(0)
        .expect("released");
    take(&keeping, &request("job", "b", seconds(60))).await;
    assert_eq!(
        left().await,
        -1,
        "a term that nobody wishes to purge would vanish"
    );
}

/// The next token of a name that is gone begins with the clock: a record whose token is ahead of it must stay until it is not.
#[tokio::test]
async fn record_whose_token_is_ahead_of_the_clock_is_not_purged_before_the_clock_has_reached_it() {
    let scratch = Scratch::new().await;
    let left = || async { ask::<i64>(&scratch, &[b"PTTL", scratch.key("job").as_bytes()]).await };
    let day_ms: u64 = 24 * 60 * 60 * 1000;
    let [soon, later] = ["1d", "9d"].map(|wait| format!("{}&purgeAfter={wait}", scratch.store_url()));
    let (soon, later) = (
        RedisStore::connect(&soon).await.expect("connects"),
        RedisStore::connect(&later).await.expect("connects"),
    );
    let mut asked = request("job", "a", seconds(60));
    take(&soon, &asked).await;
    assert!(left().await > 0);
    let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_millis();
    let ahead = u64::try_from(now).expect("a time") + 5 * day_ms;
    set(&scratch, "generation", ahead.to_string().as_bytes()).await;
    let ahead = FencingToken::new(ahead).expect("a token");
    for by in ["a renewal", "the same attempt", "a release", "another term"] {
        for (store, kept) in [(&later, false), (&soon, true)] {
            match by {
                "a renewal" => {
                    let renewed = store.renew(&[renewal(&asked, ahead)]).await.remove(0);
                    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
                }
                "the same attempt" => assert_eq!(take(store, &asked).await.token, ahead),
                "a release" => {
                    let _held: i64 =
                        ask(&scratch, &[b"HDEL", scratch.key("job").as_bytes(), b"releasedAt"]).await;
                    let released = store.release(&[giving_back(&asked, ahead)]).await.remove(0);
                    released.expect("released");
                }
                _ => {
                    asked = request("job", &format!("holder {kept}"), seconds(60));
                    let token = take(store, &asked).await.token;
                    assert!(token > ahead);
                    store
                        .release(&[giving_back(&asked, token)])
                        .await
                        .remove(0)
                        .expect("released");
                }
            }
            assert_eq!(left().await == -1, kept, "{by}: {} left", left().await);
        }
    }
}

#[tokio::test]
async fn names_without_a_record_are_passed_over_and_leave_the_index_in_time() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    for number in 0..30 {
        take(&store, &request(&format!("old/{number:02}"), "a", seconds(60))).await;
        let _gone: i64 = ask(
            &scratch,
            &[b"DEL", scratch.key(&format!("old/{number:02}")).as_bytes()],
        )
        .await;
    }
    take(&store, &request("young", "a", seconds(60))).await;
    let page = Page {
        prefix: String::new(),
        after: None,
        limit: 5,
    };
    let found = store.list(&page).await.expect("a page");
    let names: Vec<String> = found
        .leases
        .iter()
        .map(|listed| match listed {
            Listed::Lease(lease) => lease.name.to_string(),
            Listed::Unreadable { key, .. } => key.clone(),
        })
        .collect();
    assert_eq!((names.as_slice(), found.next), (&["young".to_owned()][..], None));
    let index = format!("{{{}}}:leases", scratch.prefix);
    let indexed: i64 = ask(&scratch, &[b"ZCARD", index.as_bytes()]).await;
    assert!(indexed < 31, "no name without a record left the index");
}

/// How many scripts the server has run.
async fn scripts_run(scratch: &Scratch) -> u64 {
    let told: String = ask(scratch, &[b"INFO", b"commandstats"]).await;
    let calls = told.lines().filter_map(|line| {
        let of_scripts = line
            .strip_prefix("cmdstat_evalsha:")
            .or(line.strip_prefix("cmdstat_eval:"))?;
        of_scripts
            .strip_prefix("calls=")?
            .split(',')
            .next()?
            .parse::<u64>()
            .ok()
    });
    calls.sum()
}

/// Counted by the server, which nobody else uses.
#[tokio::test]
async fn batch_of_a_thousand_is_one_request_and_disturbs_nobody() {
    let server = RedisServer::start(RedisOptions::durable())
        .await
        .expect("a server");
    let scratch = Scratch::on(&server.url());
    let store = scratch.store().await;
    let mut renewals = Vec::new();
    for number in 0..1000 {
        let asked = request(&format!("batch/{number:04}"), "a", seconds(60));
        let grant = granted(store.acquire(&asked).await.expect("answered"));
        renewals.push(renewal(&asked, grant.token));
    }
    let _damaged: i64 = ask(
        &scratch,
        &[b"HSET", scratch.key("batch/0500").as_bytes(), b"terms", b"many"],
    )
    .await;
    let _gone: i64 = ask(&scratch, &[b"DEL", scratch.key("batch/0700").as_bytes()]).await;
    // The server learns the script, and the connection is made.
    let _first = store.renew(&renewals[..1]).await;
    let before = scripts_run(&scratch).await;
    let verdicts = store.renew(&renewals).await;
    assert_eq!(scripts_run(&scratch).await, before + 1, "a batch is one request");
    for (place, verdict) in verdicts.iter().enumerate() {
        match place {
            500 => assert_eq!(verdict.as_ref().expect_err("damaged").fault, Fault::Unreadable),
            700 => assert_eq!(verdict, &Ok(Renewed::Lost(None))),
            _ => assert!(
                matches!(verdict, Ok(Renewed::Extended { .. })),
                "{place}: {verdict:?}"
            ),
        }
    }
}
