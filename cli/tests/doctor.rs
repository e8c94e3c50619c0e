//! `tenure doctor`: what it finds, and the lease that it takes for itself.

use crate::common::{SOON, Sandbox, exit_code, json};
use std::time::Duration;
use tenure_testkit::{Process, eventually};

/// Its first name.
const CLOCK: &str = "tenure-doctor/clock";

/// Tries of what a loaded machine may spoil: a doctor waits a second for its lease to be given back, and one
/// slow read of its measurement may be slower than all renewals.
const TRIES_MAX: usize = 4;

/// A doctor that looks for long, and has its lease.
fn patient(sandbox: &Sandbox) -> Process {
    let doctor = sandbox.start(&["doctor", "--clock-for", "1h"]);
    eventually(SOON, "it has its lease", || {
        let all = sandbox.tenure(&["status", "--all"]).stdout;
        all.contains(CLOCK)
    });
    doctor
}

fn store_of(sandbox: &Sandbox) -> rusqlite::Connection {
    rusqlite::Connection::open(sandbox.dir.join("leases.db")).unwrap()
}

#[test]
fn doctor_finds_a_good_store_good_and_advises_a_ttl() {
    let sandbox = Sandbox::new("doctor");
    // Long enough for a disk that others keep busy, too.
    let text = sandbox.tenure(&["doctor", "--ttl", "1h"]);
    assert_eq!(text.code, 0, "{text:?}");
    for part in ["durability", "round trips: p50", "suits this store"] {
        assert!(text.stdout.contains(part), "{part}: {}", text.stdout);
    }
    let report = json(&sandbox.tenure(&["doctor", "--output", "json"]).stdout);
    assert_ne!(report["verdict"], "bad");
    assert!(report["advised"]["ttl_ms"].as_u64().unwrap() >= 1000);
    let hasty = sandbox.tenure(&["doctor", "--ttl", "100ms"]);
    assert!(hasty.stdout.contains("below the advised"), "{hasty:?}");
}

