//! The fence per document, on a real replica set.

use crate::common::Scratch;
use mongodb::Collection;
use mongodb::bson::{Bson, Document, Regex, cstr, doc};
use mongodb::options::{ReturnDocument, UpdateModifications};
use tenure_core::{Fault, Fence, FenceError, FencingToken, LeaseName, Leases, ResourceName, Term};
use tenure_mongodb::{EnterError, FencedCollection, FencedUpdate, MongoFence};
use tenure_testkit::ReplicaSet;

struct Bank {
    fence: MongoFence,
    accounts: Collection<Document>,
    scratch: Scratch,
}

/// Account 1 carries no token yet, account 2 that of term 5.
async fn bank() -> Bank {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let database = scratch.client().await.database(&scratch.database);
    let accounts = database.collection("accounts");
    let documents = [
        doc! { "_id": 1, "cents": 100 },
        doc! { "_id": 2, "cents": 100, "fence": 5_i64 },
    ];
    accounts.insert_many(documents).await.expect("accounts");
    Bank {
        fence: MongoFence::new(&database, Leases::Elsewhere),
        accounts,
        scratch,
    }
}

impl Bank {
    async fn term(&self, number: u64) -> FencedCollection<Document> {
        let fenced = self
            .fence
            .documents(&resource(), &term(number), &self.accounts)
            .await;
        fenced.expect("claimed")
    }

    async fn account(&self, id: i32) -> (i32, Option<i64>) {
        let account = self.accounts.find_one(doc! { "_id": id }).await.expect("a read");
        let account = account.expect("the account");
        (
            account.get_i32("cents").expect("cents"),
            account.get_i64("fence").ok(),
        )
    }
}

fn resource() -> ResourceName {
    ResourceName::new("accounts").expect("a name")
}

fn term(number: u64) -> Term {
    let token = FencingToken::new(number).expect("a token");
    Term::new(LeaseName::new("nightly").expect("a name"), token)
}

fn set(cents: i32) -> Document {
    doc! { "$set": { "cents": cents } }
}

