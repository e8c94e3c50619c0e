//! Many real processes on one file: no token twice, no two holders at once, and nobody starves.

use crate::common::child::{in_role, role};
use crate::common::{Asker, PATIENCE, Scratch, name};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tenure_core::{Acquired, LeaseStore};
use tenure_sqlite::SqliteStore;
use tenure_testkit::Process;

const PROCESSES: usize = 8;
const CONTEST: Duration = Duration::from_secs(4);
const TTL_MS: u64 = 200;

/// Where those of a contest find when it ends; they begin when it is there.
const CONTEST_ENV: &str = "TENURE_TEST_CONTEST_FILE";

#[test]
fn as_a_child() {
    let Some((role, file)) = role() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    match role.as_str() {
        "contender" => runtime.block_on(contend(&file)),
        "neighbour" => runtime.block_on(count_own(&file)),
        other => panic!("no role {other}"),
    }
}

fn boottime_ns() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
}

fn asker() -> Asker {
    Asker::new(&format!("process-{}", std::process::id())).ttl_ms(TTL_MS)
}

/// Takes and gives back one lease that all want, and writes down from when to when it believed to hold it.
async fn contend(file: &Path) {
    let store = SqliteStore::open(file).unwrap();
    let mut log = OpenOptions::new()
        .append(true)
        .create(true)
        .open(file.with_extension("log"))
        .unwrap();
    let mut asker = asker();
    loop {
        let sent = boottime_ns();
        match store.acquire(&asker.acquire("job")).await {
            Ok(Acquired::Granted(grant)) => {
                let ttl_ns = grant.ttl.as_millis() * 1_000_000;
                let until = sent + ttl_ns - ttl_ns / 1_000;
                let (token, terms, from) = (grant.token, grant.terms, boottime_ns());
                log.write_all(format!("granted {token} {terms} {from} {until}\n").as_bytes())
                    .unwrap();
                std::thread::sleep(Duration::from_micros(terms % 7 * 300));
                log.write_all(format!("ended {token} {}\n", boottime_ns()).as_bytes())
                    .unwrap();
                drop(store.release(&[asker.release("job", token)]).await);
                asker = asker.next_attempt();
            }
            Ok(Acquired::Held(lease)) => {
                let pause = lease.remaining.min(Duration::from_millis(2));
                tokio::time::sleep(pause).await;
            }
            Ok(Acquired::Superseded) => asker = asker.next_attempt(),
            // Nothing was granted; the token, if there was one, stays unused.
            Err(_) => asker = asker.next_attempt(),
        }
    }
}

/// What one process believed: from when, until when, in which term.
#[derive(Debug)]
struct Belief {
    token: u64,
    terms: u64,
    from: u64,
    until: u64,
}

fn beliefs(log: &str) -> Vec<Belief> {
    let mut beliefs = BTreeMap::new();
    let mut ends = Vec::new();
    for line in log.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        match words[0] {
            "granted" => {
                let belief = Belief {
                    token: number(1),
                    terms: number(2),
                    from: number(3),
                    until: number(4),
                };
                let twin = beliefs.insert(belief.token, belief);
                assert!(twin.is_none(), "token granted twice: {twin:?}");
            }
            "ended" => ends.push((number(1), number(2))),
            other => panic!("no event {other}"),
        }
    }
    for (token, end) in ends {
        let belief = beliefs.get_mut(&token).unwrap();
        belief.until = belief.until.min(end);
    }
    // Who got its answer after its deadline never believed anything.
    beliefs
        .into_values()
        .filter(|belief| belief.from < belief.until)
        .collect()
}

/// Fewer would prove nothing.
const BELIEFS_LEAST: usize = 20;

