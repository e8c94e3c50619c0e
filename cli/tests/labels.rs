//! Under which label the metrics of a lease are told.

use crate::common::{SOON, Sandbox};
use crate::endpoint::{get, metric};
use tenure_testkit::{eventually, free_port};

/// A name for each order would be a series for each, for ever, wherever all the locks of a site are told of.
#[test]
fn locks_are_told_together_and_a_place_in_a_queue_is_not_told() {
    let sandbox = Sandbox::new("labels");
    let address = || format!("127.0.0.1:{}", free_port());
    let (locks, turns) = (address(), address());
    let timing = ["--ttl", "30s", "--renew", "300ms"];
    let lock = ["lock", "--fair", "--metrics", &locks];
    let _lock = sandbox.start(&[&lock[..], &timing, &["orders/7", "--", "sleep", "300"]].concat());
    let options = [&["--priority", "7", "--metrics", &turns], &timing[..]].concat();
    let _leader = sandbox.run(&options, "job", "sleep 300");
    for (address, lease, other) in [(&locks, "*", "orders/7"), (&turns, "job", "*")] {
        eventually(SOON, "a renewal", || {
            metric(address, &format!("lease_renewals{{lease=\"{lease}\"}}")).is_some()
        });
        assert_eq!(
            metric(address, &format!("leader_status{{lease=\"{lease}\"}}")),
            Some(1.0)
        );
        let (_, body) = get(address, "/metrics");
        // The place by which it waited was no lock.
        let begun = metric(
            address,
            &format!("lease_terms_begun{{lease=\"{lease}\",after=\"vacant\"}}"),
        );
        assert_eq!(begun, Some(1.0), "{body}");
        assert!(!body.contains(&format!("lease=\"{other}\"")), "{body}");
    }
}
