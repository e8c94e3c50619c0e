//! Marks that an operator has raised: they admit nobody until a term has claimed them.

use crate::common::{Scratch, request, seconds, shared, take};
use std::collections::BTreeMap;
use std::time::Duration;
use tenure_core::{
    Bump, Certainty, Claimed, Fence, FenceError, FencingToken, LeaseName, Leases, Mark, ResourceName, Term,
};
use tenure_redis::{FencedScript, FencedWrites, RedisFence, Value};
use tenure_testkit::{FaultProxy, RedisBuild, RequestFault};

const BUILDS: [RedisBuild; 2] = [RedisBuild::Redis, RedisBuild::Valkey];

fn ledger() -> ResourceName {
    ResourceName::new("ledger").expect("a name")
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).expect("a token")
}

fn term(lease: &str, number: u64) -> Term {
    Term::new(LeaseName::new(lease).expect("a name"), token(number))
}

fn bump() -> Bump {
    Bump {
        resource: ledger(),
        above: None,
        lease: None,
    }
}

async fn scratch(build: RedisBuild) -> (Scratch, RedisFence) {
    let scratch = Scratch::on(&shared(build).await.url());
    let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    (scratch, fence)
}

/// A mark that term 7 of "nightly" had claimed before it was bumped.
async fn bumped_after_a_claim(build: RedisBuild) -> (Scratch, RedisFence, Mark) {
    let (scratch, fence) = scratch(build).await;
    let claimed = fence.claim(&ledger(), &term("nightly", 7)).await;
    claimed.expect("a claim");
    let mark = fence.bump(&bump()).await.expect("bumped");
    (scratch, fence, mark)
}

/// Both ways to write, each by one.
async fn written(scratch: &Scratch, fence: &RedisFence, term: &Term) -> [Result<(), FenceError>; 2] {
    let key = data(scratch);
    let writes = FencedWrites::new().command(&[&key], ["INCR", &key]);
    let script = FencedScript::new("return redis.call('INCR', KEYS[1])");
    let none: [&str; 0] = [];
    [
        fence.write(&ledger(), term, &writes).await.map(drop),
        fence.run(&ledger(), term, &script, &[key], &none).await.map(drop),
    ]
}

fn data(scratch: &Scratch) -> String {
    format!("{{{}}}:balance", scratch.prefix)
}

fn mark_key(scratch: &Scratch) -> String {
    format!("{{{}}}:fence:ledger", scratch.prefix)
}

/// Sends a command of the test's own.
async fn ask<Answer: redis::FromRedisValue>(scratch: &Scratch, words: &[&str]) -> Answer {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    let answer = command.query_async(&mut scratch.connection().await).await;
    answer.expect("an answer")
}

#[tokio::test]
async fn a_mark_in_redis_that_was_bumped_admits_nobody_of_its_own_number_until_it_is_claimed() {
    for build in BUILDS {
        let (scratch, fence, mark) = bumped_after_a_claim(build).await;
        let same = term("nightly", mark.token.number());
        let [written_by_command, written_by_script] = written(&scratch, &fence, &same).await;
        let checked = fence.check(&ledger(), &same).await;
        for refused in [checked, written_by_command, written_by_script] {
            assert!(
                matches!(refused, Err(FenceError::Unclaimed { .. })),
                "{build:?}: {refused:?}"
            );
        }
        let balance: Option<i64> = ask(&scratch, &["GET", &data(&scratch)]).await;
        assert_eq!(balance, None, "a refused write is there");
        // It may be the very next token that its lease grants.
        let from = Some(mark.token);
        assert_eq!(fence.claim(&ledger(), &same).await, Ok(Claimed::Raised { from }));
        assert_eq!(fence.claim(&ledger(), &same).await, Ok(Claimed::Already));
        assert_eq!(fence.check(&ledger(), &same).await, Ok(()));
        assert_eq!(written(&scratch, &fence, &same).await, [Ok(()), Ok(())]);
    }
}

/// As after a restore of the data: the mark is older than the term, and so old that its number is none of a
/// clock.
#[tokio::test]
async fn a_bump_in_redis_is_above_what_its_lease_was_granted() {
    for build in BUILDS {
        let (scratch, fence) = scratch(build).await;
        let claimed = fence.claim(&ledger(), &term("nightly", 7)).await;
        claimed.expect("a claim");
        let asked = request("nightly", "a", seconds(60));
        let granted = take(&scratch.store().await, &asked).await.token;
        let mark = fence.bump(&bump()).await.expect("bumped");
        assert!(mark.token > granted, "{build:?}: {mark:?} and a term {granted}");
    }
}

