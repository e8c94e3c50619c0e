//! The fence on a real replica set: a claim and an open transaction of an older term always conflict.

use crate::common::{Scratch, until_a_write_waits};
use mongodb::bson::{DateTime, Document, doc};
use mongodb::error::TRANSIENT_TRANSACTION_ERROR;
use mongodb::{Client, ClientSession, Collection};
use std::time::Duration;
use tenure_core::{Claimed, Fault, Fence, FenceError, FencingToken, LeaseName, Leases, ResourceName, Term};
use tenure_mongodb::{EnterError, MongoFence};
use tenure_testkit::{ReplicaSet, in_one_of};

struct Bank {
    client: Client,
    fence: MongoFence,
    marks: Collection<Document>,
    ledger: Collection<Document>,
    _scratch: Scratch,
}

/// A resource, a ledger with 100 on account 1, and the fence before it.
async fn bank() -> Bank {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let client = scratch.client().await;
    let database = client.database(&scratch.database);
    let ledger = database.collection("ledger");
    ledger
        .insert_one(doc! { "_id": 1, "cents": 100_i64 })
        .await
        .expect("an account");
    Bank {
        fence: MongoFence::new(&database, Leases::Elsewhere),
        marks: database.collection("fences"),
        ledger,
        client,
        _scratch: scratch,
    }
}

impl Bank {
    /// A session whose transaction the fence has admitted, under token 5.
    async fn entered(&self) -> ClientSession {
        self.fence.claim(&resource(), &term(5)).await.expect("a claim");
        let mut session = self.session().await;
        self.fence
            .enter(&mut session, &resource(), &term(5))
            .await
            .expect("admitted");
        session
    }

    async fn session(&self) -> ClientSession {
        let mut session = self.client.start_session().await.expect("a session");
        session.start_transaction().await.expect("a transaction");
        session
    }

    async fn mark(&self) -> Option<FencingToken> {
        let mark = self.fence.mark(&resource()).await.expect("a look");
        mark.map(|mark| mark.token)
    }

    async fn cents(&self) -> i64 {
        let account = self.ledger.find_one(doc! { "_id": 1 }).await.expect("a read");
        account.expect("the account").get_i64("cents").expect("cents")
    }

    async fn book(&self, session: &mut ClientSession) -> mongodb::error::Result<()> {
        let update = doc! { "$inc": { "cents": 1_i64 } };
        self.ledger
            .update_one(doc! { "_id": 1 }, update)
            .session(session)
            .await
            .map(|_| ())
    }
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).expect("a token")
}

fn term(number: u64) -> Term {
    Term::new(LeaseName::new("nightly").expect("a name"), token(number))
}

fn resource() -> ResourceName {
    ResourceName::new("ledger").expect("a name")
}

#[tokio::test]
async fn first_claim_raises_from_nothing_and_repeats_are_told() {
    let bank = bank().await;
    assert_eq!(bank.mark().await, None);
    let first = bank.fence.claim(&resource(), &term(5)).await;
    assert_eq!(first, Ok(Claimed::Raised { from: None }));
    assert_eq!(
        bank.fence.claim(&resource(), &term(5)).await,
        Ok(Claimed::Already)
    );
    let second = bank.fence.claim(&resource(), &term(9)).await;
    assert_eq!(second, Ok(Claimed::Raised { from: Some(token(5)) }));
    assert_eq!(bank.mark().await, Some(token(9)));
    let stale = bank.fence.claim(&resource(), &term(5)).await;
    assert_eq!(
        stale,
        Err(FenceError::Stale {
            resource: resource(),
            token: token(5),
            mark: token(9)
        })
    );
    assert_eq!(bank.mark().await, Some(token(9)), "a stale claim lowers nothing");
}

#[tokio::test]
async fn racing_claims_leave_the_highest_mark() {
    let bank = bank().await;
    let claims = (1..=16_u64).map(|number| {
        let fence = bank.fence.clone();
        tokio::spawn(async move { fence.claim(&resource(), &term(number)).await })
    });
    let claims: Vec<_> = claims.collect();
    for claim in claims {
        let answer = claim.await.expect("no panic");
        assert!(
            matches!(answer, Ok(_) | Err(FenceError::Stale { .. })),
            "{answer:?}"
        );
    }
    assert_eq!(bank.mark().await, Some(token(16)));
}

