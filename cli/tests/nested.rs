//! A `tenure` in the work of another: whose options, whose lease, whose control groups.

use crate::common::{Need, SOON, Sandbox, UNHURRIED, ended, leave_out_or_fail, signal};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;
use tenure_testkit::{Process, eventually};

const TENURE: &str = env!("CARGO_BIN_EXE_tenure");

/// The names of Tenure's variables, in a file.
fn names_to(file: &str) -> String {
    format!(
        "env | grep ^TENURE_ | cut -d= -f1 | sort | tr '\\n' ' ' > {file}.new; echo >> {file}.new; mv {file}.new {file}"
    )
}

#[test]
fn the_environment_of_the_work_says_nothing_of_this_lease_and_command_alone() {
    let sandbox = Sandbox::new("nested-environment");
    let work = names_to(&sandbox.path("work"));
    let mut command = sandbox.command(&["run", "job", "--", "sh", "-c", &work]);
    command
        .env("TENURE_ON_ELECTED", names_to(&sandbox.path("hook")))
        .env("TENURE_HEARTBEAT_FILE", sandbox.path("heartbeat"));
    for (variable, value) in [
        ("TENURE_CONFLICT_EXIT_CODE", "9"),
        ("TENURE_COOLDOWN", "1s"),
        ("TENURE_FAIR", "1"),
        ("TENURE_GRACE", "2s"),
        ("TENURE_HEALTH_CMD", "true"),
        ("TENURE_HEARTBEAT_WITHIN", "1h"),
        ("TENURE_KEEP", "1"),
        ("TENURE_NO_HISTORY", "1"),
        ("TENURE_NOTE", "outer"),
        ("TENURE_OTLP", "http://127.0.0.1:1"),
        ("TENURE_PREEMPT", "1"),
        ("TENURE_PRIORITY", "5"),
        ("TENURE_QUIET", "1"),
        ("TENURE_RENEW", "5s"),
        ("TENURE_RESTART", "on-failure"),
        ("TENURE_SHARE_CREDENTIALS", "1"),
        ("TENURE_TTL", "20s"),
        ("TENURE_WAIT", "1h"),
    ] {
        command.env(variable, value);
    }
    let ended = ended(command);
    assert_eq!(ended.code, 0, "{ended:?}");
    let told = "TENURE_CANDIDATE TENURE_GRACE TENURE_HEARTBEAT TENURE_NAME TENURE_NO_HISTORY TENURE_OTLP TENURE_QUIET \
                TENURE_RENEW TENURE_STORE TENURE_TOKEN TENURE_TTL ";
    assert_eq!(sandbox.line("work"), told);
    assert_eq!(sandbox.line("hook"), told);
}

/// They would have one place in a queue, and none of them an order.
#[test]
fn a_tenure_in_the_work_is_a_candidate_of_its_own() {
    let sandbox = Sandbox::new("nested-candidate");
    let tell = "echo \"$TENURE_CANDIDATE\"";
    let work = format!(
        "{tell}; {TENURE} lock first -- sh -c '{tell}'; {TENURE} run second -- sh -c '{tell}'; \
         {TENURE} lock --candidate own third -- sh -c '{tell}'"
    );
    let mut command = sandbox.command(&["run", "outer", "--", "sh", "-c", &work]);
    command.env("TENURE_CANDIDATE", "given");
    let ended = ended(command);
    assert_eq!(ended.code, 0, "{ended:?}");
    let told: Vec<&str> = ended.stdout.lines().collect();
    let [outer, first, second, third] = told[..] else {
        panic!("{ended:?}")
    };
    assert_eq!((outer, third), ("given", "own"));
    assert!(first != outer && second != outer && first != second, "{told:?}");
}

/// It would wait for ever: no turn of an order comes for priority 0.
#[test]
fn a_tenure_in_the_work_has_a_priority_of_its_own() {
    let sandbox = Sandbox::new("nested-priority");
    let inner = format!("{TENURE} run --wait 1m inner -- echo inner");
    let mut command = sandbox.command(&["run", "--priority", "5", "outer", "--", "sh", "-c", &inner]);
    command.env("TENURE_PRIORITY", "0");
    let ended = ended(command);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "inner\n"), "{ended:?}");
}

