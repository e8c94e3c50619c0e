//! Containers may have a time namespace, which shifts `CLOCK_BOOTTIME`: all must still agree on who holds.

use crate::common::child::{NAMESPACES_NEEDED, in_role_after, in_role_ahead, role};
use crate::common::{Asker, PATIENCE, Scratch, grant, held};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::time::Duration;
use tenure_core::Fault;
use tenure_sqlite::SqliteStore;
use tenure_testkit::Process;

const TTL: Duration = Duration::from_secs(120);
const TEN_DAYS_SECS: u64 = 864_000;
/// A user that owns nothing: `nobody`.
const NOBODY: u32 = 65_534;

#[test]
fn as_a_child() {
    let Some((role, file)) = role() else { return };
    if role == "untold" {
        let error = SqliteStore::open(file).unwrap_err();
        println!("refused {:?}: {error}", error.fault);
        return;
    }
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

/// Taken for none, a shift would end every lease of the others at once.
#[test]
fn a_process_that_cannot_read_how_its_clock_is_shifted_is_refused() {
    let scratch = Scratch::new();
    drop(scratch.open());
    let unreadable = scratch.directory().join("unreadable");
    fs::write(&unreadable, "").unwrap();
    fs::set_permissions(&unreadable, Permissions::from_mode(0o000)).unwrap();
    // Of a user whom the namespace does not know: there, root may not read it either.
    let _only_root_may = chown(&unreadable, Some(NOBODY), Some(NOBODY));
    let mount = format!("mount --bind '{}' /proc/$$/timens_offsets", unreadable.display());
    let output = in_role_after(&mount, module_path!(), "untold", &scratch.file())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let refused = format!("refused {:?}", Fault::Unsupported);
    assert!(
        said.contains(&refused) && said.contains("timens_offsets"),
        "{said}{}\n{NAMESPACES_NEEDED}",
        String::from_utf8_lossy(&output.stderr)
    );
}
