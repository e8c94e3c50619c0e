//! Real processes: the test program itself, started again in a role.
//!
//! Each test file that uses roles has a test `as_a_child` that plays the role and returns at once without
//! one; the file names itself by `module_path!()`.

use std::path::{Path, PathBuf};
use std::process::Command;
use tenure_testkit::on_a_clock_that_is_ahead;

const ROLE: &str = "TENURE_TEST_ROLE";
const FILE: &str = "TENURE_TEST_FILE";

/// This test program, in `role` of the test file `module`, on `file`.
pub fn in_role(module: &str, role: &str, file: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments(module)).env(ROLE, role).env(FILE, file);
    command
}

/// As [`in_role`], behind a shell that first runs `set_up` in namespaces of its own, where it is root: what
/// it mounts or limits is gone with it and concerns nobody else.
pub fn in_role_after(set_up: &str, module: &str, role: &str, file: &Path) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .arg(format!("{set_up} && exec \"$0\" \"$@\""))
        .arg(std::env::current_exe().unwrap())
        .args(arguments(module))
        .env(ROLE, role)
        .env(FILE, file);
    command
}

/// As [`in_role`], in a time namespace whose `CLOCK_BOOTTIME` is ahead by this many seconds.
pub fn in_role_ahead(seconds: u64, module: &str, role: &str, file: &Path) -> Command {
    let mut command = on_a_clock_that_is_ahead(seconds);
    command
        .arg(std::env::current_exe().unwrap())
        .args(arguments(module))
        .env(ROLE, role)
        .env(FILE, file);
    command
}

/// What a person must do where the kernel refuses [`in_role_after`].
pub const NAMESPACES_NEEDED: &str = "this test needs unprivileged user namespaces: \
     apt-get install util-linux; sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000";

/// Plays a role by [`in_role_after`], and demands that it says that all is as promised.
pub fn played_after(set_up: &str, module: &str, role: &str, file: &Path) {
    let output = in_role_after(set_up, module, role, file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("all is as promised"),
        "{role}: {said}{}\n{NAMESPACES_NEEDED}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn arguments(module: &str) -> [String; 4] {
    let (_program, module) = module.split_once("::").unwrap();
    let test = format!("{module}::as_a_child");
    [
        "--exact".into(),
        test,
        "--nocapture".into(),
        "--test-threads=1".into(),
    ]
}

/// The role of this process and its file; `None` in the test's own process.
pub fn role() -> Option<(String, PathBuf)> {
    Some((std::env::var(ROLE).ok()?, std::env::var_os(FILE)?.into()))
}
