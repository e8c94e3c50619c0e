//! The collection of orders.

use crate::Outcome;
use crate::arguments::Make;
use mongodb::bson::{Document, doc};
use mongodb::options::{CollectionOptions, WriteConcern};
use mongodb::{Client, Collection, Database};

/// The database that a URL names.
pub async fn database(shop: &str) -> Outcome<Database> {
    let client = Client::with_uri_str(shop).await?;
    let named = client.default_database();
    named.ok_or_else(|| "--shop names no database; write it like mongodb://HOST/shop".into())
}

/// A claim that a fail-over takes back would fence nobody: a majority has it.
pub fn orders(database: &Database) -> Collection<Document> {
    let options = CollectionOptions::builder()
        .write_concern(WriteConcern::majority())
        .build();
    database.collection_with_options("orders", options)
}

/// Makes orders, numbered from 1.
pub async fn make(options: Make) -> Outcome<()> {
    let made = (1..=options.orders).map(|number| {
        let grams = number * 377 % 5_000 + 20;
        doc! { "_id": number, "grams": grams, "status": "paid", "shipments": 0_i64 }
    });
    orders(&database(&options.shop).await?).insert_many(made).await?;
    println!("made {} orders", options.orders);
    Ok(())
}

/// The next orders that are paid, lowest number first.
pub async fn next_paid(orders: &Collection<Document>, batch: i64) -> Outcome<Vec<i64>> {
    let paid = orders.find(doc! { "status": "paid" });
    let mut found = paid
        .sort(doc! { "_id": 1 })
        .limit(batch)
        .projection(doc! { "_id": 1 })
        .await?;
    let mut numbers = Vec::new();
    while found.advance().await? {
        numbers.push(found.deserialize_current()?.get_i64("_id")?);
    }
    Ok(numbers)
}

/// How each of these orders goes out, of those that are still paid.
pub async fn plan(orders: &Collection<Document>, numbers: &[i64]) -> Outcome<Vec<(i64, &'static str)>> {
    let mut found = orders
        .find(doc! { "_id": { "$in": numbers }, "status": "paid" })
        .await?;
    let mut plan = Vec::new();
    while found.advance().await? {
        let order = found.deserialize_current()?;
        let carrier = if order.get_i64("grams")? < LETTER_GRAMS_MAX {
            "letter"
        } else {
            "parcel"
        };
        plan.push((order.get_i64("_id")?, carrier));
    }
    Ok(plan)
}

/// Up to here an order goes as a letter.
const LETTER_GRAMS_MAX: i64 = 1_000;
