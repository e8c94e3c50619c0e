//! Cleaning up beside those who use the records.
use crate::common::{Scratch, give_back, name, request, seconds, take};
use crate::meddling::{Meddling, meddling};
use std::time::Duration;
use tenure_conformance::wire::bounded;
use tenure_core::{LeasePurge as _, LeaseStore, Purge, Purged, Purging};
use tenure_postgres::PostgresStore;
use tenure_testkit::Postgres;

/// Makes the records of these leases, which nobody has used for a day.
async fn unused(scratch: &Scratch, leases: &[&str]) {
    let store = scratch.store().await;
    for lease in leases {
        let asked = request(lease, "holder", seconds(1));
        let token = take(&store, &asked).await.token;
        give_back(&store, &asked, token).await;
    }
    let a_day_ago = "UPDATE {schema}.leases SET acquired_at = acquired_at - interval '1 day', \
                     expires_at = expires_at - interval '1 day', released_at = released_at - interval '1 day'";
    scratch.sql(a_day_ago).await;
}

async fn clean_up(store: &PostgresStore) -> Purged {
    let everything = Purge {
        prefix: String::new(),
        after: None,
        limit: 10,
        unused_for: Duration::from_secs(3_600),
        purging: Purging::Removes,
    };
    bounded("a clean-up", store.purge(&everything)).await.unwrap()
}

/// One that waited would keep the records before it locked meanwhile, and their names from who wants them.
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
    let purged = clean_up(&store).await;
    assert_eq!((purged.unused.len(), purged.removed), (3, 2), "{purged:?}");
    for lease in ["a", "c"] {
        assert_eq!(store.get(&name(lease)).await, Ok(None));
        take(&store, &request(lease, "another", seconds(60))).await;
    }
    transaction.rollback().await.unwrap();
    let purged = clean_up(&store).await;
    assert_eq!((purged.unused, purged.removed), (vec![name("b")], 1));
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
    let purged = clean_up(&store).await;
    assert_eq!(purged.removed, 1, "{purged:?}");
    let lease = store.get(&name("a")).await.unwrap().unwrap();
    assert!(!lease.released, "{lease:?}");
}
