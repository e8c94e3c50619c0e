//! The fence in the user's own transactions: what is admitted, what is refused, who waits for whom.
use crate::common::{PATIENCE, Scratch, giving_back, name, request, seconds, take};
use crate::turnstile::waits;
use std::time::{Duration, Instant};
use tenure_conformance::marks::a_token_is_a_day_ahead_of_the_clock_at_most;
use tenure_core::{
    Bump, Claimed, Fault, Fence, FenceError, FencingToken, Horizon, LeaseStore, Leases, ResourceName, Term,
};
use tenure_postgres::PostgresFence;
use tenure_testkit::in_one_of;
use tokio_postgres::{Client, IsolationLevel};

pub(super) fn ledger() -> ResourceName {
    ResourceName::new("it's a \"ledger\"").unwrap()
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

pub(super) fn term(lease: &str, number: u64) -> Term {
    Term::new(name(lease), token(number))
}

pub(super) async fn fenced() -> (Scratch, PostgresFence) {
    let scratch = Scratch::new().await;
    let fence = PostgresFence::connect(&scratch.url(""), Leases::Here)
        .await
        .unwrap();
    scratch
        .sql("CREATE TABLE {schema}.account (id int PRIMARY KEY, cents bigint); INSERT INTO {schema}.account VALUES (1, 0)")
        .await;
    (scratch, fence)
}

pub(super) async fn cents(scratch: &Scratch) -> i64 {
    scratch.value("SELECT cents FROM {schema}.account").await
}

fn add(scratch: &Scratch) -> String {
    format!("UPDATE {}.account SET cents = cents + 1", scratch.schema)
}

/// Enters, writes, commits.
pub(super) async fn write(
    client: &mut Client,
    fence: &PostgresFence,
    scratch: &Scratch,
    term: &Term,
) -> Result<(), FenceError> {
    let transaction = client.transaction().await.unwrap();
    fence.enter(&transaction, &ledger(), term).await?;
    transaction.execute(&add(scratch), &[]).await.unwrap();
    transaction.commit().await.unwrap();
    Ok(())
}

#[tokio::test]
async fn stale_term_is_refused_and_its_write_is_not_there_in_postgres() {
    let (scratch, fence) = fenced().await;
    let mut client = scratch.client().await;
    let refused = write(&mut client, &fence, &scratch, &term("nightly", 5)).await;
    assert!(
        matches!(refused, Err(FenceError::Unclaimed { .. })),
        "{refused:?}"
    );
    let first = fence.claim(&ledger(), &term("nightly", 5)).await;
    assert_eq!(first, Ok(Claimed::Raised { from: None }));
    assert_eq!(
        fence.claim(&ledger(), &term("nightly", 5)).await,
        Ok(Claimed::Already)
    );
    write(&mut client, &fence, &scratch, &term("nightly", 5))
        .await
        .unwrap();
    let next = fence.claim(&ledger(), &term("nightly", 9)).await;
    assert_eq!(next, Ok(Claimed::Raised { from: Some(token(5)) }));
    for stale in [
        write(&mut client, &fence, &scratch, &term("nightly", 5))
            .await
            .unwrap_err(),
        fence.claim(&ledger(), &term("nightly", 5)).await.unwrap_err(),
        fence.check(&ledger(), &term("nightly", 5)).await.unwrap_err(),
    ] {
        assert!(
            matches!(stale, FenceError::Stale { mark, .. } if mark == token(9)),
            "{stale}"
        );
    }
    write(&mut client, &fence, &scratch, &term("nightly", 9))
        .await
        .unwrap();
    assert_eq!(cents(&scratch).await, 2);
}

/// Transactions of one term hold the mark together; a later claim waits for each, and sees what they wrote.
#[tokio::test]
async fn transactions_of_one_term_run_side_by_side_and_a_claim_waits_for_all_in_postgres() {
    in_one_of(
        ROUNDS_MAX,
        "the time of each claim was over before those had left whom it waited for",
        claim_waits_for_all,
    )
    .await;
}

/// Not, on a machine so slow that the claim's time was over before.
async fn claim_waits_for_all() -> bool {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    let (mut one, mut two) = (scratch.client().await, scratch.client().await);
    let first = one.transaction().await.unwrap();
    let second = two.transaction().await.unwrap();
    fence.enter(&first, &ledger(), &term("nightly", 5)).await.unwrap();
    fence
        .enter(&second, &ledger(), &term("nightly", 5))
        .await
        .unwrap();
    first.execute(&add(&scratch), &[]).await.unwrap();
    let claim = tokio::spawn({
        let fence = fence.clone();
        async move { fence.claim(&ledger(), &term("nightly", 9)).await }
    });
    first.commit().await.unwrap();
    let waited = waits(&claim, &second).await;
    second.execute(&add(&scratch), &[]).await.unwrap();
    second.commit().await.unwrap();
    let claimed = claim.await.unwrap();
    if matches!(claimed, Err(FenceError::Store(_))) {
        return false;
    }
    assert!(waited, "a claim did not wait for an open transaction");
    assert_eq!(claimed, Ok(Claimed::Raised { from: Some(token(5)) }));
    assert_eq!(cents(&scratch).await, 2);
    true
}

/// How often a claim's time may be over on a slow machine.
const ROUNDS_MAX: u32 = 3;

/// However long the older transaction has been open: once a later term has claimed, it cannot commit a write.
#[tokio::test]
async fn transaction_that_read_before_a_claim_cannot_enter_after_it_in_postgres() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    for level in [
        IsolationLevel::ReadCommitted,
        IsolationLevel::RepeatableRead,
        IsolationLevel::Serializable,
    ] {
        let mark = fence.mark(&ledger()).await.unwrap().unwrap().token;
        let (old, new) = (
            Term::new(name("nightly"), mark),
            term("nightly", mark.number() + 1),
        );
        let (mut client, mut other) = (scratch.client().await, scratch.client().await);
        let of_old = client.build_transaction().isolation_level(level).start();
        let of_new = other.build_transaction().isolation_level(level).start();
        let (of_old, of_new) = (of_old.await.unwrap(), of_new.await.unwrap());
        for transaction in [&of_old, &of_new] {
            transaction.query("SELECT 1", &[]).await.unwrap();
        }
        fence.claim(&ledger(), &new).await.unwrap();
        let refused = fence.enter(&of_old, &ledger(), &old).await.unwrap_err();
        assert!(
            matches!(refused, FenceError::Stale { .. }),
            "{level:?}: {refused}"
        );
        // Nor may the term that has claimed, where all that it reads is older than its claim; it begins
        // again.
        let early = fence.enter(&of_new, &ledger(), &new).await;
        match level {
            IsolationLevel::ReadCommitted => early.unwrap(),
            _ => assert!(
                matches!(&early, Err(FenceError::Store(error)) if error.fault == Fault::Busy),
                "{level:?}: {early:?}"
            ),
        }
        drop((of_old, of_new));
        let transaction = client
            .build_transaction()
            .isolation_level(level)
            .start()
            .await
            .unwrap();
        fence.enter(&transaction, &ledger(), &new).await.unwrap();
    }
}

