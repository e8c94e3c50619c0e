//! Cleaning up beside those who use the records.
use crate::common::{Scratch, give_back, name, request, row_locked, seconds, take};
use crate::short_sessions::{Fate, between};
use std::time::Duration;
use tenure_conformance::wire::bounded;
use tenure_core::{LeasePurge as _, LeaseStore, Purge, Purged, Purging};
use tenure_mysql::MysqlStore;
use tenure_testkit::Mariadb;

/// Makes the records of these leases, which nobody has used for a day.
async fn unused(scratch: &Scratch, leases: &[&str]) {
    let store = scratch.store().await;
    for lease in leases {
        let asked = request(lease, "holder", seconds(1));
        let token = take(&store, &asked).await.token;
        give_back(&store, &asked, token).await;
    }
    let a_day_ago = "UPDATE tenure_leases SET acquired_us = acquired_us - 86400000000, expires_us = expires_us - 86400000000, \
                     released_us = released_us - 86400000000";
    scratch.sql(a_day_ago).await;
}

async fn clean_up(store: &MysqlStore) -> Purged {
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
async fn clean_up_passes_by_a_record_of_mysql_that_somebody_keeps_locked() {
    let scratch = Scratch::new().await;
    unused(&scratch, &["a", "b", "c"]).await;
    let store = scratch.store().await;
    let mut client = scratch.client().await;
    let locked = row_locked(&mut client, "b").await;
    let purged = clean_up(&store).await;
    assert_eq!((purged.unused.len(), purged.removed), (3, 2), "{purged:?}");
    for lease in ["a", "c"] {
        assert_eq!(store.get(&name(lease)).await, Ok(None));
        take(&store, &request(lease, "another", seconds(60))).await;
    }
    locked.rollback().await.unwrap();
    let purged = clean_up(&store).await;
    assert_eq!((purged.unused, purged.removed), (vec![name("b")], 1));
}

/// A record that is used again when it is about to be removed keeps its holder.
#[tokio::test]
async fn what_is_taken_between_the_look_and_the_removal_stays_in_mysql() {
    let scratch = Scratch::new().await;
    unused(&scratch, &["a", "b"]).await;
    let url = scratch.url();
    let address = between(scratch.address.clone(), move |packet| {
        if packet.holds(b"DELETE ") {
            let url = url.clone();
            let taking = std::thread::spawn(move || {
                let taken = "UPDATE tenure_leases SET released_us = NULL, expires_us = expires_us + 172800000000 WHERE name = 'a'";
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime
                    .unwrap()
                    .block_on(Mariadb::execute_at(&url, taken))
                    .unwrap();
            });
            taking.join().unwrap();
        }
        Fate::Passed
    });
    let url = scratch.url_at("root", &address.await);
    let store = MysqlStore::connect(&url).await.unwrap();
    let purged = clean_up(&store).await;
    assert_eq!(purged.removed, 1, "{purged:?}");
    let lease = store.get(&name("a")).await.unwrap().unwrap();
    assert!(!lease.released, "{lease:?}");
}
