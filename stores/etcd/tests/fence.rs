//! The fence on a real server: what is stale is refused in the very transaction that would write it.

use crate::common::{Scratch, giving_back, put, remove, request, seconds, shared, take, value};
use std::time::Duration;
use tenure_core::{
    Bump, Claimed, Fault, Fence, FenceError, FencingToken, Horizon, LeaseName, LeaseStore, Leases,
    ResourceName, Term,
};
use tenure_etcd::{EtcdFence, Fenced, FencedTransaction};
use tenure_testkit::{Etcd, eventually_async};

struct Bench {
    scratch: Scratch,
    fence: EtcdFence,
    etcd: &'static Etcd,
}

async fn bench() -> Bench {
    let scratch = Scratch::new().await;
    Bench {
        fence: EtcdFence::connect(&scratch.store_url(), Leases::Here)
            .await
            .expect("a fence"),
        etcd: shared().await,
        scratch,
    }
}

impl Bench {
    /// Where the data of a test is.
    fn data(&self) -> String {
        format!("{}-balance", self.scratch.prefix)
    }

    fn setting(&self, balance: i64) -> FencedTransaction {
        FencedTransaction::new().put(self.data(), balance.to_string())
    }

    fn balance(&self) -> Option<i64> {
        let value = value(self.etcd, 0, &self.data())?;
        Some(value.parse().expect("a number"))
    }

    async fn set(&self, number: u64, balance: i64) -> Result<Fenced, FenceError> {
        self.fence
            .write(&ledger(), &term(number), &self.setting(balance))
            .await
    }

