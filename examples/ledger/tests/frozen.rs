//! A leader that is frozen in mid-thought, and woken when another one leads. Real processes, real sockets.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};
use tenure_testkit::{Process, ScratchDir};

/// Long, as a loaded machine may need it.
const LONG: Duration = Duration::from_secs(60);

struct Site {
    folder: ScratchDir,
    service: Process,
    address: String,
}

impl Site {
    fn new(options: &[&str]) -> Self {
        let folder = ScratchDir::new("ledger");
        let mut command = ledger("serve");
        command.arg("--file").arg(folder.join("ledger.db")).args(options);
        let service = Process::spawn(command).unwrap();
        let line = service.wait_for_line("listening on ", LONG).unwrap();
        let address = line.text.strip_prefix("listening on ").unwrap().to_owned();
        Self {
            folder,
            service,
            address,
        }
    }

    fn candidate(&self, name: &str) -> Process {
        // Waited for once, and longer than most stalls of a loaded machine.
        self.candidate_with("10s", name)
    }

    fn candidate_with(&self, ttl: &str, name: &str) -> Process {
        let store = format!("sqlite:{}", self.folder.join("leases.db").display());
        let mut command = ledger("work");
        // In its thought it is to be frozen, however busy the machine.
        command.args(["--ttl", ttl, "--think", "5s", "--candidate", name]);
        command.args(["--store", &store, "--service", &self.address]);
        Process::spawn(command).unwrap()
    }

    /// Token, balance before and balance after of each change, in the order of their effects.
    fn history(&self) -> Vec<[i64; 3]> {
        let address = self.address.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET /history HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let numbers =
            |line: &str| -> Vec<i64> { line.split(' ').map(|number| number.parse().unwrap()).collect() };
        body.lines()
            .map(|line| numbers(line).try_into().unwrap())
            .collect()
    }
}

fn ledger(command: &str) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_ledger"));
    program.arg(command);
    program
}

/// Freezes A between its read and its write, lets B take over and write, and wakes A, which then says
/// something that begins like this.
fn freeze_and_wake(site: &Site, says: &str) -> String {
    let first = site.candidate("A");
    first.wait_for_line("has written", LONG).unwrap();
    let second = site.candidate("B");
    second.wait_for_line("stands by", LONG).unwrap();
    let seen = first.lines().len();
    first.wait_for_line_from(seen, "has read", LONG).unwrap();
    first.freeze();
    second.wait_for_line("has written", LONG).unwrap();
    let seen = first.lines().len();
    first.thaw();
    // Its request was made when it led; it sends it now.
    let said = first.wait_for_line_from(seen, says, LONG).unwrap();
    let seen = second.lines().len();
    second.wait_for_line_from(seen, "has written", LONG).unwrap();
    said.text
}

#[test]
fn leader_that_is_frozen_and_woken_is_answered_with_409_and_changes_nothing() {
    let site = Site::new(&[]);
    let said = freeze_and_wake(&site, "stops: 409: refused: token ");
    assert!(
        said.contains(" is stale for \"balance\", which admits none below "),
        "{said}"
    );
    site.service
        .wait_for_line(" is stale for \"balance\"", LONG)
        .unwrap();
    let history = site.history();
    for (change, [_, before, after]) in history.iter().enumerate() {
        assert_eq!(
            (*before, *after),
            (change as i64, change as i64 + 1),
            "{history:?}"
        );
    }
    assert!(history.is_sorted_by_key(|[token, ..]| *token), "{history:?}");
    let terms: std::collections::BTreeSet<i64> = history.iter().map(|[token, ..]| *token).collect();
    // A stall may have ended another term, and its leader have come back.
    assert!(terms.len() >= 2, "{history:?}");
}

/// The proof that the test above can fail: without the fence, the same freeze overwrites the successor.
#[test]
fn without_the_fence_the_same_leader_overwrites_its_successor() {
    let site = Site::new(&["--unfenced"]);
    freeze_and_wake(&site, "has written ");
    let history = site.history();
    assert!(
        history.iter().any(|[_, before, after]| after <= before),
        "{history:?}"
    );
    assert!(!history.is_sorted_by_key(|[token, ..]| *token), "{history:?}");
}

/// What ends the work of every term at once is no reason for hundreds of terms a second.
#[test]
fn leader_whose_service_is_away_says_so_and_leaves_time_between_its_terms() {
    let site = Site::new(&[]);
    site.service.kill_tree();
    site.service.wait_for_exit(LONG).unwrap();
    let began = Instant::now();
    let leader = site.candidate("A");
    leader
        .wait_for_line(&format!("stops: {}: ", site.address), LONG)
        .unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let lines = leader.lines();
    let took = began.elapsed();
    let terms = lines.iter().filter(|line| line.text.starts_with("leads")).count() as u64;
    // One a second at most, and the first.
    let terms_max = took.as_secs() + 2;
    assert!(terms <= terms_max, "{terms} terms within {took:?}");
}

/// As systemd and Kubernetes end it: the others do not wait for the end of the lease.
#[test]
fn leader_that_is_terminated_hands_over_at_once() {
    let site = Site::new(&[]);
    let first = site.candidate_with("1h", "A");
    first.wait_for_line("has read", LONG).unwrap();
    let second = site.candidate_with("1h", "B");
    second.wait_for_line("stands by", LONG).unwrap();
    first.terminate();
    second.wait_for_line("has written", LONG).unwrap();
    assert_eq!(first.wait_for_exit(LONG).unwrap().code(), Some(2));
}
