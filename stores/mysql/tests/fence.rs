//! The fence in the user's own transactions: what is admitted, what is refused, who waits for whom.
use crate::common::{PATIENCE, Scratch, giving_back, name, request, seconds, take};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, IsolationLevel, TxOpts};
use std::time::{Duration, Instant};
use tenure_conformance::marks::a_token_is_a_day_ahead_of_the_clock_at_most;
use tenure_core::{
    Bump, Claimed, Fault, Fence, FenceError, FencingToken, Horizon, LeaseStore, Leases, ResourceName, Term,
};
use tenure_mysql::MysqlFence;
use tenure_testkit::in_one_of;
use tokio::task::JoinHandle;

pub(super) fn ledger() -> ResourceName {
    ResourceName::new("it's a \"ledger\"").unwrap()
}

pub(super) fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

pub(super) fn term(lease: &str, number: u64) -> Term {
    Term::new(name(lease), token(number))
}

pub(super) async fn fenced() -> (Scratch, MysqlFence) {
    let scratch = Scratch::new().await;
    let fence = MysqlFence::connect(&scratch.url(), Leases::Here).await.unwrap();
    scratch
        .sql("CREATE TABLE account (id INT PRIMARY KEY, cents BIGINT); INSERT INTO account VALUES (1, 0)")
        .await;
    (scratch, fence)
}

pub(super) async fn cents(scratch: &Scratch) -> i64 {
    let mut client = scratch.client().await;
    let cents = client
        .query_first("SELECT CAST(SUM(cents) AS SIGNED) FROM account")
        .await
        .unwrap();
    cents.unwrap()
}

/// Waits until somebody waits in this database for what a transaction has locked.
pub(super) async fn until_somebody_waits(scratch: &Scratch) {
    let mut client = scratch.client().await;
    let clients = "SELECT id FROM information_schema.processlist WHERE db = DATABASE()";
    let began = Instant::now();
    loop {
        let clients: Vec<u64> = client.query(clients).await.unwrap();
        // Not from `innodb_trx`: it shows what was there before for as long as somebody reads it every 100
        // ms.
        let status: Option<(String, String, String)> =
            client.query_first("SHOW ENGINE INNODB STATUS").await.unwrap();
        let status = status.unwrap().2;
        let waits = |transaction: &str| {
            let client = transaction.split("thread id ").nth(1);
            let client = client.and_then(|told| told.split(',').next()?.parse().ok());
            transaction.contains("LOCK WAIT") && client.is_some_and(|client| clients.contains(&client))
        };
        if status.split("---TRANSACTION").any(waits) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "nobody waits");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Whether a claim has come to wait; not, if it has ended before.
pub(super) async fn waits(claim: &JoinHandle<Result<Claimed, FenceError>>, scratch: &Scratch) -> bool {
    let ended = async {
        while !claim.is_finished() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = until_somebody_waits(scratch) => true,
        () = ended => false,
    }
}

/// How often a claim's time may be over on a slow machine.
pub(super) const ROUNDS_MAX: u32 = 5;

pub(super) const ADD: &str = "UPDATE account SET cents = cents + 1";

/// Enters, writes, commits.
pub(super) async fn write(client: &mut Conn, fence: &MysqlFence, term: &Term) -> Result<(), FenceError> {
    let mut transaction = client.start_transaction(TxOpts::default()).await.unwrap();
    fence.enter(&mut transaction, &ledger(), term).await?;
    transaction.query_drop(ADD).await.unwrap();
    transaction.commit().await.unwrap();
    Ok(())
}

#[tokio::test]
async fn stale_term_is_refused_and_its_write_is_not_there_in_mysql() {
    let (scratch, fence) = fenced().await;
    let mut client = scratch.client().await;
    let refused = write(&mut client, &fence, &term("nightly", 5)).await;
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
    write(&mut client, &fence, &term("nightly", 5)).await.unwrap();
    let next = fence.claim(&ledger(), &term("nightly", 9)).await;
    assert_eq!(next, Ok(Claimed::Raised { from: Some(token(5)) }));
    for stale in [
        write(&mut client, &fence, &term("nightly", 5)).await.unwrap_err(),
        fence.claim(&ledger(), &term("nightly", 5)).await.unwrap_err(),
        fence.check(&ledger(), &term("nightly", 5)).await.unwrap_err(),
    ] {
        assert!(
            matches!(stale, FenceError::Stale { mark, .. } if mark == token(9)),
            "{stale}"
        );
    }
    write(&mut client, &fence, &term("nightly", 9)).await.unwrap();
    assert_eq!(cents(&scratch).await, 2);
}

/// Transactions of one term hold the mark together; a later claim waits for each, and sees what they wrote.
#[tokio::test]
async fn transactions_of_one_term_run_side_by_side_and_a_claim_waits_for_all_in_mysql() {
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
    let mut first = one.start_transaction(TxOpts::default()).await.unwrap();
    let mut second = two.start_transaction(TxOpts::default()).await.unwrap();
    fence
        .enter(&mut first, &ledger(), &term("nightly", 5))
        .await
        .unwrap();
    fence
        .enter(&mut second, &ledger(), &term("nightly", 5))
        .await
        .unwrap();
    first.query_drop(ADD).await.unwrap();
    let claim = tokio::spawn({
        let fence = fence.clone();
        async move { fence.claim(&ledger(), &term("nightly", 9)).await }
    });
    let mut waited = waits(&claim, &scratch).await;
    first.commit().await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    waited &= !claim.is_finished();
    // Another row: of one that was changed since it entered, MariaDB 11.6 and later would have it begin
    // again.
    second
        .query_drop("INSERT INTO account VALUES (2, 1)")
        .await
        .unwrap();
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

/// However long the older transaction has been open: once a later term has claimed, it cannot commit a write.
#[tokio::test]
async fn transaction_that_read_before_a_claim_cannot_enter_after_it_in_mysql() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    for level in [IsolationLevel::ReadCommitted, IsolationLevel::RepeatableRead] {
        let mark = fence.mark(&ledger()).await.unwrap().unwrap().token;
        let (old, new) = (
            Term::new(name("nightly"), mark),
            term("nightly", mark.number() + 1),
        );
        let (mut one, mut two) = (scratch.client().await, scratch.client().await);
        let begun = TxOpts::default().with_isolation_level(level).clone();
        let mut of_old = one.start_transaction(begun.clone()).await.unwrap();
        let mut of_new = two.start_transaction(begun.clone()).await.unwrap();
        for transaction in [&mut of_old, &mut of_new] {
            transaction.query_drop("SELECT * FROM account").await.unwrap();
        }
        fence.claim(&ledger(), &new).await.unwrap();
        let refused = fence.enter(&mut of_old, &ledger(), &old).await.unwrap_err();
        assert!(
            matches!(refused, FenceError::Stale { .. }),
            "{level:?}: {refused}"
        );
        // Nor may the term that has claimed, where what it read before is older than its claim; it begins
        // again.
        let early = fence.enter(&mut of_new, &ledger(), &new).await;
        match level {
            IsolationLevel::RepeatableRead => assert!(
                matches!(&early, Err(FenceError::Store(error)) if error.fault == Fault::Busy),
                "{early:?}"
            ),
            _ => early.unwrap(),
        }
        of_old.rollback().await.unwrap();
        of_new.rollback().await.unwrap();
        let mut again = two.start_transaction(begun).await.unwrap();
        fence.enter(&mut again, &ledger(), &new).await.unwrap();
    }
}

/// A transaction may be in whatever database of the server.
#[tokio::test]
async fn transaction_in_another_database_of_the_server_enters() {
    let (scratch, fence) = fenced().await;
    let elsewhere = Scratch::bare(&scratch.address).await;
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    let mut client = elsewhere.client().await;
    let mut transaction = client.start_transaction(TxOpts::default()).await.unwrap();
    let stale = fence
        .enter(&mut transaction, &ledger(), &term("nightly", 4))
        .await;
    assert!(matches!(stale, Err(FenceError::Stale { .. })), "{stale:?}");
    transaction.rollback().await.unwrap();
    let mut transaction = client.start_transaction(TxOpts::default()).await.unwrap();
    fence
        .enter(&mut transaction, &ledger(), &term("nightly", 5))
        .await
        .unwrap();
    let add = format!("UPDATE {}.account SET cents = cents + 1", scratch.database);
    transaction.query_drop(add).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(cents(&scratch).await, 1);
}

/// A claim that waits for a transaction is bounded, says why, and may be made again.
#[tokio::test]
async fn claim_that_waits_too_long_says_so_and_is_made_again_in_mysql() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    let mut client = scratch.client().await;
    let mut open = client.start_transaction(TxOpts::default()).await.unwrap();
    fence
        .enter(&mut open, &ledger(), &term("nightly", 5))
        .await
        .unwrap();
    let refused = fence.claim(&ledger(), &term("nightly", 9)).await.unwrap_err();
    let FenceError::Store(error) = refused else {
        panic!("{refused}")
    };
    assert!(matches!(error.fault, Fault::Busy | Fault::TimedOut), "{error}");
    open.rollback().await.unwrap();
    fence.claim(&ledger(), &term("nightly", 9)).await.unwrap();
}