#[test]
fn a_tenure_in_the_work_that_names_no_lease_is_refused_at_once() {
    let sandbox = Sandbox::new("nested-unnamed");
    for (inner, code) in [("--", 2), ("--name other --", 0)] {
        let inner = format!("{TENURE} run --no-wait --ttl {UNHURRIED} {inner} true");
        let ended = sandbox.tenure(&["run", "--ttl", UNHURRIED, "job", "--", "sh", "-c", &inner]);
        assert_eq!(ended.code, code, "{ended:?}");
        assert_eq!(
            ended.stderr.contains("named by TENURE_NAME alone"),
            code == 2,
            "{ended:?}"
        );
        assert_eq!(ended.stderr.lines().count(), usize::from(code == 2), "{ended:?}");
    }
}

/// It would never end: the outer one waits for it.
#[test]
fn a_tenure_in_the_work_that_would_wait_for_its_own_term_is_refused() {
    let sandbox = Sandbox::new("nested-itself");
    for deed in ["run", "lock"] {
        let inner =
            format!("{TENURE} {deed} --wait 10s job -- true; echo $?; {TENURE} {deed} other -- echo free");
        let ended = sandbox.tenure(&[deed, "job", "--", "sh", "-c", &inner]);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, "2\nfree\n"), "{ended:?}");
        assert!(
            ended.stderr.contains("the term that this runs under"),
            "{ended:?}"
        );
    }
    // That term is over, and another has it: what is left of the environment says nothing.
    let mut late = sandbox.command(&["run", "job", "--", "true"]);
    late.env("TENURE_NAME", "job").env("TENURE_TOKEN", "7");
    let holder = sandbox.run(
        &[],
        "job",
        "echo runs > runs; while test -e runs; do sleep 0.02; done",
    );
    sandbox.line("runs");
    let late = Process::spawn(late).unwrap();
    late.wait_for_line("waiting", SOON).unwrap();
    fs::remove_file(sandbox.dir.join("runs")).unwrap();
    assert!(late.wait_for_exit(SOON).unwrap().success());
    drop(holder);
}

/// The one behind which it would wait waits for it.
#[test]
fn a_tenure_in_the_work_that_would_queue_for_its_own_term_behind_another_is_refused() {
    let sandbox = Sandbox::new("nested-queue");
    let inner = format!(
        "echo runs > runs; while ! test -e third; do sleep 0.02; done; {TENURE} lock --fair job -- true; echo $? > inner"
    );
    let outer = sandbox.run(&[], "job", &inner);
    sandbox.line("runs");
    let third = Process::spawn(sandbox.command(&["lock", "--fair", "job", "--", "true"])).unwrap();
    third.wait_for_line("waiting", SOON).unwrap();
    fs::write(sandbox.dir.join("third"), "").unwrap();
    assert_eq!(sandbox.line("inner"), "2");
    assert!(third.wait_for_exit(SOON).unwrap().success());
    drop(outer);
}

/// The folder of a process's control group (version 2), where there are any.
pub(crate) fn group_of(process: &str) -> Option<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let fields: Vec<&str> = mount.split(' ').collect();
    let below = Path::new(group).strip_prefix(fields[3]).ok()?;
    Some(Path::new(fields[4]).join(below))
}

/// Control groups of a test, and a process in the outer one. Removed when this is dropped.
struct Groups {
    outer: PathBuf,
    inner: PathBuf,
    member: Option<Child>,
}