#[tokio::test]
async fn same_term_enters_again_and_again() {
    let bank = bank().await;
    bank.fence.claim(&resource(), &term(5)).await.expect("a claim");
    for _ in 0..3 {
        let mut session = bank.session().await;
        bank.fence
            .enter(&mut session, &resource(), &term(5))
            .await
            .expect("admitted");
        bank.book(&mut session).await.expect("booked");
        session.commit_transaction().await.expect("committed");
    }
    assert_eq!(bank.cents().await, 103);
    let mut stripes = bank
        .marks
        .find(doc! { "_id.stripe": { "$exists": true } })
        .await
        .expect("the stripes");
    let mut entries = 0;
    while stripes.advance().await.expect("a stripe") {
        entries += stripes.current().get_i64("entries").expect("entries");
    }
    assert_eq!(entries, 3);
}

#[tokio::test]
async fn stale_term_is_refused_and_its_write_is_not_there() {
    let bank = bank().await;
    bank.fence.claim(&resource(), &term(5)).await.expect("a claim");
    bank.fence.claim(&resource(), &term(9)).await.expect("a claim");
    let mut session = bank.session().await;
    bank.book(&mut session).await.expect("booked, but not committed");
    let refused = bank.fence.enter(&mut session, &resource(), &term(5)).await;
    let expected = FenceError::Stale {
        resource: resource(),
        token: token(5),
        mark: token(9),
    };
    assert!(
        matches!(&refused, Err(EnterError::Refused(error)) if *error == expected),
        "{refused:?}"
    );
    session.abort_transaction().await.expect("aborted");
    assert_eq!(bank.cents().await, 100);
}

#[tokio::test]
async fn term_that_has_not_claimed_is_refused() {
    let bank = bank().await;
    for claimed in [None, Some(term(5))] {
        if let Some(earlier) = claimed {
            bank.fence.claim(&resource(), &earlier).await.expect("a claim");
        }
        let mut session = bank.session().await;
        let refused = bank.fence.enter(&mut session, &resource(), &term(9)).await;
        assert!(
            matches!(&refused, Err(EnterError::Refused(FenceError::Unclaimed { .. }))),
            "{refused:?}"
        );
        session.abort_transaction().await.expect("aborted");
    }
}

