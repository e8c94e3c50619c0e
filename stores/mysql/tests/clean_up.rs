//! Cleaning up beside those who use the records.
use crate::common::{Scratch, row_locked};
use crate::short_sessions::{Fate, between};
use tenure_conformance::asking::{
    clean_up_keeps_what_was_taken, clean_up_passes_by_what_is_locked, name, unused_for_a_day, use_once,
};
use tenure_conformance::wire::bounded;
use tenure_core::{LeasePurge, Purging};
use tenure_mysql::MysqlStore;
use tenure_testkit::Mariadb;

/// Makes the records of these leases, which nobody has used for a day.
async fn unused(scratch: &Scratch, leases: &[&str]) {
    use_once(&scratch.store().await, leases).await;
    let a_day_ago = "UPDATE tenure_leases SET acquired_us = acquired_us - 86400000000, expires_us = expires_us - 86400000000, \
                     released_us = released_us - 86400000000, token = token - 86400000";
    scratch.sql(a_day_ago).await;
}

/// A clock that was set back is behind the tokens of before. When it has just passed one, who has begun to
/// take the lease a moment ago may still do so by the clock of that moment: where the record was gone by
/// then, the same token would come again.
#[tokio::test]
async fn record_of_mysql_whose_token_the_clock_has_just_passed_is_kept() {
    let scratch = Scratch::new().await;
    unused(&scratch, &["passed", "past"]).await;
    let passed = "UPDATE tenure_leases SET token = UNIX_TIMESTAMP() * 1000 - 1000 WHERE name = 'passed'";
    scratch.sql(passed).await;
    let store = scratch.store().await;
    let purged = store.purge(&unused_for_a_day(Purging::Removes)).await.unwrap();
    assert_eq!((purged.unused, purged.removed), (vec![name("past")], 1));
}

#[tokio::test]
async fn clean_up_passes_by_a_record_of_mysql_that_somebody_keeps_locked() {
    let scratch = Scratch::new().await;
    unused(&scratch, &["a", "b", "c"]).await;
    let store = scratch.store().await;
    let mut client = scratch.client().await;
    let locked = row_locked(&mut client, "b").await;
    let let_go = async { locked.rollback().await.unwrap() };
    let passing = clean_up_passes_by_what_is_locked(&store, let_go);
    bounded("a clean-up", passing).await;
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
    bounded("a clean-up", clean_up_keeps_what_was_taken(&store)).await;
}
