//! A PID namespace of its own: what `/proc` shows, and what it does not.

use crate::common::{Need, Sandbox, UNHURRIED, ended, leave_out_or_fail};
use rustix::process::geteuid;
use std::process::Command;

/// By its numbers other processes would be taken for the work, and killed.
#[test]
fn a_proc_of_another_pid_namespace_is_refused_before_anything_is_held() {
    if !geteuid().is_root() {
        leave_out_or_fail(Need::Root);
        return;
    }
    let sandbox = Sandbox::new("namespace");
    let run = |options: &[&str]| {
        let tenure = sandbox.command(&["run", "--ttl", UNHURRIED, "job", "--", "touch", "ran"]);
        let mut command = Command::new("unshare");
        command
            .args(["--pid", "--fork", "--kill-child"])
            .args(options)
            .arg(tenure.get_program())
            .args(tenure.get_args())
            .current_dir(sandbox.dir.path());
        for (variable, value) in tenure.get_envs() {
            match value {
                Some(value) => command.env(variable, value),
                None => command.env_remove(variable),
            };
        }
        ended(command)
    };
    let refused = run(&[]);
    assert_eq!(refused.code, 78, "{refused:?}");
    assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    for part in ["lease \"job\"", "/proc", "--mount-proc"] {
        assert!(refused.stderr.contains(part), "{refused:?}");
    }
    assert!(!sandbox.dir.join("ran").exists() && !sandbox.dir.join("leases.db").exists());
    let own = run(&["--mount-proc"]);
    assert_eq!((own.code, own.stderr.as_str()), (0, ""), "{own:?}");
    assert!(sandbox.dir.join("ran").exists());
}
