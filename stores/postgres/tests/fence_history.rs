//! The history of what terms wrote that followed each other behind the fence.
use crate::common::Scratch;
use crate::fence::{fenced, ledger};
use std::sync::Arc;
use std::time::Duration;
use tenure_conformance::register::{Register, terms_follow_each_other};
use tenure_core::{Answer, FenceError, Term};
use tenure_postgres::PostgresFence;
use tokio_postgres::Client;

/// The cents of the account, and a row for each write.
struct Account {
    client: Client,
    fence: PostgresFence,
    schema: String,
}

impl Account {
    async fn of(scratch: &Scratch, fence: &PostgresFence) -> Self {
        Self {
            client: scratch.client().await,
            fence: fence.clone(),
            schema: scratch.schema.clone(),
        }
    }
}

impl Register for Account {
    fn read(&mut self) -> Answer<'_, u64> {
        Box::pin(async {
            let read = format!("SELECT cents FROM {}.account", self.schema);
            let cents: i64 = self.client.query_one(&read, &[]).await.unwrap().get(0);
            u64::try_from(cents).unwrap()
        })
    }

    fn write<'a>(&'a mut self, term: &'a Term, read: u64) -> Answer<'a, Result<(), FenceError>> {
        Box::pin(async move {
            let transaction = self.client.transaction().await.unwrap();
            self.fence.enter(&transaction, &ledger(), term).await?;
            // A program's own work: a claim that did not wait for this transaction would come in between.
            tokio::time::sleep(Duration::from_millis(20)).await;
            // The row of the account is locked from here to the end: writes are noted in the order of their
            // effect.
            let (schema, token) = (&self.schema, term.token);
            let write = format!(
                "UPDATE {schema}.account SET cents = {}; INSERT INTO {schema}.history (token, read) VALUES ({token}, {read})",
                read + 1
            );
            transaction.batch_execute(&write).await.unwrap();
            transaction.commit().await.unwrap();
            Ok(())
        })
    }

    fn history(&mut self) -> Answer<'_, Vec<(u64, u64)>> {
        Box::pin(async {
            let read = format!("SELECT token, read FROM {}.history ORDER BY id", self.schema);
            let rows = self.client.query(&read, &[]).await.unwrap();
            let number = |of: i64| u64::try_from(of).unwrap();
            rows.iter()
                .map(|row| (number(row.get(0)), number(row.get(1))))
                .collect()
        })
    }
}

#[tokio::test]
async fn no_accepted_write_is_lost_between_two_terms_in_postgres() {
    let (scratch, fence) = fenced().await;
    scratch
        .sql("CREATE TABLE {schema}.history (id bigint GENERATED ALWAYS AS IDENTITY, token bigint, read bigint)")
        .await;
    let mut terms = Vec::new();
    for _ in 0..16 {
        terms.push(Account::of(&scratch, &fence).await);
    }
    let judge = Account::of(&scratch, &fence).await;
    terms_follow_each_other(Arc::new(fence), &ledger(), terms, judge).await;
}
