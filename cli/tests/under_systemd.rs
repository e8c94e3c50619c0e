//! The units in `deploy` under a systemd of its own: the first process of a PID namespace, with mounts and
//! control groups that nobody else sees.

use crate::common::{Need, SOON, Sandbox, leave_out_or_fail};
use rustix::fs::chown;
use rustix::process::{Gid, Uid, geteuid};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use tenure_testkit::{Process, eventually, is_alive};

const SYSTEMD: &str = "/lib/systemd/systemd";
const UNIT: &str = include_str!("../../deploy/tenure@.service");
const NIGHTLY: &str = include_str!("../../deploy/tenure-nightly@.service");

/// The unit's user, whom no machine has.
const USER: u32 = 64_201;

/// What the first process does before it becomes systemd. It knows no unit but those in `$UNITS`: the
/// machine's own would mount, set and clean up what is not theirs here. All but the folder of the test can
/// only be read; what is written to `/etc`, `/usr/local/bin` and `/run` is in memory, and goes with it. Where
/// a file on it was closed just now, the root is busy for a moment.
const FIRST: &str = r#"set -e
mount --make-rprivate /
mount --bind "$FOLDER" "$FOLDER"
until mount -o remount,bind,ro /; do sleep 0.1; done
mount -t tmpfs tmpfs /run
umount -l /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 cgroup /sys/fs/cgroup
for folder in etc usr/local/bin; do
  mkdir -p /run/upper/$folder /run/work/$folder
  mount -t overlay overlay -o lowerdir=/$folder,upperdir=/run/upper/$folder,workdir=/run/work/$folder /$folder
done
echo "tenure:x:$USER_NUMBER:$USER_NUMBER::/:/bin/sh" >> /etc/passwd
touch /usr/local/bin/tenure
mount --bind "$TENURE" /usr/local/bin/tenure
mkdir -p /etc/tenure
printf 'TENURE_STORE=%s\nJOB=%s with arguments\n' "$STORE" "$JOB" > /etc/tenure/job.env
mount -t proc proc /proc
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
exec env -i container=test PATH="$PATH" SYSTEMD_UNIT_PATH="$UNITS" SYSTEMD_GENERATOR_PATH=/run/nothing \
  SYSTEMD_ENVIRONMENT_GENERATOR_PATH=/run/nothing \
  /lib/systemd/systemd --system --unit=basic.target --log-target=null --show-status=0
"#;

/// What units depend on by default, and those that these name; here they stand for nothing.
const TARGETS: [&str; 6] = [
    "sysinit.target",
    "basic.target",
    "shutdown.target",
    "network-online.target",
    "time-sync.target",
    "multi-user.target",
];

/// A systemd that has started nothing, and knows one unit.
struct Systemd {
    process: Process,
    unit: &'static str,
}

impl Systemd {
    /// `unit` is the instance of a template, and `text` is what the template says.
    fn start(sandbox: &Sandbox, job: &Path, unit: &'static str, text: &str) -> Self {
        let units = sandbox.dir.join("units");
        fs::create_dir(&units).unwrap();
        let (template, _instance) = unit.split_once('@').unwrap();
        fs::write(units.join(format!("{template}@.service")), text).unwrap();
        for target in TARGETS {
            fs::write(units.join(target), "[Unit]\nDefaultDependencies=no\n").unwrap();
        }
        let mut command = Command::new("unshare");
        command
            .args([
                "--fork",
                "--pid",
                "--mount",
                "--cgroup",
                "--ipc",
                "--uts",
                "--kill-child",
            ])
            .args(["sh", "-c", FIRST])
            .env("USER_NUMBER", USER.to_string())
            .env("TENURE", env!("CARGO_BIN_EXE_tenure"))
            .env("STORE", &sandbox.store)
            .env("JOB", job)
            .env("FOLDER", sandbox.dir.path())
            .env("UNITS", &units);
        let process = Process::spawn(command).unwrap();
        let systemd = Self { process, unit };
        eventually(SOON, "systemd answers", || {
            let state = systemd.control(&["is-system-running"]).1;
            if ["running", "degraded"].contains(&state.as_str()) {
                Ok(())
            } else {
                Err(format!("{state}: {:?}", systemd.process.lines()))
            }
        });
        systemd
    }

