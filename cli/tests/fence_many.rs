//! More marks than one would look at.

use crate::common::{SOON, Sandbox, json};
use rusqlite::Connection;
use tenure_testkit::free_port;

/// Those of another lease come first in the order in which they are read.
const OTHERS: u32 = 101_000;

#[test]
fn marks_are_told_however_many_there_are_and_a_leader_says_where_it_cannot_sum_them() {
    let sandbox = Sandbox::new("many-marks");
    let claim = ["fence", "claim", "zz-ledger", "--lease", "job", "--token", "9"];
    assert_eq!(sandbox.tenure(&claim).code, 0);
    let others = format!(
        "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {OTHERS})
         INSERT INTO tenure_fence (resource, lease, token, claimed_at)
         SELECT 'order-' || n, 'orders', 9, '' FROM number"
    );
    let store = Connection::open(sandbox.path("leases.db")).unwrap();
    store.execute_batch(&others).unwrap();
    drop(store);
    let status = sandbox.tenure(&["status", "job", "--output", "json"]);
    assert_eq!(status.code, 0);
    let status = json(&status.stdout);
    assert_eq!(status["fences"].as_array().unwrap().len(), 1);
    assert_eq!(status["fences"][0]["resource"], "zz-ledger");
    let shown = sandbox.tenure(&["fence", "show"]);
    assert!(
        shown.stdout.contains("zz-ledger"),
        "{}",
        shown.stdout.lines().count()
    );
    let address = format!("127.0.0.1:{}", free_port());
    let leader = sandbox.run(&["--metrics", &address], "job", "sleep 300");
    let line = "lease_fence_refusals_noted stays as it is";
    leader.wait_for_line(line, SOON).unwrap();
}
