//! Cleaning up beside those who use the records.
use crate::common::Scratch;
use crate::meddling::{Meddling, meddling};
use tenure_conformance::asking::{
    clean_up_keeps_what_was_taken, clean_up_passes_by_what_is_locked, name, unused_for_a_day, use_once,
};
use tenure_conformance::wire::bounded;
use tenure_core::{LeasePurge, Purging};
use tenure_postgres::PostgresStore;
use tenure_testkit::Postgres;

/// Makes the records of these leases, which nobody has used for a day.
pub async fn unused(scratch: &Scratch, leases: &[&str]) {
    use_once(&scratch.store().await, leases).await;
    let a_day_ago = "UPDATE {schema}.leases SET acquired_at = acquired_at - interval '1 day', \
                     expires_at = expires_at - interval '1 day', released_at = released_at - interval '1 day', \
                     token = token - 86400000";
    scratch.sql(a_day_ago).await;
}

/// A clock that was set back is behind the tokens of before. When it has just passed one, a small step back
/// would have the same token come again, if the record were gone by then.
#[tokio::test]
async fn record_of_postgres_whose_token_the_clock_has_just_passed_is_kept() {
    let scratch = Scratch::new().await;
    unused(&scratch, &["passed", "past"]).await;
    let passed =
        "UPDATE {schema}.leases SET token = extract(epoch FROM now()) * 1000 - 1000 WHERE name = 'passed'";
    scratch.sql(passed).await;
    let store = scratch.store().await;
    let purged = store.purge(&unused_for_a_day(Purging::Removes)).await.unwrap();
    assert_eq!((purged.unused, purged.removed), (vec![name("past")], 1));
}

#[tokio::test]
async fn clean_up_passes_by_a_record_of_postgres_that_somebody_keeps_locked() {
    let scratch = Scratch::new().await;
    unused(&scratch, &["a", "b", "c"]).await;
    let store = scratch.store().await;
    let mut client = scratch.client().await;
    let transaction = client.transaction().await.unwrap();
    let lock = format!(
        "SELECT FROM {}.leases WHERE name = 'b' FOR UPDATE",
        scratch.schema
    );
    transaction.execute(&lock, &[]).await.unwrap();
    let let_go = async { transaction.rollback().await.unwrap() };
    let passing = clean_up_passes_by_what_is_locked(&store, let_go);
    bounded("a clean-up", passing).await;
}

/// A record that is used again when it is about to be removed keeps its holder.
#[tokio::test]
async fn what_is_taken_between_the_look_and_the_removal_stays_in_postgres() {
    let scratch = Scratch::new().await;
    unused(&scratch, &["a", "b"]).await;
    let taken = format!(
        "UPDATE {}.leases SET released_at = NULL, expires_at = expires_at + interval '2 days' WHERE name = 'a'",
        scratch.schema
    );
    let taken: &str = taken.leak();
    let (address, _) = meddling(Postgres::shared().await.address(), move |request| {
        match request.windows(11).any(|piece| piece == b"DELETE FROM") {
            true => Meddling::Precedes(taken),
            false => Meddling::Nothing,
        }
    })
    .await;
    let uri = format!("postgres://postgres@{address}/postgres");
    let url = scratch.url_on(&uri, "sslmode=disable");
    let store = PostgresStore::connect(&url).await.unwrap();
    bounded("a clean-up", clean_up_keeps_what_was_taken(&store)).await;
}
