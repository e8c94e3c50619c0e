//! Losing the lease by every cause, with work that forks, detaches, stops and ignores signals: does any of it
//! outlive the lease, or meet its successor?

use crate::command::{program, tenure_run};
use crate::figures::{Samples, milliseconds};
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tenure_testkit::{Process, ScratchDir, is_alive};

/// How long anything here may take before the bench gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Leases that are lost side by side: more, and the machine is what is measured.
const LANES: u32 = 4;

/// Short, so that causes that wait for the deadline do not take long.
const TTL: &str = "1500ms";

/// The command, something in its group, something in a session of its own, and something that is stopped.
const MEMBERS: usize = 4;

/// Why a lease is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    SupervisorKilled,
    SupervisorFrozen,
    WardenKilled,
    WardenFrozen,
    StoreLocked,
    SteppedDown,
    CommandKilled,
    Terminated,
}

const CAUSES: [Cause; 8] = [
    Cause::SupervisorKilled,
    Cause::SupervisorFrozen,
    Cause::WardenKilled,
    Cause::WardenFrozen,
    Cause::StoreLocked,
    Cause::SteppedDown,
    Cause::CommandKilled,
    Cause::Terminated,
];

pub fn measure(cycles: u32) {
    let lanes: Vec<_> = (0..LANES)
        .map(|lane| {
            let share = cycles / LANES + u32::from(lane < cycles % LANES);
            std::thread::spawn(move || one_lane(lane, share))
        })
        .collect();
    let mut overlaps = 0;
    let mut gaps: Vec<(Cause, Duration)> = Vec::new();
    for lane in lanes {
        let (found, measured) = lane.join().expect("a lane ran to its end");
        overlaps += found;
        gaps.extend(measured);
    }
    println!(
        "{cycles} leases lost, ttl {TTL}, {MEMBERS} processes each, from the cause to the start of the next work:"
    );
    for cause in CAUSES {
        let mut samples = Samples::default();
        gaps.iter()
            .filter(|(of, _)| *of == cause)
            .for_each(|(_, gap)| samples.add(*gap));
        if samples.len() > 0 {
            println!(
                "  {cause:?}: {} times, p50 {:.0} ms, max {:.0} ms",
                samples.len(),
                milliseconds(samples.percentile(50.0)),
                milliseconds(samples.percentile(100.0))
            );
        }
    }
    println!("  processes that the next work still found alive: {overlaps} (target: 0)");
    assert_eq!(overlaps, 0, "work met its successor");
}

/// Runs its share, and says how many processes were met, and how long each change took.
fn one_lane(lane: u32, cycles: u32) -> (usize, Vec<(Cause, Duration)>) {
    let folder = ScratchDir::new(&format!("bench-contain-{lane}"));
    let url = format!("sqlite:{}", folder.join("leases.db").display());
    let mut overlaps = 0;
    let mut gaps = Vec::new();
    let mut leader = candidate(&url, folder.path());
    leader.wait_for_line("started", PATIENCE).unwrap();
    for cycle in 0..cycles {
        let cause = CAUSES[(cycle as usize + lane as usize) % CAUSES.len()];
        let standby = candidate(&url, folder.path());
        standby.wait_for_line("waiting", PATIENCE).unwrap();
        // At another moment between two renewals each time.
        std::thread::sleep(Duration::from_millis(u64::from(cycle * 37 % 500)));
        let began = Instant::now();
        inflict(cause, &leader, &url, folder.path());
        standby.wait_for_line("started", PATIENCE).unwrap();
        gaps.push((cause, began.elapsed()));
        overlaps += met(&standby);
        leader = standby;
    }
    (overlaps, gaps)
}

/// Each notes its own processes under its token, and looks first for those of every term before it.
fn candidate(url: &str, folder: &Path) -> Process {
    let folder = folder.display();
    let job = format!(
        r#"for pid in $(cat {folder}/pids-* 2>/dev/null); do kill -0 $pid 2>/dev/null && echo met $pid; done
        rm -f {folder}/pids-*; trap '' TERM HUP INT; F={folder}/pids-$TENURE_TOKEN; echo $$ > $F
        (trap '' TERM; while :; do sleep 0.2; done) & echo $! >> $F
        F=$F setsid sh -c 'trap "" TERM HUP; echo $$ >> $F; while :; do sleep 0.2; done' &
        (F=$F sh -c 'echo $$ >> $F; kill -STOP $$; sleep 600' &)
        while [ $(wc -l < $F) -lt {MEMBERS} ]; do sleep 0.01; done; echo started; while :; do sleep 0.2; done"#
    );
    let arguments = [
        "contained",
        "--ttl",
        TTL,
        "--grace",
        "400ms",
        "--",
        "sh",
        "-c",
        &job,
    ];
    Process::spawn(tenure_run(url, &arguments)).unwrap()
}

fn met(process: &Process) -> usize {
    process
        .lines()
        .iter()
        .filter(|line| line.text.starts_with("met "))
        .count()
}

fn inflict(cause: Cause, leader: &Process, url: &str, folder: &Path) {
    let pid = leader.pid();
    match cause {
        Cause::SupervisorKilled => signal(pid, Signal::KILL),
        Cause::SupervisorFrozen => signal(pid, Signal::STOP),
        Cause::WardenKilled => signal(warden_of(pid), Signal::KILL),
        Cause::WardenFrozen => {
            signal(warden_of(pid), Signal::STOP);
            signal(pid, Signal::TERM);
        }
        Cause::StoreLocked => {
            let connection = Connection::open(folder.join("leases.db")).unwrap();
            connection.busy_timeout(PATIENCE).unwrap();
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            // The standby cannot take it before the work is dead either: so the lock goes when the deadline
            // has passed.
            while is_alive(pid) {
                std::thread::sleep(Duration::from_millis(5));
            }
            connection.execute_batch("COMMIT").unwrap();
        }
        Cause::SteppedDown => {
            let asked = Command::new(program())
                .args(["step-down", "contained", "--store", url])
                .output()
                .unwrap();
            assert!(asked.status.code().is_some(), "{asked:?}");
        }
        Cause::CommandKilled => {
            let noted = std::fs::read_dir(folder).unwrap().flatten();
            let noted = noted.filter(|file| file.file_name().to_string_lossy().starts_with("pids-"));
            let text = noted
                .map(|file| std::fs::read_to_string(file.path()).unwrap())
                .collect::<String>();
            signal(text.lines().next().unwrap().parse().unwrap(), Signal::KILL);
        }
        Cause::Terminated => signal(pid, Signal::TERM),
    }
}

/// The first child of a supervisor.
fn warden_of(pid: u32) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.split_whitespace().next().unwrap().parse().unwrap()
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}