#[track_caller]
fn stale<T: std::fmt::Debug>(outcome: Result<T, EnterError>) {
    assert!(
        matches!(&outcome, Err(EnterError::Refused(FenceError::Stale { mark, .. })) if mark.number() == 9),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn every_kind_of_stale_write_is_refused_and_changes_nothing() {
    let bank = bank().await;
    let old = bank.term(5).await;
    let new = bank.term(9).await;
    new.claim_many(doc! {}).await.expect("claimed");
    let one = || doc! { "_id": 1 };
    let pipeline = vec![doc! { "$set": { "cents": 0, "fence": 99_i64 } }];
    stale(old.update_one(one(), set(0)).await);
    stale(old.update_one(one(), pipeline).await);
    stale(
        old.update_one(doc! { "$or": [{ "_id": 1 }, { "_id": 2 }] }, set(0))
            .await,
    );
    stale(old.upsert_one(one(), set(0)).await);
    stale(old.update_many(doc! {}, set(0)).await);
    stale(old.replace_one(one(), &doc! { "cents": 0 }).await);
    stale(
        old.find_one_and_update(one(), set(0), ReturnDocument::After)
            .await,
    );
    stale(old.claim_one(one()).await);
    stale(old.claim_many(doc! {}).await);
    stale(old.delete_one(one()).await);
    stale(old.delete_many(doc! {}).await);
    stale(old.find_one_and_delete(one()).await);
    let bulk = vec![
        FencedUpdate::one(one(), set(0)),
        FencedUpdate::upsert(doc! { "_id": 2 }, set(0)),
    ];
    stale(old.update_bulk(bulk).await);
    assert_eq!(bank.account(1).await, (100, Some(9)));
    assert_eq!(bank.account(2).await, (100, Some(9)));
    bank.fence.note_refusals().await;
    let mark = bank
        .fence
        .mark(&resource())
        .await
        .expect("a look")
        .expect("a mark");
    assert!(mark.refused > 0, "{mark:?}");
}

#[tokio::test]
async fn the_current_term_writes_and_leaves_its_token() {
    let bank = bank().await;
    let new = bank.term(9).await;
    let one = || doc! { "_id": 1 };
    assert_eq!(
        new.update_one(one(), set(1))
            .await
            .expect("written")
            .matched_count,
        1
    );
    assert_eq!(bank.account(1).await, (1, Some(9)));
    let pipeline: UpdateModifications = vec![doc! { "$set": { "cents": { "$add": ["$cents", 1] } } }].into();
    new.update_one(one(), pipeline).await.expect("written");
    assert_eq!(bank.account(1).await, (2, Some(9)));
    new.replace_one(doc! { "_id": 2 }, &doc! { "cents": 3 })
        .await
        .expect("written");
    assert_eq!(bank.account(2).await, (3, Some(9)));
    let made = new.upsert_one(doc! { "_id": 3 }, set(4)).await.expect("made");
    assert!(made.upserted_id.is_some());
    assert_eq!(bank.account(3).await, (4, Some(9)));
    let before = new
        .find_one_and_update(one(), set(5), ReturnDocument::Before)
        .await
        .expect("written");
    assert_eq!(before.expect("the account").get_i32("cents").expect("cents"), 2);
    let bulk = (1..=3).map(|id| FencedUpdate::one(doc! { "_id": id }, set(6)));
    let bulk = bulk
        .chain([FencedUpdate::upsert(doc! { "_id": 4 }, set(7))])
        .collect();
    let result = new.update_bulk(bulk).await.expect("written");
    assert_eq!((result.matched, result.modified, result.upserted), (4, 3, 1));
    assert_eq!(
        new.update_many(doc! {}, set(8))
            .await
            .expect("written")
            .modified_count,
        4
    );
    assert_eq!(
        new.delete_one(doc! { "_id": 4 })
            .await
            .expect("deleted")
            .deleted_count,
        1
    );
    assert!(
        new.find_one_and_delete(doc! { "_id": 3 })
            .await
            .expect("deleted")
            .is_some()
    );
    assert_eq!(bank.account(2).await, (8, Some(9)));
}

/// Without one, an earlier term would find it open to it again; with a higher one, no later term would.
#[tokio::test]
async fn whatever_a_pipeline_makes_of_the_field_it_holds_the_token_in_the_end() {
    let bank = bank().await;
    let old = bank.term(5).await;
    let new = bank.term(9).await;
    for stage in [
        doc! { "$set": { "fence": 99_i64 } },
        doc! { "$unset": "fence" },
        doc! { "$replaceWith": { "_id": "$_id", "cents": "$cents" } },
    ] {
        let written = new.update_one(doc! { "_id": 1 }, vec![stage.clone()]).await;
        assert_eq!(written.expect("written").matched_count, 1, "{stage}");
        assert_eq!(bank.account(1).await, (100, Some(9)), "{stage}");
        stale(old.update_one(doc! { "_id": 1 }, set(0)).await);
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_stale() {
    let bank = bank().await;
    let new = bank.term(9).await;
    let nobody = || doc! { "_id": 7 };
    assert_eq!(
        new.update_one(nobody(), set(0))
            .await
            .expect("told")
            .matched_count,
        0
    );
    assert_eq!(new.delete_many(nobody()).await.expect("told").deleted_count, 0);
    assert_eq!(new.claim_one(nobody()).await.expect("told"), None);
    let bulk = vec![FencedUpdate::one(nobody(), set(0))];
    assert_eq!(new.update_bulk(bulk).await.expect("told").matched, 0);
}

#[tokio::test]
async fn some_newer_documents_are_told_by_asking() {
    let bank = bank().await;
    let old = bank.term(5).await;
    bank.term(9)
        .await
        .update_one(doc! { "_id": 1 }, set(1))
        .await
        .expect("written");
    let result = old
        .update_many(doc! {}, set(0))
        .await
        .expect("document 2 is still open to it");
    assert_eq!(result.matched_count, 1);
    let newer = old.newer(doc! {}).await.expect("told");
    assert_eq!(newer.map(FencingToken::number), Some(9));
    assert_eq!(bank.account(1).await, (1, Some(9)));
}

/// The order that loses an update without the claim: read, overtaken by an older write, write.
#[tokio::test]
async fn whoever_claims_before_it_reads_loses_no_update() {
    let bank = bank().await;
    let old = bank.term(5).await;
    let new = bank.term(9).await;
    let read = new
        .claim_one(doc! { "_id": 2 })
        .await
        .expect("read")
        .expect("the account");
    stale(old.update_one(doc! { "_id": 2 }, set(50)).await);
    let cents = read.get_i32("cents").expect("cents");
    new.update_one(doc! { "_id": 2 }, set(cents + 1))
        .await
        .expect("written");
    assert_eq!(bank.account(2).await, (101, Some(9)));
}

#[tokio::test]
async fn what_would_get_around_the_fence_is_refused_before_it_is_sent() {
    let bank = bank().await;
    let new = bank.term(9).await;
    // The server takes it for a search, and makes a document whose _id is something else.
    let pattern = Bson::RegularExpression(Regex {
        pattern: cstr!("^1$").into(),
        options: cstr!("").into(),
    });
    let invalid = |outcome: Result<_, EnterError>| match outcome {
        Err(EnterError::Refused(FenceError::Store(error))) => assert_eq!(error.fault, Fault::Invalid),
        other => panic!("{other:?}"),
    };
    for update in [
        doc! { "$set": { "fence": 7_i64 } },
        doc! { "$unset": { "fence.x": "" } },
        doc! { "$rename": { "cents": "fence" } },
        doc! { "cents": 7 },
        doc! { "$set": 7 },
    ] {
        invalid(new.update_one(doc! { "_id": 1 }, update).await.map(|_| ()));
    }
    for filter in [
        doc! { "cents": 100 },
        doc! { "_id": { "$gt": 1 } },
        doc! { "_id": pattern },
        doc! { "_id": [1] },
        doc! { "_id": Bson::Undefined },
    ] {
        invalid(new.upsert_one(filter.clone(), set(0)).await.map(|_| ()));
        let bulk = vec![FencedUpdate::upsert(filter, set(0))];
        invalid(new.update_bulk(bulk).await.map(|_| ()));
    }
    assert_eq!(bank.accounts.count_documents(doc! {}).await.expect("a count"), 2);
    invalid(new.update_bulk(vec![]).await.map(|_| ()));
    assert_eq!(bank.account(1).await, (100, None));
    let other = new.clone().field("term").expect("a field");
    other
        .update_one(doc! { "_id": 1 }, set(3))
        .await
        .expect("another field");
    let written = bank
        .accounts
        .find_one(doc! { "_id": 1, "term": 9_i64 })
        .await
        .expect("a read");
    assert!(written.is_some());
}

/// A replacement would carry the key `meta.fence`, which no filter by that path finds.
#[tokio::test]
async fn a_field_that_is_not_at_the_top_of_a_document_is_refused() {
    let bank = bank().await;
    let new = bank.term(9).await;
    for field in ["meta.fence", ".", "", "$fence", "fe\0nce", "_id"] {
        let Err(EnterError::Refused(FenceError::Store(error))) = new.clone().field(field) else {
            panic!("{field:?} was not refused");
        };
        assert_eq!(error.fault, Fault::Invalid, "{field:?}");
        assert!(!error.message.contains(char::is_control), "{}", error.message);
    }
    new.field("fence$").expect("a field");
}

#[tokio::test]
async fn a_field_that_is_no_number_is_matched_by_nothing() {
    let bank = bank().await;
    let foreign = doc! { "$set": { "fence": "yesterday" } };
    bank.accounts
        .update_one(doc! { "_id": 1 }, foreign)
        .await
        .expect("a foreign write");
    let updated = bank
        .term(9)
        .await
        .update_one(doc! { "_id": 1 }, set(0))
        .await
        .expect("told");
    assert_eq!(updated.matched_count, 0);
    assert_eq!(bank.account(1).await.0, 100);
}

/// The server compares an array by any of its elements.
#[tokio::test]
async fn a_document_whose_field_is_neither_a_number_nor_null_is_matched_by_nothing() {
    let bank = bank().await;
    let six = bank.term(6).await;
    let odd: [Bson; 8] = [
        Bson::Array(vec![Bson::Int64(5), Bson::Int64(99)]),
        Bson::Array(vec![Bson::Int64(5), Bson::Null]),
        Bson::Array(vec![Bson::Null]),
        Bson::Array(vec![Bson::Array(vec![Bson::Int64(5)])]),
        Bson::Array(vec![]),
        Bson::String("5".to_owned()),
        Bson::Document(doc! { "0": 5_i64 }),
        Bson::Boolean(false),
    ];
    for (id, field) in (10..).zip(odd) {
        let document = doc! { "_id": id, "cents": 100, "fence": field };
        bank.accounts.insert_one(&document).await.expect("inserted");
        let this = || doc! { "_id": id };
        let updated = six.update_one(this(), set(0)).await.expect("answered");
        assert_eq!(updated.matched_count, 0, "{document}");
        let deleted = six.delete_one(this()).await.expect("answered");
        assert_eq!(deleted.deleted_count, 0, "{document}");
        assert_eq!(six.newer(this()).await.expect("answered"), None, "{document}");
        let kept = bank.accounts.find_one(this()).await.expect("a read");
        assert_eq!(kept, Some(document));
    }
    let untouched = six.update_many(doc! {}, set(0)).await.expect("answered");
    assert_eq!(untouched.matched_count, 2);
}

#[tokio::test]
async fn what_narrows_a_write_leaves_it_the_index_of_its_filter() {
    let bank = bank().await;
    let command =
        doc! { "createIndexes": "accounts", "indexes": [{ "key": { "owner": 1 }, "name": "owner" }] };
    let database = bank.scratch.client().await.database(&bank.scratch.database);
    database.run_command(command).await.expect("an index");
    let fenced = bank.term(6).await;
    for filter in [doc! { "_id": 1 }, doc! { "owner": "a" }] {
        let find = doc! { "find": "accounts", "filter": fenced.filter(filter.clone()) };
        let command = doc! { "explain": find, "verbosity": "executionStats" };
        let plan = database.run_command(command).await.expect("a plan").to_string();
        assert!(!plan.contains("COLLSCAN"), "{filter}: {plan}");
        assert!(
            plan.contains("IXSCAN") || plan.contains("EXPRESS"),
            "{filter}: {plan}"
        );
    }
}

/// They hold passwords, of which the driver does not hide that of a proxy, and that of a certificate's key.
#[tokio::test]
async fn a_fence_shows_nothing_of_its_clients_options() {
    let bank = bank().await;
    for shown in [format!("{:?}", bank.fence), format!("{:?}", bank.term(1).await)] {
        assert!(!shown.contains("options"), "{} bytes", shown.len());
        assert!(shown.contains(&bank.scratch.database), "{shown}");
    }
}
