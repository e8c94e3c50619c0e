//! What a fence adds to a write: the same write with and without it, taking turns.

use super::kind::Kind;
use super::mongodb::client;
use super::place::Place;
use super::register::{Outcome, resource, term};
use crate::figures::{Samples, judge, milliseconds};
use mongodb::bson::{Document, doc};
use mongodb::{Client, ClientSession, Collection};
use std::time::Instant;
use tenure::Fence;
use tenure::mongodb::MongoFence;

/// Turns that are not counted.
const WARM_UP: u32 = 50;

/// Of a number and its history, of a kind that has something to compare with.
pub async fn of_a_write(kind: Kind, rounds: u32) {
    let place = Place::start(kind).await;
    let (register, term) = (&*place.register, term(1));
    register.claim(&term).await.expect("the first term claims");
    let (mut raw, mut ours) = (Samples::default(), Samples::default());
    for round in 0..rounds + WARM_UP {
        if round == WARM_UP {
            (raw, ours) = (Samples::default(), Samples::default());
        }
        let (read, start) = (i64::from(round), Instant::now());
        register.write_bare(read).expect("there is one").await;
        raw.add(start.elapsed());
        let start = Instant::now();
        assert_eq!(register.write(&term, read).await, Outcome::Accepted);
        ours.add(start.elapsed());
    }
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
    let fence = MongoFence::new(&database);
    let claimed = Instant::now();
    fence.claim(&resource(), &term(1)).await.unwrap();
    println!("MongoDB, three nodes, {rounds} rounds of each, taking turns:");
    println!("  a claim took {:.1} ms", milliseconds(claimed.elapsed()));

    let fenced = fence.documents(&resource(), &term(1), &accounts).await.unwrap();
    let (mut raw, mut ours) = (Samples::default(), Samples::default());
    for round in 0..rounds + WARM_UP {
        if round == WARM_UP {
            (raw, ours) = (Samples::default(), Samples::default());
        }
        let change = || doc! { "$inc": { "cents": 1_i64 } };
        let start = Instant::now();
        accounts.update_one(doc! { "_id": 1 }, change()).await.unwrap();
        raw.add(start.elapsed());
        let start = Instant::now();
        fenced.update_one(doc! { "_id": 2 }, change()).await.unwrap();
        ours.add(start.elapsed());
    }
    report("update_one", &raw, &ours);

    let (mut raw, mut ours) = (Samples::default(), Samples::default());
    for round in 0..rounds + WARM_UP {
        if round == WARM_UP {
            (raw, ours) = (Samples::default(), Samples::default());
        }
        let start = Instant::now();
        let mut session = begin(&client).await;
        book(&accounts, &mut session).await;
        raw.add(start.elapsed());
        let start = Instant::now();
        let mut session = begin(&client).await;
        fence.enter(&mut session, &resource(), &term(1)).await.unwrap();
        book(&accounts, &mut session).await;
        ours.add(start.elapsed());
    }
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
