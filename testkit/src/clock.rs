//! A clock that is ahead of the machine's.

use std::process::Command;

/// What runs the program that is added to it in a time namespace whose `CLOCK_BOOTTIME` is ahead by so many
/// seconds: as in a container that was moved to another machine. Needs user namespaces, which some machines
/// refuse to who is not root.
#[must_use]
pub fn on_a_clock_that_is_ahead(seconds: u64) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--time", "--fork", "--kill-child"]);
    command.arg("--boottime").arg(seconds.to_string());
    command
}