    async fn claim(&self, number: u64) -> Result<Claimed, FenceError> {
        self.fence.claim(&ledger(), &term(number)).await
    }
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

fn is_written(answer: &Result<Fenced, FenceError>) -> bool {
    matches!(answer, Ok(Fenced::Written { .. }))
}

#[tokio::test]
async fn first_claim_raises_from_nothing_and_repeats_are_told() {
    let bench = bench().await;
    assert_eq!(bench.fence.mark(&ledger()).await, Ok(None));
    assert_eq!(bench.claim(5).await, Ok(Claimed::Raised { from: None }));
    assert_eq!(bench.claim(5).await, Ok(Claimed::Already));
    assert_eq!(bench.claim(9).await, Ok(Claimed::Raised { from: Some(token(5)) }));
    let mark = bench
        .fence
        .mark(&ledger())
        .await
        .expect("a look")
        .expect("a mark");
    assert_eq!((mark.token, mark.lease), (token(9), Some(term(1).lease)));
}

#[tokio::test]
async fn only_the_term_that_claimed_writes_to_etcd() {
    let bench = bench().await;
    let unclaimed = bench.set(5, 7).await;
    assert!(
        matches!(unclaimed, Err(FenceError::Unclaimed { .. })),
        "{unclaimed:?}"
    );
    bench.claim(5).await.expect("a claim");
    assert!(is_written(&bench.set(5, 7).await));
    let later = bench.set(6, 1).await;
    assert!(matches!(later, Err(FenceError::Unclaimed { .. })), "{later:?}");
    bench.claim(6).await.expect("a claim");
    for refused in [
        bench.set(5, 1).await.map(|_| ()),
        bench.claim(5).await.map(|_| ()),
        bench.fence.check(&ledger(), &term(5)).await,
    ] {
        let stale = FenceError::Stale {
            resource: ledger(),
            token: token(5),
            mark: token(6),
        };
        assert_eq!(refused, Err(stale));
    }
    assert_eq!(bench.balance(), Some(7), "a refused write is there");
}

#[tokio::test]
async fn conditions_of_the_users_own_are_told_from_the_fence() {
    let bench = bench().await;
    bench.claim(5).await.expect("a claim");
    let key = bench.data();
    let make = |transaction: FencedTransaction| {
        let fence = &bench.fence;
        async move { fence.write(&ledger(), &term(5), &transaction).await }
    };
    let first = FencedTransaction::new()
        .if_absent(&*key)
        .put(&*key, "7")
        .get(&*key);
    let Ok(Fenced::Written { revision, read }) = make(first.clone()).await else {
        panic!("the key was not there")
    };
    assert!(revision > 0);
    assert_eq!(
        read,
        [Some(b"7".to_vec())],
        "a transaction reads what it has written"
    );
    assert_eq!(make(first).await, Ok(Fenced::ConditionFailed));
    let swap = FencedTransaction::new()
        .if_value(&*key, "7")
        .delete(&*key)
        .get("no such key");
    assert!(matches!(make(swap.clone()).await, Ok(Fenced::Written { read, .. }) if read == [None]));
    assert_eq!(make(swap.clone()).await, Ok(Fenced::ConditionFailed));
    bench.claim(6).await.expect("a claim");
    let stale = make(swap).await;
    assert!(matches!(stale, Err(FenceError::Stale { .. })), "{stale:?}");
}

/// What can never be taken is no matter of asking again: the first is refused by the server, the last by its
/// transport.
#[tokio::test]
async fn transaction_that_the_server_takes_none_of_is_told_as_wrong() {
    let bench = bench().await;
    bench.claim(5).await.unwrap();
    let many = (0..200).fold(FencedTransaction::new(), |all, number| {
        all.delete(format!("{}-{number}", bench.data()))
    });
    let twice = bench.setting(1).put(bench.data(), "2");
    let long = |bytes| FencedTransaction::new().put(bench.data(), vec![b'0'; bytes]);
    for wrong in [many, twice, long(1_600_000), long(3_000_000)] {
        let FenceError::Store(error) = bench.fence.write(&ledger(), &term(5), &wrong).await.unwrap_err()
        else {
            panic!("a fence that refuses")
        };
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(!error.message.contains("ask again"), "{error}");
    }
    assert_eq!(bench.balance(), None);
}

/// What a program with another client compares is the mark as it stands there, until a later term claims.
#[tokio::test]
async fn condition_for_other_clients_holds_until_a_later_term_claims() {
    let bench = bench().await;
    bench.claim(5).await.expect("a claim");
    let condition = bench.fence.condition(&ledger(), &term(5));
    let key = String::from_utf8(condition.key).expect("a text");
    let holds = || value(bench.etcd, 0, &key).is_some_and(|value| value.as_bytes() == condition.value);
    assert!(holds());
    bench.claim(6).await.expect("a claim");
    assert!(!holds());
}

/// Two terms that both read, add one and write, in every order: what was accepted is never lost.
#[tokio::test]
async fn no_update_is_lost_between_two_terms_of_etcd_that_claim_before_they_read() {
    let bench = bench().await;
    let mut accepted = 0;
    for round in 1..=25_u64 {
        let (old, new) = (2 * round, 2 * round + 1);
        bench.claim(old).await.expect("a claim");
        let seen = bench.balance().unwrap_or(0);
        if round % 2 == 0 {
            accepted += i64::from(is_written(&bench.set(old, seen + 1).await));
        }
        bench.claim(new).await.expect("a claim");
        let seen_by_new = bench.balance().unwrap_or(0);
        let late = bench.set(old, seen + 1).await;
        assert!(matches!(late, Err(FenceError::Stale { .. })), "{late:?}");
        assert!(
            is_written(&bench.set(new, seen_by_new + 1).await),
            "the mark is its own"
        );
        accepted += 1;
    }
    assert_eq!(bench.balance(), Some(accepted));
}

#[tokio::test]
async fn terms_of_another_lease_and_from_the_future_change_nothing() {
    let bench = bench().await;
    bench.claim(7).await.expect("a claim");
    for number in [6, 7, 8] {
        let other = term_of("hourly", number);
        for refused in [
            bench.fence.claim(&ledger(), &other).await.map(|_| ()),
            bench.fence.check(&ledger(), &other).await,
            bench
                .fence
                .write(&ledger(), &other, &bench.setting(1))
                .await
                .map(|_| ()),
        ] {
            assert!(
                matches!(&refused, Err(FenceError::Foreign { owner, .. }) if owner.as_str() == "nightly"),
                "{refused:?}"
            );
        }
    }
    let far = bench.claim(1 << 47).await;
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
    let granted = take(&bench.scratch.store().await, &asked).await.token;
    let ahead = bench.claim(granted.number() + 1).await;
    assert!(
        matches!(&ahead, Err(FenceError::Future { horizon, .. }) if *horizon == Horizon::Granted(granted)),
        "{ahead:?}"
    );
    // A mark may have stood here that was removed.
    let fresh = ResourceName::new("fresh").expect("a name");
    let over = bench.fence.claim(&fresh, &term(1)).await;
    assert!(
        matches!(&over, Err(FenceError::Stale { mark, .. }) if *mark == granted),
        "{over:?}"
    );
    let elsewhere = EtcdFence::connect(&bench.scratch.store_url(), Leases::Elsewhere)
        .await
        .expect("a fence");
    elsewhere
        .claim(&ledger(), &term(granted.number() + 1))
        .await
        .expect("by the clock it may be");
    assert_eq!(bench.balance(), None);
}

#[tokio::test]
async fn refusals_are_counted_beside_the_mark_in_etcd() {
    let bench = bench().await;
    bench.claim(9).await.expect("a claim");
    for _ in 0..50 {
        bench.set(5, 1).await.expect_err("stale");
    }
    bench.fence.note_refusals().await;
    let mark = eventually_async(Duration::from_secs(20), "the count", || async {
        let mark = bench
            .fence
            .mark(&ledger())
            .await
            .expect("a look")
            .expect("a mark");
        (mark.refused >= 50).then_some(mark)
    })
    .await;
    assert_eq!(
        (mark.refused, mark.last_refused, mark.token),
        (50, Some(token(5)), token(9))
    );
}

/// Tokens of leases here are revisions: a bump by the clock would refuse every later one.
#[tokio::test]
async fn bumped_mark_admits_nobody_until_the_very_next_term_claims() {
    let bench = bench().await;
    let store = bench.scratch.store().await;
    let asked = request("nightly", "a", seconds(60));
    let before = take(&store, &asked).await.token;
    let old = term(before.number());
    bench.fence.claim(&ledger(), &old).await.expect("a claim");
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    let mark = bench.fence.bump(&bump).await.expect("bumped");
    assert!(
        mark.token > before && mark.lease == Some(old.lease.clone()),
        "{mark:?}"
    );
    let refused = bench.set(before.number(), 1).await;
    assert!(matches!(refused, Err(FenceError::Stale { .. })), "{refused:?}");
    let released = store.release(&[giving_back(&asked, before)]).await.remove(0);
    released.expect("released");
    let next = take(&store, &request("nightly", "b", seconds(60))).await.token;
    bench.claim(next.number()).await.expect("it is above the mark");
    assert!(is_written(&bench.set(next.number(), 1).await));
    // A resource that nobody has claimed: no term from before is admitted.
    let fresh = ResourceName::new("fresh").expect("a name");
    let bump = Bump {
        resource: fresh.clone(),
        ..bump
    };
    bench.fence.bump(&bump).await.expect("bumped");
    let refused = bench.fence.claim(&fresh, &term(next.number())).await;
    assert!(matches!(refused, Err(FenceError::Stale { .. })), "{refused:?}");
}

#[tokio::test]
async fn mark_of_etcd_that_cannot_be_understood_is_left_alone() {
    let bench = bench().await;
    let key = format!("{}/fence/ledger", bench.scratch.prefix);
    for damage in [
        r#"{"lease":"nightly","token":-7}"#,
        r#"{"lease":"nightly","token":"seven"}"#,
        r#"{"lease":"","token":5}"#,
        r#"{"token":9, "lease":"nightly"}"#,
        r#"{"colour":"green"}"#,
        "green",
        "",
    ] {
        remove(bench.etcd, 0, &key, &format!("{key}\0"));
        put(bench.etcd, 0, &key, damage);
        let bump = Bump {
            resource: ledger(),
            above: None,
            lease: None,
        };
        for refused in [
            bench.claim(9).await.map(|_| ()),
            bench.fence.check(&ledger(), &term(9)).await,
            bench.set(9, 1).await.map(|_| ()),
            bench.fence.bump(&bump).await.map(|_| ()),
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
        assert_eq!(
            value(bench.etcd, 0, &key).as_deref(),
            Some(damage),
            "it was changed"
        );
    }
    assert_eq!(bench.balance(), None);
}
