//! The fence on a real server: what is stale is refused in the very script that would write it.

use crate::common::{Scratch, giving_back, request, seconds, take};
use std::time::Duration;
use tenure_core::{
    Bump, Certainty, Claimed, Fault, Fence, FenceError, FencingToken, Horizon, LeaseName, LeaseStore, Leases,
    ResourceName, Term,
};
use tenure_redis::{FencedScript, FencedWrites, RedisFence, Value};
use tenure_testkit::eventually_async;

async fn scratch() -> (Scratch, RedisFence) {
    let scratch = Scratch::new().await;
    let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    (scratch, fence)
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).expect("a token")
}

fn term(number: u64) -> Term {
    term_of("nightly", number)
}

fn term_of(lease: &str, number: u64) -> Term {
    Term::new(LeaseName::new(lease).expect("a name"), token(number))
}

fn ledger() -> ResourceName {
    ResourceName::new("ledger").expect("a name")
}

/// Where the data of a test is.
fn data(scratch: &Scratch) -> String {
    format!("{{{}}}:balance", scratch.prefix)
}

fn add(scratch: &Scratch, cents: &str) -> FencedWrites {
    let key = data(scratch);
    FencedWrites::new().command(&[&key], ["INCRBY", &key, cents])
}

async fn balance(scratch: &Scratch) -> Option<i64> {
    let read = redis::cmd("GET").arg(data(scratch)).to_owned();
    read.query_async(&mut scratch.connection().await)
        .await
        .expect("the test can read")
}

#[tokio::test]
async fn first_claim_raises_from_nothing_and_repeats_are_told() {
    let (_scratch, fence) = scratch().await;
    assert_eq!(fence.mark(&ledger()).await, Ok(None));
    let first = fence.claim(&ledger(), &term(5)).await;
    assert_eq!(first, Ok(Claimed::Raised { from: None }));
    assert_eq!(fence.claim(&ledger(), &term(5)).await, Ok(Claimed::Already));
    let second = fence.claim(&ledger(), &term(9)).await;
    assert_eq!(second, Ok(Claimed::Raised { from: Some(token(5)) }));
    let mark = fence.mark(&ledger()).await.expect("a look").expect("a mark");
    assert_eq!((mark.token, mark.lease), (token(9), Some(term(1).lease)));
}

#[tokio::test]
async fn only_the_term_that_claimed_writes_to_redis() {
    let (scratch, fence) = scratch().await;
    let unclaimed = fence.write(&ledger(), &term(5), &add(&scratch, "7")).await;
    assert!(
        matches!(unclaimed, Err(FenceError::Unclaimed { .. })),
        "{unclaimed:?}"
    );
    fence.claim(&ledger(), &term(5)).await.expect("a claim");
    let answers = fence.write(&ledger(), &term(5), &add(&scratch, "7")).await;
    assert_eq!(answers, Ok(vec![Value::Int(7)]));
    let later = fence.write(&ledger(), &term(6), &add(&scratch, "1")).await;
    assert!(matches!(later, Err(FenceError::Unclaimed { .. })), "{later:?}");
    fence.claim(&ledger(), &term(6)).await.expect("a claim");
    for refused in [
        fence
            .write(&ledger(), &term(5), &add(&scratch, "1"))
            .await
            .map(|_| ()),
        fence.claim(&ledger(), &term(5)).await.map(|_| ()),
        fence.check(&ledger(), &term(5)).await,
    ] {
        let stale = FenceError::Stale {
            resource: ledger(),
            token: token(5),
            mark: token(6),
        };
        assert_eq!(refused, Err(stale));
    }
    assert_eq!(balance(&scratch).await, Some(7), "a refused write is there");
}

#[tokio::test]
async fn scripts_of_the_user_run_behind_the_fence_with_keys_and_arguments_of_their_own() {
    let (scratch, fence) = scratch().await;
    let key = data(&scratch);
    let script = FencedScript::new("return redis.call('INCRBY', KEYS[1], ARGV[1] + #KEYS + #ARGV)");
    let run = |number: u64| {
        let (fence, script, key) = (&fence, &script, key.clone());
        async move { fence.run(&ledger(), &term(number), script, &[key], &["10"]).await }
    };
    assert!(matches!(run(5).await, Err(FenceError::Unclaimed { .. })));
    fence.claim(&ledger(), &term(5)).await.expect("a claim");
    assert_eq!(run(5).await, Ok(Value::Int(12)));
    fence.claim(&ledger(), &term(6)).await.expect("a claim");
    assert!(matches!(run(5).await, Err(FenceError::Stale { .. })));
    assert_eq!(balance(&scratch).await, Some(12));
}

