//! How soon the next job starts when the leader dies, and when it ends.

use crate::command::tenure_run;
use crate::ending::Onlooker;
use crate::figures::{Samples, judge, milliseconds};
use crate::server::{Kind, Server};
use std::process::Command;
use std::time::{Duration, Instant};
use tenure::{LeaseName, Registry, SharedStore};
use tenure_testkit::{Process, ScratchDir};

/// How long anything here may take before the bench gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often what.
#[derive(clap::Args)]
pub struct Rounds {
    /// How often everything of the leader is killed at once.
    #[arg(long, default_value_t = 50)]
    losses: u32,
    /// How often its supervisor alone is killed.
    #[arg(long, default_value_t = 100)]
    kills: u32,
    /// How many clean exits.
    #[arg(long, default_value_t = 100)]
    exits: u32,
    /// How many hand-overs by name.
    #[arg(long, default_value_t = 100)]
    handovers: u32,
}

pub async fn measure(rounds: &Rounds, kind: Kind) {
    let server = Server::start(kind).await;
    let url = server.url();
    let store = Registry::connect(url).await.unwrap();
    println!("fail-over on {}:", store.traits().kind);
    if rounds.losses > 0 {
        after_losses(url, &store, rounds.losses).await;
    }
    if rounds.kills > 0 {
        after_kills(url, &store, rounds.kills).await;
    }
    if rounds.exits > 0 {
        after_exits(url, &store, rounds.exits).await;
    }
    if rounds.handovers > 0 {
        after_handovers(url, &store, rounds.handovers).await;
    }
}

/// A candidate whose job says when it starts, and ends when its line of input does.
fn candidate(url: &str, name: &str, ttl: &str, job: &str) -> Process {
    let arguments = [name, "--ttl", ttl, "--", "sh", "-c", job];
    Process::spawn(tenure_run(url, &arguments)).unwrap()
}

/// A job that says when it starts.
const JOB: &str = "date +started-%s%N; exec sleep 600";

/// The time that a job has printed behind `what`, in nanoseconds.
fn stamp(process: &Process, what: &str) -> u64 {
    let text = process.wait_for_line(what, PATIENCE).unwrap().text;
    text.trim_start_matches(what).trim().parse().unwrap()
}

fn wall_clock() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.unwrap().as_nanos()).unwrap()
}

/// The supervisor is killed, and its warden is not: with a ttl of 30 s nobody can have waited for that.
async fn after_kills(url: &str, store: &SharedStore, kills: u32) {
    let name = LeaseName::new("killed").unwrap();
    let (mut gaps, mut trips) = (Samples::default(), Samples::default());
    let mut leader = candidate(url, "killed", "30s", JOB);
    leader.wait_for_line("started", PATIENCE).unwrap();
    for _ in 0..kills {
        let standby = candidate(url, "killed", "30s", JOB);
        standby.wait_for_line("waiting", PATIENCE).unwrap();
        let asked_at = Instant::now();
        store.get(&name).await.unwrap();
        trips.add(asked_at.elapsed());
        let killed_at = wall_clock();
        leader.kill_leader();
        let gap = stamp(&standby, "started-").checked_sub(killed_at);
        gaps.add(Duration::from_nanos(
            gap.expect("a job started before its predecessor was killed"),
        ));
        leader = standby;
    }
    let trip = milliseconds(trips.percentile(50.0));
    println!(
        "  ttl 30 s, SIGKILL of the supervisor alone, {kills} times, to the start of the next job: p50 {:.1} ms, max {:.1} ms; \
         round trip {trip:.2} ms",
        milliseconds(gaps.percentile(50.0)),
        milliseconds(gaps.percentile(100.0))
    );
    judge(
        "  the next job starts after SIGKILL of the supervisor, p99",
        milliseconds(gaps.percentile(99.0)),
        150.0 + 3.0 * trip,
        "ms",
    );
}

/// A third of it is no whole second: where whole seconds are told, less remains before each renewal than
/// after it.
const LOST_TTL: &str = "4s";

async fn after_losses(url: &str, store: &SharedStore, losses: u32) {
    let name = LeaseName::new("lost").unwrap();
    let mut late = Samples::default();
    let mut leader = candidate(url, "lost", LOST_TTL, JOB);
    leader.wait_for_line("started", PATIENCE).unwrap();
    for round in 0..losses {
        let standby = candidate(url, "lost", LOST_TTL, JOB);
        // At a different moment between two renewals each time; the standby has long begun to wait.
        let mut onlooker = Onlooker::new(store, &name);
        let moment = Duration::from_millis(1_200 + u64::from(round) * 37 % 1000);
        onlooker.look_for(moment).await;
        leader.kill_all_at_once();
        // It may have been renewed once more after the last look.
        onlooker.look().await;
        standby.wait_for_line("started", PATIENCE).unwrap();
        let (started, end) = (Instant::now(), onlooker.earliest_end());
        assert!(
            started >= end,
            "a job started {:?} before the lease of its dead predecessor could be over",
            end - started
        );
        late.add(started - end);
        leader = standby;
    }
    println!(
        "  ttl {LOST_TTL}, SIGKILL of everything at once, {losses} times, beyond the end of its lease: p50 {:.0} ms, max {:.0} ms",
        milliseconds(late.percentile(50.0)),
        milliseconds(late.percentile(100.0))
    );
    judge(
        "  the next job starts after the remaining ttl, p99",
        milliseconds(late.percentile(99.0)),
        250.0,
        "ms",
    );
}

