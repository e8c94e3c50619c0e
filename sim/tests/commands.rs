//! The one door, from outside.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

#[test]
fn a_reader_that_goes_away_ends_a_replay_quietly() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure-sim"));
    command.args(["replay", "--seed", "1"]).stdout(writer);
    let ended = command.output().unwrap();
    assert_eq!(ended.status.code(), Some(141), "{ended:?}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
}
