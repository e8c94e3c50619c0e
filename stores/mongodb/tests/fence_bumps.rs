//! Marks that an operator has raised: they admit nobody until a term has claimed them.

use crate::common::{Scratch, request, seconds, take};
use mongodb::bson::{Document, doc};
use mongodb::{ClientSession, Collection};
use std::time::{Duration, UNIX_EPOCH};
use tenure_conformance::marks::what_leases_have_left_behind_says_nothing;
use tenure_core::{
    Bump, Claimed, Fence, FenceError, FencingToken, LeaseName, Leases, Mark, ResourceName, Term,
};
use tenure_mongodb::{EnterError, MongoFence};
use tenure_testkit::{ReplicaSet, eventually_async};

const PATIENCE: Duration = Duration::from_secs(30);

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
    let entered = MongoFence::new(&database, Leases::Elsewhere)
        .enter(&mut session, &ledger(), term)
        .await;
    session.abort_transaction().await.expect("aborted");
    entered
}

/// A mark that term 7 of "$nightly" had claimed before it was bumped.
async fn bumped_after_a_claim() -> (Scratch, MongoFence, Mark) {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let fence = MongoFence::connect(&scratch.url(""), Leases::Here)
        .await
        .expect("a fence");
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
    let next = doc! { "$set": { "token": mark.token.signed() + 1, "lease": "$nightly" } };
    for claimed in [
        doc! { "_id": ledger().as_str() },
        doc! { "_id.stripe": { "$exists": true } },
    ] {
        marks
            .update_many(claimed, next.clone())
            .await
            .expect("as claimed");
    }
    let claimed = term("$nightly", mark.token.number() + 1);
    assert_eq!(fence.check(&ledger(), &claimed).await, Ok(()));
}

#[tokio::test]
async fn what_leases_have_left_behind_in_mongodb_says_nothing() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let store = scratch.store().await;
    let granted = take(&store, &request("nightly", "a", seconds(60))).await.token;
    let here = MongoFence::connect(&scratch.url(""), Leases::Here)
        .await
        .expect("a fence");
    let elsewhere = MongoFence::connect(&scratch.url(""), Leases::Elsewhere)
        .await
        .expect("a fence");
    let left = term("nightly", granted.number());
    what_leases_have_left_behind_says_nothing(&here, &elsewhere, &left).await;
}

/// Whoever claims or bumps raises the stripes one by one, and waits at the last for an open transaction that
/// has entered by it.
struct LastStripe(ClientSession);

impl LastStripe {
    async fn entered(scratch: &Scratch) -> Self {
        let mut session = scratch.client().await.start_session().await.expect("a session");
        session.start_transaction().await.expect("a transaction");
        let database = session.client().database(&scratch.database);
        let marks: Collection<Document> = database.collection("fences");
        let entered = marks
            .update_one(stripe(31), doc! { "$inc": { "entries": 1_i64 } })
            .session(&mut session)
            .await
            .expect("entered");
        assert_eq!(entered.matched_count, 1);
        Self(session)
    }

    /// Until the last one but this is raised to `token`.
    async fn keeps_waiting(&self, scratch: &Scratch, token: FencingToken) {
        let raised = doc! { "_id": stripe(30).get("_id"), "token": token.signed() };
        let marks = marks(scratch).await;
        eventually_async(PATIENCE, "a claim at the last stripe", || async {
            let found = marks.find_one(raised.clone()).await;
            found.expect("a look")
        })
        .await;
    }

    async fn left(mut self) {
        self.0.abort_transaction().await.expect("aborted");
    }
}

async fn marks(scratch: &Scratch) -> Collection<Document> {
    scratch
        .client()
        .await
        .database(&scratch.database)
        .collection("fences")
}

fn stripe(number: i32) -> Document {
    doc! { "_id": { "resource": ledger().as_str(), "stripe": number } }
}

/// The mark was at its number when it was overtaken: it is refused, and counted, as any other.
#[tokio::test]
async fn a_claim_in_mongodb_that_is_overtaken_is_counted() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let fence = MongoFence::connect(&scratch.url(""), Leases::Here)
        .await
        .expect("a fence");
    let [first, second, third] = [3, 5, 9].map(|number| term("nightly", number));
    fence.claim(&ledger(), &first).await.expect("a claim");
    let entered = LastStripe::entered(&scratch).await;
    let resource = ledger();
    let overtaken = fence.claim(&resource, &second);
    let later = async {
        entered.keeps_waiting(&scratch, second.token).await;
        let claim = fence.claim(&resource, &third);
        let leaving = async {
            entered.keeps_waiting(&scratch, third.token).await;
            entered.left().await;
        };
        tokio::join!(claim, leaving).0
    };
    let (overtaken, later) = tokio::join!(overtaken, later);
    later.expect("a claim");
    assert!(
        matches!(&overtaken, Err(FenceError::Stale { mark, .. }) if *mark == third.token),
        "{overtaken:?}"
    );
    fence.note_refusals().await;
    let mark = fence.mark(&ledger()).await.expect("a look").expect("a mark");
    assert_eq!((mark.refused, mark.last_refused), (1, Some(second.token)));
}