async fn after_exits(url: &str, store: &SharedStore, exits: u32) {
    let name = LeaseName::new("ended").unwrap();
    let mut trips = Samples::default();
    let mut gaps = Samples::default();
    let folder = ScratchDir::new("bench-exits");
    for round in 0..exits {
        // The job ends when its file appears, which it looks for every millisecond, and says when it ended.
        let flag = folder.join(format!("end-{round}"));
        let job = format!(
            "echo started; while [ ! -e {} ]; do sleep 0.001; done; date +ended-%s%N",
            flag.display()
        );
        let leader = candidate(url, "ended", "3s", &job);
        leader.wait_for_line("started", PATIENCE).unwrap();
        let standby = candidate(url, "ended", "3s", "date +started-%s%N");
        tokio::time::sleep(Duration::from_millis(150)).await;
        let asked_at = Instant::now();
        store.get(&name).await.unwrap();
        trips.add(asked_at.elapsed());
        std::fs::write(&flag, "").unwrap();
        leader.wait_for_exit(PATIENCE).unwrap();
        standby.wait_for_exit(PATIENCE).unwrap();
        let gap = stamp(&standby, "started-")
            .checked_sub(stamp(&leader, "ended-"))
            .expect("a job started before the one before it had ended");
        gaps.add(Duration::from_nanos(gap));
    }
    let trip = milliseconds(trips.percentile(50.0));
    println!(
        "  after a clean exit, {exits} times, end of one job to start of the next: p50 {:.1} ms, max {:.1} ms; round trip {trip:.2} ms",
        milliseconds(gaps.percentile(50.0)),
        milliseconds(gaps.percentile(100.0))
    );
    judge(
        "  the next job starts after a clean exit, p99",
        milliseconds(gaps.percentile(99.0)),
        50.0 + 3.0 * trip,
        "ms",
    );
}

/// A job that also says when it has ended, as soon as it is asked to.
const POLITE_JOB: &str = "trap 'date +ended-%s%N; exit 0' TERM; date +started-%s%N; sleep 600 & wait";

/// Two candidates hand over to each other by name. Whoever has left stays out for a renewal interval.
async fn after_handovers(url: &str, store: &SharedStore, handovers: u32) {
    let name = LeaseName::new("handed").unwrap();
    let candidate = |id: &str| {
        let options = [
            "handed",
            "--ttl",
            "3s",
            "--keep",
            "--priority",
            "1",
            "--candidate",
            id,
        ];
        let job = ["--", "sh", "-c", POLITE_JOB];
        Process::spawn(tenure_run(url, &[&options[..], &job].concat())).unwrap()
    };
    let one = candidate("one");
    one.wait_for_line("started-", PATIENCE).unwrap();
    let candidates = [("one", one), ("two", candidate("two"))];
    let (mut gaps, mut trips) = (Samples::default(), Samples::default());
    // How many lines of each were read.
    let mut read = [0, 0];
    for round in 1..=handovers {
        let (to, from) = (
            usize::try_from(round % 2).unwrap(),
            usize::try_from((round + 1) % 2).unwrap(),
        );
        let asked_at = Instant::now();
        store.get(&name).await.unwrap();
        trips.add(asked_at.elapsed());
        let place = LeaseName::new(format!("handed/candidates/1/{}", candidates[to].0)).unwrap();
        while store
            .get(&place)
            .await
            .unwrap()
            .is_none_or(|place| place.remaining.is_zero())
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let arguments = ["step-down", "handed", "--store", url, "--to", candidates[to].0];
        let ended = Command::new(crate::command::program())
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            ended.status.success(),
            "{}",
            String::from_utf8_lossy(&ended.stderr)
        );
        let mut stamp_of = |which: usize, what: &str| {
            let line = candidates[which]
                .1
                .wait_for_line_from(read[which], what, PATIENCE)
                .unwrap();
            read[which] = line.index + 1;
            line.text.trim_start_matches(what).trim().parse::<u64>().unwrap()
        };
        let ended = stamp_of(from, "ended-");
        let gap = stamp_of(to, "started-").checked_sub(ended);
        gaps.add(Duration::from_nanos(
            gap.expect("a job started before the one before it had ended"),
        ));
    }
    let trip = milliseconds(trips.percentile(50.0));
    println!(
        "  ttl 3 s, handed over by name, {handovers} times, end of one job to start of the next: p50 {:.1} ms, max {:.1} ms; \
         round trip {trip:.2} ms",
        milliseconds(gaps.percentile(50.0)),
        milliseconds(gaps.percentile(100.0))
    );
    judge(
        "  the next job starts after a planned hand-over, p99",
        milliseconds(gaps.percentile(99.0)),
        50.0 + 3.0 * trip,
        "ms",
    );
}