/// The write skew that a fence which only reads its mark would let through: the old term's transaction
/// began, and saw its own mark, before the new term claimed.
#[tokio::test]
async fn claim_defeats_an_older_transaction_whose_snapshot_is_before_it() {
    let bank = bank().await;
    bank.fence.claim(&resource(), &term(5)).await.expect("a claim");
    let mut session = bank.session().await;
    // The first read fixes the snapshot; by it, token 5 still holds the mark.
    bank.ledger
        .find_one(doc! { "_id": 1 })
        .session(&mut session)
        .await
        .expect("a read");
    bank.fence
        .claim(&resource(), &term(9))
        .await
        .expect("nobody has entered, so nothing holds the claim up");
    bank.book(&mut session).await.expect("booked, but not committed");
    let refused = bank.fence.enter(&mut session, &resource(), &term(5)).await;
    let Err(EnterError::Driver(conflict)) = refused else {
        panic!("the old snapshot was admitted: {refused:?}");
    };
    assert!(conflict.contains_label(TRANSIENT_TRANSACTION_ERROR), "{conflict}");
    let _aborted_already = session.abort_transaction().await;
    // Repeated, as the label says, it sees the new mark.
    let mut session = bank.session().await;
    let refused = bank.fence.enter(&mut session, &resource(), &term(5)).await;
    assert!(
        matches!(&refused, Err(EnterError::Refused(FenceError::Stale { .. }))),
        "{refused:?}"
    );
    session.abort_transaction().await.expect("aborted");
    assert_eq!(bank.cents().await, 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claim_waits_for_a_transaction_that_has_entered_and_sees_its_write() {
    in_one_of(
        ROUNDS_MAX,
        "the time of each claim was over before the transaction that it waited for",
        claim_waits_and_sees,
    )
    .await;
}

/// How often a claim's time may be over on a slow machine.
const ROUNDS_MAX: u32 = 3;

/// Not, on a machine so slow that the claim's time was over before.
async fn claim_waits_and_sees() -> bool {
    let bank = bank().await;
    let mut session = bank.entered().await;
    bank.book(&mut session).await.expect("booked");
    let fence = bank.fence.clone();
    let mut claim = tokio::spawn(async move { fence.claim(&resource(), &term(9)).await });
    until_a_write_waits(&bank.marks).await;
    let early = tokio::time::timeout(Duration::from_millis(500), &mut claim).await;
    if matches!(early, Ok(Ok(Err(FenceError::Store(_))))) {
        return false;
    }
    assert!(
        early.is_err(),
        "the claim overtook an open transaction: {early:?}"
    );
    session.commit_transaction().await.expect("committed");
    let claimed = claim.await.expect("no panic");
    if matches!(claimed, Err(FenceError::Store(_))) {
        return false;
    }
    assert_eq!(claimed, Ok(Claimed::Raised { from: Some(token(5)) }));
    assert_eq!(
        bank.cents().await,
        101,
        "what the new term reads holds the old term's last write"
    );
    true
}

#[tokio::test]
async fn claim_that_waits_too_long_says_why() {
    let bank = bank().await;
    let mut session = bank.entered().await;
    let late = bank.fence.claim(&resource(), &term(9)).await;
    let Err(FenceError::Store(error)) = late else {
        panic!("the claim overtook an open transaction: {late:?}");
    };
    assert_eq!(error.fault, Fault::TimedOut);
    for part in ["ledger", "open transaction", "claim again"] {
        assert!(error.message.contains(part), "{part} is not in: {error}");
    }
    session.abort_transaction().await.expect("aborted");
    bank.fence.claim(&resource(), &term(9)).await.expect("free again");
}

#[tokio::test]
async fn drivers_own_loop_repeats_a_conflict_and_ends_with_a_refusal() {
    let bank = bank().await;
    bank.fence.claim(&resource(), &term(5)).await.expect("a claim");
    let mut session = bank.client.start_session().await.expect("a session");
    let mut runs = 0;
    let (fence, ledger) = (bank.fence.clone(), bank.ledger.clone());
    let settled = session
        .start_transaction()
        .and_run2(async |session| {
            runs += 1;
            ledger.find_one(doc! { "_id": 1 }).session(&mut *session).await?;
            if runs == 1 {
                fence.claim(&resource(), &term(9)).await.expect("a claim");
            }
            fence.enter(session, &resource(), &term(5)).await?;
            Ok(())
        })
        .await;
    let error = settled.expect_err("the term is stale");
    assert!(
        matches!(MongoFence::refusal(&error), Some(FenceError::Stale { .. })),
        "{error}"
    );
    assert_eq!(runs, 2, "one conflict, one refusal");
}

#[tokio::test]
async fn entering_without_a_transaction_is_refused() {
    let bank = bank().await;
    bank.fence.claim(&resource(), &term(5)).await.expect("a claim");
    let before = crate::common::raw(&bank.marks, "ledger").await;
    let mut session = bank.client.start_session().await.expect("a session");
    let refused = bank.fence.enter(&mut session, &resource(), &term(5)).await;
    let Err(EnterError::Refused(FenceError::Store(error))) = refused else {
        panic!("admitted without a transaction: {refused:?}");
    };
    assert_eq!(error.fault, Fault::Invalid);
    assert!(error.message.contains("start_transaction"), "{error}");
    assert_eq!(crate::common::raw(&bank.marks, "ledger").await, before);
}

#[tokio::test]
async fn foreign_document_is_no_mark_and_is_left_as_it_is() {
    let bank = bank().await;
    let foreign = [
        doc! { "_id": "ledger" },
        doc! { "_id": "ledger", "token": 3.5 },
        doc! { "_id": "ledger", "token": "$$NOW", "entries": 1_i64 },
        doc! { "_id": "ledger", "token": -7_i64, "lease": "nightly" },
        // As another version of Tenure might write it: its claims would not stop all of our transactions.
        doc! {
            "_id": "ledger", "lease": "nightly", "token": 3_i64, "stripes": 16,
            "claimedAt": DateTime::now(), "previous": null,
        },
    ];
    for document in foreign {
        bank.marks
            .delete_one(doc! { "_id": "ledger" })
            .await
            .expect("cleared");
        bank.marks
            .insert_one(&document)
            .await
            .expect("a foreign document");
        let claimed = bank.fence.claim(&resource(), &term(5)).await;
        let Err(FenceError::Store(error)) = claimed else {
            panic!("{document} was claimed: {claimed:?}");
        };
        assert_eq!(error.fault, Fault::Unreadable, "{error}");
        let mut session = bank.session().await;
        let entered = bank.fence.enter(&mut session, &resource(), &term(5)).await;
        assert!(matches!(entered, Err(EnterError::Refused(_))), "{entered:?}");
        session.abort_transaction().await.expect("aborted");
        assert_eq!(crate::common::raw(&bank.marks, "ledger").await, Some(document));
    }
}

/// Two transactions of one term at a time, for as many turns as there are stripes: none conflicts.
#[tokio::test]
async fn transactions_of_one_term_run_side_by_side() {
    let bank = bank().await;
    bank.fence.claim(&resource(), &term(5)).await.expect("a claim");
    for account in 0..40 {
        let (mut first, mut second) = (bank.session().await, bank.session().await);
        for (session, id) in [(&mut first, 2 * account), (&mut second, 2 * account + 1)] {
            bank.fence
                .enter(session, &resource(), &term(5))
                .await
                .expect("admitted");
            let booked = doc! { "_id": 100 + id, "cents": 1_i64 };
            bank.ledger
                .insert_one(booked)
                .session(session)
                .await
                .expect("booked");
        }
        first.commit_transaction().await.expect("committed");
        second.commit_transaction().await.expect("committed");
    }
}

/// However many transactions of the old term are open, a claim waits for each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_waits_for_every_open_transaction() {
    in_one_of(
        ROUNDS_MAX,
        "the time of each claim was over before the transactions that it waited for",
        claim_waits_for_every_one,
    )
    .await;
}

/// Not, on a machine so slow that the claim's time was over before.
async fn claim_waits_for_every_one() -> bool {
    let bank = bank().await;
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(bank.entered().await);
    }
    let fence = bank.fence.clone();
    let mut claim = tokio::spawn(async move { fence.claim(&resource(), &term(9)).await });
    until_a_write_waits(&bank.marks).await;
    for mut session in sessions {
        let early = tokio::time::timeout(Duration::from_millis(200), &mut claim).await;
        if matches!(early, Ok(Ok(Err(FenceError::Store(_))))) {
            return false;
        }
        assert!(
            early.is_err(),
            "the claim overtook an open transaction: {early:?}"
        );
        session.commit_transaction().await.expect("committed");
    }
    let claimed = claim.await.expect("no panic");
    if matches!(claimed, Err(FenceError::Store(_))) {
        return false;
    }
    assert_eq!(claimed, Ok(Claimed::Raised { from: Some(token(5)) }));
    true
}

/// A claim that was cut short has raised the mark, and perhaps some stripes.
#[tokio::test]
async fn a_claim_that_was_cut_short_is_finished_by_the_next() {
    let bank = bank().await;
    let mut open = bank.entered().await;
    bank.fence
        .claim(&resource(), &term(9))
        .await
        .expect_err("it waits in vain");
    assert_eq!(bank.mark().await, Some(token(9)));
    open.commit_transaction()
        .await
        .expect("the claim is not finished, so this may commit");
    let again = bank.fence.claim(&resource(), &term(9)).await;
    assert_eq!(again, Ok(Claimed::Already));
    for _ in 0..40 {
        let mut session = bank.session().await;
        let refused = bank.fence.enter(&mut session, &resource(), &term(5)).await;
        assert!(
            matches!(&refused, Err(EnterError::Refused(FenceError::Stale { .. }))),
            "{refused:?}"
        );
        session.abort_transaction().await.expect("aborted");
        let mut session = bank.session().await;
        bank.fence
            .enter(&mut session, &resource(), &term(9))
            .await
            .expect("admitted");
        session.abort_transaction().await.expect("aborted");
    }
}
