//! Records: exact numbers, unknown fields, and clean-up.

use crate::common::{Scratch, giving_back, granted, name, renewal, request, seconds, take, unused_for_a_day};
use redis::FromRedisValue;
use std::time::SystemTime;
use tenure_core::{Acquired, Fault, FencingToken, LeasePurge, LeaseStore, Listed, Page, Purging, Renewed};
use tenure_redis::RedisStore;
use tenure_testkit::{RedisOptions, RedisServer};

pub async fn ask<T: FromRedisValue>(scratch: &Scratch, words: &[&[u8]]) -> T {
    let mut command = redis::cmd(std::str::from_utf8(words[0]).expect("a command"));
    for word in &words[1..] {
        command.arg(*word);
    }
    command
        .query_async(&mut scratch.connection().await)
        .await
        .expect("the test can ask")
}

pub async fn set(scratch: &Scratch, field: &str, value: &[u8]) {
    let key = scratch.key("job");
    let _set: i64 = ask(scratch, &[b"HSET", key.as_bytes(), field.as_bytes(), value]).await;
}

/// A vacant record, whose owner and note a test may change.
pub async fn vacant(store: &RedisStore) {
    let asked = request("job", "holder", seconds(60));
    let token = take(store, &asked).await.token;
    store
        .release(&[giving_back(&asked, token)])
        .await
        .remove(0)
        .expect("released");
}

/// Lua's own numbers are exact up to 2^53 only: an attempt would repeat.
#[tokio::test]
async fn attempts_and_counts_above_two_to_the_53_are_exact() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    vacant(&store).await;
    let beyond = "9007199254740993";
    let last_but_one = FencingToken::MAX.number() - 1;
    set(&scratch, "generation", last_but_one.to_string().as_bytes()).await;
    set(&scratch, "terms", beyond.as_bytes()).await;
    let mut asked = request("job", "a", seconds(60));
    asked.attempt = tenure_core::Attempt::new(9_007_199_254_740_993).expect("an attempt");
    let grant = take(&store, &asked).await;
    assert_eq!(grant.token, FencingToken::MAX);
    assert_eq!(grant.terms, 9_007_199_254_740_994);
    assert_eq!(
        grant.predecessor.expect("a term before").token.number(),
        last_but_one
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

/// The clock shows whole milliseconds, and hides how much of this one is over: counted from its begin, a
/// lease would be given to another up to a millisecond before its ttl is over.
#[tokio::test]
async fn lease_of_redis_counts_from_the_end_of_the_millisecond_that_the_clock_shows() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let asked = request("job", "a", seconds(60));
    let token = take(&store, &asked).await.token;
    assert_eq!(lasts_since(&scratch, "acquiredAt").await, 60_001);
    let renewed = store.renew(&[renewal(&asked, token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    assert_eq!(lasts_since(&scratch, "lastRenewedAt").await, 60_001);
}

/// How many milliseconds of the server's clock the lease lasts since then.
async fn lasts_since(scratch: &Scratch, field: &str) -> u64 {
    let record = scratch.raw("job").await;
    let moment = |field: &str| -> u64 {
        let text = String::from_utf8_lossy(&record[field]).into_owned();
        text.parse().expect("a moment")
    };
    moment("expiresAt") - moment(field)
}

/// A clock that is set back a little afterwards, or a next primary's, would let the next token fall.
#[tokio::test]
async fn record_of_redis_whose_token_the_clock_has_just_passed_is_kept() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    vacant(&store).await;
    let key = scratch.key("job");
    let now_ms = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now_ms = now_ms.expect("after 1970").as_millis();
    let ended = (now_ms - 2 * 86_400_000).to_string();
    for (token, unused) in [
        ((now_ms - 1_000).to_string(), vec![]),
        (ended.clone(), vec![name("job")]),
    ] {
        for (field, value) in [("expiresAt", &ended), ("generation", &token)] {
            let _set: i64 = ask(
                &scratch,
                &[b"HSET", key.as_bytes(), field.as_bytes(), value.as_bytes()],
            )
            .await;
        }
        let purged = store.purge(&unused_for_a_day(Purging::Removes)).await;
        assert_eq!(purged.expect("a clean-up").unused, unused, "{token}");
    }
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

/// After a day without a renewal it would go in the very moment that its lease ends.
#[tokio::test]
async fn record_with_a_long_ttl_is_kept_for_ten_of_them() {
    let scratch = Scratch::new().await;
    let left = || async { ask::<i64>(&scratch, &[b"PTTL", scratch.key("job").as_bytes()]).await };
    let day_ms = 24 * 60 * 60 * 1000;
    let url = format!("{}&purgeAfter=1d", scratch.store_url());
    let store = RedisStore::connect(&url).await.expect("connects");
    let asked = request("job", "a", seconds(24 * 60 * 60));
    let token = take(&store, &asked).await.token;
    assert!(left().await > 9 * day_ms, "{}", left().await);
    let renewed = store.renew(&[renewal(&asked, token)]).await.remove(0);
    renewed.expect("renewed");
    assert!(left().await > 9 * day_ms, "{}", left().await);
    let released = store.release(&[giving_back(&asked, token)]).await.remove(0);
    released.expect("released");
    assert!(left().await > 9 * day_ms, "{}", left().await);
}

/// The next token of a name that is gone begins with the clock: a record whose token is ahead of it must stay
/// until it is not.
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
    let page = Page::first("", 5);
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

/// As where data has the prefix of the leases, for the fence's sake.
#[tokio::test]
async fn key_of_the_prefix_that_is_another_programs_is_named_with_the_way_out() {
    let scratch = Scratch::new().await;
    for of_ours in [":leases", ":leases:store"] {
        let key = format!("{{{}}}{of_ours}", scratch.prefix);
        let _set: String = ask(&scratch, &[b"SET", key.as_bytes(), b"theirs"]).await;
        // Whoever connects anew asks for the store's id first.
        let asked = async {
            let store = RedisStore::connect(&scratch.store_url()).await?;
            store.acquire(&request("job", "holder", seconds(60))).await
        };
        let error = asked.await.expect_err("it cannot be kept");
        assert_eq!(error.fault, Fault::Unreadable, "{error}");
        for word in ["WRONGTYPE", &format!("{of_ours},"), "prefix="] {
            assert!(error.message.contains(word), "{error}");
        }
        let kept: String = ask(&scratch, &[b"GET", key.as_bytes()]).await;
        assert_eq!(kept, "theirs");
        let _removed: u64 = ask(&scratch, &[b"DEL", key.as_bytes()]).await;
    }
}
