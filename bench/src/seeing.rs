//! What metrics and logs cost a process that holds a thousand leases.
//!
//! The same process is run with and without them, in turns, and its processor time is counted between two
//! moments at which it holds everything. Seen, it has the recorder of `tenure run --metrics`, is scraped, and
//! logs as JSON.

use crate::figures::judge;
use clap::ValueEnum as _;
use clap::builder::PossibleValue;
use metrics_exporter_prometheus::PrometheusBuilder;
use rustix::time::{ClockId, clock_gettime};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::sqlite::SqliteStore;
use tenure::{Election, LeaseName, LockManager, LockTimingOptions, SharedStore, Timing, Ttl};
use tenure_testkit::ScratchDir;

/// As long as the default: every lease is renewed each ten seconds.
const TTL: Duration = Duration::from_secs(30);

/// How often the pages are asked for.
const SCRAPE_EVERY: Duration = Duration::from_secs(5);

/// How the leases are held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Holder {
    /// By one lock manager: one heart, and one label for all.
    Locks,
    /// By an election each: a thread and labels for every lease.
    Elections,
}

/// Who looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Eyes {
    /// Nobody: no recorder, no log.
    None,
    /// Metrics, and the log as it is by default.
    Usual,
    /// Metrics, and a line of the log for every renewal.
    Debug,
}

pub fn measure(holder: Holder, leases: u32, seconds: u64, turns: u32) {
    let eyes = [Eyes::None, Eyes::Usual, Eyes::Debug];
    let mut spent = [0.0; 3];
    for turn in 0..turns {
        for (eyes, spent) in eyes.iter().zip(&mut spent) {
            let share = share_of_a_core(holder, *eyes, leases, seconds);
            println!(
                "  turn {turn}, {holder:?}, seen by {eyes:?}: {:.2} % of a core",
                share * 100.0
            );
            *spent += share;
        }
    }
    let cost = |seen: f64| (seen - spent[0]) / f64::from(turns) * 100.0;
    println!("{leases} leases held by {holder:?}, ttl 30 s, {turns} turns of {seconds} s:");
    judge("  metrics and logs", cost(spent[1]), 1.0, "% of a core");
    println!(
        "  metrics, and a line for every renewal: {:.2} % of a core",
        cost(spent[2])
    );
}

/// The share of a core that a process of its own takes.
fn share_of_a_core(holder: Holder, eyes: Eyes, leases: u32, seconds: u64) -> f64 {
    let word = |value: Option<PossibleValue>| value.expect("none is skipped").get_name().to_owned();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["hold-seen", "--holder", &word(holder.to_possible_value())])
        .args(["--eyes", &word(eyes.to_possible_value())])
        .args(["--leases", &leases.to_string(), "--seconds", &seconds.to_string()])
        .stderr(std::process::Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    said.trim()
        .parse()
        .expect("the process that holds ended with a figure")
}

/// Holds the leases, and prints which share of a core that took.
pub async fn hold(holder: Holder, eyes: Eyes, leases: u32, seconds: u64) {
    if eyes != Eyes::None {
        let level = match eyes {
            Eyes::Debug => tracing::Level::DEBUG,
            Eyes::None | Eyes::Usual => tracing::Level::INFO,
        };
        let lines = tracing_subscriber::fmt().json().with_max_level(level);
        lines.with_writer(std::io::stderr).init();
        let metrics = PrometheusBuilder::new()
            .set_buckets(&[0.01, 0.1, 1.0, 10.0])
            .unwrap();
        let metrics = metrics.install_recorder().unwrap();
        tenure::metrics::describe();
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(SCRAPE_EVERY);
                std::hint::black_box(metrics.render());
                metrics.run_upkeep();
            }
        });
    }
    let folder = ScratchDir::new("bench-seeing");
    let store: SharedStore = Arc::new(SqliteStore::open(folder.join("leases.db")).unwrap());
    let names = (0..leases).map(|number| LeaseName::new(format!("lease-{number}")).unwrap());
    match holder {
        Holder::Locks => {
            let timing = LockTimingOptions::new(TTL).check().unwrap();
            let manager = LockManager::builder(store).timing(timing).build().unwrap();
            let mut held = Vec::new();
            for name in names {
                held.push(manager.lock(&name).await.unwrap());
            }
            print_share(seconds).await;
        }
        Holder::Elections => {
            let timing = Timing::of(Ttl::from_secs(TTL.as_secs()).unwrap());
            let mut held = Vec::new();
            for name in names {
                let election = Election::builder(&name, store.clone()).timing(timing);
                let election = election.build().unwrap();
                let leadership = election.campaign().await.unwrap();
                held.push((leadership, election));
            }
            print_share(seconds).await;
        }
    }
    // Giving a thousand leases back is not what is measured.
    std::process::exit(0);
}

async fn print_share(seconds: u64) {
    let (began, before) = (Instant::now(), processor_time());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let spent = processor_time() - before;
    println!("{}", spent.as_secs_f64() / began.elapsed().as_secs_f64());
}

/// What this process has taken of the processors so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}
