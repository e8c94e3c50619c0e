//! Process guards, scratch folders, ports and bounded waiting.

use std::collections::HashSet;
use std::panic::catch_unwind;
use std::process::Command;
use std::time::Duration;

use tenure_testkit::{Error, Process, ScratchDir, Stream, eventually, free_port, is_alive};

#[test]
fn lines_of_both_streams_are_captured() {
    let process = shell("echo one; echo two >&2; sleep 600");

    let one = process.wait_for_line("one", LONG).unwrap();
    let two = process.wait_for_line("two", LONG).unwrap();

    assert_eq!((one.stream, two.stream), (Stream::Output, Stream::Error));
    assert_eq!(process.lines().len(), 2);
    assert_eq!(process.status(), None);
}

#[test]
fn next_line_of_a_kind_is_found_after_the_first() {
    let process = shell("echo tick 1; echo tick 2");

    let first = process.wait_for_line("tick", LONG).unwrap();
    let second = process.wait_for_line_from(first.index + 1, "tick", LONG).unwrap();

    assert_eq!(second.text, "tick 2");
}

#[test]
fn waiting_for_a_line_ends_when_the_program_ends() {
    let process = shell("echo last words; exit 3");

    let error = process.wait_for_line("never written", LONG).unwrap_err();

    assert!(error.to_string().contains("last words"), "{error}");
    assert_eq!(process.wait_for_exit(LONG).unwrap().code(), Some(3));
}

#[test]
fn killing_the_tree_kills_grandchildren() {
    let process = shell("sleep 600 & echo child $!; wait");
    let line = process.wait_for_line("child ", LONG).unwrap().text;
    let grandchild: u32 = line["child ".len()..].parse().unwrap();
    assert!(is_alive(grandchild));

    process.kill_tree();

    eventually(LONG, "death of the grandchild", || !is_alive(grandchild));
    assert!(!is_alive(process.pid()));
    assert!(!process.status().unwrap().success());
}

#[test]
fn dropping_the_guard_kills_even_a_frozen_program() {
    let process = shell("sleep 600");
    let pid = process.pid();
    process.freeze();

    drop(process);

    assert!(!is_alive(pid));
}

#[test]
fn frozen_program_does_nothing_until_it_is_thawed() {
    let process = shell("while true; do echo tick; sleep 0.01; done");
    process.wait_for_line("tick", LONG).unwrap();

    process.freeze();
    // What was written before the stop may still be on its way to us.
    eventually(LONG, "silence", || {
        let before = process.lines().len();
        std::thread::sleep(Duration::from_millis(200));
        process.lines().len() == before
    });
    let frozen = process.lines().len();

    process.thaw();
    process.wait_for_line_from(frozen, "tick", LONG).unwrap();
}

#[test]
fn politely_ended_program_tells_its_status() {
    let process = shell("trap 'exit 7' TERM; echo ready; while true; do sleep 0.01; done");
    process.wait_for_line("ready", LONG).unwrap();

    process.terminate();

    assert_eq!(process.wait_for_exit(LONG).unwrap().code(), Some(7));
}

#[test]
fn program_that_does_not_exist_is_an_error() {
    let error = Process::spawn(Command::new("/nonexistent/program"))
        .err()
        .unwrap();
    assert!(matches!(error, Error::System { .. }), "{error}");
}

#[test]
fn scratch_folder_is_gone_after_a_panic() {
    let path = catch_unwind(|| {
        let folder = ScratchDir::new("panics");
        std::fs::write(folder.join("file"), "text").unwrap();
        std::panic::panic_any(folder.path().to_owned());
    })
    .unwrap_err()
    .downcast::<std::path::PathBuf>()
    .unwrap();

    assert!(!path.exists());
}

#[test]
fn free_ports_are_free_and_never_given_twice() {
    let ports: Vec<u16> = (0..50).map(|_| free_port()).collect();

    assert_eq!(ports.iter().collect::<HashSet<_>>().len(), ports.len());
    for port in ports {
        std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    }
}

#[test]
fn waiting_in_vain_panics_with_what_was_waited_for() {
    let panic = catch_unwind(|| {
        eventually(Duration::from_millis(30), "a miracle", || {
            Err::<(), _>("still nothing")
        })
    });

    let message = *panic.unwrap_err().downcast::<String>().unwrap();
    assert!(
        message.contains("a miracle") && message.contains("still nothing"),
        "{message}"
    );
}

fn shell(script: &str) -> Process {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    Process::spawn(command).expect("every machine has a shell")
}

/// Never reached on a machine that makes any progress.
const LONG: Duration = Duration::from_secs(60);
