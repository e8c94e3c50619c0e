//! What the fence refuses besides stale tokens, and how refusals are counted.

use crate::common::{Scratch, giving_back, request, seconds, take, with_database};
use crate::faults::proxied_with;
use mongodb::bson::doc;
use tenure_conformance::wire::bounded;
use tenure_core::{
    Bump, Claimed, Cursor, Fence, FenceError, FencingToken, Horizon, LeaseName, LeaseStore, Leases, MarkPage,
    ResourceName, Term,
};
use tenure_mongodb::{EnterError, MongoFence, MongoStore};
use tenure_testkit::{Fault, ReplicaSet};

fn ledger() -> ResourceName {
    ResourceName::new("$ledger").expect("a name")
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).expect("a token")
}

fn term(lease: &str, number: u64) -> Term {
    Term::new(LeaseName::new(lease).expect("a name"), token(number))
}

async fn scratch() -> (Scratch, MongoFence) {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let fence = MongoFence::connect(&scratch.url(""), Leases::Here)
        .await
        .expect("a fence");
    (scratch, fence)
}

#[tokio::test]
async fn a_token_of_another_lease_is_refused_whatever_its_number() {
    let (scratch, fence) = scratch().await;
    fence
        .claim(&ledger(), &term("$nightly", 7))
        .await
        .expect("a claim");
    for number in [6, 7, 8] {
        let other = term("hourly", number);
        let claimed = fence.claim(&ledger(), &other).await;
        let checked = fence.check(&ledger(), &other).await.map(|()| Claimed::Already);
        let mut session = scratch.client().await.start_session().await.expect("a session");
        session.start_transaction().await.expect("a transaction");
        // Of the client of the session.
        let database = session.client().database(&scratch.database);
        let entered = MongoFence::new(&database, Leases::Elsewhere)
            .enter(&mut session, &ledger(), &other)
            .await;
        session.abort_transaction().await.expect("aborted");
        let Err(EnterError::Refused(entered)) = entered else {
            panic!("{entered:?}")
        };
        for refused in [claimed, checked, Err(entered)] {
            assert!(
                matches!(&refused, Err(FenceError::Foreign { owner, .. }) if owner.as_str() == "$nightly"),
                "{refused:?}"
            );
        }
    }
    fence
        .check(&ledger(), &term("$nightly", 7))
        .await
        .expect("its own lease");
}

/// A token that was never granted would close the resource to all terms until it is.
#[tokio::test]
async fn a_token_from_the_future_is_refused() {
    let (scratch, fence) = scratch().await;
    let granted = granted_is_the_horizon(&scratch.store().await, &fence).await;
    // Elsewhere the server's clock keeps out what would close the resource for ever.
    let elsewhere = MongoFence::new(
        &scratch.client().await.database(&scratch.database),
        Leases::Elsewhere,
    );
    let refused = elsewhere.claim(&ledger(), &term("nightly", 1 << 47)).await;
    assert!(
        matches!(
            &refused,
            Err(FenceError::Future {
                horizon: Horizon::Clock(_),
                ..
            })
        ),
        "{refused:?}"
    );
    assert_eq!(fence.mark(&ledger()).await, Ok(None));
    fence
        .claim(&ledger(), &term("nightly", granted.number()))
        .await
        .expect("a claim");
}

#[tokio::test]
async fn the_leases_that_a_fence_goes_by_are_those_of_its_url() {
    let (scratch, _) = scratch().await;
    let url = scratch.url("collection=posts");
    let store = MongoStore::connect(&url).await.expect("a store");
    let fence = MongoFence::connect(&url, Leases::Here).await.expect("a fence");
    granted_is_the_horizon(&store, &fence).await;
}

/// Takes "nightly", and sees that its token is the highest that may claim.
async fn granted_is_the_horizon(store: &MongoStore, fence: &MongoFence) -> FencingToken {
    let granted = take(store, &request("nightly", "a", seconds(60))).await.token;
    let refused = fence
        .claim(&ledger(), &term("nightly", granted.number() + 1))
        .await;
    assert!(
        matches!(&refused, Err(FenceError::Future { horizon, .. }) if *horizon == Horizon::Granted(granted)),
        "{refused:?}"
    );
    granted
}

