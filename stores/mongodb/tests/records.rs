//! What stands in the collection: hostile texts, foreign documents, keys that are no names.

use crate::common::{Scratch, giving_back, name, raw, renewal, request, seconds, take};
use mongodb::bson::{Bson, DateTime, Document, doc};
use tenure_core::{Ask, Fault, LeaseStore, Listed, Note, Page, Released, Renewed};
use tenure_mongodb::MongoStore;
use tenure_testkit::ReplicaSet;

async fn scratch() -> Scratch {
    Scratch::new(ReplicaSet::shared().await.uri())
}

/// Texts that a careless pipeline would read as operators, variables or paths of fields.
#[tokio::test]
async fn texts_that_look_like_operators_stay_texts() {
    let scratch = scratch().await;
    let store = scratch.store().await;
    let texts = [
        "$where",
        "$$NOW",
        "$$ROOT",
        "$owner",
        "a.b",
        "a.$.b",
        "{\"$gt\":\"\"}",
        "\"quoted\"",
        "it's",
        "\\",
        "\u{1F980}",
        "$literal",
        "%00",
        "(?s).*",
        "^a",
    ];
    for text in texts {
        let mut asked = request(text, text, seconds(60));
        asked.note = Note::new(text).expect("a note");
        let grant = take(&store, &asked).await;
        let lease = store.get(&asked.name).await.expect("a read").expect("the lease");
        assert_eq!(lease.name.as_str(), text);
        assert_eq!(lease.holder, asked.candidate);
        assert_eq!(lease.note, asked.note);
        assert_eq!(lease.token, grant.token);
        let page = Page::first(text, 10);
        let listed = store.list(&page).await.expect("a page").leases;
        assert!(
            matches!(&listed[..], [Listed::Lease(lease)] if lease.name.as_str() == text),
            "{listed:?}"
        );
        let released = store.release(&[giving_back(&asked, grant.token)]).await.remove(0);
        assert_eq!(released, Ok(Released::Vacated));
    }
}

/// Records that something else wrote, or that were damaged; none may change by any request.
fn foreign(good: &Document) -> Vec<(&'static str, Document)> {
    let with = |field: &'static str, value: Bson| {
        let mut document = good.clone();
        document.insert(field, value);
        (field, document)
    };
    let without = |field: &'static str| {
        let mut document = good.clone();
        document.remove(field);
        (field, document)
    };
    let mut all = vec![
        ("expiresAt", doc! { "_id": "job" }),
        (
            "expiresAt",
            doc! { "_id": "job", "lockUntil": DateTime::now(), "lockedBy": "host" },
        ),
        with("generation", Bson::Double(f64::NAN)),
        with("generation", Bson::Double(f64::INFINITY)),
        with("generation", Bson::Double(7.0)),
        with("generation", Bson::Int32(7)),
        with("generation", Bson::Int64(-1)),
        with("generation", Bson::Null),
        with("terms", Bson::Int64(0)),
        with("owner", "x".repeat(254).into()),
        // 127 characters, 254 bytes: only a count of bytes finds it.
        with("owner", "\u{e9}".repeat(127).into()),
        with("owner", "../etc".into()),
        with("owner", " outer ".into()),
        with("owner", "".into()),
        with("owner", "..".into()),
        with("owner", "a\u{7}".into()),
        with("owner", Bson::Array(vec!["a".into()])),
        with("note", Bson::Null),
        with("released", Bson::Boolean(true)),
        with("released", Bson::Document(doc! { "at": DateTime::now() })),
        with("stepDownAsked", Bson::Boolean(false)),
        with("previous", Bson::Document(doc! { "owner": "a" })),
        with("lastRenewedAt", "yesterday".into()),
        with("renewal", "1".into()),
        with("ttlMs", Bson::Int64(86_400_001)),
        with("expiresAt", Bson::Int64(0)),
    ];
    for field in [
        "incarnation",
        "attempt",
        "ttlMs",
        "createdAt",
        "acquiredAt",
        "lastRenewedAt",
        "released",
        "previous",
    ] {
        all.push(without(field));
    }
    all.extend(foreign_within(good));
    all
}