/// Nor does it change by that what is told of it: it is refused before it has written, as a script without a
/// fence would be.
#[tokio::test]
async fn name_that_a_script_of_the_user_forgets_to_call_local_is_none_of_the_fences() {
    let (scratch, fence) = scratch().await;
    let key = data(&scratch);
    let none: [&str; 0] = [];
    fence.claim(&ledger(), &term(5)).await.expect("a claim");
    for name in ["now", "token", "state", "fences", "admitted", "keys"] {
        let script = FencedScript::new(&format!("{name} = 7 return redis.call('INCR', KEYS[1])"));
        let told = fence.run(&ledger(), &term(5), &script, &[&key], &none).await;
        assert!(
            matches!(&told, Err(FenceError::Store(error)) if error.message.contains("global") || error.message.contains("readonly")),
            "{name}: {told:?}"
        );
        assert_eq!(balance(&scratch).await, None, "{name}: it has written");
    }
}

/// The words are those by which a server refuses a script before its first write; here they are the script's
/// own.
#[tokio::test]
async fn error_that_a_script_of_the_user_ends_with_is_no_refusal_by_the_server() {
    let (scratch, fence) = scratch().await;
    let key = data(&scratch);
    fence.claim(&ledger(), &term(5)).await.expect("a claim");
    let none: [&str; 0] = [];
    let mut runs = 0;
    for word in ["BUSY", "NOAUTH", "READONLY", "NOSCRIPT", "OOM", "MOVED"] {
        for answer in [
            "return ERROR",
            "return { 'fine', ERROR }",
            "return { { 1, ERROR }, 2 }",
            "error(ERROR)",
        ] {
            let answer = answer.replace("ERROR", &format!("redis.error_reply('{word} of a job')"));
            let script = FencedScript::new(&format!("redis.call('INCR', KEYS[1]) {answer}"));
            let told = fence.run(&ledger(), &term(5), &script, &[&key], &none).await;
            let Err(FenceError::Store(error)) = told else {
                panic!("{answer}: {told:?}")
            };
            assert_eq!(
                (error.fault, error.certainty),
                (Fault::Internal, Certainty::Unknown),
                "{answer}: {error}"
            );
            assert!(error.message.contains(&format!("{word} of a job")), "{error}");
            runs += 1;
            assert_eq!(balance(&scratch).await, Some(runs), "{answer}: it ran again");
        }
    }
}

/// Without a mark anybody could claim; but the record of the lease tells who is over.
#[tokio::test]
async fn mark_that_was_removed_lets_no_older_term_claim() {
    let (scratch, fence) = scratch().await;
    let store = scratch.store().await;
    let mut terms = Vec::new();
    for holder in ["a", "b"] {
        let asked = request("nightly", holder, seconds(60));
        let token = take(&store, &asked).await.token;
        store
            .release(&[giving_back(&asked, token)])
            .await
            .remove(0)
            .expect("released");
        terms.push(term(token.number()));
    }
    fence.claim(&ledger(), &terms[1]).await.expect("a claim");
    let gone: i64 = redis::cmd("DEL")
        .arg(format!("{{{}}}:fence:ledger", scratch.prefix))
        .query_async(&mut scratch.connection().await)
        .await
        .expect("asked");
    assert_eq!(gone, 1);
    let stale = FenceError::Stale {
        resource: ledger(),
        token: terms[0].token,
        mark: terms[1].token,
    };
    assert_eq!(fence.claim(&ledger(), &terms[0]).await, Err(stale));
    let again = fence.claim(&ledger(), &terms[1]).await;
    assert_eq!(again, Ok(Claimed::Raised { from: None }));
}

