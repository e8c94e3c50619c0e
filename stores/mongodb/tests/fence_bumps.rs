//! Marks that an operator has raised: they admit nobody until a term has claimed them.

use crate::common::{Scratch, request, seconds, take};
use mongodb::bson::doc;
use tenure_conformance::marks::what_leases_have_left_behind_says_nothing;
use tenure_core::{Bump, Claimed, Fence, FenceError, FencingToken, LeaseName, Mark, ResourceName, Term};
use tenure_mongodb::{EnterError, MongoFence};
use tenure_testkit::ReplicaSet;

fn ledger() -> ResourceName {
    ResourceName::new("$ledger").expect("a name")
}

fn term(lease: &str, number: u64) -> Term {
    let token = FencingToken::new(number).expect("a token");
    Term::new(LeaseName::new(lease).expect("a name"), token)
}

async fn enter(scratch: &Scratch, term: &Term) -> Result<(), EnterError> {
    let mut session = scratch.client().await.start_session().await.expect("a session");
    session.start_transaction().await.expect("a transaction");
    let database = session.client().database(&scratch.database);
    let entered = MongoFence::new(&database)
        .enter(&mut session, &ledger(), term)
        .await;
    session.abort_transaction().await.expect("aborted");
    entered
}

/// A mark that term 7 of "$nightly" had claimed before it was bumped.
async fn bumped_after_a_claim() -> (Scratch, MongoFence, Mark) {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let fence = MongoFence::connect(&scratch.url("")).await.expect("a fence");
    fence
        .claim(&ledger(), &term("$nightly", 7))
        .await
        .expect("a claim");
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    let mark = fence.bump(&bump).await.expect("bumped");
    (scratch, fence, mark)
}

#[tokio::test]
async fn a_mark_that_was_bumped_after_a_claim_admits_nobody_until_a_later_term_claims() {
    let (scratch, fence, mark) = bumped_after_a_claim().await;
    let very_next = term("$nightly", mark.token.number());
    let checked = fence.check(&ledger(), &very_next).await;
    assert!(
        matches!(checked, Err(FenceError::Unclaimed { .. })),
        "{checked:?}"
    );
    let entered = enter(&scratch, &very_next).await;
    assert!(
        matches!(entered, Err(EnterError::Refused(FenceError::Unclaimed { .. }))),
        "{entered:?}"
    );
    // It may be the very next token that its lease grants.
    let from = Some(mark.token);
    assert_eq!(
        fence.claim(&ledger(), &very_next).await,
        Ok(Claimed::Raised { from })
    );
    assert_eq!(fence.claim(&ledger(), &very_next).await, Ok(Claimed::Already));
    assert_eq!(fence.check(&ledger(), &very_next).await, Ok(()));
    enter(&scratch, &very_next).await.expect("admitted");
}

#[tokio::test]
async fn a_bumped_mark_still_belongs_to_its_lease() {
    let (_scratch, fence, mark) = bumped_after_a_claim().await;
    assert_eq!(mark.lease, Some(term("$nightly", 7).lease));
    for number in [mark.token.number(), mark.token.number() + 1] {
        let foreign = term("hourly", number);
        let refusals = [
            fence.claim(&ledger(), &foreign).await.map(|_| ()),
            fence.check(&ledger(), &foreign).await,
        ];
        for refused in refusals {
            assert!(matches!(refused, Err(FenceError::Foreign { .. })), "{refused:?}");
        }
    }
}

/// Its claim raises the token, and leaves what it does not know as it was.
#[tokio::test]
async fn a_bumped_mark_that_an_earlier_tenure_has_claimed_is_claimed() {
    let (scratch, fence, mark) = bumped_after_a_claim().await;
    let marks = scratch
        .client()
        .await
        .database(&scratch.database)
        .collection::<mongodb::bson::Document>("fences");
    let next = mark.token.signed() + 1;
    marks
        .update_one(
            doc! { "_id": ledger().as_str() },
            doc! { "$set": { "token": next } },
        )
        .await
        .expect("as claimed");
    let claimed = term("$nightly", mark.token.number() + 1);
    assert_eq!(fence.check(&ledger(), &claimed).await, Ok(()));
}

#[tokio::test]
async fn what_leases_have_left_behind_in_mongodb_says_nothing() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let store = scratch.store().await;
    let granted = take(&store, &request("nightly", "a", seconds(30))).await.token;
    let here = MongoFence::connect(&scratch.url("")).await.expect("a fence");
    let elsewhere = here.clone().with_leases_elsewhere();
    let left = term("nightly", granted.number());
    what_leases_have_left_behind_says_nothing(&here, &elsewhere, &left).await;
}