#[test]
fn killed_at_random_no_token_repeats_and_no_two_hold_at_once() {
    // Who is killed leaves the same there as on a disk, and a term does not take longer than its ttl.
    let scratch = Scratch::in_memory();
    let store = scratch.open();
    let log = || std::fs::read_to_string(scratch.file().with_extension("log")).unwrap_or_default();
    let is_short = || log().matches("granted").count() < 2 * BELIEFS_LEAST;
    let spawn = || Process::spawn(in_role(module_path!(), "contender", &scratch.file())).unwrap();
    let mut processes: Vec<Process> = (0..PROCESSES).map(|_| spawn()).collect();
    let began = Instant::now();
    let mut kills = 0_usize;
    while began.elapsed() < CONTEST || (is_short() && began.elapsed() < PATIENCE) {
        // As random as the scheduler: which instruction a kill hits is what matters. Where a process takes
        // long to start, it comes to ask.
        let grows = if began.elapsed() < CONTEST {
            0
        } else {
            5 * kills as u64
        };
        std::thread::sleep(Duration::from_millis(60 + grows + (kills as u64 * 37) % 90));
        let victim = kills % PROCESSES;
        processes[victim].kill_tree();
        processes[victim] = spawn();
        kills += 1;
    }
    drop(processes);
    let mut beliefs = beliefs(&log());
    beliefs.sort_by_key(|belief| belief.terms);
    println!("{} terms, {kills} kills", beliefs.len());
    assert!(
        beliefs.len() > BELIEFS_LEAST,
        "only {} terms: the contest proves nothing",
        beliefs.len()
    );
    for pair in beliefs.windows(2) {
        assert!(pair[0].terms < pair[1].terms, "{pair:?}");
        assert!(pair[0].token < pair[1].token, "a token fell: {pair:?}");
        assert!(pair[0].until <= pair[1].from, "two at once: {pair:?}");
    }
    let answer: String = scratch
        .raw()
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(answer, "ok");
    drop(store);
}

/// Takes and gives back a lease of its own as fast as it can: what all processes share is the write lock.
async fn count_own(file: &Path) {
    let store = SqliteStore::open(file).unwrap();
    println!("ready");
    let start = PathBuf::from(std::env::var_os(CONTEST_ENV).unwrap());
    let until: u64 = loop {
        match std::fs::read_to_string(&start) {
            Ok(until) => break until.parse().unwrap(),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let lease = format!("own-{}", std::process::id());
    let mut asker = asker();
    let mut rounds = 0_u64;
    while boottime_ns() < until {
        if let Ok(Acquired::Granted(grant)) = store.acquire(&asker.acquire(&lease)).await {
            drop(store.release(&[asker.release(&lease, grant.token)]).await);
            rounds += 1;
        }
        asker = asker.next_attempt();
    }
    println!("rounds {rounds} of {}", name(&lease));
}

/// Contests at most: what else the machine does may keep one process from running in one of them.
const CONTESTS_MAX: usize = 5;

#[test]
fn processes_that_all_write_get_about_even_shares() {
    let scratch = Scratch::new();
    let _store = scratch.open();
    let is_uneven =
        |shares: &Vec<u64>| shares.iter().max() > shares.iter().min().map(|least| least * 5).as_ref();
    let contests: Vec<Vec<u64>> = (0..CONTESTS_MAX)
        .map(|contest| shares(&scratch, contest))
        .take_while(is_uneven)
        .collect();
    assert!(contests.len() < CONTESTS_MAX, "somebody starves: {contests:?}");
}

/// How often each of the processes has had the lock in five seconds, which begin when all have opened the
/// file.
fn shares(scratch: &Scratch, contest: usize) -> Vec<u64> {
    let start = scratch.file().with_extension(format!("contest-{contest}"));
    let processes: Vec<Process> = (0..PROCESSES)
        .map(|_| {
            let mut command = in_role(module_path!(), "neighbour", &scratch.file());
            command.env(CONTEST_ENV, &start);
            Process::spawn(command).unwrap()
        })
        .collect();
    for process in &processes {
        drop(process.wait_for_line("ready", PATIENCE).unwrap());
    }
    // All at once, so that nobody reads half of it.
    let until = boottime_ns() + 5_000_000_000;
    let written = start.with_extension("written");
    std::fs::write(&written, until.to_string()).unwrap();
    std::fs::rename(written, &start).unwrap();
    processes
        .iter()
        .map(|process| {
            let line = process.wait_for_line("rounds ", PATIENCE).unwrap();
            let text = line.text.split("rounds ").nth(1).unwrap();
            text.split(' ').next().unwrap().parse().unwrap()
        })
        .collect()
}