#[tokio::test]
async fn command_that_fails_ends_the_writes_and_is_named() {
    let (scratch, fence) = scratch().await;
    fence.claim(&ledger(), &term(5)).await.expect("a claim");
    let key = data(&scratch);
    let writes = add(&scratch, "7")
        .command(&[&key], ["LPUSH", &key, "x"])
        .command(&[&key], ["INCRBY", &key, "1"]);
    let Err(FenceError::Store(error)) = fence.write(&ledger(), &term(5), &writes).await else {
        panic!("a list was made of a number")
    };
    assert!(
        error.message.contains("command 2") && !error.message.contains('\n'),
        "{error}"
    );
    assert_eq!(
        balance(&scratch).await,
        Some(7),
        "what ran before stands, what comes after does not run"
    );
    let none: [&str; 0] = [];
    let empty = FencedWrites::new().command(&[&key], none);
    let Err(FenceError::Store(error)) = fence.write(&ledger(), &term(5), &empty).await else {
        panic!("no command")
    };
    assert_eq!(error.fault, Fault::Invalid, "{error}");
}

/// Two terms that both read, add one and write, in every order: what was accepted is never lost.
#[tokio::test]
async fn no_update_is_lost_between_two_terms_that_claim_before_they_read() {
    let (scratch, fence) = scratch().await;
    let mut accepted = 0;
    for round in 1..=25_u64 {
        let (old, new) = (term(2 * round), term(2 * round + 1));
        fence.claim(&ledger(), &old).await.expect("a claim");
        let seen = balance(&scratch).await.unwrap_or(0);
        let write = |cents: i64| {
            let key = data(&scratch);
            FencedWrites::new().command(&[&key], ["SET".to_owned(), key.clone(), cents.to_string()])
        };
        if round % 2 == 0 {
            accepted += i64::from(fence.write(&ledger(), &old, &write(seen + 1)).await.is_ok());
        }
        fence.claim(&ledger(), &new).await.expect("a claim");
        let seen_by_new = balance(&scratch).await.unwrap_or(0);
        let late = fence.write(&ledger(), &old, &write(seen + 1)).await;
        assert!(matches!(late, Err(FenceError::Stale { .. })), "{late:?}");
        fence
            .write(&ledger(), &new, &write(seen_by_new + 1))
            .await
            .expect("the mark is its own");
        accepted += 1;
    }
    assert_eq!(balance(&scratch).await, Some(accepted));
}

#[tokio::test]
async fn terms_of_another_lease_and_from_the_future_change_nothing() {
    let (scratch, fence) = scratch().await;
    fence.claim(&ledger(), &term(7)).await.expect("a claim");
    for number in [6, 7, 8] {
        let other = term_of("hourly", number);
        for refused in [
            fence.claim(&ledger(), &other).await.map(|_| ()),
            fence.check(&ledger(), &other).await,
            fence
                .write(&ledger(), &other, &add(&scratch, "1"))
                .await
                .map(|_| ()),
        ] {
            assert!(
                matches!(&refused, Err(FenceError::Foreign { owner, .. }) if owner.as_str() == "nightly"),
                "{refused:?}"
            );
        }
    }
    let far = fence.claim(&ledger(), &term(1 << 47)).await;
    assert!(
        matches!(
            &far,
            Err(FenceError::Future {
                horizon: Horizon::Clock(_),
                ..
            })
        ),
        "{far:?}"
    );
    // Where the lease is here, it is known exactly what it has granted.
    let asked = request("nightly", "a", seconds(60));
    let granted = take(&scratch.store().await, &asked).await.token;
    let ahead = fence.claim(&ledger(), &term(granted.number() + 1)).await;
    assert!(
        matches!(&ahead, Err(FenceError::Future { horizon, .. }) if *horizon == Horizon::Granted(granted)),
        "{ahead:?}"
    );
    let elsewhere = RedisFence::connect(&scratch.store_url(), Leases::Elsewhere)
        .await
        .expect("a fence");
    elsewhere
        .claim(&ledger(), &term(granted.number() + 1))
        .await
        .expect("by the clock it may be");
    assert_eq!(balance(&scratch).await, None);
}

