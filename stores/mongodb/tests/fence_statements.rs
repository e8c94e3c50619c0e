//! Many statements at once behind the fence: a bulk, of which some are refused, and those for
//! `Client::bulk_write`. That call needs MongoDB 8.0: here each of its statements goes by the call that is as
//! old as the server.

use crate::common::Scratch;
use mongodb::bson::{Document, doc};
use mongodb::options::{
    DeleteManyModel, DeleteOneModel, InsertOneModel, ReplaceOneModel, UpdateManyModel, UpdateOneModel,
    WriteModel,
};
use mongodb::{Collection, Namespace};
use tenure_core::{Certainty, Fault, FenceError, FencingToken, LeaseName, Leases, ResourceName, Term};
use tenure_mongodb::{EnterError, FencedCollection, FencedUpdate, MongoFence};
use tenure_testkit::ReplicaSet;

/// The documents 1 and 2 carry the token of term 9.
async fn claimed_by_a_later_term() -> (Scratch, Collection<Document>, FencedCollection<Document>) {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let database = scratch.client().await.database(&scratch.database);
    let accounts = database.collection("accounts");
    let of_the_later = |id: i32| doc! { "_id": id, "cents": 100, "fence": 9_i64 };
    accounts
        .insert_many([of_the_later(1), of_the_later(2)])
        .await
        .expect("accounts");
    let term = Term::new(
        LeaseName::new("nightly").expect("a name"),
        FencingToken::new(5).expect("a token"),
    );
    let resource = ResourceName::new("accounts").expect("a name");
    let fenced = MongoFence::new(&database, Leases::Elsewhere)
        .documents(&resource, &term, &accounts)
        .await;
    let fenced = fenced.expect("claimed");
    (scratch, accounts, fenced)
}

/// One of each kind that finds documents, for `filter`.
fn kinds(of: &Namespace, filter: &Document) -> [WriteModel; 5] {
    let nothing = || doc! { "$set": { "cents": 0 } };
    let (filter, of) = (|| filter.clone(), || of.clone());
    [
        UpdateOneModel::builder()
            .namespace(of())
            .filter(filter())
            .update(nothing())
            .build()
            .into(),
        UpdateManyModel::builder()
            .namespace(of())
            .filter(filter())
            .update(nothing())
            .build()
            .into(),
        ReplaceOneModel::builder()
            .namespace(of())
            .filter(filter())
            .replacement(doc! { "cents": 0 })
            .build()
            .into(),
        DeleteOneModel::builder()
            .namespace(of())
            .filter(filter())
            .build()
            .into(),
        DeleteManyModel::builder()
            .namespace(of())
            .filter(filter())
            .build()
            .into(),
    ]
}

/// How many documents it has found.
async fn send(accounts: &Collection<Document>, model: WriteModel) -> mongodb::error::Result<u64> {
    Ok(match model {
        WriteModel::InsertOne(model) => accounts.insert_one(model.document).await.map(|_| 0)?,
        WriteModel::UpdateOne(model) => {
            accounts
                .update_one(model.filter, model.update)
                .await?
                .matched_count
        }
        WriteModel::UpdateMany(model) => {
            accounts
                .update_many(model.filter, model.update)
                .await?
                .matched_count
        }
        WriteModel::ReplaceOne(model) => {
            accounts
                .replace_one(model.filter, model.replacement)
                .await?
                .matched_count
        }
        WriteModel::DeleteOne(model) => accounts.delete_one(model.filter).await?.deleted_count,
        WriteModel::DeleteMany(model) => accounts.delete_many(model.filter).await?.deleted_count,
        other => panic!("{other:?}"),
    })
}

#[tokio::test]
async fn no_kind_of_statement_of_an_earlier_term_finds_what_a_later_one_has_written() {
    let (_scratch, accounts, earlier) = claimed_by_a_later_term().await;
    for model in kinds(&accounts.namespace(), &doc! { "cents": 100 }) {
        let shown = format!("{model:?}");
        let fenced = earlier.write_model(model).expect("a statement");
        assert_eq!(send(&accounts, fenced).await.expect("sent"), 0, "{shown}");
    }
    let untouched = doc! { "cents": 100, "fence": 9_i64 };
    assert_eq!(accounts.count_documents(untouched).await.expect("a count"), 2);
}

