//! Another program that notifies on the same server: until its commit is through, nobody else's notification
//! is.
use crate::common::{PATIENCE, Scratch, giving_back, request, seconds, take};
use crate::standbys::set;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tenure_core::{Acquire, Certainty, Fault, LeaseStore, Release, Released, StoreError};
use tenure_postgres::PostgresStore;
use tenure_testkit::{Postgres, eventually_async, in_one_of};
use tokio::time::sleep;

/// How long another's commit goes on while a release waits for it: longer than anybody waits for a row, and
/// less than a release waits for a commit.
const COMMITS_FOR: Duration = Duration::from_secs(1);

/// A release that has waited for so long may be told that the server is busy.
const WAITS_MAX: Duration = Duration::from_secs(2);

/// That a term has begun is told by a transaction a moment later, which has its row locked: if that is late,
/// it waits for the other's commit, too, and so does the row.
const BEGINS_ARE_TOLD_WITHIN: Duration = Duration::from_millis(300);

/// How often a machine may be too slow for it.
const ROUNDS_MAX: u32 = 5;

/// A server of the test's own: all of its databases have one queue.
struct Site {
    server: Postgres,
    scratch: Scratch,
    store: PostgresStore,
}

impl Site {
    async fn new() -> Self {
        let server = Postgres::start().await.unwrap();
        let scratch = Scratch::on(&server.uri()).await;
        scratch.sql("CREATE TABLE {schema}.other (number int)").await;
        let store = scratch.store().await;
        Self {
            server,
            scratch,
            store,
        }
    }

    async fn taken(&self, asked: &Acquire) -> Release {
        giving_back(asked, take(&self.store, asked).await.token)
    }

    /// Has commits wait for this standby.
    async fn follow(&self, standby: &str) {
        set(&self.server, &format!("synchronous_standby_names = '{standby}'")).await;
        let in_force = format!("SELECT current_setting('synchronous_standby_names') = '{standby}'");
        eventually_async(PATIENCE, "the setting", || self.scratch.value::<bool>(&in_force)).await;
    }

    /// What is answered while another's commit goes on, which waits for a standby that never comes; nothing
    /// if that took too long.
    async fn released_meanwhile(&self, releases: &[Release]) -> Option<Vec<Result<Released, StoreError>>> {
        self.follow("nobody").await;
        let other = self.scratch.client().await;
        let process: i32 = other
            .query_one("SELECT pg_backend_pid()", &[])
            .await
            .unwrap()
            .get(0);
        let notifies = format!(
            "BEGIN; INSERT INTO {}.other VALUES (1); NOTIFY anything; COMMIT",
            self.scratch.schema
        );
        let notifying = tokio::spawn(async move { other.batch_execute(&notifies).await });
        let commits =
            format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {process} AND wait_event = 'SyncRep'");
        self.until_one(&commits, "a commit that waits").await;
        let began = Instant::now();
        let (released, waited) = tokio::join!(self.store.release(releases), async {
            // As each that notifies does in its commit.
            let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'object' AND database = 0 AND objid = 0";
            self.until_one(waits, "a release that waits for the commit").await;
            sleep(COMMITS_FOR).await;
            self.scratch
                .value::<bool>(&format!("SELECT pg_cancel_backend({process})"))
                .await;
            began.elapsed()
        });
        // What is cancelled there is the wait alone.
        notifying.await.unwrap().unwrap();
        self.follow("").await;
        (waited < WAITS_MAX).then_some(released)
    }

    async fn until_one(&self, count: &str, what: &str) {
        let looker = self.scratch.client().await;
        let is_one = async || looker.query_one(count, &[]).await.unwrap().get::<_, i64>(0) == 1;
        eventually_async(PATIENCE, what, is_one).await;
    }
}

/// Of a lease for one round: what the round before could not release is held for a while.
fn new_name() -> String {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    format!("lease-{}", GIVEN.fetch_add(1, Ordering::Relaxed))
}

#[tokio::test]
async fn release_to_postgres_waits_until_the_commit_of_another_who_notifies_is_through() {
    let site = Site::new().await;
    in_one_of(ROUNDS_MAX, "the release waited for too long", || async {
        let release = site.taken(&request(&new_name(), "holder", seconds(60))).await;
        let released = site.released_meanwhile(&[release]).await;
        released.is_some_and(|released| {
            assert_eq!(released, [Ok(Released::Vacated)]);
            true
        })
    })
    .await;
}

/// The wait for a row is short, and no measure for that for the commit.
#[tokio::test]
async fn releases_of_which_one_waited_for_a_row_wait_no_less_for_the_commit_of_another_who_notifies() {
    let site = Site::new().await;
    in_one_of(ROUNDS_MAX, "the releases waited for too long", || async {
        let names = [new_name(), new_name()];
        let pair = [&names[0], &names[1]].map(|lease| request(lease, "holder", seconds(60)));
        let releases = [site.taken(&pair[0]).await, site.taken(&pair[1]).await];
        sleep(BEGINS_ARE_TOLD_WITHIN).await;
        let mut client = site.scratch.client().await;
        let transaction = client.transaction().await.unwrap();
        let lock = format!(
            "SELECT 1 FROM {}.leases WHERE name = '{}' FOR UPDATE",
            site.scratch.schema, names[0]
        );
        transaction.execute(&lock, &[]).await.unwrap();
        let released = site.released_meanwhile(&releases).await;
        transaction.rollback().await.unwrap();
        released.is_some_and(|released| {
            if matches!(&released[1], Err(error) if error.fault == Fault::Busy) {
                return false;
            }
            let error = released[0].as_ref().unwrap_err();
            assert_eq!(
                (error.fault, error.certainty),
                (Fault::Busy, Certainty::NotApplied),
                "{error}"
            );
            assert_eq!(released[1], Ok(Released::Vacated));
            true
        })
    })
    .await;
}
