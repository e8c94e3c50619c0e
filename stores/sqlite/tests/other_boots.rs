//! A record of another boot, or of another machine, is claimed only after its whole ttl was watched.

use crate::common::{Asker, Scratch, grant, held, name};
use std::time::{Duration, Instant};
use tenure_core::{Acquired, Ask, Asked, LeaseStore, Listed, Occupancy, Page, Released, Renewed};
use tenure_testkit::eventually_async;

const OTHER_BOOT: &str = "UPDATE lease SET boot_id = '00000000-0000-4000-8000-000000000000'";

#[tokio::test]
async fn a_record_of_another_boot_waits_out_its_whole_ttl() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let first = grant(&store, &Asker::new("first").ttl_ms(500), "job").await;
    // Expired by its own numbers: they are another clock's and mean nothing.
    scratch.sql("UPDATE lease SET acquired_ns = 1, renewed_ns = 1, expires_ns = 2");
    scratch.sql(OTHER_BOOT);
    let second = Asker::new("second");
    let began = Instant::now();
    let lease = held(&store, &second, "job").await;
    assert!(
        lease.remaining <= Duration::from_micros(501_250),
        "{:?}",
        lease.remaining
    );
    assert!(
        lease.remaining > Duration::from_millis(400),
        "{:?}",
        lease.remaining
    );
    let taken = loop {
        assert!(began.elapsed() < crate::common::PATIENCE, "never free");
        match store.acquire(&second.acquire("job")).await.unwrap() {
            Acquired::Held(lease) => tokio::time::sleep(lease.remaining).await,
            Acquired::Granted(grant) => break grant,
            Acquired::Superseded => panic!("superseded"),
        }
    };
    assert!(
        began.elapsed() >= Duration::from_millis(500),
        "{:?}",
        began.elapsed()
    );
    assert!(taken.token > first.token);
    assert_eq!(taken.terms, 2);
}

#[tokio::test]
async fn processes_that_live_shorter_than_the_ttl_watch_together() {
    // Until more than one fits into a ttl, on a machine however slow.
    for ttl_ms in [400, 2_000, 10_000] {
        let scratch = Scratch::new();
        let _first = grant(&scratch.open(), &Asker::new("first").ttl_ms(ttl_ms), "job").await;
        scratch.sql(OTHER_BOOT);
        let began = Instant::now();
        // Each round is a process of its own: it opens, asks once, and is gone.
        let mut rounds = 0;
        while let Acquired::Held(_) = {
            let store = scratch.open();
            store.acquire(&Asker::new("cron").acquire("job")).await.unwrap()
        } {
            rounds += 1;
            assert!(
                began.elapsed() < crate::common::PATIENCE,
                "no progress in {rounds} rounds"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(began.elapsed() >= Duration::from_millis(ttl_ms));
        if rounds > 1 {
            return;
        }
    }
    panic!("none of them came while the lease was held");
}

#[tokio::test]
async fn a_record_that_changes_is_watched_anew() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let _first = grant(&store, &Asker::new("first").ttl_ms(20_000), "job").await;
    scratch.sql(OTHER_BOOT);
    let second = Asker::new("second");
    drop(held(&store, &second, "job").await);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let watched = held(&store, &second, "job").await.remaining;
    assert!(watched < Duration::from_millis(19_750), "{watched:?}");
    // Its holder, on its own machine, renews.
    scratch.sql("UPDATE lease SET version = version + 1, renewed_ns = renewed_ns + 5");
    let anew = held(&store, &second, "job").await.remaining;
    assert!(anew > Duration::from_millis(19_900), "{anew:?}");
}

/// No clock of this boot has written it: counted from there, nobody would have the lease for an hour.
#[tokio::test]
async fn a_sighting_from_the_future_of_our_clock_is_made_anew() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let _first = grant(&store, &Asker::new("first").ttl_ms(500), "job").await;
    scratch.sql(OTHER_BOOT);
    let second = Asker::new("second");
    drop(held(&store, &second, "job").await);
    scratch.sql("UPDATE sighting SET first_seen_ns = first_seen_ns + 3600000000000");
    let began = Instant::now();
    let is_taken = async || {
        matches!(
            store.acquire(&second.acquire("job")).await,
            Ok(Acquired::Granted(_))
        )
    };
    eventually_async(crate::common::PATIENCE, "it is taken", is_taken).await;
    assert!(began.elapsed() >= Duration::from_millis(500));
}

