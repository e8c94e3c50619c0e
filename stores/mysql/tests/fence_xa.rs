//! The fence in a transaction that is prepared before it commits.
use crate::common::Scratch;
use crate::fence::{fenced, ledger, term};
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tenure_conformance::wire::bounded;
use tenure_core::{Claimed, Fault, Fence, FenceError, FencingToken};

/// Enters with the term's token, writes, and prepares; at this isolation.
async fn prepared(scratch: &Scratch, isolation: &str, token: u64) -> Conn {
    let mut client = scratch.client().await;
    let branch = &scratch.database;
    for statement in [
        format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}"),
        format!("XA START '{branch}'"),
        format!("CALL tenure_enter_1('it''s a \"ledger\"', 'nightly', {token})"),
        "UPDATE account SET cents = cents + 1".to_owned(),
        format!("XA END '{branch}'"),
        format!("XA PREPARE '{branch}'"),
    ] {
        client.query_drop(statement).await.unwrap();
    }
    client
}

/// MariaDB gives shared locks back when a transaction is prepared, but for `SERIALIZABLE`. What the second half shows is the
/// limit that README and `MysqlFence::enter` name: where a server keeps them, they can be mended.
#[tokio::test]
async fn prepared_xa_transaction_keeps_a_claim_waiting_at_serializable_and_not_below_in_mysql() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    let commit = format!("XA COMMIT '{}'", scratch.database);

    let mut client = prepared(&scratch, "SERIALIZABLE", 5).await;
    let kept = bounded("a claim", fence.claim(&ledger(), &term("nightly", 9))).await;
    assert!(
        matches!(&kept, Err(FenceError::Store(error)) if error.fault == Fault::Busy),
        "{kept:?}"
    );
    client.query_drop(&commit).await.unwrap();
    let from = FencingToken::new(5).ok();
    let claimed = fence.claim(&ledger(), &term("nightly", 9)).await;
    assert_eq!(claimed, Ok(Claimed::Raised { from }));

    let mut client = prepared(&scratch, "REPEATABLE READ", 9).await;
    let from = FencingToken::new(9).ok();
    let passed = bounded("a claim", fence.claim(&ledger(), &term("nightly", 12))).await;
    assert_eq!(passed, Ok(Claimed::Raised { from }));
    client.query_drop(&commit).await.unwrap();
}
