//! `tenure watch` goes on for as long as it is read, whatever becomes of the store.

use crate::common::{SOON, Sandbox};

/// Whoever waits for a leader by it would take its end for that of the waiting.
#[test]
fn watch_goes_on_when_its_store_was_away() {
    let sandbox = Sandbox::new("watch-away");
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
    let watch = sandbox.start(&["watch", "job"]);
    watch.wait_for_line("job: vacant", SOON).unwrap();
    let away = sandbox.move_store_away();
    watch.wait_for_line("trying on", SOON).unwrap();
    away.bring_back();
    let _holder = sandbox.run(&["--ttl", "10m"], "job", "sleep 300");
    watch.wait_for_line("job: held by", SOON).unwrap();
}