/// The same, where what is wrong lies deeper: in an array, or in a part of the record.
fn foreign_within(good: &Document) -> Vec<(&'static str, Document)> {
    let with = |field: &'static str, value: Bson| {
        let mut document = good.clone();
        document.insert(field, value);
        (field, document)
    };
    let mut all = Vec::new();
    // An array that holds one right value: a filter by type alone would take it for right.
    for field in [
        "owner",
        "incarnation",
        "generation",
        "attempt",
        "terms",
        "ttlMs",
        "createdAt",
        "acquiredAt",
        "lastRenewedAt",
        "expiresAt",
        "released",
        "stepDownAsked",
        "note",
        "previous",
        "renewal",
    ] {
        let value = good.get(field).cloned().unwrap_or(Bson::Null);
        all.push(with(field, Bson::Array(vec![value])));
    }
    let (at, wrong_at) = (
        DateTime::from_millis(1),
        Bson::Array(vec![Bson::DateTime(DateTime::from_millis(1))]),
    );
    for mark in ["released", "stepDownAsked"] {
        all.push(with(mark, doc! { "generation": 0_i64, "at": at }.into()));
        all.push(with(mark, doc! { "generation": 5, "at": at }.into()));
        all.push(with(mark, doc! { "generation": [5_i64], "at": at }.into()));
        all.push(with(
            mark,
            doc! { "generation": 5_i64, "at": wrong_at.clone() }.into(),
        ));
    }
    let term = |owner: &str, generation: i64, end: &str| {
        Bson::from(doc! { "owner": owner, "generation": generation, "end": end, "at": at })
    };
    all.push(with("previous", term("a", 5, "forgotten")));
    all.push(with("previous", term("a", -5, "expired")));
    for owner in [" a", "", ".", "a//b", "a\u{7}"] {
        all.push(with("previous", term(owner, 5, "expired")));
    }
    all.push(with("previous", term(&"\u{e9}".repeat(127), 5, "expired")));
    all
}

#[tokio::test]
async fn record_that_cannot_be_understood_is_never_touched() {
    let scratch = scratch().await;
    let (store, leases) = (scratch.store().await, scratch.leases().await);
    let holder = request("job", "holder", seconds(60));
    let grant = take(&store, &holder).await;
    let good = raw(&leases, "job").await.expect("the record");
    // Expired, so that a request which did not look would take it.
    let mut expired = good.clone();
    expired.insert("expiresAt", DateTime::from_millis(0));
    for (field, document) in foreign(&good).into_iter().chain(foreign(&expired)) {
        leases
            .replace_one(doc! { "_id": "job" }, &document)
            .await
            .expect("replaced");
        let mut errors = Vec::new();
        for asker in [&holder, &request("job", "other", seconds(60))] {
            errors.push(store.acquire(asker).await.map(|answer| format!("{answer:?}")));
        }
        let renewals = [
            renewal(&holder, grant.token),
            renewal(&request("beside", "other", seconds(60)), grant.token),
        ];
        errors.push(
            store
                .renew(&renewals[..1])
                .await
                .remove(0)
                .map(|answer| format!("{answer:?}")),
        );
        let batch = store.renew(&renewals).await;
        assert_eq!(
            batch[1],
            Ok(Renewed::Lost(None)),
            "one malformed record disturbs no other"
        );
        errors.push(batch[0].clone().map(|answer| format!("{answer:?}")));
        let released = store
            .release(&[giving_back(&holder, grant.token)])
            .await
            .remove(0);
        errors.push(released.map(|answer| format!("{answer:?}")));
        let ask = Ask {
            name: name("job"),
            token: grant.token,
        };
        errors.push(store.ask(&ask).await.map(|answer| format!("{answer:?}")));
        errors.push(store.get(&name("job")).await.map(|answer| format!("{answer:?}")));
        for error in errors {
            let error = error.expect_err(&format!("{field} was accepted in {document}"));
            assert_eq!(error.fault, Fault::Unreadable, "{field}: {error}");
            for part in ["job", "job_leases", field] {
                assert!(error.message.contains(part), "\"{part}\" is not named: {error}");
            }
        }
        let after = raw(&leases, "job").await.expect("the record");
        assert_eq!(format!("{after:?}"), format!("{document:?}"), "{field}");
    }
}