#[test]
fn doctor_ends_with_1_where_leases_are_not_safe() {
    let sandbox = Sandbox::new("doctor-bad");
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
    let connection = store_of(&sandbox);
    connection.execute_batch("UPDATE lease SET token = -5").unwrap();
    drop(connection);
    let ended = sandbox.tenure(&["doctor"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stdout.contains("repair: "), "{ended:?}");
}

/// Everything is read, and the store's own trial goes well: the lease that the clock is watched by is
/// refused.
#[test]
fn doctor_ends_with_1_where_no_lease_can_be_taken() {
    let sandbox = Sandbox::new("doctor-untaken");
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
    let connection = store_of(&sandbox);
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON lease WHEN NEW.name = 'tenure-doctor/clock'
                  BEGIN SELECT RAISE(ABORT, 'refused'); END";
    connection.execute_batch(refuse).unwrap();
    drop(connection);
    let doctor = sandbox.tenure(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(doctor.stdout.contains("no lease can be taken"), "{doctor:?}");
    let verdict = doctor.stdout.lines().last().unwrap();
    assert!(verdict.starts_with("Leases are not safe here"), "{doctor:?}");
}

/// What ends by a signal is no less over than what ends by itself: the next doctor would find the lease taken
/// for an hour.
#[test]
fn a_doctor_that_is_ended_by_a_signal_gives_its_lease_back() {
    let is_given_back = (0..TRIES_MAX).any(|_| {
        let sandbox = Sandbox::new("doctor-ended");
        let doctor = patient(&sandbox);
        doctor.terminate();
        assert_eq!(exit_code(&doctor), 128 + 15);
        sandbox.lease(CLOCK)["state"] == "vacant"
    });
    assert!(is_given_back, "it was held each time");
}

#[test]
fn the_lease_of_a_doctor_is_shown_to_nobody_who_does_not_ask_for_it() {
    let sandbox = Sandbox::new("doctor-hidden");
    assert_eq!(sandbox.tenure(&["doctor", "--ttl", "1h"]).code, 0);
    assert!(sandbox.tenure(&["status"]).stdout.starts_with("no leases"));
    assert!(sandbox.tenure(&["status", "--all"]).stdout.contains(CLOCK));
    // One of the user's own that has such a name is none of the doctor's.
    assert_eq!(
        sandbox.tenure(&["run", "tenure-doctor/clock", "--", "true"]).code,
        0
    );
    assert!(sandbox.tenure(&["status"]).stdout.contains(CLOCK));
}

#[test]
fn doctor_tells_what_the_clock_of_its_machine_is_corrected_by() {
    let sandbox = Sandbox::new("doctor-own-clock");
    let doctor = sandbox.tenure(&["doctor", "--clock-for", "0s", "--output", "json"]);
    let findings = json(&doctor.stdout)["findings"].clone();
    let findings = findings.as_array().unwrap();
    let found = findings
        .iter()
        .find(|finding| finding["subject"] == "own clock's run");
    let told = found.expect("it is told")["detail"].as_str().unwrap();
    // Or that a container hides it.
    assert!(told.contains("corrected by"), "{told}");
}

#[test]
fn a_second_doctor_has_a_lease_of_its_own() {
    let is_given_back = (0..TRIES_MAX).any(|_| second_doctor_gives_its_lease_back());
    assert!(is_given_back, "it was held each time");
}

fn second_doctor_gives_its_lease_back() -> bool {
    let sandbox = Sandbox::new("doctor-twice");
    let _first = patient(&sandbox);
    let second = sandbox.tenure(&["doctor", "--output", "json"]);
    assert_eq!(second.code, 0, "{second:?}");
    let findings = json(&second.stdout)["findings"].clone();
    let findings = findings.as_array().unwrap();
    for subject in ["renewal", "clock's run"] {
        let found = findings.iter().find(|finding| finding["subject"] == subject);
        assert_eq!(found.expect(subject)["verdict"], "good", "{second:?}");
    }
    let lease = sandbox.lease(&format!("{CLOCK}-2"));
    assert_eq!(lease["terms"], 1, "{lease}");
    lease["state"] == "vacant"
}

/// It has seen of no lease that it is given: another code would say that one is to be had.
#[test]
fn a_doctor_that_gets_no_lease_beside_other_doctors_does_not_end_with_0() {
    let sandbox = Sandbox::new("doctor-crowd");
    let _first = patient(&sandbox);
    let store = store_of(&sandbox);
    let copy = format!("CREATE TEMP TABLE held AS SELECT * FROM lease WHERE name = '{CLOCK}'");
    store.execute_batch(&copy).unwrap();
    for number in 2..=8 {
        let put = format!("UPDATE held SET name = '{CLOCK}-{number}'; INSERT INTO lease SELECT * FROM held");
        store.execute_batch(&put).unwrap();
    }
    drop(store);
    let doctor = sandbox.tenure(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(doctor.stdout.contains("8 other doctors hold"), "{doctor:?}");
}

#[test]
fn the_advised_ttl_suits_renewals_which_may_be_slower_than_reads() {
    let is_slower = (0..TRIES_MAX).any(|_| ttl_suits_renewals_slower_than_reads());
    assert!(is_slower, "renewals were no slower than reads each time");
}

/// Whether they were.
fn ttl_suits_renewals_slower_than_reads() -> bool {
    let sandbox = Sandbox::new("doctor-renewals");
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
    let store = store_of(&sandbox);
    store.execute_batch("CREATE TABLE many (n)").unwrap();
    for _ in 0..200 {
        store.execute_batch("INSERT INTO many VALUES (1)").unwrap();
    }
    let slow = "CREATE TRIGGER slow BEFORE UPDATE ON lease WHEN NEW.name = 'tenure-doctor/clock'
                BEGIN SELECT sum(a.n + b.n + c.n) FROM many a, many b, many c; END";
    store.execute_batch(slow).unwrap();
    drop(store);
    let doctor = sandbox.tenure(&["doctor", "--clock-for", "100ms", "--output", "json"]);
    let told = json(&doctor.stdout);
    let findings = told["findings"].as_array().unwrap();
    let p99 = |subject| -> Duration {
        let found = findings.iter().find(|finding| finding["subject"] == subject);
        let detail = found.expect("it was measured")["detail"].as_str().unwrap();
        let (_, p99) = detail.split_once("p99 ").unwrap();
        humantime::parse_duration(p99).unwrap()
    };
    let ttl = Duration::from_millis(told["advised"]["ttl_ms"].as_u64().unwrap());
    assert!(ttl >= p99("renewal") * 30, "{doctor:?}");
    p99("renewal") > p99("read")
}

#[test]
fn an_advice_of_reads_alone_says_so() {
    let sandbox = Sandbox::new("doctor-reads");
    let doctor = sandbox.tenure(&["doctor", "--ttl", "1h", "--clock-for", "0s"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
    assert!(doctor.stdout.contains("of reads alone"), "{doctor:?}");
}