    /// The number of the first process, outside.
    fn pid(&self) -> Option<u32> {
        let parent = self.process.pid();
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    /// `systemctl` with these arguments: whether it has succeeded, and what it says.
    fn control(&self, arguments: &[&str]) -> (bool, String) {
        let Some(pid) = self.pid() else {
            return (false, "no systemd".to_owned());
        };
        let target = pid.to_string();
        let mut command = Command::new("nsenter");
        command
            .args([
                "--target",
                &target,
                "--pid",
                "--mount",
                "--cgroup",
                "--ipc",
                "--uts",
                "systemctl",
            ])
            .args(arguments)
            .stdin(Stdio::null());
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8(said).unwrap().trim().to_owned(),
        )
    }

    /// A property of the unit.
    fn property(&self, name: &str) -> String {
        self.control(&["show", self.unit, "--value", "--property", name])
            .1
    }
}

/// The processes with this word: their numbers outside, which the job does not know.
fn running(mark: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    numbers
        .filter(|number| {
            fs::read_to_string(format!("/proc/{number}/cmdline")).is_ok_and(|line| line.contains(mark))
        })
        .collect()
}

/// Makes it the unit's user's.
fn give(path: &Path) {
    chown(path, Some(Uid::from_raw(USER)), Some(Gid::from_raw(USER))).unwrap();
}

