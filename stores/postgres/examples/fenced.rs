//! A balance that only the current term changes: `cargo run -p tenure-postgres --example fenced -- postgres://…`.
//!
//! Makes the schema `tenure` and a table `balance` in that database, adds five cents as term 1 of a lease, lets term 2
//! claim, and shows that term 1 is refused: by the fence in its own transaction, and by the table itself.

#![allow(clippy::unwrap_used, reason = "the example shows a refusal")]

use tenure_core::{Fence, FencingToken, LeaseName, ResourceName, Term};
use tenure_postgres::tokio_postgres::{Client, NoTls};
use tenure_postgres::{PostgresFence, PostgresStore};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("give the URL of a database")?;
    PostgresStore::init(&url).await?;
    let fence = PostgresFence::connect(&url).await?;
    let (mut client, connection) = tenure_postgres::tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    client
        .batch_execute("CREATE TABLE IF NOT EXISTS balance (cents bigint); TRUNCATE balance; INSERT INTO balance VALUES (0)")
        .await?;

    // A name of its own each time: marks only rise. A leader has its term from `Leadership::term()`.
    let ledger = ResourceName::new(format!("balance-{}", std::process::id()))?;
    let term = |number| {
        Ok::<_, Box<dyn std::error::Error>>(Term::new(LeaseName::new("nightly")?, FencingToken::new(number)?))
    };
    let (old, new) = (term(1)?, term(2)?);

    fence.claim(&ledger, &old).await?;
    println!("{old}: {:?}", add_five(&mut client, &fence, &ledger, &old).await?);
    fence.claim(&ledger, &new).await?;
    println!(
        "{old}, after the claim of the next: {}",
        add_five(&mut client, &fence, &ledger, &old).await.unwrap_err()
    );
    println!("{new}: {:?}", add_five(&mut client, &fence, &ledger, &new).await?);

    fence.guard("balance", &ledger).await?;
    let unknowing = client.execute("UPDATE balance SET cents = 0", &[]).await;
    println!(
        "a program that knows nothing of Tenure: {}",
        unknowing.unwrap_err()
    );
    fence.unguard("balance").await?;
    Ok(())
}

/// Enters first, then writes: both in one transaction.
async fn add_five(
    client: &mut Client,
    fence: &PostgresFence,
    ledger: &ResourceName,
    term: &Term,
) -> Result<i64, Box<dyn std::error::Error>> {
    let transaction = client.transaction().await?;
    fence.enter(&transaction, ledger, term).await?;
    let row = transaction
        .query_one("UPDATE balance SET cents = cents + 5 RETURNING cents", &[])
        .await?;
    transaction.commit().await?;
    Ok(row.get(0))
}
