//! Cleaning up after days, which only records that are made to look old have seen; the rest is in the
//! conformance suite.

use crate::common::{Asker, Scratch, grant, name};
use std::time::Duration;
use tenure_conformance::asking::unused_for_a_day;
use tenure_core::{Acquired, LeasePurge, LeaseStore, Purge, Purged, Purging};
use tenure_sqlite::SqliteStore;

/// As long ago as a record can be.
const LONG_AGO: &str = "UPDATE lease SET last_renewed_at = '2020-01-01T00:00:00.000Z', token = 1577836800000";

async fn purge(store: &SqliteStore, request: &Purge) -> Purged {
    store.purge(request).await.unwrap()
}

async fn released(store: &SqliteStore, lease: &str) -> tenure_core::FencingToken {
    let asker = Asker::new(lease);
    let token = grant(store, &asker, lease).await.token;
    store
        .release(&[asker.release(lease, token)])
        .await
        .remove(0)
        .unwrap();
    token
}

#[tokio::test]
async fn what_nobody_has_used_for_long_is_removed_and_the_next_token_is_greater() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let old = released(&store, "old").await;
    scratch.sql(LONG_AGO);
    let young = released(&store, "young").await;
    let purged = purge(&store, &unused_for_a_day(Purging::Removes)).await;
    assert_eq!(
        (purged.unused, purged.removed, purged.next),
        (vec![name("old")], 1, None)
    );
    assert_eq!(store.get(&name("old")).await.unwrap(), None);
    assert_eq!(store.get(&name("young")).await.unwrap().unwrap().token, young);
    let again = grant(&store, &Asker::new("next"), "old").await;
    assert!(again.token > old, "{} after {old}", again.token);
}

#[tokio::test]
async fn a_record_of_another_boot_is_kept_until_it_was_watched_for_its_ttl() {
    // Until it can be asked for within its ttl, on a machine however slow.
    for ttl_ms in [400, 2_000, 10_000] {
        let scratch = Scratch::new();
        let store = scratch.open();
        grant(&store, &Asker::new("holder").ttl_ms(ttl_ms), "job").await;
        scratch.sql(LONG_AGO);
        scratch.sql("UPDATE lease SET boot_id = 'another'");
        // It is watched from here on.
        assert_eq!(
            purge(&store, &unused_for_a_day(Purging::Removes)).await.removed,
            0
        );
        let other = Asker::new("other");
        let Acquired::Held(lease) = store.acquire(&other.acquire("job")).await.unwrap() else {
            continue;
        };
        tokio::time::sleep(lease.remaining + Duration::from_millis(50)).await;
        assert_eq!(
            purge(&store, &unused_for_a_day(Purging::Removes)).await.removed,
            1
        );
        let left: i64 = scratch
            .raw()
            .query_row("SELECT count(*) FROM sighting", [], |row| row.get(0))
            .unwrap();
        assert_eq!(left, 0, "what was noted of it goes with it");
        return;
    }
    panic!("nobody came while the lease was watched");
}

/// The place of a candidate that died with its machine: nobody will ever ask for it again.
#[tokio::test]
async fn a_record_of_another_boot_that_nobody_asks_for_is_found_by_two_looks_a_ttl_apart() {
    let scratch = Scratch::new();
    let store = scratch.open();
    for (purging, lease) in [(Purging::OnlyLooks, "looked at"), (Purging::Removes, "removed")] {
        grant(&store, &Asker::new("holder").ttl_ms(300), lease).await;
        scratch.sql(LONG_AGO);
        scratch.sql("UPDATE lease SET boot_id = 'another'");
        let mut request = unused_for_a_day(purging);
        request.prefix = lease.to_owned();
        assert_eq!(purge(&store, &request).await.unused, vec![], "{lease}");
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert_eq!(purge(&store, &request).await.unused, vec![name(lease)]);
    }
}

#[tokio::test]
async fn ten_ttls_count_at_least_whatever_is_asked_for() {
    let scratch = Scratch::new();
    let store = scratch.open();
    released(&store, "job").await;
    let mut at_once = unused_for_a_day(Purging::Removes);
    at_once.unused_for = Duration::ZERO;
    assert_eq!(purge(&store, &at_once).await.unused, vec![]);
    // The clock has passed its token long since: by that alone it would be removed.
    scratch.sql("UPDATE lease SET token = token - 400000");
    let renewed_before = |seconds: u32| {
        scratch.sql(&format!(
            "UPDATE lease SET last_renewed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-{seconds} seconds')"
        ));
    };
    renewed_before(310);
    assert_eq!(
        purge(&store, &at_once).await.unused,
        vec![],
        "30 s, and ten times 30 s"
    );
    renewed_before(331);
    assert_eq!(purge(&store, &at_once).await.unused, vec![name("job")]);
}

/// A clock that is set back a little afterwards would let the next token fall.
#[tokio::test]
async fn record_of_sqlite_whose_token_the_clock_has_just_passed_is_kept() {
    let scratch = Scratch::new();
    let store = scratch.open();
    for lease in ["passed", "past"] {
        released(&store, lease).await;
    }
    scratch.sql(LONG_AGO);
    scratch.sql("UPDATE lease SET token = strftime('%s', 'now') * 1000 - 1000 WHERE name = 'passed'");
    let purged = purge(&store, &unused_for_a_day(Purging::Removes)).await;
    assert_eq!((purged.unused, purged.removed), (vec![name("past")], 1));
}

#[tokio::test]
async fn a_token_ahead_of_the_clock_and_what_cannot_be_understood_are_kept() {
    let scratch = Scratch::new();
    let store = scratch.open();
    for lease in ["ahead", "damaged", "undated"] {
        released(&store, lease).await;
    }
    scratch.sql(LONG_AGO);
    scratch.sql("UPDATE lease SET token = 9000000000000000 WHERE name = 'ahead'");
    scratch.sql("UPDATE lease SET wish = 'strange' WHERE name = 'damaged'");
    scratch.sql("UPDATE lease SET last_renewed_at = 'yesterday' WHERE name = 'undated'");
    let purged = purge(&store, &unused_for_a_day(Purging::Removes)).await;
    assert_eq!((purged.unused, purged.removed), (vec![], 0));
}