#[tokio::test]
async fn refusals_are_counted_beside_the_mark_in_redis() {
    let (scratch, fence) = scratch().await;
    fence.claim(&ledger(), &term(9)).await.expect("a claim");
    for _ in 0..50 {
        fence
            .write(&ledger(), &term(5), &add(&scratch, "1"))
            .await
            .expect_err("stale");
    }
    fence.note_refusals().await;
    let mark = eventually_async(Duration::from_secs(20), "the count", || async {
        let mark = fence.mark(&ledger()).await.expect("a look").expect("a mark");
        (mark.refused >= 50).then_some(mark)
    })
    .await;
    assert_eq!(
        (mark.refused, mark.last_refused, mark.token),
        (50, Some(token(5)), token(9))
    );
}

#[tokio::test]
async fn bumped_mark_admits_nobody_until_a_later_term_claims() {
    let (scratch, fence) = scratch().await;
    let store = scratch.store().await;
    let asked = request("nightly", "a", seconds(60));
    let before = take(&store, &asked).await.token;
    let old = term(before.number());
    fence.claim(&ledger(), &old).await.expect("a claim");
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    let mark = fence.bump(&bump).await.expect("bumped");
    assert!(
        mark.token > before && mark.lease == Some(old.lease.clone()),
        "{mark:?}"
    );
    let refused = fence.write(&ledger(), &old, &add(&scratch, "1")).await;
    assert!(matches!(refused, Err(FenceError::Stale { .. })), "{refused:?}");
    store
        .release(&[giving_back(&asked, before)])
        .await
        .remove(0)
        .expect("released");
    // The next token is at least the clock: it is above the mark as soon as that millisecond is over.
    let next = eventually_async(Duration::from_secs(20), "a term above the mark", || async {
        let later = request("nightly", "b", seconds(60));
        let granted = take(&store, &later).await.token;
        store
            .release(&[giving_back(&later, granted)])
            .await
            .remove(0)
            .expect("released");
        fence
            .claim(&ledger(), &term(granted.number()))
            .await
            .map(|_| granted)
    })
    .await;
    fence
        .write(&ledger(), &term(next.number()), &add(&scratch, "1"))
        .await
        .expect("admitted");
}

#[tokio::test]
async fn mark_that_cannot_be_understood_is_left_alone() {
    let (scratch, fence) = scratch().await;
    let key = format!("{{{}}}:fence:ledger", scratch.prefix);
    let mut connection = scratch.connection().await;
    for damage in [
        vec!["HSET", &key, "token", "-7", "lease", "nightly"],
        vec!["HSET", &key, "token", "seven", "lease", "nightly"],
        vec!["HSET", &key, "token", "5", "lease", ""],
        vec!["HSET", &key, "colour", "green"],
        vec!["SET", &key, "green"],
    ] {
        let _gone: Value = redis::cmd("DEL")
            .arg(&key)
            .query_async(&mut connection)
            .await
            .expect("asked");
        let mut command = redis::cmd(damage[0]);
        for word in &damage[1..] {
            command.arg(*word);
        }
        let _damaged: Value = command.query_async(&mut connection).await.expect("damaged");
        let dump = redis::cmd("DUMP").arg(&key).to_owned();
        let before: Vec<u8> = dump.query_async(&mut connection).await.expect("read");
        let bump = Bump {
            resource: ledger(),
            above: None,
            lease: None,
        };
        for refused in [
            fence.claim(&ledger(), &term(9)).await.map(|_| ()),
            fence.check(&ledger(), &term(9)).await,
            fence
                .write(&ledger(), &term(9), &add(&scratch, "1"))
                .await
                .map(|_| ()),
            fence.bump(&bump).await.map(|_| ()),
        ] {
            let Err(FenceError::Store(error)) = &refused else {
                panic!("{damage:?}: {refused:?}")
            };
            assert_eq!(error.fault, Fault::Unreadable, "{damage:?}: {error}");
            assert!(
                error.message.contains("ledger") && !error.message.contains('\n'),
                "{error}"
            );
            assert!(error.message.contains("tenure fence bump"), "{error}");
        }
        let after: Vec<u8> = dump.query_async(&mut connection).await.expect("read");
        assert_eq!(before, after, "{damage:?}: the mark was changed");
    }
    assert_eq!(balance(&scratch).await, None);
}
