//! The warden, told what to do by a test in a supervisor's place.

use crate::common::{SOON, Sandbox, parent_of, signal};
use rustix::process::Signal;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::time::Duration;
use tenure_testkit::{eventually, is_alive};

/// A process that stands for a supervisor, and the other end of its warden's socket.
struct Supervisor {
    process: Child,
    socket: BufReader<UnixStream>,
}

impl Supervisor {
    /// One whose warden guards `command`, which is killed so long from now, in a term that has ended already.
    fn start(sandbox: &Sandbox, command: &str, killed_in: Duration) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(SOON)).unwrap();
        let script = "exec 3<&0; \"$0\" warden --socket 3 -- sh -c \"$1\" & wait";
        let process = Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_tenure"), command])
            .current_dir(sandbox.dir.path())
            .stdin(OwnedFd::from(theirs))
            .spawn()
            .unwrap();
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let now: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        let now = Duration::from_secs_f64(now);
        let [kill_at, until] = [now + killed_in, now].map(|at| u64::try_from(at.as_nanos()).unwrap());
        let begin = serde_json::json!({
            "store": sandbox.store, "lease": "job", "incarnation": "1f", "token": 7, "kill_at": kill_at, "until": until,
        });
        let mut socket = BufReader::new(ours);
        writeln!(socket.get_mut(), "{begin}").unwrap();
        Self { process, socket }
    }

    /// What the warden says next.
    fn word(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(
            self.socket.read_line(&mut line).unwrap(),
            0,
            "the warden has ended"
        );
        line
    }

    /// Waits until the warden says that nothing is left of the work.
    fn until_empty(&mut self) {
        while self.word() != "empty\n" {}
    }

    /// Waits until the warden has ended.
    fn until_ended(&mut self) {
        let mut line = String::new();
        while self
            .socket
            .read_line(&mut line)
            .expect("the warden has not ended")
            != 0
        {}
    }

    fn say(&mut self, word: &str) {
        writeln!(self.socket.get_mut(), "{word}").unwrap();
    }

    fn is_there(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _ = writeln!(self.socket.get_mut(), "dismiss");
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Giving the lease back may take longer than a supervisor may be silent: what is silent, or stopped, is
/// ended all the same.
#[test]
fn a_supervisor_that_has_seen_the_end_of_the_work_has_time_to_give_the_lease_back() {
    let sandbox = Sandbox::new("seen");
    let [mut seeing, mut silent, mut stopped] =
        [(); 3].map(|()| Supervisor::start(&sandbox, "true", SOON * 10));
    for supervisor in [&mut seeing, &mut silent, &mut stopped] {
        supervisor.until_empty();
    }
    seeing.say("seen");
    stopped.say("seen");
    signal(stopped.process.id(), Signal::STOP);
    eventually(SOON, "the stopped one is killed", || !stopped.is_there());
    eventually(SOON, "the silent one is killed", || !silent.is_there());
    silent.until_ended();
    // Longer than the three were begun apart.
    std::thread::sleep(Duration::from_secs(2));
    assert!(seeing.is_there(), "killed though it was giving the lease back");
}

/// Nothing closes its socket: a child of the supervisor's that hangs in its start has it, for one, or this
/// test.
#[test]
fn a_warden_hears_of_its_supervisors_death_though_its_socket_is_open() {
    let sandbox = Sandbox::new("socket-open");
    let mut supervisor = Supervisor::start(
        &sandbox,
        "echo $$ > pid; exec sleep 300",
        Duration::from_secs(3600),
    );
    let command = sandbox.pid("pid");
    supervisor.process.kill().unwrap();
    supervisor.until_empty();
    assert!(!is_alive(command));
    supervisor.until_ended();
}

/// `pkill -9 tenure` goes by the name of a process: else nobody was left to end the work.
#[test]
fn whoever_kills_every_tenure_by_name_does_not_hit_the_warden() {
    let sandbox = Sandbox::new("warden-name");
    let _run = sandbox.run(&[], "job", "echo $$ > pid; exec sleep 300");
    let warden = parent_of(sandbox.pid("pid"));
    let name = std::fs::read_to_string(format!("/proc/{warden}/comm")).unwrap();
    assert!(!name.contains("tenure"), "{name}");
}

/// Its supervisor was frozen when it had won, for one, and the lease is another's by now.
#[test]
fn a_command_is_not_started_when_it_is_to_be_killed_already() {
    let sandbox = Sandbox::new("late");
    let mut supervisor = Supervisor::start(&sandbox, "touch ran", Duration::ZERO);
    assert_eq!(supervisor.word(), "late\n");
    assert_eq!(supervisor.socket.read_line(&mut String::new()).unwrap(), 0);
    assert!(!sandbox.dir.join("ran").exists());
}

/// As with the machine, for longer than the lease and all patience: a supervisor that wakes up with its
/// warden is not to blame.
#[test]
fn a_warden_that_was_frozen_itself_gives_its_supervisor_time() {
    let sandbox = Sandbox::new("both-frozen");
    let command = "echo $$ > pid; exec sleep 300";
    let mut supervisor = Supervisor::start(&sandbox, command, Duration::from_secs(8));
    let warden = parent_of(sandbox.pid("pid"));
    signal(warden, Signal::STOP);
    // The end of the work, and the ten seconds that a silent supervisor has.
    std::thread::sleep(Duration::from_secs(11));
    signal(warden, Signal::CONT);
    supervisor.until_empty();
    supervisor.say("seen");
    std::thread::sleep(Duration::from_millis(500));
    assert!(
        supervisor.is_there(),
        "killed before it could hear that the work is gone"
    );
}