#[tokio::test]
async fn a_token_of_another_lease_and_from_the_future_change_nothing_in_mysql() {
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
            write(&mut client, &fence, &other).await.unwrap_err(),
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
async fn a_token_of_a_lease_elsewhere_is_at_most_a_day_ahead_of_the_clock_of_mysql() {
    let (_scratch, fence) = fenced().await;
    a_token_is_a_day_ahead_of_the_clock_at_most(&fence).await;
}

#[tokio::test]
async fn a_bump_is_above_whatever_was_granted_in_mysql_and_the_next_term_claims() {
    let (scratch, fence) = fenced().await;
    let store = scratch.store().await;
    let asked = request("nightly", "a", seconds(60));
    let granted = take(&store, &asked).await.token;
    let current = Term::new(name("nightly"), granted);
    fence.claim(&ledger(), &current).await.unwrap();
    // As after a restore: the mark is older than the term.
    scratch.sql("UPDATE tenure_fences SET token = 5").await;
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    let mark = fence.bump(&bump).await.unwrap();
    assert!(mark.token > granted, "{mark:?}");
    let mut client = scratch.client().await;
    let refused = write(&mut client, &fence, &current).await.unwrap_err();
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
async fn refusals_are_counted_beside_the_mark_in_mysql() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 9)).await.unwrap();
    let mut client = scratch.client().await;
    for _ in 0..50 {
        write(&mut client, &fence, &term("nightly", 5)).await.unwrap_err();
    }
    // What stays open holds the mark, and counting waits for nobody.
    let mut open = client.start_transaction(TxOpts::default()).await.unwrap();
    fence
        .enter(&mut open, &ledger(), &term("nightly", 9))
        .await
        .unwrap();
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