#[tokio::test]
async fn a_vacant_record_of_another_boot_is_taken_at_once() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let asker = Asker::new("first");
    let first = grant(&store, &asker, "job").await;
    store.release(&[asker.release("job", first.token)]).await[0]
        .clone()
        .unwrap();
    scratch.sql(OTHER_BOOT);
    let second = grant(&store, &Asker::new("second"), "job").await;
    assert!(second.token > first.token);
}

#[tokio::test]
async fn nothing_renews_or_reaches_a_holder_of_another_boot() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let asker = Asker::new("first");
    let first = grant(&store, &asker, "job").await;
    scratch.sql(OTHER_BOOT);
    let renewed = store.renew(&[asker.renew("job", first.token)]).await;
    assert!(
        matches!(&renewed[..], [Ok(Renewed::Lost(Some(_)))]),
        "{renewed:?}"
    );
    let ask = Ask {
        name: name("job"),
        token: first.token,
    };
    assert_eq!(store.ask(&ask).await.unwrap(), Asked::NotHeld);
    // Even the same attempt is not answered with its term: its expiry cannot be extended by our clock.
    drop(held(&store, &asker, "job").await);
    let released = store.release(&[asker.release("job", first.token)]).await;
    assert_eq!(released, [Ok(Released::Vacated)]);
}

#[tokio::test]
async fn a_record_from_the_future_of_our_clock_is_watched_like_another_boots() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let _first = grant(&store, &Asker::new("first").ttl_ms(1_000), "job").await;
    let hour = "3600000000000";
    scratch.sql(&format!(
        "UPDATE lease SET acquired_ns = acquired_ns + {hour}, renewed_ns = renewed_ns + {hour}, \
         expires_ns = expires_ns + {hour}"
    ));
    let lease = held(&store, &Asker::new("second"), "job").await;
    assert!(
        lease.remaining <= Duration::from_millis(1_002),
        "{:?}",
        lease.remaining
    );
}

/// A queue looks at the places of its candidates and never asks for another's: after a power cut it would
/// wait for ever for one that was held then.
#[tokio::test]
async fn a_record_of_another_boot_that_is_only_looked_at_expires() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let first = Asker::new("first").ttl_ms(400);
    for lease in ["listed", "read"] {
        let _granted = grant(&store, &first, lease).await;
    }
    scratch.sql(OTHER_BOOT);
    let page = Page::first("list", 100);
    let began = Instant::now();
    let listed = || async {
        let page = store.list(&page).await.unwrap();
        let [Listed::Lease(lease)] = &page.leases[..] else {
            panic!("{page:?}");
        };
        lease.occupancy() == Occupancy::Expired
    };
    eventually_async(crate::common::PATIENCE, "a listed record expires", listed).await;
    assert!(began.elapsed() >= Duration::from_millis(400));
    let began = Instant::now();
    let read =
        || async { store.get(&name("read")).await.unwrap().unwrap().occupancy() == Occupancy::Expired };
    eventually_async(crate::common::PATIENCE, "a record that was read expires", read).await;
    assert!(began.elapsed() >= Duration::from_millis(400));
}

/// Whoever looks gets an answer while another process writes, and what could not be noted then is noted
/// later.
#[tokio::test]
async fn a_record_of_another_boot_is_shown_also_while_its_sighting_cannot_be_noted() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let _granted = grant(&store, &Asker::new("first").ttl_ms(400), "job").await;
    scratch.sql(OTHER_BOOT);
    let writer = scratch.raw();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let lease = store.get(&name("job")).await.unwrap().unwrap();
    assert_eq!(lease.occupancy(), Occupancy::Held);
    writer.execute_batch("COMMIT").unwrap();
    let expired =
        || async { store.get(&name("job")).await.unwrap().unwrap().occupancy() == Occupancy::Expired };
    eventually_async(crate::common::PATIENCE, "it expires", expired).await;
}
