//! What candidates that wait cost the server, and their own process: processor time, while nothing happens.

use crate::server::{Kind, Server};
use rustix::param::clock_ticks_per_second;
use rustix::process::getpid;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tenure::{Election, Registry, Timing, Ttl};

/// As long as the default: nothing is renewed by those who wait.
const TTL: Duration = Duration::from_secs(30);

/// For the standbys to be in place.
const SETTLE: Duration = Duration::from_secs(3);

pub async fn measure(kind: Kind, standbys: u32, seconds: u64) {
    let server = Server::start(kind).await;
    let timing = Timing::of(Ttl::from_secs(TTL.as_secs()).unwrap());
    let candidate = async |name: &str| {
        // Each with connections of its own, as if it were a process.
        let store = Registry::connect(server.url()).await.unwrap();
        let builder = Election::builder("waited-for", store).candidate(name);
        builder.timing(timing).build().unwrap()
    };
    let leader = candidate("leader").await;
    let _leading = leader.campaign().await.unwrap();
    tokio::time::sleep(SETTLE).await;
    let alone = Share::over(seconds).await;
    for number in 0..standbys {
        let standby = candidate(&format!("standby-{number}")).await;
        tokio::spawn(async move { standby.campaign().await.map(drop) });
    }
    tokio::time::sleep(SETTLE).await;
    let waited_for = Share::over(seconds).await;
    let each = |with: f64, without: f64| (with - without) / f64::from(standbys) * 100.0;
    println!(
        "{standbys} standbys on {}, ttl 30 s, {seconds} s without a change: {:.2} % of a core of the server's and {:.2} % of the \
         candidates' process each (with the leader alone {:.2} % and {:.2} % in all)",
        kind_name(kind),
        each(waited_for.server, alone.server),
        each(waited_for.candidates, alone.candidates),
        alone.server * 100.0,
        alone.candidates * 100.0,
    );
}

fn kind_name(kind: Kind) -> String {
    use clap::ValueEnum as _;
    let value = kind.to_possible_value().expect("none is skipped");
    value.get_name().to_owned()
}

/// Shares of a core.
struct Share {
    server: f64,
    candidates: f64,
}

impl Share {
    async fn over(seconds: u64) -> Self {
        let (began, before) = (Instant::now(), Spent::now());
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let (after, ticks) = (Spent::now(), clock_ticks_per_second());
        let share = |spent: u64| spent as f64 / ticks as f64 / began.elapsed().as_secs_f64();
        Self {
            server: share(after.descendants - before.descendants),
            candidates: share(after.own - before.own),
        }
    }
}

/// Processor time so far, in ticks of the system's.
struct Spent {
    own: u64,
    descendants: u64,
}

impl Spent {
    fn now() -> Self {
        let me = u32::try_from(getpid().as_raw_nonzero().get()).unwrap();
        let processes: BTreeMap<u32, (u32, u64)> = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
            .filter_map(|pid| Some((pid, parent_and_time(pid)?)))
            .collect();
        let descends = |mut pid: u32| {
            while let Some((parent, _)) = processes.get(&pid) {
                if *parent == me {
                    return true;
                }
                pid = *parent;
            }
            false
        };
        let descendants = processes.iter().filter(|(pid, _)| descends(**pid));
        Self {
            own: processes[&me].1,
            descendants: descendants.map(|(_, (_, time))| time).sum(),
        }
    }
}

/// Nothing where the process has ended meanwhile.
fn parent_and_time(pid: u32) -> Option<(u32, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name, in brackets, may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let time = |field: usize| fields.get(field)?.parse::<u64>().ok();
    Some((fields.get(1)?.parse().ok()?, time(11)? + time(12)?))
}
