//! The command's own cost: start-up and memory.

use crate::figures::{Samples, judge, milliseconds};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tenure_testkit::{Process, ScratchDir};

/// The `tenure` beside this program.
pub fn program() -> PathBuf {
    let program = std::env::current_exe().unwrap().with_file_name("tenure");
    assert!(
        program.exists(),
        "build it first: cargo build --release -p tenure-cli"
    );
    program
}

/// `tenure run` on a store, ready for more arguments.
pub fn tenure_run(store: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(["run", "--store", store])
        .args(arguments)
        .stdin(Stdio::null());
    command
}

pub fn measure(rounds: u32) {
    let folder = ScratchDir::new("bench-command");
    let store = format!("sqlite://{}", folder.join("leases.db").display());
    let (mut bare, mut ours) = (Samples::default(), Samples::default());
    for _ in 0..rounds {
        let start = Instant::now();
        assert!(Command::new("true").status().unwrap().success());
        bare.add(start.elapsed());
        let start = Instant::now();
        assert!(
            tenure_run(&store, &["bench", "--", "true"])
                .status()
                .unwrap()
                .success()
        );
        ours.add(start.elapsed());
    }
    println!("tenure run bench -- true, {rounds} runs, taking turns with true:");
    for (what, samples) in [("true", &bare), ("tenure run", &ours)] {
        let (p50, p99) = (
            milliseconds(samples.percentile(50.0)),
            milliseconds(samples.percentile(99.0)),
        );
        println!("  {what:<12} p50 {p50:.2} ms, p99 {p99:.2} ms");
    }
    let added = milliseconds(ours.percentile(50.0)) - milliseconds(bare.percentile(50.0));
    judge("  added to true, p50", added, 30.0, "ms");
    memory(&store);
}

fn memory(store: &str) {
    let start = || Process::spawn(tenure_run(store, &["idle", "--ttl", "3s", "--", "sleep", "60"])).unwrap();
    let (leader, standby) = (start(), start());
    std::thread::sleep(Duration::from_secs(6));
    for (what, process) in [("first candidate", &leader), ("second candidate", &standby)] {
        judge(
            &format!("  idle resident memory, {what}"),
            resident_megabytes(process.pid()),
            25.0,
            "MB",
        );
    }
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", leader.pid())).unwrap();
    let warden: u32 = children
        .split_whitespace()
        .next()
        .expect("the leader has a warden")
        .parse()
        .unwrap();
    judge(
        "  idle resident memory, supervisor and warden together",
        resident_megabytes(leader.pid()) + resident_megabytes(warden),
        30.0,
        "MB",
    );
}

fn resident_megabytes(pid: u32) -> f64 {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kilobytes: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes / 1024.0
}
