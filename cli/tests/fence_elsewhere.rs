//! `tenure fence bump` where the marks are in another store than the leases.

use crate::common::{Sandbox, ended, json};
use crate::fence::{fence, refused, term, users_file};
use crate::fence_counting::{claim_by_a_term, mark};
use tenure_testkit::{Etcd, EtcdOptions, block_on};

fn etcd() -> Etcd {
    block_on(Etcd::start(EtcdOptions::default())).unwrap()
}

/// Leases in etcd. The mark goes one above its token: the next term may have it, and any number above bars
/// later ones.
fn counted_mark_is_bumped_by_counting(url: &str) {
    let leases = etcd();
    let sandbox = Sandbox::at("fence-counts-elsewhere", &leases.url());
    assert_eq!(claim_by_a_term(&sandbox, url).code, 0);
    let before = mark(&sandbox, url);
    let bumped = fence(&sandbox, &["bump", "ledger", "--fence", url]);
    assert_eq!(bumped.code, 0, "{bumped:?}");
    assert_eq!(mark(&sandbox, url), before + 1);
    let old = before.to_string();
    let check = [&term("check", "job", &old)[..], &["--fence", url]].concat();
    refused(&fence(&sandbox, &check), 80, "stale");
    let next = claim_by_a_term(&sandbox, url);
    assert_eq!(next.code, 0, "{next:?}");
}

#[cfg(feature = "redis")]
#[test]
fn a_counted_mark_is_bumped_by_counting_in_redis() {
    use tenure_testkit::{RedisOptions, RedisServer};
    let server = block_on(RedisServer::start(RedisOptions::default())).unwrap();
    counted_mark_is_bumped_by_counting(&server.url());
}

#[cfg(feature = "nats")]
#[test]
fn a_counted_mark_is_bumped_by_counting_in_nats() {
    use tenure_testkit::{NatsOptions, NatsServer};
    let server = block_on(NatsServer::start(NatsOptions::default())).unwrap();
    counted_mark_is_bumped_by_counting(&format!("{}/marks", server.url()));
}

/// Its revision is far above those of the leases.
#[test]
fn a_counted_mark_is_bumped_by_counting_in_another_etcd() {
    let marks = etcd();
    for _revision in 0..100 {
        let put = marks.post(0, "/v3/kv/put", r#"{"key":"YQ==","value":"YQ=="}"#);
        put.unwrap();
    }
    counted_mark_is_bumped_by_counting(&marks.url());
}

/// Nobody has named the store of the leases: a lease of the same name in the default one says nothing of this
/// mark, and a mark of a clock's size would refuse every later term of etcd for ever.
#[test]
fn a_counted_mark_is_not_bumped_by_a_lease_of_the_same_name_in_a_store_by_the_clock() {
    let leases = etcd();
    let sandbox = Sandbox::at("fence-default", &leases.url());
    let url = users_file(&sandbox);
    assert_eq!(claim_by_a_term(&sandbox, &url).code, 0);
    let before = mark(&sandbox, &url);
    let unnamed = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        command.env_remove("TENURE_STORE");
        ended(command)
    };
    let bump = ["fence", "bump", "ledger", "--fence", &url];
    refused(&unnamed(&bump), 78, "--above TOKEN");
    let default = sandbox.dir.join("tenure/leases.db");
    assert!(!default.exists(), "it was made by who only asks");
    assert_eq!(unnamed(&["run", "job", "--", "true"]).code, 0);
    assert!(default.exists());
    refused(&unnamed(&bump), 78, "--above TOKEN");
    // Neither is it believed where somebody has named it.
    let named = format!("sqlite:{}", default.display());
    refused(
        &unnamed(&[&bump[..], &["--store", &named]].concat()),
        78,
        "--above TOKEN",
    );
    assert_eq!(mark(&sandbox, &url), before);
    assert_eq!(fence(&sandbox, &bump[1..]).code, 0);
    assert_eq!(mark(&sandbox, &url), before + 1);
    let next = claim_by_a_term(&sandbox, &url);
    assert_eq!(next.code, 0, "{next:?}");
}

/// The marks are beside the record of a lease that has gone to another store, by a clock or one that counts:
/// its last token there says nothing of those that it is granted now.
#[test]
fn a_lease_that_has_moved_claims_and_is_bumped_beside_the_record_that_it_left() {
    let (before, etcd) = (Sandbox::new("fence-left"), etcd());
    assert_eq!(before.tenure(&["run", "job", "--", "true"]).code, 0);
    let url = &before.store;
    let left = before.lease("job")["token"].as_u64().unwrap();
    let by_clock = Sandbox::new("fence-moved");
    let counting = Sandbox::at("fence-moved-to-count", &etcd.url());
    for sandbox in [by_clock, counting] {
        let claimed = claim_by_a_term(&sandbox, url);
        assert_eq!(claimed.code, 0, "{claimed:?}");
        let bumped = fence(&sandbox, &["bump", "ledger", "--fence", url]);
        assert_eq!(bumped.code, 0, "{bumped:?}");
        let next = claim_by_a_term(&sandbox, url);
        assert_eq!(next.code, 0, "{next:?}");
        // And what it has not granted is from the future by its own store.
        let granted = sandbox.lease("job")["token"].as_u64().unwrap();
        let future = (granted + 1).to_string();
        let claim = [&term("claim", "job", &future)[..], &["--fence", url]].concat();
        refused(&fence(&sandbox, &claim), 78, "the store that is named");
        if granted > left {
            let forgotten = rusqlite::Connection::open(before.path("leases.db")).unwrap();
            forgotten.execute_batch("DELETE FROM tenure_fence").unwrap();
        }
    }
    // A command that is told nothing of the leases does not take them to be there.
    let next = (left + 1).to_string();
    let mut command = before.command(&[
        "fence", "claim", "fresh", "--lease", "job", "--token", &next, "--fence", url,
    ]);
    command.env_remove("TENURE_STORE");
    let claimed = ended(command);
    assert_eq!(claimed.code, 0, "{claimed:?}");
}

/// Tokens by the clock: a mark by the revision of etcd would admit all that were granted before.
#[test]
fn a_mark_in_etcd_of_leases_by_the_clock_is_bumped_above_the_clock() {
    let (marks, sandbox) = (etcd(), Sandbox::new("fence-clock-elsewhere"));
    assert_eq!(sandbox.tenure(&["run", "nightly", "--", "true"]).code, 0);
    let before = sandbox.lease("nightly")["token"].as_u64().unwrap();
    let bumped = fence(
        &sandbox,
        &["bump", "ledger", "--fence", &marks.url(), "--output", "json"],
    );
    assert_eq!(bumped.code, 0, "{bumped:?}");
    assert!(json(&bumped.stdout)["mark"].as_u64() > Some(before), "{bumped:?}");
    let token = before.to_string();
    let url = marks.url();
    let claim = [&term("claim", "nightly", &token)[..], &["--fence", &url]].concat();
    refused(&fence(&sandbox, &claim), 80, "stale");
}
