//! The leader: reads a batch of orders, decides how each goes out, and writes all of it in one round trip.

use crate::Outcome;
use crate::arguments::Ship;
use crate::book;
use mongodb::Collection;
use mongodb::bson::{Document, doc};
use std::time::Duration;
use tenure::mongodb::{FencedCollection, FencedUpdate, MongoFence};
use tenure::{Authority, Election, Leadership, Leases, Registry, ResourceName, TimingOptions};

pub async fn run(options: Ship) -> Outcome<()> {
    let store = Registry::connect(&options.shop).await?;
    let election = Election::builder("shipping", store)
        .candidate(options.candidate.as_str())
        .timing(TimingOptions::new(options.ttl).check()?)
        .build()?;
    let database = book::database(&options.shop).await?;
    let orders = book::orders(&database);
    let fence = MongoFence::new(&database, Leases::Here);
    loop {
        println!("stands by");
        let leadership = election.campaign().await?;
        println!("leads with token {}", leadership.token());
        let led = lead(&leadership, &fence, &orders, &options).await;
        leadership.step_down().await;
        match led {
            Ok(()) => return Ok(()),
            Err(error) => println!("stops: {error}"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Before it campaigns again: what ended the work may end the next term's at once, and each term is a write
/// in the store.
const PAUSE: Duration = Duration::from_secs(1);

/// Ends when nothing is left to ship, or with what ends the term's work.
async fn lead(
    leadership: &Leadership,
    fence: &MongoFence,
    orders: &Collection<Document>,
    options: &Ship,
) -> Outcome<()> {
    // Claims the resource: an earlier term that comes only now is refused here. One that is at work is
    // refused by the documents.
    let resource = ResourceName::new("orders")?;
    let fenced = fence.documents(&resource, &leadership.term(), orders).await?;
    for _batch in 0..options.batches {
        if !matches!(leadership.authority(), Authority::Held { .. }) {
            return Err("leads no more, or not for certain".into());
        }
        let numbers = book::next_paid(orders, options.batch).await?;
        if numbers.is_empty() {
            println!("no order is left");
            return Ok(());
        }
        if !options.unfenced {
            // First claim the documents, then read what is decided by: what an earlier term still writes to
            // them is refused.
            fenced.claim_many(doc! { "_id": { "$in": &numbers } }).await?;
        }
        let plan = book::plan(orders, &numbers).await?;
        println!("has read {} orders", plan.len());
        // A process that is paused here, for longer than its lease lasts, writes when it wakes.
        tokio::time::sleep(options.think).await;
        if options.unfenced {
            ship_unfenced(orders, &plan, options).await?;
        } else {
            ship(&fenced, &plan, options).await?;
        }
        println!("has shipped {} orders", plan.len());
    }
    Ok(())
}

/// One round trip for the whole batch. Each document decides for itself: one that a later term has written or
/// claimed is left as it is, and the answer is a refusal; the others are changed.
async fn ship(fenced: &FencedCollection<Document>, plan: &[(i64, &str)], options: &Ship) -> Outcome<()> {
    let updates = plan
        .iter()
        .map(|(number, carrier)| FencedUpdate::one(doc! { "_id": number }, shipped(carrier, options)));
    if !plan.is_empty() {
        fenced.update_bulk(updates.collect()).await?;
    }
    Ok(())
}

async fn ship_unfenced(orders: &Collection<Document>, plan: &[(i64, &str)], options: &Ship) -> Outcome<()> {
    for (number, carrier) in plan {
        orders
            .update_one(doc! { "_id": number }, shipped(carrier, options))
            .await?;
    }
    Ok(())
}

/// Counts shipments, as a carrier would: nothing here hides a second one.
fn shipped(carrier: &str, options: &Ship) -> Document {
    doc! {
        "$set": { "status": "shipped", "carrier": carrier, "shipped_by": &options.candidate },
        "$inc": { "shipments": 1_i64 },
    }
}
