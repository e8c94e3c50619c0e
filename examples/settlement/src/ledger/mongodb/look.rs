//! Reading the ledger.

use super::{ACCOUNT, BATCH, SETTLED};
use crate::ledger::{Committed, LedgerError, Row};
use crate::payments::Payment;
use mongodb::Database;
use mongodb::bson::{Document, RawDocument, RawDocumentBuf, doc};
use std::collections::BTreeMap;

/// What the document of the checkpoint says.
pub fn settled(checkpoint: Option<Document>) -> Result<u64, LedgerError> {
    checkpoint
        .and_then(|checkpoint| checkpoint.get_i64("settled").ok())
        .and_then(|settled| u64::try_from(settled).ok())
        .ok_or_else(|| {
            LedgerError::Trouble("the ledger: the checkpoint is missing or is no number".to_owned())
        })
}

pub async fn each_row(database: &Database, show: &mut (dyn FnMut(Row) + Send)) -> Result<(), LedgerError> {
    let settled = database.collection::<RawDocumentBuf>(SETTLED);
    let mut rows = settled.find(doc! {}).batch_size(ROWS_AT_ONCE).await?;
    while rows.advance().await? {
        let row = rows.current();
        show(Row {
            payment: Payment {
                id: number(row, "payment")?,
                debtor: number(row, "debtor")?,
                creditor: number(row, "creditor")?,
                cents: number(row, "cents")?,
            },
            token: number(row, "token")?,
        });
    }
    Ok(())
}

pub async fn balances(database: &Database) -> Result<BTreeMap<u32, i64>, LedgerError> {
    let mut accounts = database
        .collection::<RawDocumentBuf>(ACCOUNT)
        .find(doc! {})
        .await?;
    let mut balances = BTreeMap::new();
    while accounts.advance().await? {
        let account = accounts.current();
        balances.insert(number(account, "_id")?, number(account, "cents")?);
    }
    Ok(balances)
}

pub async fn batches(database: &Database) -> Result<Vec<Committed>, LedgerError> {
    let collection = database.collection::<RawDocumentBuf>(BATCH);
    let mut found = collection
        .find(doc! {})
        .sort(doc! { "start": 1, "token": 1 })
        .await?;
    let mut batches = Vec::new();
    while found.advance().await? {
        let batch = found.current();
        batches.push(Committed {
            start: number(batch, "start")?,
            payments: number(batch, "payments")?,
            token: number(batch, "token")?,
            instance: batch
                .get_str("instance")
                .map_err(|_| unreadable("instance"))?
                .to_owned(),
        });
    }
    Ok(batches)
}

fn number<T: TryFrom<i64>>(document: &RawDocument, field: &str) -> Result<T, LedgerError> {
    let number = document
        .get_i64(field)
        .ok()
        .and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| unreadable(field))
}

fn unreadable(field: &str) -> LedgerError {
    LedgerError::Trouble(format!(
        "the ledger: field \"{field}\" is missing or of another type or range"
    ))
}

/// Rows that the server sends in one answer.
const ROWS_AT_ONCE: u32 = 10_000;
