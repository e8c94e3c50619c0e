//! Many locks and many waiters, in SQLite.
use crate::harness::{Site, many};
use std::time::Duration;

#[tokio::test]
async fn a_beat_extends_all_locks_in_sqlite_and_one_that_is_lost_disturbs_none() {
    let site = Site::new();
    let file = site.file();
    let tamper = || async move {
        let connection = rusqlite::Connection::open(file).unwrap();
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        let changed = connection
            .execute(
                "UPDATE lease SET token = token + 1 WHERE name = ?1",
                [many::VICTIM],
            )
            .unwrap();
        assert_eq!(changed, 1);
    };
    let ttl = Duration::from_secs(20);
    many::a_beat_extends_all_and_one_that_is_lost_disturbs_none(site.store(), ttl, tamper).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_tasks_lose_no_update_in_sqlite() {
    let site = Site::new();
    many::sixty_four_tasks_lose_no_update([site.store(), site.store(), site.store(), site.store()]).await;
}
