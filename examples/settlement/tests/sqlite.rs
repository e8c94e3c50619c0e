//! The job on SQLite, through real faults to real processes.

mod common;

use common::{assert_settled_exactly_once, drill, said, settlement, summary, tokens};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tenure::{Registry, contract::Ask};

/// Waited for once in each of them, and far longer than most stalls of a loaded machine.
const SHORT: [&str; 4] = ["--payments", "60000", "--ttl", "10s"];

#[test]
fn undisturbed_run_settles_every_payment_once_in_one_term() {
    // Longer than any stall of the machine: it is to be one term.
    let summary = drill(&["--payments", "60000", "--ttl", "60s", "--faults", "none"]);
    assert_settled_exactly_once(&summary, 60_000);
    assert_eq!(
        summary["refused"].as_array().map(Vec::len),
        Some(0),
        "{summary:#}"
    );
}

#[test]
fn killed_leader_is_succeeded_and_every_payment_is_settled_once() {
    let summary = drill(&[&SHORT[..], &["--faults", "kill"]].concat());
    assert_settled_exactly_once(&summary, 60_000);
    assert_eq!(summary["faults"][0]["fault"], "kill", "{summary:#}");
    assert!(tokens(&summary).len() >= 2, "{summary:#}");
}

#[test]
fn frozen_leader_wakes_up_and_its_stale_write_is_refused() {
    let summary = drill(&[&SHORT[..], &["--faults", "freeze"]].concat());
    assert_settled_exactly_once(&summary, 60_000);
    assert_eq!(summary["faults"][0]["refused"], true, "{summary:#}");
    let refusal = summary["refused"][0].as_str().expect("a refusal");
    let (refused, mark) = refusal
        .split_once(" is stale for \"ledger\", which admits none below ")
        .expect("the fence's words");
    let number = |word: Option<&str>| -> u64 { word.and_then(|word| word.parse().ok()).expect("a token") };
    let (old, mark) = (
        number(refused.split(' ').next_back()),
        number(mark.split([' ', ';']).next()),
    );
    // A term that a stall has ended may have written before it, and a later one have claimed and found
    // nothing left to do.
    let tokens = tokens(&summary);
    let new = *tokens
        .iter()
        .find(|token| **token > old)
        .expect("a successor that wrote");
    assert!(mark >= new, "{refusal}");
}

/// The proof that a drill can fail: the same freeze, without the fence.
#[test]
fn without_the_fence_the_same_freeze_settles_payments_twice_and_the_check_says_so() {
    let output = settlement(
        &[
            &["drill", "--output", "json", "--faults", "freeze", "--unfenced"],
            &SHORT[..],
        ]
        .concat(),
    );
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let summary = summary(&output);
    assert_eq!(summary["holds"], false, "{summary:#}");
    let findings = &summary["findings"];
    assert!(
        findings["doubled"]
            .as_u64()
            .is_some_and(|doubled| doubled >= 5_000),
        "{summary:#}"
    );
    assert!(
        findings["accounts_off"].as_u64().is_some_and(|off| off > 0),
        "{summary:#}"
    );
    assert_eq!(
        summary["refused"].as_array().map(Vec::len),
        Some(0),
        "{summary:#}"
    );
}

#[test]
fn step_down_of_a_primary_needs_a_store_that_has_one() {
    let output = settlement(&["drill", "--payments", "10000", "--faults", "stepdown"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("stepdown needs --ledger mongodb"),
        "{}",
        said(&output)
    );
}

/// Writes a file of payments.
fn payments(folder: &Path, name: &str, count: u64, seed: u64) {
    let (count, seed) = (count.to_string(), seed.to_string());
    let file = folder.join(name);
    let file = file.to_str().expect("a path in Unicode");
    let output = settlement(&["generate", "--payments", &count, "--seed", &seed, "--file", file]);
    assert!(output.status.success(), "{}", said(&output));
}

/// An instance that is about to run in this folder.
fn instance(folder: &Path, file: &str, more: &[&str]) -> Command {
    let mut instance = Command::new(env!("CARGO_BIN_EXE_settlement"));
    instance
        .current_dir(folder)
        .args([
            "run",
            "--store",
            "sqlite:leases.db",
            "--ledger",
            "ledger.db",
            "--instance",
            "A",
        ])
        .args(["--file", file])
        .args(more);
    instance
}

/// The next night's payments are as many or more: the checkpoint of the night before would hide them.
#[test]
fn ledger_that_settles_one_file_refuses_another() {
    let folder = tempfile::tempdir().expect("a folder");
    payments(folder.path(), "tonight.csv", 2_000, 1);
    payments(folder.path(), "tomorrow.csv", 2_500, 2);
    for _again in 0..2 {
        let output = instance(folder.path(), "tonight.csv", &[])
            .output()
            .expect("it starts");
        assert!(output.status.success(), "{}", said(&output));
    }
    let output = instance(folder.path(), "tomorrow.csv", &[])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("use a ledger of its own"),
        "{}",
        said(&output)
    );
}

