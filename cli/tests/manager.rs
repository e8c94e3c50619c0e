//! What a service manager, such as systemd, hears of `tenure`.

use crate::common::{SOON, Sandbox, ended, exit_code, signal};
use rustix::process::Signal;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::Command;
use tenure_testkit::Process;

/// One that listens, and what it has heard.
pub struct Manager {
    socket: UnixDatagram,
    pub heard: String,
}

impl Manager {
    /// One to whom the process of this command is to speak.
    pub fn of(sandbox: &Sandbox, command: &mut Command) -> Self {
        let path = sandbox.dir.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(SOON)).unwrap();
        command.env("NOTIFY_SOCKET", &path);
        Self {
            socket,
            heard: String::new(),
        }
    }

    pub fn hear(&mut self) {
        let mut datagram = [0; 4096];
        let length = self.socket.recv(&mut datagram);
        let length = length.unwrap_or_else(|error| panic!("{error}: {}", self.heard));
        self.heard.push_str(&String::from_utf8_lossy(&datagram[..length]));
    }

    pub fn hear_until(&mut self, what: &str) {
        while !self.heard.contains(what) {
            self.hear();
        }
    }
}

/// What systemd would hear: ready once it takes part, who leads, and the end; and the command speaks to
/// nobody in its name.
#[test]
fn a_service_manager_hears_what_is_going_on() {
    let sandbox = Sandbox::new("notify");
    let script = format!(
        "echo \"[$NOTIFY_SOCKET]\" > {}; exec sleep 300",
        sandbox.path("command")
    );
    let mut command = sandbox.command(&["run", "job", "--", "sh", "-c", &script]);
    let mut manager = Manager::of(&sandbox, &mut command);
    let process = Process::spawn(command).unwrap();
    manager.hear_until("READY=1");
    manager.hear_until("STATUS=stands by");
    manager.hear_until("STATUS=leads by token");
    assert_eq!(sandbox.line("command"), "[]");
    signal(process.pid(), Signal::TERM);
    manager.hear_until("STOPPING=1");
}

/// As with `WatchdogSec=`: what says nothing for so long would be killed. The command cannot tell it.
#[test]
fn a_service_manager_that_watches_hears_that_it_goes_on() {
    for (watched, is_told) in [(None, true), (Some("1"), false)] {
        let sandbox = Sandbox::new("watchdog");
        let script =
            "echo \"[$WATCHDOG_USEC$WATCHDOG_PID]\" > told; while [ ! -e go ]; do sleep 0.05; done; exit 4";
        let mut command = sandbox.command(&["run", "job", "--", "sh", "-c", script]);
        let mut manager = Manager::of(&sandbox, &mut command);
        command.env("WATCHDOG_USEC", "200000");
        if let Some(process) = watched {
            command.env("WATCHDOG_PID", process);
        }
        let process = Process::spawn(command).unwrap();
        while !manager.heard.contains("STOPPING=1") {
            let lives = manager
                .heard
                .split_once("leads by token")
                .map(|(_, led)| led.matches("WATCHDOG=1").count());
            if lives.is_some_and(|lives| !is_told || lives >= 2) {
                std::fs::write(sandbox.dir.join("go"), "").unwrap();
            }
            manager.hear();
        }
        assert_eq!(exit_code(&process), 4);
        assert_eq!(sandbox.line("told"), "[]");
        assert_eq!(manager.heard.contains("WATCHDOG"), is_told, "{}", manager.heard);
    }
}

/// It listens, and its queue is full.
#[test]
fn a_service_manager_that_reads_nothing_holds_nothing_up() {
    let sandbox = Sandbox::new("notify-deaf");
    let path = sandbox.dir.join("notify");
    let _manager = UnixDatagram::bind(&path).unwrap();
    let filling = UnixDatagram::unbound().unwrap();
    filling.set_nonblocking(true).unwrap();
    let full = loop {
        if let Err(error) = filling.send_to(b"STATUS=full", &path) {
            break error.kind();
        }
    };
    assert_eq!(full, ErrorKind::WouldBlock);
    let mut command = sandbox.command(&["run", "job", "--", "touch", "ran"]);
    command.env("NOTIFY_SOCKET", &path);
    let process = Process::spawn(command).unwrap();
    assert_eq!(exit_code(&process), 0);
    assert!(sandbox.dir.join("ran").exists());
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

/// A name that begins with @ is no file's.
#[test]
fn a_service_manager_hears_at_a_name_that_is_no_file() {
    let sandbox = Sandbox::new("notify-abstract");
    let name = sandbox.path("notify");
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let manager = UnixDatagram::bind_addr(&address).unwrap();
    manager.set_read_timeout(Some(SOON)).unwrap();
    let mut command = sandbox.command(&["run", "job", "--", "true"]);
    command.env("NOTIFY_SOCKET", format!("@{name}"));
    assert_eq!(ended(command).code, 0);
    let mut datagram = [0; 4096];
    let length = manager.recv(&mut datagram).unwrap();
    assert!(datagram[..length].starts_with(b"READY=1\n"));
}