#[tokio::test]
async fn every_kind_of_statement_leaves_its_token_in_what_it_writes() {
    let (_scratch, accounts, fenced) = claimed_by_a_later_term().await;
    let of = accounts.namespace();
    let inserted = InsertOneModel::builder()
        .namespace(of.clone())
        .document(doc! { "_id": 3, "cents": 1 })
        .build();
    let inserted = fenced.write_model(inserted.into()).expect("a statement");
    send(&accounts, inserted).await.expect("sent");
    let this = || doc! { "_id": 3 };
    let [one, many, replaced, deleted, _many] = kinds(&of, &this());
    for model in [one, many, replaced] {
        let found = accounts
            .find_one(doc! { "_id": 3, "fence": 5_i64 })
            .await
            .expect("a read");
        assert!(found.is_some(), "before {model:?}");
        // What a document without a token is written by leaves one, too.
        accounts
            .update_one(this(), doc! { "$unset": { "fence": 1 } })
            .await
            .expect("without one");
        let fenced = fenced.write_model(model).expect("a statement");
        assert_eq!(send(&accounts, fenced).await.expect("sent"), 1);
    }
    let found = accounts
        .find_one(doc! { "_id": 3, "fence": 5_i64 })
        .await
        .expect("a read");
    assert_eq!(
        found
            .expect("it carries the token")
            .get_i32("cents")
            .expect("cents"),
        0
    );
    let fenced = fenced.write_model(deleted).expect("a statement");
    assert_eq!(send(&accounts, fenced).await.expect("sent"), 1);
}

/// It would make a second document beside the one that a later term has written.
#[tokio::test]
async fn a_statement_that_may_make_a_document_and_names_no_id_is_refused() {
    let (_scratch, accounts, fenced) = claimed_by_a_later_term().await;
    let of = || accounts.namespace();
    let (by_cents, zero) = (|| doc! { "cents": 100 }, || doc! { "$set": { "cents": 0 } });
    let models: [WriteModel; 3] = [
        UpdateOneModel::builder()
            .namespace(of())
            .filter(by_cents())
            .update(zero())
            .upsert(true)
            .build()
            .into(),
        UpdateManyModel::builder()
            .namespace(of())
            .filter(by_cents())
            .update(zero())
            .upsert(true)
            .build()
            .into(),
        ReplaceOneModel::builder()
            .namespace(of())
            .filter(by_cents())
            .replacement(doc! {})
            .upsert(true)
            .build()
            .into(),
    ];
    for model in models {
        let shown = format!("{model:?}");
        match fenced.write_model(model) {
            Err(EnterError::Refused(FenceError::Store(error))) => assert_eq!(error.fault, Fault::Invalid),
            other => panic!("{shown}: {other:?}"),
        }
    }
}

fn set(cents: i32) -> Document {
    doc! { "$set": { "cents": cents } }
}

/// Whoever took that for success would believe that all of it was written.
#[tokio::test]
async fn a_bulk_of_which_a_later_term_has_written_a_part_is_refused_and_the_rest_is_written() {
    let (_scratch, accounts, earlier) = claimed_by_a_later_term().await;
    accounts
        .insert_one(doc! { "_id": 3, "cents": 100 })
        .await
        .expect("an account");
    let bulk = [3, 1].map(|id| FencedUpdate::one(doc! { "_id": id }, set(0)));
    let refused = earlier.update_bulk(bulk.to_vec()).await;
    assert!(
        matches!(&refused, Err(EnterError::Refused(FenceError::Stale { mark, .. })) if mark.number() == 9),
        "{refused:?}"
    );
    for (id, cents) in [(3, 0), (1, 100)] {
        let account = accounts.find_one(doc! { "_id": id }).await.expect("a read");
        let account = account.expect("the account");
        assert_eq!(account.get_i32("cents").expect("cents"), cents, "account {id}");
    }
}

