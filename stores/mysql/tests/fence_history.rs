//! The history of what terms wrote that followed each other behind the fence.
use crate::common::Scratch;
use crate::fence::{fenced, ledger};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, TxOpts};
use std::sync::Arc;
use std::time::Duration;
use tenure_conformance::register::{Register, terms_follow_each_other};
use tenure_core::{Answer, FenceError, Term};
use tenure_mysql::MysqlFence;

/// The cents of the account, and a row for each write.
struct Account {
    client: Conn,
    fence: MysqlFence,
}

impl Account {
    async fn of(scratch: &Scratch, fence: &MysqlFence) -> Self {
        Self {
            client: scratch.client().await,
            fence: fence.clone(),
        }
    }
}

impl Register for Account {
    fn read(&mut self) -> Answer<'_, u64> {
        Box::pin(async {
            let cents = self.client.query_first("SELECT cents FROM account").await;
            cents.unwrap().unwrap()
        })
    }

    fn write<'a>(&'a mut self, term: &'a Term, read: u64) -> Answer<'a, Result<(), FenceError>> {
        Box::pin(async move {
            let mut transaction = self.client.start_transaction(TxOpts::default()).await.unwrap();
            if let Err(refused) = self.fence.enter(&mut transaction, &ledger(), term).await {
                transaction.rollback().await.unwrap();
                return Err(refused);
            }
            // A program's own work: a claim that did not wait for this transaction would come in between.
            tokio::time::sleep(Duration::from_millis(20)).await;
            // The row of the account is locked from here to the end: writes are noted in the order of their
            // effect.
            let write = format!("UPDATE account SET cents = {}", read + 1);
            transaction.query_drop(write).await.unwrap();
            let note = format!("INSERT INTO history (token, was) VALUES ({}, {read})", term.token);
            transaction.query_drop(note).await.unwrap();
            transaction.commit().await.unwrap();
            Ok(())
        })
    }

    fn history(&mut self) -> Answer<'_, Vec<(u64, u64)>> {
        Box::pin(async {
            let rows = self.client.query("SELECT token, was FROM history ORDER BY id");
            rows.await.unwrap()
        })
    }
}

#[tokio::test]
async fn no_accepted_write_is_lost_between_two_terms_in_mysql() {
    let (scratch, fence) = fenced().await;
    scratch
        .sql("CREATE TABLE history (id BIGINT PRIMARY KEY AUTO_INCREMENT, token BIGINT, was BIGINT)")
        .await;
    let mut terms = Vec::new();
    for _ in 0..16 {
        terms.push(Account::of(&scratch, &fence).await);
    }
    let judge = Account::of(&scratch, &fence).await;
    terms_follow_each_other(Arc::new(fence), &ledger(), terms, judge).await;
}
