//! What a fence adds to a write: the same write with and without it, taking turns.

use super::kind::Kind;
use super::mongodb::client;
use super::place::Place;
use super::register::{Outcome, resource, term};
use crate::figures::{Samples, judge, milliseconds};
use crate::turns::taking_turns;
use mongodb::bson::{Document, doc};
use mongodb::{Client, ClientSession, Collection};
use std::time::Instant;
use tenure::mongodb::MongoFence;
use tenure::{Fence, Leases};

/// Turns that are not counted.
const WARM_UP: u32 = 50;

/// Of a number and its history, of a kind that has something to compare with.
pub async fn of_a_write(kind: Kind, rounds: u32) {
    let place = Place::start(kind).await;
    let (register, term) = (&*place.register, term(1));
    register.claim(&term).await.expect("the first term claims");
    let bare = async |round| register.write_bare(i64::from(round)).expect("there is one").await;
    let fenced = async |round| {
        let outcome = register.write(&term, i64::from(round)).await;
        assert_eq!(outcome, Outcome::Accepted);
    };
    let (raw, ours) = taking_turns(rounds, WARM_UP, bare, fenced).await;
    println!("  {rounds} writes of each, taking turns:");
    report("a write", &raw, &ours);
}

/// On MongoDB, by document and in a transaction.
pub async fn on_mongodb(uri: &str, rounds: u32) {
    let client = client(uri).await;
    let database = client.database("bench_cost");
    let accounts = database.collection::<Document>("accounts");
    for id in [1, 2] {
        accounts
            .insert_one(doc! { "_id": id, "cents": 0_i64 })
            .await
            .unwrap();
    }
    let fence = MongoFence::new(&database, Leases::Elsewhere);
    let claimed = Instant::now();
    fence.claim(&resource(), &term(1)).await.unwrap();
    println!("MongoDB, three nodes, {rounds} rounds of each, taking turns:");
    println!("  a claim took {:.1} ms", milliseconds(claimed.elapsed()));

    let fenced = fence.documents(&resource(), &term(1), &accounts).await.unwrap();
    let change = || doc! { "$inc": { "cents": 1_i64 } };
    let (raw, ours) = taking_turns(
        rounds,
        WARM_UP,
        async |_| {
            accounts.update_one(doc! { "_id": 1 }, change()).await.unwrap();
        },
        async |_| {
            fenced.update_one(doc! { "_id": 2 }, change()).await.unwrap();
        },
    )
    .await;
    report("update_one", &raw, &ours);

    let (raw, ours) = taking_turns(
        rounds,
        WARM_UP,
        async |_| {
            let mut session = begin(&client).await;
            book(&accounts, &mut session).await;
        },
        async |_| {
            let mut session = begin(&client).await;
            fence.enter(&mut session, &resource(), &term(1)).await.unwrap();
            book(&accounts, &mut session).await;
        },
    )
    .await;
    report("transaction", &raw, &ours);
}

async fn begin(client: &Client) -> ClientSession {
    let mut session = client.start_session().await.unwrap();
    session.start_transaction().await.unwrap();
    session
}

async fn book(accounts: &Collection<Document>, session: &mut ClientSession) {
    let change = doc! { "$inc": { "cents": 1_i64 } };
    accounts
        .update_one(doc! { "_id": 1 }, change)
        .session(&mut *session)
        .await
        .unwrap();
    session.commit_transaction().await.unwrap();
}

fn report(what: &str, raw: &Samples, ours: &Samples) {
    for (side, samples) in [("without", raw), ("fenced", ours)] {
        let (p50, p99) = (
            milliseconds(samples.percentile(50.0)),
            milliseconds(samples.percentile(99.0)),
        );
        println!("  {what}, {side:<7} p50 {p50:.3} ms, p99 {p99:.3} ms");
    }
    let ratio = ours.percentile(50.0).as_secs_f64() / raw.percentile(50.0).as_secs_f64();
    match what {
        "update_one" => judge(
            "  fenced update_one, p50, times the same without",
            ratio,
            1.15,
            "times",
        ),
        "transaction" => {
            let more = ours.percentile(50.0).saturating_sub(raw.percentile(50.0));
            println!(
                "  a fenced transaction: {ratio:.3} times the same without; {:.3} ms more, which is one command more, as a test counts",
                milliseconds(more)
            );
        }
        _ => println!("  fenced: {ratio:.3} times the same without"),
    }
}
