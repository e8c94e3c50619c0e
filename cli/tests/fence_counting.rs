//! `tenure fence` where the leases are in a store that counts. Tokens of etcd are revisions: above the clock,
//! a mark would refuse every later term for ever.

use crate::common::{Sandbox, json};
use crate::fence::{fence, marks, refused, term, users_file};
use tenure_testkit::{Etcd, EtcdOptions, block_on};

enum Marks {
    File,
    Watermark,
}

/// Leases in etcd, marks in a file, and a term of "job" that has claimed.
fn claimed(label: &str, place: Marks) -> (Etcd, Sandbox, String) {
    let etcd = block_on(Etcd::start(EtcdOptions::default())).unwrap();
    let sandbox = Sandbox::at(label, &etcd.url());
    let url = match place {
        Marks::File => users_file(&sandbox),
        Marks::Watermark => format!("file:{}", sandbox.path("marks")),
    };
    assert_eq!(claim_by_a_term(&sandbox, &url).code, 0);
    (etcd, sandbox, url)
}

pub fn claim_by_a_term(sandbox: &Sandbox, url: &str) -> crate::common::Ended {
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let script = format!("{tenure} fence claim ledger --fence {url}");
    sandbox.tenure(&["lock", "job", "--", "sh", "-c", &script])
}

pub fn mark(sandbox: &Sandbox, url: &str) -> u64 {
    marks(sandbox, &["--fence", url])[0]["mark"].as_u64().unwrap()
}

#[test]
fn a_bumped_mark_of_a_store_that_counts_refuses_old_terms_and_admits_the_next() {
    let (_etcd, sandbox, url) = claimed("fence-counting", Marks::File);
    let old = mark(&sandbox, &url);
    // Granted, and not claimed: it is from before the bump, too.
    assert_eq!(sandbox.tenure(&["lock", "job", "--", "true"]).code, 0);
    let unclaimed = sandbox.lease("job")["token"].as_u64().unwrap();
    let bumped = fence(&sandbox, &["bump", "ledger", "--fence", &url]);
    assert!(bumped.stdout.contains("counted"), "{bumped:?}");
    assert_eq!(mark(&sandbox, &url), unclaimed + 1);
    for before in [old, unclaimed] {
        let token = before.to_string();
        let claim = [&term("claim", "job", &token)[..], &["--fence", &url]].concat();
        refused(&fence(&sandbox, &claim), 80, "stale");
    }
    let next = claim_by_a_term(&sandbox, &url);
    assert_eq!(next.code, 0, "{next:?}");
    // One that nobody has claimed, by the lease that it is to belong to.
    let bump = ["bump", "fresh", "--fence", &url];
    refused(&fence(&sandbox, &bump), 78, "--lease NAME");
    let fresh = [&bump[..], &["--lease", "job", "--output", "json"]].concat();
    let fresh = json(&fence(&sandbox, &fresh).stdout);
    let granted = sandbox.lease("job")["token"].as_u64().unwrap();
    assert_eq!(fresh["mark"].as_u64(), Some(granted + 1));
}

#[test]
fn a_token_of_a_clocks_size_is_from_the_future_of_a_store_that_counts() {
    let (_etcd, sandbox, url) = claimed("fence-future", Marks::File);
    let granted = mark(&sandbox, &url);
    let next = (granted + 1).to_string();
    for resource in ["ledger", "fresh"] {
        for token in ["1700000000000", &next] {
            let claim = ["claim", resource, "--lease", "job", "--token", token];
            let claim = fence(&sandbox, &[&claim[..], &["--fence", &url]].concat());
            refused(&claim, 78, &format!("has granted at most {granted}"));
        }
    }
    assert_eq!(claim_by_a_term(&sandbox, &url).code, 0);
}

#[test]
fn a_counted_mark_is_not_bumped_where_its_lease_is_not_known() {
    let (_etcd, sandbox, url) = claimed("fence-blind", Marks::File);
    let before = mark(&sandbox, &url);
    let elsewhere = |options: &[&str]| {
        let arguments = ["fence", "bump", "ledger", "--fence", &url];
        let mut command = sandbox.command(&[&arguments[..], options].concat());
        command.env_remove("TENURE_STORE");
        crate::common::ended(command)
    };
    refused(&elsewhere(&[]), 78, "--above TOKEN");
    assert_eq!(mark(&sandbox, &url), before);
    let slip = (before + 1_000_000_001).to_string();
    refused(&elsewhere(&["--above", &slip]), 78, "check the digits");
    assert_eq!(mark(&sandbox, &url), before);
    assert_eq!(elsewhere(&["--above", "50"]).code, 0);
    assert_eq!(mark(&sandbox, &url), 51);
}

#[test]
fn a_counted_mark_in_a_watermark_is_bumped_by_counting() {
    let (_etcd, sandbox, url) = claimed("fence-watermark", Marks::Watermark);
    let before = mark(&sandbox, &url);
    let bumped = fence(&sandbox, &["bump", "ledger", "--fence", &url]);
    assert!(bumped.stdout.contains("counted"), "{bumped:?}");
    assert_eq!(mark(&sandbox, &url), before + 1);
    let next = claim_by_a_term(&sandbox, &url);
    assert_eq!(next.code, 0, "{next:?}");
}

/// A revision gets there in centuries.
#[test]
fn a_bump_to_a_time_where_the_leases_are_counted_is_refused() {
    let etcd = block_on(Etcd::start(EtcdOptions::default())).unwrap();
    let sandbox = Sandbox::at("fence-bumps-counted", &etcd.url());
    let file = users_file(&sandbox);
    for place in [&[][..], &["--fence", &file]] {
        let bump = [&["bump", "ledger", "--above", "1763712000000"], place].concat();
        refused(&fence(&sandbox, &bump), 78, "none would be admitted again");
    }
}