#[tokio::test]
async fn a_bumped_mark_in_redis_still_belongs_to_its_lease() {
    for build in BUILDS {
        let (scratch, fence, mark) = bumped_after_a_claim(build).await;
        assert_eq!(mark.lease, Some(term("nightly", 7).lease));
        for number in [mark.token.number(), mark.token.number() + 1] {
            let foreign = term("hourly", number);
            let [written_by_command, written_by_script] = written(&scratch, &fence, &foreign).await;
            for refused in [
                fence.claim(&ledger(), &foreign).await.map(drop),
                fence.check(&ledger(), &foreign).await,
                written_by_command,
                written_by_script,
            ] {
                assert!(
                    matches!(refused, Err(FenceError::Foreign { .. })),
                    "{build:?}: {refused:?}"
                );
            }
        }
        // Bumped again, and bound to the other lease.
        let bump = Bump {
            lease: Some(term("hourly", 1).lease),
            ..bump()
        };
        let moved = fence.bump(&bump).await.expect("bumped");
        assert_eq!(moved.lease, bump.lease);
        let claimed = fence
            .claim(&ledger(), &term("hourly", moved.token.number()))
            .await;
        let from = Some(moved.token);
        assert_eq!(claimed, Ok(Claimed::Raised { from }));
    }
}

#[tokio::test]
async fn a_mark_in_redis_whose_tokens_are_counted_is_bumped_by_counting() {
    for build in BUILDS {
        let (_scratch, fence, mark) = bumped_after_a_claim(build).await;
        assert_eq!(mark.token, token(8));
        let above = Bump {
            above: Some(token(100)),
            ..bump()
        };
        let mark = fence.bump(&above).await.expect("bumped");
        assert_eq!(mark.token, token(101));
        // Tokens that follow the clock: above the clock, and above them.
        let clocked = Bump {
            above: Some(token(1_000_000_000_000)),
            ..bump()
        };
        let mark = fence.bump(&clocked).await.expect("bumped");
        assert!(mark.token > token(1_700_000_000_000), "{mark:?}");
    }
}

/// It has no field of its own for what an operator has raised, and its claim leaves one that it does not
/// know.
#[tokio::test]
async fn a_mark_in_redis_of_an_earlier_tenure_is_read() {
    for build in BUILDS {
        let (scratch, fence) = scratch(build).await;
        let (key, holder) = (mark_key(&scratch), term("nightly", 9));
        let earlier = [
            "HSET",
            &key,
            "lease",
            "nightly",
            "token",
            "9",
            "claimedAt",
            "1",
            "previous",
            "7",
        ];
        let _made: i64 = ask(&scratch, &earlier).await;
        assert_eq!(fence.claim(&ledger(), &holder).await, Ok(Claimed::Already));
        assert_eq!(written(&scratch, &fence, &holder).await, [Ok(()), Ok(())]);
        let mark = fence.bump(&bump()).await.expect("bumped");
        let next = term("nightly", mark.token.number() + 1);
        let _as_claimed: i64 = ask(&scratch, &["HSET", &key, "token", &next.token.to_string()]).await;
        assert_eq!(fence.check(&ledger(), &next).await, Ok(()));
        assert_eq!(written(&scratch, &fence, &next).await, [Ok(()), Ok(())]);
    }
}

#[tokio::test]
async fn a_claim_in_redis_leaves_nothing_of_the_bump_in_the_mark() {
    let (scratch, fence, mark) = bumped_after_a_claim(RedisBuild::Redis).await;
    let key = mark_key(&scratch);
    let kept: BTreeMap<String, String> = ask(&scratch, &["HGETALL", &key]).await;
    let (token, next) = (mark.token.to_string(), mark.token.number() + 1);
    assert_eq!((&kept["bumped"], &kept["token"]), (&token, &token));
    fence
        .claim(&ledger(), &term("nightly", next))
        .await
        .expect("a claim");
    let kept: BTreeMap<String, String> = ask(&scratch, &["HGETALL", &key]).await;
    assert_eq!(kept.get("bumped"), None);
    // What is no number is left as it is.
    let _damaged: Value = ask(&scratch, &["HSET", &key, "bumped", "yes"]).await;
    let refused = fence.claim(&ledger(), &term("nightly", next + 1)).await;
    assert!(
        matches!(&refused, Err(FenceError::Store(error)) if error.message.contains("bumped")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn bump_in_redis_that_is_not_heard_of_after_it_was_made_is_unknown() {
    let (scratch, direct, before) = bumped_after_a_claim(RedisBuild::Redis).await;
    let proxy = FaultProxy::redis(shared(RedisBuild::Redis).await.address()).expect("a proxy");
    let beside = Scratch {
        url: format!("redis://{}", proxy.address()),
        ..scratch
    };
    let proxied = RedisFence::connect(&beside.store_url(), Leases::Here)
        .await
        .expect("a fence");
    proxied.mark(&ledger()).await.expect("it answers");
    // It looks twice, raises, and looks; nothing happens to the first three as long as the test runs.
    proxy.next_commands(
        3,
        "EVALSHA",
        RequestFault::DuplicateLater(Duration::from_secs(3_600)),
    );
    proxy.next_commands(1, "EVALSHA", RequestFault::CutBefore);
    let error = proxied.bump(&bump()).await.expect_err("the look was cut");
    assert_eq!(proxy.counts().cut_before, 1, "the fault happened");
    assert!(
        matches!(&error, FenceError::Store(error) if error.certainty == Certainty::Unknown),
        "{error:?}"
    );
    let after = direct.mark(&ledger()).await.expect("it answers").expect("a mark");
    assert!(after.token > before.token, "{after:?}");
}