/// The first claim of a resource makes its mark: to who began to read before there is none. That it was
/// claimed is told all the same, as claiming it again would be in vain.
#[tokio::test]
async fn transaction_that_read_before_the_first_claim_is_told_to_begin_again_in_postgres() {
    let (scratch, fence) = fenced().await;
    let (old, new) = (term("nightly", 4), term("nightly", 5));
    for level in [IsolationLevel::RepeatableRead, IsolationLevel::Serializable] {
        let resource = ResourceName::new(format!("{level:?}")).unwrap();
        let mut client = scratch.client().await;
        let begun = client.build_transaction().isolation_level(level).start();
        let transaction = begun.await.unwrap();
        transaction.query("SELECT 1", &[]).await.unwrap();
        fence.claim(&resource, &new).await.unwrap();
        let late = fence.enter(&transaction, &resource, &new).await;
        assert!(
            matches!(&late, Err(FenceError::Store(error)) if error.fault == Fault::Busy),
            "{level:?}: {late:?}"
        );
        let stale = fence.enter(&transaction, &resource, &old).await;
        assert!(
            matches!(stale, Err(FenceError::Stale { .. })),
            "{level:?}: {stale:?}"
        );
        drop(transaction);
        let begun = client.build_transaction().isolation_level(level).start();
        fence.enter(&begun.await.unwrap(), &resource, &new).await.unwrap();
    }
}

/// A claim that waits for a transaction is bounded, says why, and may be made again.
#[tokio::test]
async fn claim_that_waits_too_long_says_so_and_is_made_again_in_postgres() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    let mut client = scratch.client().await;
    let open = client.transaction().await.unwrap();
    fence.enter(&open, &ledger(), &term("nightly", 5)).await.unwrap();
    let refused = fence.claim(&ledger(), &term("nightly", 9)).await.unwrap_err();
    let FenceError::Store(error) = refused else {
        panic!("{refused}")
    };
    assert!(matches!(error.fault, Fault::Busy | Fault::TimedOut), "{error}");
    open.rollback().await.unwrap();
    fence.claim(&ledger(), &term("nightly", 9)).await.unwrap();
}