#[tokio::test]
async fn a_bump_is_above_whatever_was_granted_and_the_next_term_claims() {
    let (scratch, fence) = scratch().await;
    let store = scratch.store().await;
    let mut asked = request("nightly", "a", seconds(60));
    let granted = take(&store, &asked).await.token;
    let current = term("nightly", granted.number());
    fence.claim(&ledger(), &current).await.expect("a claim");
    // As after a restore: the mark is older than the term.
    let marks = scratch
        .client()
        .await
        .database(&scratch.database)
        .collection::<mongodb::bson::Document>("fences");
    marks
        .update_many(
            doc! { "token": { "$exists": true } },
            doc! { "$set": { "token": 5_i64 } },
        )
        .await
        .expect("an old backup");
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    let mark = fence.bump(&bump).await.expect("bumped");
    assert!(mark.token > granted, "{mark:?}");
    let refused = fence.check(&ledger(), &current).await;
    assert!(matches!(refused, Err(FenceError::Stale { .. })), "{refused:?}");
    let released = store.release(&[giving_back(&asked, granted)]).await.remove(0);
    released.expect("released");
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    asked.attempt = asked.attempt.next();
    let next = take(&store, &asked).await.token;
    let claimed = fence.claim(&ledger(), &term("nightly", next.number())).await;
    assert_eq!(
        claimed,
        Ok(Claimed::Raised {
            from: Some(mark.token)
        })
    );
    let bump = Bump {
        resource: ledger(),
        above: Some(token(next.number() + 1_000_000)),
        lease: Some(LeaseName::new("hourly").expect("a name")),
    };
    let mark = fence.bump(&bump).await.expect("bumped");
    assert_eq!(mark.token, token(next.number() + 1_000_001));
    assert_eq!(mark.lease, bump.lease);
    assert_eq!(fence.marks(None).await, Ok(MarkPage::last([mark])));
}

#[tokio::test]
async fn refusals_are_counted_beside_the_mark() {
    let (_scratch, fence) = scratch().await;
    fence
        .claim(&ledger(), &term("nightly", 9))
        .await
        .expect("a claim");
    for _ in 0..50 {
        fence
            .claim(&ledger(), &term("nightly", 5))
            .await
            .expect_err("stale");
    }
    fence
        .check(&ledger(), &term("nightly", 3))
        .await
        .expect_err("stale");
    fence.note_refusals().await;
    let mut mark = fence.mark(&ledger()).await.expect("a look").expect("a mark");
    // The first was noted by the fence's own task, which may be about to be done.
    while mark.refused < 51 {
        tokio::task::yield_now().await;
        mark = fence.mark(&ledger()).await.expect("a look").expect("a mark");
    }
    assert_eq!((mark.refused, mark.last_refused), (51, Some(token(3))));
    assert_eq!(fence.marks(None).await, Ok(MarkPage::last([mark])));
    assert_eq!(
        fence.marks(Some(&Cursor::from(&ledger()))).await,
        Ok(MarkPage::last([]))
    );
}

/// As of whoever waits for them to be noted before the process ends. With these options, the driver alone
/// notices nothing for ten minutes.
#[tokio::test]
async fn refusals_that_a_silent_server_does_not_take_hold_nobody_up() {
    let patient = "connectTimeoutMS=600000&heartbeatFrequencyMS=600000";
    let (proxy, scratch, _store) = proxied_with(patient).await;
    let url = with_database(&proxy.mongodb_uri(), &scratch.database, patient);
    let fence = MongoFence::connect(&url, Leases::Here).await.expect("a fence");
    let nightly = |number| term("nightly", number);
    fence.claim(&ledger(), &nightly(9)).await.expect("a claim");
    fence.claim(&ledger(), &nightly(5)).await.expect_err("stale");
    // Nothing of it was noted yet: the task for that waits for this thread.
    proxy.set(Fault::BlackHole);
    bounded("the count", fence.note_refusals()).await;
}
