//! A disk that runs full: nothing is granted, nothing is lost, and what is held can still be given back.

use crate::common::child::{NAMESPACES_NEEDED, in_role_after, role};
use crate::common::{Asker, Scratch, grant};
use std::path::Path;
use tenure_core::{Acquired, Certainty, Fault, LeaseStore, Note, Released, Renewed, Verdict};
use tenure_sqlite::SqliteStore;

/// Leases to try; a disk of half a mebibyte is full long before.
const LEASES_MAX: u32 = 5_000;

#[test]
fn as_a_child() {
    let Some((role, file)) = role() else { return };
    assert_eq!(role, "filler");
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(fill(&file));
    println!("all is as promised");
}

async fn fill(file: &Path) {
    let store = SqliteStore::open(file).unwrap();
    let asker = Asker::new("first");
    let first = grant(&store, &asker, "job").await;
    for number in 0..LEASES_MAX {
        let mut request = asker.acquire(&format!("filler-{number}"));
        request.note = Note::new("x".repeat(1_000)).unwrap();
        match store.acquire(&request).await {
            Ok(Acquired::Granted(_)) => {}
            Ok(other) => panic!("{other:?}"),
            Err(error) => {
                assert_eq!(error.fault, Fault::Full, "{error}");
                assert_eq!(error.certainty, Certainty::NotApplied, "{error}");
                assert!(error.message.contains(request.name.as_str()), "{error}");
                assert!(error.message.contains("free some"), "{error}");
                assert_eq!(
                    store.get(&request.name).await.unwrap(),
                    None,
                    "it said: nothing was granted"
                );
                let findings = store.examine().await.unwrap();
                let space = findings.iter().find(|finding| finding.subject == "free space");
                let space = space.unwrap();
                assert_eq!(space.verdict, Verdict::Bad, "{space:?}");
                assert!(space.repair.is_some(), "{space:?}");
                return release_after(&store, file, &asker, first.token).await;
            }
        }
    }
    panic!("the disk is not full after {LEASES_MAX} leases");
}

/// Once there is space again, everything goes on from where it was.
async fn release_after(store: &SqliteStore, file: &Path, asker: &Asker, token: tenure_core::FencingToken) {
    let ballast = file.with_extension("ballast");
    std::fs::remove_file(ballast).unwrap();
    let renewed = store.renew(&[asker.renew("job", token)]).await;
    assert!(
        matches!(&renewed[..], [Ok(Renewed::Extended { .. })]),
        "{renewed:?}"
    );
    let released = store.release(&[asker.release("job", token)]).await;
    assert_eq!(released, [Ok(Released::Vacated)]);
    let next = grant(store, &Asker::new("second"), "job").await;
    assert!(next.token > token);
}

#[test]
fn a_full_disk_grants_nothing_and_loses_nothing() {
    let scratch = Scratch::new();
    let directory = scratch.directory().display();
    let set_up = format!(
        "mount -t tmpfs -o size=512k tmpfs '{directory}' && \
         head -c 65536 /dev/zero > '{directory}/leases.ballast'"
    );
    let output = in_role_after(&set_up, module_path!(), "filler", &scratch.file())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("all is as promised"),
        "{said}{}\n{NAMESPACES_NEEDED}",
        String::from_utf8_lossy(&output.stderr)
    );
}
