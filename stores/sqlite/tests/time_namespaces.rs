//! Containers may have a time namespace, which shifts `CLOCK_BOOTTIME`: all must still agree on who holds.

use crate::common::child::{NAMESPACES_NEEDED, in_role_ahead, role};
use crate::common::{Asker, PATIENCE, Scratch, grant, held};
use std::time::Duration;
use tenure_sqlite::SqliteStore;
use tenure_testkit::Process;

const TTL: Duration = Duration::from_secs(120);
const TEN_DAYS_SECS: u64 = 864_000;

#[test]
fn as_a_child() {
    let Some((_, file)) = role() else { return };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            let store = SqliteStore::open(file).unwrap();
            let asker = Asker::new("inside").ttl_ms(120_000);
            let outer = held(&store, &asker, "held outside").await;
            assert!(outer.remaining <= TTL && outer.held_for < TTL, "{outer:?}");
            let _grant = grant(&store, &asker, "held inside").await;
            println!("both held");
            std::thread::sleep(PATIENCE);
        });
}

#[tokio::test]
async fn a_container_with_a_shifted_clock_agrees_with_its_host() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let asker = Asker::new("outside").ttl_ms(120_000);
    let _grant = grant(&store, &asker, "held outside").await;
    let inside = Process::spawn(in_role_ahead(
        TEN_DAYS_SECS,
        module_path!(),
        "inside",
        &scratch.file(),
    ))
    .unwrap();
    inside
        .wait_for_line("both held", PATIENCE)
        .unwrap_or_else(|error| panic!("{error}\n{NAMESPACES_NEEDED}"));
    let lease = held(&store, &asker, "held inside").await;
    // A record that this clock takes for another boot's would show its whole observation: more than the ttl.
    assert!(
        lease.remaining <= TTL && lease.remaining > Duration::ZERO,
        "{lease:?}"
    );
    assert!(lease.held_for < TTL, "{lease:?}");
}