/// As a validator or a unique index does, and an operator that does not fit the field.
#[tokio::test]
async fn a_bulk_of_which_the_server_refuses_a_part_says_so() {
    let (_scratch, accounts, fenced) = claimed_by_a_later_term().await;
    let ours = [
        doc! { "_id": 3, "cents": "many" },
        doc! { "_id": 4, "cents": 100 },
    ];
    accounts.insert_many(ours).await.expect("accounts");
    let one_more = || doc! { "$inc": { "cents": 1 } };
    let bulk = vec![
        FencedUpdate::one(doc! { "_id": 3 }, one_more()),
        FencedUpdate::one(doc! { "_id": 4 }, one_more()),
        FencedUpdate::one(doc! { "_id": 4 }, one_more()),
    ];
    match fenced.update_bulk(bulk).await {
        Err(EnterError::Refused(FenceError::Store(error))) => {
            assert_eq!(error.certainty, Certainty::Unknown, "{error}");
            assert!(error.message.contains("accounts"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let account = accounts.find_one(doc! { "_id": 4 }).await.expect("a read");
    assert_eq!(
        account.expect("the account").get_i32("cents").expect("cents"),
        102
    );
}

/// As the server says it to who uses no fence: these are the user's own statements, indexes and rules.
#[tokio::test]
async fn what_the_server_refuses_of_a_bulk_is_told_in_its_own_words() {
    let (scratch, accounts, fenced) = claimed_by_a_later_term().await;
    let ours = [
        doc! { "_id": 3, "cents": 100, "email": "three", "address": "a street" },
        doc! { "_id": 4, "cents": 100, "email": "four" },
    ];
    accounts.insert_many(ours).await.expect("accounts");
    let database = scratch.client().await.database(&scratch.database);
    let unique = doc! { "key": { "email": 1 }, "name": "email_1", "unique": true, "sparse": true };
    let index = doc! { "createIndexes": "accounts", "indexes": [unique] };
    database.run_command(index).await.expect("an index");
    let rule = doc! { "collMod": "accounts", "validator": { "forbidden": { "$exists": false } } };
    database.run_command(rule).await.expect("a validator");
    let three = || doc! { "_id": 3 };
    for (refused, code) in [
        (
            FencedUpdate::one(three(), doc! { "$set": { "email": "four" } }),
            11_000,
        ),
        (
            FencedUpdate::one(three(), doc! { "$set": { "forbidden": 1 } }),
            121,
        ),
        (
            FencedUpdate::one(three(), doc! { "$set": { "address.city": "Bern" } }),
            28,
        ),
        (
            FencedUpdate::upsert(doc! { "_id": 3, "cents": 7 }, set(0)),
            11_000,
        ),
    ] {
        let bulk = vec![FencedUpdate::one(doc! { "_id": 4 }, set(1)), refused];
        let error = match fenced.update_bulk(bulk).await {
            Err(EnterError::Refused(FenceError::Store(error))) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            (error.fault, error.certainty),
            (Fault::Internal, Certainty::Unknown),
            "{error}"
        );
        for part in ["accounts", "number 1", &format!("code {code}")] {
            assert!(error.message.contains(part), "{part} is not in: {error}");
        }
        // What is said of the collection of the leases.
        for advice in [
            "dropIndex",
            "remove the validator",
            "free space",
            "record",
            "ask again",
        ] {
            assert!(!error.message.contains(advice), "{error}");
        }
    }
}

/// Whoever is told of a later term takes everything else for done.
#[tokio::test]
async fn a_bulk_of_which_a_part_has_failed_does_not_say_that_all_else_was_carried_out() {
    let (_scratch, accounts, earlier) = claimed_by_a_later_term().await;
    let word = doc! { "_id": 3, "cents": "many" };
    accounts.insert_one(word).await.expect("an account");
    let stale = || FencedUpdate::one(doc! { "_id": 1 }, set(0));
    let stale_upsert = |id: i32| FencedUpdate::upsert(doc! { "_id": id, "cents": 7 }, set(0));
    for failing in [
        FencedUpdate::one(doc! { "_id": 3 }, doc! { "$inc": { "cents": 1 } }),
        // No later term has written this one.
        stale_upsert(3),
    ] {
        let refused = earlier.update_bulk(vec![stale(), stale_upsert(2), failing]).await;
        assert!(
            matches!(&refused, Err(EnterError::Refused(FenceError::Store(error))) if error.certainty == Certainty::Unknown),
            "{refused:?}"
        );
    }
    // Also of upserts whose documents a later term has changed besides, each once or more.
    let refused = earlier
        .update_bulk(vec![stale_upsert(1), stale_upsert(2), stale_upsert(1)])
        .await;
    assert!(
        matches!(&refused, Err(EnterError::Refused(FenceError::Stale { mark, .. })) if mark.number() == 9),
        "{refused:?}"
    );
}

/// An upsert that the rest of its filter keeps from finding the document would make another one.
#[tokio::test]
async fn an_upsert_that_does_not_find_its_document_says_why() {
    let (scratch, accounts, earlier) = claimed_by_a_later_term().await;
    let ours = [
        doc! { "_id": 3, "cents": 100, "email": "three" },
        doc! { "_id": 4, "cents": 100, "fence": "yesterday" },
    ];
    accounts.insert_many(ours).await.expect("accounts");
    let unique = doc! { "key": { "email": 1 }, "name": "email_1", "unique": true, "sparse": true };
    let index = doc! { "createIndexes": "accounts", "indexes": [unique] };
    let database = scratch.client().await.database(&scratch.database);
    database.run_command(index).await.expect("an index");
    let refused = earlier.upsert_one(doc! { "_id": 1, "cents": 7 }, set(0)).await;
    assert!(
        matches!(&refused, Err(EnterError::Refused(FenceError::Stale { mark, .. })) if mark.number() == 9),
        "{refused:?}"
    );
    for (id, cents) in [(3, 7), (4, 100)] {
        match earlier
            .upsert_one(doc! { "_id": id, "cents": cents }, set(0))
            .await
        {
            Err(EnterError::Refused(FenceError::Store(error))) => {
                assert_eq!(error.fault, Fault::Invalid, "{error}");
                for part in ["the rest of the filter", "\"fence\""] {
                    assert!(error.message.contains(part), "{part} is not in: {error}");
                }
            }
            other => panic!("{id}: {other:?}"),
        }
    }
    let taken = doc! { "$set": { "email": "three" } };
    let refused = earlier.upsert_one(doc! { "_id": 5 }, taken).await;
    assert!(
        matches!(&refused, Err(EnterError::Driver(error)) if error.to_string().contains("email_1")),
        "{refused:?}"
    );
    assert_eq!(accounts.count_documents(doc! {}).await.expect("a count"), 4);
}