#[tokio::test]
async fn keys_that_are_no_names_are_listed_last_and_hide_nothing() {
    let scratch = scratch().await;
    let (store, leases) = (scratch.store().await, scratch.leases().await);
    for number in 0..3 {
        take(&store, &request(&format!("job/{number}"), "holder", seconds(60))).await;
    }
    for key in [
        Bson::Int32(7),
        Bson::String("job/ ".into()),
        Bson::String("job/\u{1}".into()),
        Bson::Null,
    ] {
        leases.insert_one(doc! { "_id": key }).await.expect("inserted");
    }
    let mut page = Page::first("", 2);
    let mut listed = Vec::new();
    loop {
        let found = store.list(&page).await.expect("a page");
        assert!(found.leases.len() <= 2);
        listed.extend(found.leases);
        match found.next {
            Some(next) => page.after = Some(next),
            None => break,
        }
    }
    let leases = listed
        .iter()
        .filter(|listed| matches!(listed, Listed::Lease(_)))
        .count();
    assert_eq!(leases, 3, "{listed:?}");
    assert!(
        matches!(listed.last(), Some(Listed::Unreadable { .. })),
        "{listed:?}"
    );
}

/// Whoever was told of it by the examination looks for it there.
#[tokio::test]
async fn a_key_that_is_no_text_is_listed_also_after_a_full_page() {
    let scratch = scratch().await;
    let (store, leases) = (scratch.store().await, scratch.leases().await);
    for lease in ["job/0", "job/1"] {
        take(&store, &request(lease, "holder", seconds(60))).await;
    }
    let mut page = Page::first("", 2);
    let full = store.list(&page).await.expect("a page");
    assert_eq!((full.leases.len(), &full.next), (2, &None), "{full:?}");
    leases.insert_one(doc! { "_id": 7 }).await.expect("inserted");
    let full = store.list(&page).await.expect("a page");
    assert_eq!(full.leases.len(), 2, "{full:?}");
    page.after = full.next;
    assert!(page.after.is_some(), "nothing follows");
    let last = store.list(&page).await.expect("a page");
    assert!(
        matches!(&last.leases[..], [Listed::Unreadable { .. }]),
        "{last:?}"
    );
    assert_eq!(last.next, None);
}

/// What the examination counts is what the statements do not touch.
#[tokio::test]
async fn examination_counts_every_foreign_record_and_no_good_one() {
    let scratch = scratch().await;
    let (store, leases) = (scratch.store().await, scratch.leases().await);
    let holder = request("job", "holder", seconds(60));
    let grant = take(&store, &holder).await;
    let good = raw(&leases, "job").await.expect("the record");
    let all = foreign(&good);
    let strange = [doc! { "_id": 7 }, doc! { "_id": " outer " }];
    let named = all.iter().enumerate().map(|(number, (_, document))| {
        let mut document = document.clone();
        document.insert("_id", format!("foreign/{number}"));
        document
    });
    let inserted: Vec<_> = named.chain(strange).collect();
    leases.insert_many(&inserted).await.expect("inserted");
    // Good ones in every state: released, taken again, asked, renewed in a batch.
    let released = store
        .release(&[giving_back(&holder, grant.token)])
        .await
        .remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    take(&store, &request("released", "a", seconds(60))).await;
    let again = request("job", "b", seconds(60));
    let grant = take(&store, &again).await;
    let renewals = [renewal(&again, grant.token), renewal(&again, grant.token)];
    assert!(store.renew(&renewals).await.iter().all(Result::is_ok));
    let ask = Ask {
        name: name("job"),
        token: grant.token,
    };
    store.ask(&ask).await.expect("asked");
    let findings = store.examine().await.expect("an examination");
    let records = findings
        .iter()
        .find(|finding| finding.subject == "records")
        .expect("a finding");
    let counted = format!("{} records", inserted.len());
    assert!(
        records.detail.starts_with(&counted),
        "{} is not {counted}",
        records.detail
    );
}

/// `db.job-leases` is a subtraction to the shell, and `db.leases` another collection.
#[tokio::test]
async fn a_record_is_shown_by_a_command_that_finds_it_whatever_its_collection_is_called() {
    for called in ["app.leases", "job-leases", "stats"] {
        let scratch = scratch().await;
        let store = MongoStore::connect(&scratch.url(&format!("collection={called}")))
            .await
            .expect("connects");
        let leases = scratch
            .client()
            .await
            .database(&scratch.database)
            .collection::<Document>(called);
        leases
            .insert_one(doc! { "_id": "job", "generation": "seven" })
            .await
            .expect("inserted");
        let error = store.get(&name("job")).await.expect_err("it is no lease");
        let command = format!("db.getCollection(\"{called}\").find({{_id: \"job\"}})");
        assert!(error.message.contains(&command), "{error}");
    }
}
