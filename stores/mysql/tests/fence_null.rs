//! What a driver binds for a variable that is not set, as in a job that was not started by `tenure run`.
use crate::fence::{ADD, cents, fenced, ledger, term};
use mysql_async::TxOpts;
use mysql_async::prelude::Queryable as _;
use tenure_core::{Bump, Fence};

#[tokio::test]
async fn what_is_null_enters_nothing_in_mysql() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 7)).await.unwrap();
    let (resource, lease, token) = (Some(ledger().as_str().to_owned()), Some("nightly"), Some(7_i64));
    let mut client = scratch.client().await;
    for (arguments, enters) in [
        ((resource.clone(), lease, token), true),
        ((resource.clone(), lease, None), false),
        ((resource.clone(), None, token), false),
        ((None, lease, token), false),
        ((resource, None, None), false),
        // No mark is as nobody's as who asks.
        ((Some("unclaimed".to_owned()), None, None), false),
        ((None, None, None), false),
    ] {
        let mut transaction = client.start_transaction(TxOpts::default()).await.unwrap();
        let entered = transaction
            .exec_drop("CALL tenure_enter_1(?, ?, ?)", arguments.clone())
            .await;
        match entered {
            Ok(()) => transaction.query_drop(ADD).await.unwrap(),
            Err(error) => assert!(error.to_string().contains("TN003"), "{error}"),
        }
        let is_in = cents(&scratch).await;
        transaction.commit().await.unwrap();
        let wrote = cents(&scratch).await != is_in;
        assert_eq!(wrote, enters, "{arguments:?}");
    }
    // Nor is who names no lease what an operator has raised the mark to.
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    let mark = fence.bump(&bump).await.unwrap();
    let entering = "CALL tenure_enter_1(?, NULL, ?)";
    let entered = client
        .exec_drop(entering, (ledger().as_str(), mark.token.signed()))
        .await;
    entered.expect_err("no term has claimed it");
}
