//! What a driver binds for a variable that is not set, as in a job that was not started by `tenure run`.
use crate::fence::{cents, fenced, ledger, term};
use tenure_core::{Bump, Fence};

#[tokio::test]
async fn what_is_null_enters_nothing_in_postgres() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 7)).await.unwrap();
    let entering = format!("SELECT {}.enter($1, $2, $3)", scratch.schema);
    let add = format!("UPDATE {}.account SET cents = cents + 1", scratch.schema);
    let ledger = ledger();
    let (resource, lease, token) = (Some(ledger.as_str()), Some("nightly"), Some(7_i64));
    let mut client = scratch.client().await;
    for (arguments, enters) in [
        ((resource, lease, token), true),
        ((resource, lease, None), false),
        ((resource, None, token), false),
        ((None, lease, token), false),
        ((resource, None, None), false),
        // No mark is as nobody's as who asks.
        ((Some("unclaimed"), None, None), false),
        ((None, None, None), false),
    ] {
        let before = cents(&scratch).await;
        let transaction = client.transaction().await.unwrap();
        let (resource, lease, token) = arguments;
        match transaction.execute(&entering, &[&resource, &lease, &token]).await {
            Ok(_) => {
                transaction.execute(&add, &[]).await.unwrap();
                transaction.commit().await.unwrap();
            }
            Err(error) => assert_eq!(error.code().map(|code| code.code()), Some("TN003"), "{error}"),
        }
        assert_eq!(cents(&scratch).await != before, enters, "{arguments:?}");
    }
    // Nor is who names no lease what an operator has raised the mark to.
    let bump = Bump {
        resource: ledger.clone(),
        above: None,
        lease: None,
    };
    let mark = fence.bump(&bump).await.unwrap();
    let nobody: Option<&str> = None;
    let entered = client
        .execute(&entering, &[&ledger.as_str(), &nobody, &mark.token.signed()])
        .await;
    entered.expect_err("no term has claimed it");
}