/// It has done what was asked of it, and is no term whose work must stop.
#[tokio::test]
async fn a_bump_in_mongodb_after_which_a_later_term_claims_is_a_bump() {
    let (scratch, fence, _) = bumped_after_a_claim().await;
    let entered = LastStripe::entered(&scratch).await;
    let resource = ledger();
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    let bumped = fence.bump(&bump);
    let later = async {
        let token = eventually_async(PATIENCE, "a bumped mark", || async {
            let mark = fence.mark(&resource).await.expect("a look").expect("a mark");
            (mark.token.number() > 8).then_some(mark.token)
        });
        let token = token.await;
        entered.keeps_waiting(&scratch, token).await;
        let later = term("$nightly", token.number() + 1);
        let claim = fence.claim(&resource, &later);
        let leaving = async {
            entered.keeps_waiting(&scratch, later.token).await;
            entered.left().await;
        };
        tokio::join!(claim, leaving).0.expect("a claim");
        later
    };
    let (bumped, later) = tokio::join!(bumped, later);
    assert_eq!(bumped.expect("a bump").token, later.token);
}

/// Stripes that are above the mark would refuse the terms that it admits.
#[tokio::test]
async fn a_bump_in_mongodb_is_above_what_a_mark_that_was_removed_has_left() {
    let (scratch, fence, _) = bumped_after_a_claim().await;
    // By a clock that is an hour ahead.
    let ahead = UNIX_EPOCH.elapsed().expect("a clock") + Duration::from_secs(60 * 60);
    let high = term("$nightly", u64::try_from(ahead.as_millis()).expect("a time"));
    fence.claim(&ledger(), &high).await.expect("a claim");
    let removed = marks(&scratch)
        .await
        .delete_one(doc! { "_id": ledger().as_str() })
        .await
        .expect("removed");
    assert_eq!(removed.deleted_count, 1);
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: Some(high.lease.clone()),
    };
    let bumped = fence.bump(&bump).await.expect("a bump");
    assert!(bumped.token > high.token, "{bumped:?}");
    let next = term("$nightly", bumped.token.number() + 1);
    fence.claim(&ledger(), &next).await.expect("a claim");
}

/// Whether it is refused must not depend on the stripe that its turn comes to.
#[tokio::test]
async fn a_term_whose_claim_failed_at_the_last_stripe_enters_by_none() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let client = scratch.client().await;
    let fence = MongoFence::new(&client.database(&scratch.database), Leases::Elsewhere);
    let [former, later] = [5, 9].map(|number| term("$nightly", number));
    let enter = async || {
        let mut session = client.start_session().await.expect("a session");
        session.start_transaction().await.expect("a transaction");
        let entered = fence.enter(&mut session, &ledger(), &later).await;
        session.abort_transaction().await.expect("aborted");
        entered
    };
    fence.claim(&ledger(), &former).await.expect("a claim");
    let entered = LastStripe::entered(&scratch).await;
    fence
        .claim(&ledger(), &later)
        .await
        .expect_err("it waits in vain");
    // More than there are stripes, which are taken in turn.
    for _ in 0..40 {
        let refused = enter().await;
        assert!(
            matches!(&refused, Err(EnterError::Refused(FenceError::Unclaimed { .. }))),
            "{refused:?}"
        );
    }
    let checked = fence.check(&ledger(), &later).await;
    assert!(
        matches!(checked, Err(FenceError::Unclaimed { .. })),
        "{checked:?}"
    );
    entered.left().await;
    assert_eq!(fence.claim(&ledger(), &later).await, Ok(Claimed::Already));
    for _ in 0..40 {
        enter().await.expect("admitted");
    }
    assert_eq!(fence.check(&ledger(), &later).await, Ok(()));
}

/// It finds its own stripes open, and an open transaction of its own by one of them.
#[tokio::test]
async fn a_claim_that_is_repeated_waits_for_no_transaction_of_its_own_term() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let fence = MongoFence::connect(&scratch.url(""), Leases::Here)
        .await
        .expect("a fence");
    let only = term("$nightly", 5);
    fence.claim(&ledger(), &only).await.expect("a claim");
    let entered = LastStripe::entered(&scratch).await;
    assert_eq!(fence.claim(&ledger(), &only).await, Ok(Claimed::Already));
    entered.left().await;
}