/// A process that is killed with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn interrupt_is_heard_in_the_midst_of_the_batches_and_where_an_instance_holds() {
    for hold in [None, Some("1000")] {
        let folder = tempfile::tempdir().expect("a folder");
        payments(folder.path(), "payments.csv", 100_000, 3);
        let more = hold.map_or(vec![], |at| vec!["--hold-at", at]);
        let mut running = instance(
            folder.path(),
            "payments.csv",
            &[&["--batch", "1"], &more[..]].concat(),
        );
        let running = running.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = Killed(running.spawn().expect("it starts"));
        let mut told = BufReader::new(running.0.stdout.take().expect("piped")).lines();
        let wanted = hold.map_or("goes on", |_| "holds");
        let found = told
            .by_ref()
            .any(|line| line.is_ok_and(|line| line.contains(wanted)));
        assert!(found, "{wanted}");
        let process = rustix::process::Pid::from_child(&running.0);
        rustix::process::kill_process(process, rustix::process::Signal::INT).expect("it is there");
        assert_eq!(running.0.wait().expect("it ends").code(), Some(2), "{hold:?}");
        let complete = told.any(|line| line.is_ok_and(|line| line.contains("complete")));
        assert!(!complete, "it went on to the end");
    }
}

/// What a process says, line by line, also while nobody listens.
fn lines_of(process: &mut Killed) -> Receiver<String> {
    let (sender, lines) = channel();
    let told = BufReader::new(process.0.stdout.take().expect("piped")).lines();
    std::thread::spawn(move || told.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    lines
}

/// Far below the ttl of those who wait for it, and long enough for a loaded machine.
const LONG: Duration = Duration::from_secs(120);

#[track_caller]
fn wait_for(lines: &Receiver<String>, wanted: &str) {
    while let Ok(line) = lines.recv_timeout(LONG) {
        if line.contains(wanted) {
            return;
        }
    }
    panic!("nothing was said of \"{wanted}\"");
}

/// Two instances with far more to do than they will; the first of them leads, and the other waits for it.
fn leader_and_standby(folder: &Path) -> [(Killed, Receiver<String>); 2] {
    payments(folder, "payments.csv", 100_000, 3);
    let start = || {
        let mut instance = instance(folder, "payments.csv", &["--batch", "1", "--ttl", "3600s"]);
        let instance = instance.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Killed(instance.spawn().expect("it starts"));
        let lines = lines_of(&mut process);
        (process, lines)
    };
    let leader = start();
    wait_for(&leader.1, "goes on after");
    let standby = start();
    wait_for(&standby.1, "stands by");
    [leader, standby]
}

#[test]
fn leader_that_is_asked_to_step_down_hands_over_and_stands_by() {
    let folder = tempfile::tempdir().expect("a folder");
    let [leader, standby] = leader_and_standby(folder.path());
    let url = format!("sqlite:{}", folder.path().join("leases.db").display());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let store = Registry::connect(&url).await.expect("the store");
        let name = "settlement/nightly".parse().expect("a name");
        let lease = store.get(&name).await.expect("a look").expect("a lease");
        let ask = Ask {
            name,
            token: lease.token,
        };
        store.ask(&ask).await.expect("it is asked");
    });
    wait_for(&leader.1, "was asked to step down");
    wait_for(&standby.1, "goes on after");
    wait_for(&leader.1, "stands by");
}

/// As systemd and Kubernetes end it: the others do not wait for the end of the lease.
#[test]
fn leader_that_is_terminated_hands_over_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let [mut leader, standby] = leader_and_standby(folder.path());
    let process = rustix::process::Pid::from_child(&leader.0.0);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("it is there");
    wait_for(&standby.1, "goes on after");
    assert_eq!(leader.0.0.wait().expect("it ends").code(), Some(2));
}
