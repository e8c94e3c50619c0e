//! The fence in a transaction that is prepared before it commits.
use crate::common::{PATIENCE, Scratch, family};
use crate::fence::{cents, fenced, ledger, term};
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tenure_conformance::wire::bounded;
use tenure_core::{Claimed, Fault, Fence, FenceError, FencingToken, Leases};
use tenure_mysql::MysqlFence;
use tenure_testkit::{Mariadb, SqlFamily, eventually_async};

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

/// MariaDB gives shared locks back when a transaction is prepared, but for `SERIALIZABLE`. What the second
/// half shows of it is the limit that README and `MysqlFence::enter` name; MySQL keeps them.
#[tokio::test]
async fn prepared_xa_transaction_keeps_a_claim_waiting_at_serializable_and_below_in_mysql_alone() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    let commit = format!("XA COMMIT '{}'", scratch.database);

    for (isolation, token, next) in [("SERIALIZABLE", 5, 9), ("REPEATABLE READ", 9, 12)] {
        let mut client = prepared(&scratch, isolation, token).await;
        let claimed = bounded("a claim", fence.claim(&ledger(), &term("nightly", next))).await;
        let raised = Ok(Claimed::Raised {
            from: FencingToken::new(token).ok(),
        });
        if isolation == "SERIALIZABLE" || family() == SqlFamily::Mysql {
            let Err(FenceError::Store(error)) = claimed else {
                panic!("{isolation}: {claimed:?}")
            };
            // On a machine that stands still the store may give it up before the server does: then it may be
            // made all the same.
            let given_up = error.fault == Fault::TimedOut;
            assert!(given_up || error.fault == Fault::Busy, "{isolation}: {error}");
            client.query_drop(&commit).await.unwrap();
            let claimed = fence.claim(&ledger(), &term("nightly", next)).await;
            assert!(
                claimed == raised || given_up && claimed == Ok(Claimed::Already),
                "{isolation}: {claimed:?}"
            );
        } else {
            assert_eq!(claimed, raised, "{isolation}");
            client.query_drop(&commit).await.unwrap();
        }
    }
}

/// What a server brings back when it starts again is prepared, and has the rows locked that it has changed,
/// and the mark no more: the limit that README and `MysqlFence::enter` name, on both, at any isolation.
#[tokio::test]
async fn prepared_xa_transaction_keeps_no_claim_waiting_after_a_restart() {
    let mut server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    scratch
        .sql("CREATE TABLE account (id INT PRIMARY KEY, cents BIGINT); INSERT INTO account VALUES (1, 0)")
        .await;
    let fence = MysqlFence::connect(&scratch.url(), Leases::Here).await.unwrap();
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    drop(prepared(&scratch, "SERIALIZABLE", 5).await);
    server.restart().await.unwrap();
    let raised = Claimed::Raised {
        from: FencingToken::new(5).ok(),
    };
    let (ledger, later) = (ledger(), term("nightly", 9));
    let claimed = eventually_async(PATIENCE, "a claim", || fence.claim(&ledger, &later)).await;
    assert_eq!(claimed, raised);
    scratch.sql(&format!("XA COMMIT '{}'", scratch.database)).await;
    assert_eq!(cents(&scratch).await, 1);
}