impl Groups {
    /// Such as killed wardens leave behind; `None` where none may be made, and that is known.
    fn left_behind(member: Option<Child>) -> Option<Self> {
        let dead = || {
            let mut process = Command::new("true").spawn().unwrap();
            process.wait().unwrap();
            format!("tenure-{}", process.id())
        };
        let outer = group_of("self").map(|own| own.join(dead()));
        let Some(outer) = outer.filter(|outer| fs::create_dir(outer).is_ok()) else {
            leave_out_or_fail(Need::ControlGroups);
            return None;
        };
        if let Some(member) = &member {
            // Until somebody is in it, the run of a neighbour may sweep it.
            let joined = (0..100).any(|_| {
                let _swept = fs::create_dir(&outer);
                fs::write(outer.join("cgroup.procs"), member.id().to_string()).is_ok()
            });
            assert!(joined, "nobody can be put into {}", outer.display());
        }
        let groups = Self {
            inner: outer.join(dead()),
            outer,
            member,
        };
        // An empty one may have been swept already.
        assert!(fs::create_dir(&groups.inner).is_ok() || groups.member.is_none());
        Some(groups)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        if let Some(member) = &mut self.member {
            let _ = member.kill();
            let _ = member.wait();
        }
        eventually_removed(&self.outer);
    }
}

#[test]
fn what_killed_wardens_left_of_nested_control_groups_is_removed_by_the_next_run() {
    let sandbox = Sandbox::new("nested-sweep");
    let sleep = Command::new("sleep").arg("300").spawn().unwrap();
    // First: whatever happens next, its process is ended with it.
    let Some(used) = Groups::left_behind(Some(sleep)) else {
        return;
    };
    let Some(unused) = Groups::left_behind(None) else {
        return;
    };
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
    assert!(!unused.outer.exists(), "it was left");
    assert!(used.inner.exists(), "one was removed in which there is life");
}

/// A control group of a test's own, whose `tenure` nobody else's sweeps. Removed when this is dropped.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    /// `None` where none may be made, or used, and that is known.
    pub(crate) fn make(name: &str) -> Option<Self> {
        let own = group_of("self").map(|own| own.join(format!("{name}-{}", std::process::id())));
        let place = own
            .filter(|place| fs::create_dir(place).is_ok())
            .map(Self)
            // Without it, before Linux 5.14, none is used.
            .filter(|place| place.0.join("cgroup.kill").exists());
        if place.is_none() {
            leave_out_or_fail(Need::ControlGroups);
        }
        place
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        eventually_removed(&self.0);
    }
}

/// Removes a group and those below it. Who was killed in it needs a moment to be gone; a drop does not panic.
fn eventually_removed(group: &Path) {
    for below in fs::read_dir(group).into_iter().flatten().flatten() {
        if below.path().is_dir() {
            eventually_removed(&below.path());
        }
    }
    for _ in 0..500 {
        if fs::remove_dir(group).is_ok() || !group.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    eprintln!("{} could not be removed", group.display());
}

#[test]
fn a_killed_tenure_leaves_no_control_group_of_one_in_its_work() {
    let sandbox = Sandbox::new("nested-groups");
    let Some(place) = Place::make("nested") else {
        return;
    };
    let mut command = Command::new("sh");
    command
        .args(["-c", "echo 0 > \"$0\"/cgroup.procs && exec \"$@\""])
        .arg(&place.0)
        .args([TENURE, "run", "outer", "--", TENURE, "run", "inner", "--"])
        .args([
            "sh",
            "-c",
            &format!("echo $$ > {}; exec sleep 300", sandbox.path("pid")),
        ])
        .env("TENURE_STORE", &sandbox.store);
    let outer = Process::spawn(command).unwrap();
    let inner_group = group_of(&sandbox.pid("pid").to_string()).unwrap();
    let outer_group = inner_group.parent().unwrap();
    assert_eq!(outer_group.parent(), Some(place.0.as_path()), "{inner_group:?}");
    signal(outer.pid(), Signal::KILL);
    // The inner one is killed with its warden, in one step: its lease ends by itself.
    eventually(SOON, "the lease is given back", || {
        sandbox.lease("outer")["state"] == "vacant"
    });
    assert!(!outer_group.exists(), "control groups are left");
}