#[test]
fn the_unit_runs_as_its_user_under_systemd_is_started_again_and_stops_without_failure() {
    if !geteuid().is_root() || !Path::new(SYSTEMD).exists() {
        return leave_out_or_fail(Need::Systemd);
    }
    let sandbox = Sandbox::new("under-systemd");
    let mark = sandbox.path("sleeping");
    // A part of the job leaves its process group and session, and takes no notice of SIGTERM.
    let ran = sandbox.path("ran");
    let script = format!(
        "#!/bin/sh\nsetsid sh -c 'trap \"\" TERM; while true; do sleep 1; done' {mark} &\n\
         echo \"$(id -un) $# $(grep ^0:: /proc/self/cgroup)\" >> {ran}\nexec sleep 300\n"
    );
    let job = sandbox.script("job", &script);
    give(sandbox.dir.path());
    let runs = || sandbox.read("ran").lines().count();
    let systemd = Systemd::start(&sandbox, &job, "tenure@job", UNIT);

    // Done when tenure says that it is ready.
    let (started, said) = systemd.control(&["start", "tenure@job"]);
    assert!(started, "{said}");
    eventually(SOON, "it runs", || runs() == 1);
    let line = sandbox.line("ran");
    let (who, group) = line.split_once(" 0::").unwrap();
    assert_eq!(who, "tenure 2");
    // Delegate= lets tenure make it.
    let (unit, own) = group.rsplit_once('/').unwrap();
    assert!(
        unit.ends_with("tenure@job.service") && own.starts_with("tenure-"),
        "{group}"
    );
    eventually(SOON, "its state is told", || {
        let status = systemd.property("StatusText");
        status.contains("leads by token").then_some(()).ok_or(status)
    });

    // Nothing of the job outlives tenure, and systemd starts it again; the lease is nobody's until its ttl is
    // over.
    let before = running(&mark);
    assert!(!before.is_empty());
    let (killed, said) = systemd.control(&["kill", "--kill-who=main", "--signal=KILL", "tenure@job"]);
    assert!(killed, "{said}");
    eventually(SOON, "all of it is gone", || {
        !before.iter().any(|process| is_alive(*process))
    });
    eventually(SOON, "it runs again", || runs() == 2);
    assert_eq!(systemd.property("NRestarts"), "1");

    let (stopped, said) = systemd.control(&["stop", "tenure@job"]);
    assert!(stopped, "{said}");
    let (state, result) = (systemd.property("ActiveState"), systemd.property("Result"));
    assert_eq!((state.as_str(), result.as_str()), ("inactive", "success"));
    assert!(running(&mark).is_empty(), "{:?}", running(&mark));
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

/// As one whose login or rights the store refuses: systemd shows it, and tries no more. The tries are fewer
/// and shorter here.
#[test]
fn the_unit_has_failed_after_some_starts_that_a_person_must_mend() {
    if !geteuid().is_root() || !Path::new(SYSTEMD).exists() {
        return leave_out_or_fail(Need::Systemd);
    }
    let mut sandbox = Sandbox::new("unit-refused");
    let job = sandbox.script("job", "#!/bin/sh\nexec sleep 300\n");
    // Root's alone, and not the unit's user's.
    let folder = sandbox.dir.join("forbidden");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    sandbox.store = format!("sqlite:{}/leases.db", folder.display());
    give(sandbox.dir.path());
    let changes = [
        ("RestartSec=5", "RestartSec=100ms"),
        ("StartLimitBurst=100", "StartLimitBurst=2"),
    ];
    let text = changed(UNIT, &changes);
    let systemd = Systemd::start(&sandbox, &job, "tenure@job", &text);
    let (started, said) = systemd.control(&["start", "--no-block", "tenure@job"]);
    assert!(started, "{said}");
    eventually(SOON, "it has given up", || {
        let state = systemd.property("ActiveState");
        (state == "failed").then_some(()).ok_or(state)
    });
    assert_eq!(systemd.property("ExecMainStatus"), "77");
    give(&folder);
    for step in ["reset-failed", "start", "stop"] {
        let (is_done, said) = systemd.control(&[step, "tenure@job"]);
        assert!(is_done, "{step}: {said}");
    }
}

/// What a unit says, with these changes.
fn changed(unit: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(unit.to_owned(), |text, (before, after)| {
        assert!(text.contains(before), "{before}");
        text.replace(before, after)
    })
}

/// The nightly unit, with these changes and not started yet; its store is away until there is a folder for
/// it.
fn nightly_away(sandbox: &mut Sandbox, changes: &[(&str, &str)]) -> Systemd {
    let script = format!("#!/bin/sh\necho \"$(id -un) $#\" >> {}\n", sandbox.path("ran"));
    let job = sandbox.script("job", &script);
    sandbox.store = format!("sqlite:{}/leases.db", sandbox.path("mount"));
    give(sandbox.dir.path());
    Systemd::start(sandbox, &job, "tenure-nightly@job", &changed(NIGHTLY, changes))
}

fn bring_store_back(sandbox: &Sandbox) {
    fs::create_dir(sandbox.dir.join("mount")).unwrap();
    give(&sandbox.dir.join("mount"));
}

/// The tries, and the pauses between them, are shorter here.
#[test]
fn the_nightly_unit_is_tried_again_under_systemd_while_the_store_is_away_and_stops_without_failure() {
    if !geteuid().is_root() || !Path::new(SYSTEMD).exists() {
        return leave_out_or_fail(Need::Systemd);
    }
    let mut sandbox = Sandbox::new("nightly-under-systemd");
    let systemd = nightly_away(
        &mut sandbox,
        &[("RestartSec=60", "RestartSec=1s"), ("--wait 45s", "--wait 1s")],
    );
    let (started, said) = systemd.control(&["start", "--no-block", "tenure-nightly@job"]);
    assert!(started, "{said}");
    eventually(SOON, "it is tried again", || {
        let times: u32 = systemd.property("NRestarts").parse().unwrap();
        (times >= 2).then_some(()).ok_or(times)
    });
    assert_eq!(sandbox.read("ran"), "");
    bring_store_back(&sandbox);
    assert_eq!(sandbox.line("ran"), "tenure 2");

    // The job has ended, and the lease is kept.
    let (stopped, said) = systemd.control(&["stop", "tenure-nightly@job"]);
    assert!(stopped, "{said}");
    let (state, result) = (systemd.property("ActiveState"), systemd.property("Result"));
    assert_eq!((state.as_str(), result.as_str()), ("inactive", "success"));
    assert_eq!(sandbox.read("ran").lines().count(), 1);
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

/// The limit is for starts by hand as well, and they fail as if the store were still away. The tries are
/// fewer and shorter here.
#[test]
fn a_nightly_unit_that_has_given_up_is_started_by_hand_once_its_failures_are_reset() {
    if !geteuid().is_root() || !Path::new(SYSTEMD).exists() {
        return leave_out_or_fail(Need::Systemd);
    }
    let mut sandbox = Sandbox::new("nightly-given-up");
    let changes = [
        ("RestartSec=60", "RestartSec=100ms"),
        ("StartLimitBurst=13", "StartLimitBurst=2"),
        ("--wait 45s", "--wait 100ms"),
    ];
    let systemd = nightly_away(&mut sandbox, &changes);
    let unit = systemd.unit;
    let (started, said) = systemd.control(&["start", "--no-block", unit]);
    assert!(started, "{said}");
    eventually(SOON, "it has given up", || {
        let state = systemd.property("ActiveState");
        (state == "failed").then_some(()).ok_or(state)
    });
    bring_store_back(&sandbox);
    let (started, said) = systemd.control(&["start", unit]);
    assert!(!started, "{said}");
    for step in ["reset-failed", "start"] {
        let (is_done, said) = systemd.control(&[step, unit]);
        assert!(is_done, "{step}: {said}");
    }
    assert_eq!(sandbox.line("ran"), "tenure 2");
    let (stopped, said) = systemd.control(&["stop", unit]);
    assert!(stopped, "{said}");
    assert_eq!(sandbox.read("ran").lines().count(), 1);
}