#[tokio::test]
async fn a_token_of_another_lease_and_from_the_future_change_nothing_in_postgres() {
    let (scratch, fence) = fenced().await;
    let store = scratch.store().await;
    let asked = request("nightly", "a", seconds(60));
    let granted = take(&store, &asked).await.token;
    let future = fence
        .claim(&ledger(), &term("nightly", granted.number() + 1))
        .await
        .unwrap_err();
    assert!(
        matches!(future, FenceError::Future { horizon, .. } if horizon == Horizon::Granted(granted)),
        "{future}"
    );
    let elsewhere = fence
        .claim(&ledger(), &term("elsewhere", 1 << 47))
        .await
        .unwrap_err();
    assert!(
        matches!(
            elsewhere,
            FenceError::Future {
                horizon: Horizon::Clock(_),
                ..
            }
        ),
        "{elsewhere}"
    );
    assert_eq!(fence.mark(&ledger()).await, Ok(None));
    fence
        .claim(&ledger(), &Term::new(name("nightly"), granted))
        .await
        .unwrap();
    let mut client = scratch.client().await;
    for number in [1, granted.number(), granted.number() + 1] {
        let other = term("hourly", number);
        for refused in [
            fence.claim(&ledger(), &other).await.unwrap_err(),
            fence.check(&ledger(), &other).await.unwrap_err(),
            write(&mut client, &fence, &scratch, &other).await.unwrap_err(),
        ] {
            assert!(
                matches!(&refused, FenceError::Foreign { owner, .. } if owner.as_str() == "nightly"),
                "{refused}"
            );
        }
    }
    assert_eq!(cents(&scratch).await, 0);
}

/// Where the lease is kept elsewhere, the server's clock decides: a mark too far ahead would keep every term
/// out until then.
#[tokio::test]
async fn a_token_of_a_lease_elsewhere_is_at_most_a_day_ahead_of_the_clock_of_postgres() {
    let (_scratch, fence) = fenced().await;
    a_token_is_a_day_ahead_of_the_clock_at_most(&fence).await;
}

#[tokio::test]
async fn a_bump_is_above_whatever_was_granted_in_postgres_and_the_next_term_claims() {
    let (scratch, fence) = fenced().await;
    let store = scratch.store().await;
    let asked = request("nightly", "a", seconds(60));
    let granted = take(&store, &asked).await.token;
    let current = Term::new(name("nightly"), granted);
    fence.claim(&ledger(), &current).await.unwrap();
    // As after a restore: the mark is older than the term.
    scratch
        .sql(
            "CREATE TEMPORARY TABLE older AS TABLE {schema}.fences; UPDATE older SET token = 5; \
             DELETE FROM {schema}.fences; INSERT INTO {schema}.fences TABLE older",
        )
        .await;
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    let mark = fence.bump(&bump).await.unwrap();
    assert!(mark.token > granted, "{mark:?}");
    let mut client = scratch.client().await;
    let refused = write(&mut client, &fence, &scratch, &current).await.unwrap_err();
    assert!(matches!(refused, FenceError::Stale { .. }), "{refused}");
    store
        .release(&[giving_back(&asked, granted)])
        .await
        .remove(0)
        .unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    let next = take(&store, &request("nightly", "b", seconds(60))).await.token;
    let claimed = fence.claim(&ledger(), &Term::new(name("nightly"), next)).await;
    assert_eq!(
        claimed,
        Ok(Claimed::Raised {
            from: Some(mark.token)
        })
    );
    let bump = Bump {
        resource: ledger(),
        above: Some(token(next.number() + 1_000_000)),
        lease: Some(name("hourly")),
    };
    let mark = fence.bump(&bump).await.unwrap();
    assert_eq!(mark.token, token(next.number() + 1_000_001));
    let refused = fence
        .check(&ledger(), &term("hourly", mark.token.number() + 1))
        .await
        .unwrap_err();
    assert!(matches!(refused, FenceError::Unclaimed { .. }), "{refused}");
    let page = fence.marks(None).await.unwrap();
    let shown = page.marks[0].understood().unwrap();
    assert_eq!(shown.lease, Some(name("hourly")));
}

#[tokio::test]
async fn refusals_are_counted_beside_the_mark_in_postgres() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 9)).await.unwrap();
    let mut client = scratch.client().await;
    for _ in 0..50 {
        write(&mut client, &fence, &scratch, &term("nightly", 5))
            .await
            .unwrap_err();
    }
    // What stays open holds the mark, and counting waits for nobody.
    let open = client.transaction().await.unwrap();
    fence.enter(&open, &ledger(), &term("nightly", 9)).await.unwrap();
    fence.claim(&ledger(), &term("nightly", 3)).await.unwrap_err();
    fence.note_refusals().await;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mark = fence.mark(&ledger()).await.unwrap().unwrap();
        if mark.refused == 51 {
            assert_eq!(mark.last_refused, Some(token(3)));
            break;
        }
        assert!(Instant::now() < deadline, "{mark:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Whatever kept them out: a server that was away, a disk that was full, or as here a table. No more is
/// refused meanwhile.
#[tokio::test]
async fn refusals_that_could_not_be_noted_are_noted_later_in_postgres() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 9)).await.unwrap();
    scratch.sql("ALTER TABLE {schema}.refusals RENAME TO away").await;
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap_err();
    fence.note_refusals().await;
    scratch.sql("ALTER TABLE {schema}.away RENAME TO refusals").await;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mark = fence.mark(&ledger()).await.unwrap().unwrap();
        if (mark.refused, mark.last_refused) == (1, Some(token(5))) {
            break;
        }
        assert!(Instant::now() < deadline, "{mark:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
