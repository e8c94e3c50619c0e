//! A balance that only the current term changes: `cargo run -p tenure-postgres --example fenced --
//! postgres://…`.
//!
//! Makes the schema `tenure` in that database, and a table of its own, which it removes at its end. Adds five
//! cents as term 1 of a lease, lets term 2 claim, and shows that term 1 is refused: by the fence in its own
//! transaction, and by the table itself.

#![allow(clippy::unwrap_used, reason = "the example shows a refusal")]

use tenure_core::{Fence, FencingToken, LeaseName, Leases, ResourceName, Term};
use tenure_postgres::tokio_postgres::{Client, NoTls};
use tenure_postgres::{PostgresFence, PostgresStore};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().nth(1).ok_or("give the URL of a database")?).await
}

/// Shows it in the database of this URL.
pub async fn run(url: &str) -> Result<(), Box<dyn std::error::Error>> {
    PostgresStore::init(url).await?;
    let fence = PostgresFence::connect(url, Leases::Here).await?;
    let (mut client, connection) = tenure_postgres::tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    // One that is there already is somebody's, and ends this.
    let table = format!("tenure_example_{}", std::process::id());
    client
        .batch_execute(&format!(
            "CREATE TABLE {table} (cents bigint); INSERT INTO {table} VALUES (0)"
        ))
        .await?;
    let shown = show(&mut client, &fence, &table).await;
    client.batch_execute(&format!("DROP TABLE {table}")).await?;
    shown
}

async fn show(
    client: &mut Client,
    fence: &PostgresFence,
    table: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    // A name of its own each time: marks only rise. A leader has its term from `Leadership::term()`.
    let ledger = ResourceName::new(table)?;
    let term = |number| {
        Ok::<_, Box<dyn std::error::Error>>(Term::new(LeaseName::new("nightly")?, FencingToken::new(number)?))
    };
    let (old, new) = (term(1)?, term(2)?);

    fence.claim(&ledger, &old).await?;
    println!(
        "{old}: {:?}",
        add_five(client, fence, table, &ledger, &old).await?
    );
    fence.claim(&ledger, &new).await?;
    println!(
        "{old}, after the claim of the next: {}",
        add_five(client, fence, table, &ledger, &old).await.unwrap_err()
    );
    println!(
        "{new}: {:?}",
        add_five(client, fence, table, &ledger, &new).await?
    );

    fence.guard(table, &ledger).await?;
    let unknowing = client
        .execute(&format!("UPDATE {table} SET cents = 0"), &[])
        .await;
    println!(
        "a program that knows nothing of Tenure: {}",
        unknowing.unwrap_err()
    );
    fence.unguard(table).await?;
    Ok(())
}

/// Enters first, then writes: both in one transaction.
async fn add_five(
    client: &mut Client,
    fence: &PostgresFence,
    table: &str,
    ledger: &ResourceName,
    term: &Term,
) -> Result<i64, Box<dyn std::error::Error>> {
    let transaction = client.transaction().await?;
    fence.enter(&transaction, ledger, term).await?;
    let row = transaction
        .query_one(
            &format!("UPDATE {table} SET cents = cents + 5 RETURNING cents"),
            &[],
        )
        .await?;
    transaction.commit().await?;
    Ok(row.get(0))
}
