//! Leader-terms under random faults, on a real server: each store's `terms` example brings the server.
//!
//! A few processes, each behind a network of its own that delays, cuts, swallows and repeats, want many leases without end;
//! now and then a member of the deployment is frozen, or killed and started again. It is a violation if a token is given
//! twice, if tokens do not rise, if two believe that they hold a lease at the same time, or if a term is lost before its
//! deadline.

mod alone;
mod contender;
mod witness;

pub use alone::run_alone;

use crate::asking::random_bits;
use contender::Contender;
use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tenure_core::LeaseStore;
use tenure_testkit::{Fault, FaultProxy, RequestFault};
use tokio::task::JoinSet;
use witness::Witness;

/// How long no lease may begin a term before the run is given up.
const STALL_MAX: Duration = Duration::from_secs(120);

/// Terms of a run that names no number.
const TERMS_DEFAULT: u64 = 1_000;

/// What a run is to be like.
pub struct Campaign {
    /// Short, so that many terms expire; long against a round trip.
    pub ttl: Duration,
    /// Leases side by side: most of a term's time is spent waiting, for an expiry or for a fault to pass.
    pub leases: usize,
    /// The commands by which the proxies know requests that may be lost or repeated; none, where they can only count.
    pub commands: &'static [&'static str],
    /// A member is killed after about so many faults of the network, and frozen twice as often.
    pub faults_per_kill: u64,
}

/// What wants the leases: a store as one process has it.
pub struct Process {
    /// Connected through all of `ways`.
    pub store: Box<dyn LeaseStore>,
    /// The proxies to the members of the deployment.
    pub ways: Vec<FaultProxy>,
}

/// The server, or the servers, that keep the leases.
pub trait Deployment {
    /// How many members can be killed and frozen, each by itself.
    fn members(&self) -> usize;
    /// Kills a member and starts it again with what it has kept.
    fn restart(&mut self, member: usize) -> impl Future<Output = ()>;
    /// Stops a member where it is.
    fn freeze(&mut self, member: usize);
    /// Lets it go on.
    fn thaw(&mut self, member: usize);
}

/// How many terms there were, of all leases.
struct Count {
    terms: AtomicU64,
    wanted: u64,
}

impl Count {
    fn now(&self) -> u64 {
        self.terms.load(Ordering::Relaxed)
    }

    fn add_one(&self) {
        self.terms.fetch_add(1, Ordering::Relaxed);
    }

    fn is_reached(&self) -> bool {
        self.now() >= self.wanted
    }
}

/// Runs until there were as many terms as the first argument of this program says, and prints what was seen: success if
/// nothing was violated, and there was something to violate.
///
/// # Panics
/// If no term begins for two minutes, or if a contender panics.
pub async fn run(campaign: &Campaign, deployment: &mut impl Deployment, processes: Vec<Process>) -> ExitCode {
    let named = std::env::args().nth(1).and_then(|terms| terms.parse().ok());
    let count = Arc::new(Count {
        terms: AtomicU64::new(0),
        wanted: named.unwrap_or(TERMS_DEFAULT),
    });
    let witnesses: Vec<_> = (0..campaign.leases).map(|_| Arc::default()).collect();
    let (mut contending, mut networks) = (JoinSet::new(), Vec::new());
    for (number, Process { store, ways }) in processes.into_iter().enumerate() {
        let store: Arc<dyn LeaseStore> = Arc::from(store);
        for (lease, witness) in witnesses.iter().enumerate() {
            let contender = Contender::new(number, lease, campaign.ttl, &store, &count, witness);
            contending.spawn(contender.contend());
        }
        networks.push(ways);
    }
    let began = Instant::now();
    let faults = afflict(campaign, deployment, &networks, &count, &mut contending).await;
    networks.iter().flatten().for_each(FaultProxy::heal);
    while let Some(ended) = contending.join_next().await {
        ended.expect("a contender ends by itself");
    }
    let mut sum = Witness::default();
    witnesses.iter().for_each(|witness| sum.add(witness));
    sum.report(campaign.leases, began.elapsed(), faults)
}

/// Does harm until there were enough terms; says how often.
async fn afflict(
    campaign: &Campaign,
    deployment: &mut impl Deployment,
    networks: &[Vec<FaultProxy>],
    count: &Count,
    contending: &mut JoinSet<()>,
) -> u64 {
    let (mut faults, mut seen) = (0, (0, Instant::now()));
    while !count.is_reached() {
        tokio::time::sleep(Duration::from_millis(20 + random(60))).await;
        strike(campaign, pick::<Vec<_>>(networks)).await;
        let member = usize::try_from(random(deployment.members() as u64)).expect("a small number");
        faults += 1;
        match random(campaign.faults_per_kill) {
            0 => {
                deployment.restart(member).await;
                faults += 1;
            }
            1 | 2 => {
                deployment.freeze(member);
                tokio::time::sleep(Duration::from_millis(random(1_000))).await;
                deployment.thaw(member);
                faults += 1;
            }
            _ => {}
        }
        while let Some(ended) = contending.try_join_next() {
            ended.expect("a contender ends by itself");
        }
        if count.now() > seen.0 {
            seen = (count.now(), Instant::now());
        }
        assert!(
            seen.1.elapsed() < STALL_MAX,
            "no term began for {STALL_MAX:?}, after {}",
            seen.0
        );
    }
    faults
}

/// One fault of a process's network, on the ways to all members, which passes.
async fn strike(campaign: &Campaign, ways: &[FaultProxy]) {
    match random(8) {
        which @ 0..4 => {
            let cut = [RequestFault::CutBefore, RequestFault::CutAfter];
            let late = Duration::from_millis(random(1_500));
            let repeated = [RequestFault::Duplicate, RequestFault::DuplicateLater(late)];
            let half = usize::try_from(which % 2).expect("0 or 1");
            for way in ways {
                let fault = if which < 2 { cut[half] } else { repeated[half] };
                match campaign.commands {
                    [] => way.next_requests(1, cut[half]),
                    commands => {
                        let command: &&str = pick(commands);
                        way.next_commands(1, command, fault);
                    }
                }
            }
        }
        4 => ways.iter().for_each(FaultProxy::cut_connections),
        which => {
            let delay = Duration::from_millis(random(150));
            let fault = match which {
                5 => Fault::BlackHole,
                6 => Fault::HalfOpen,
                _ => Fault::Delay {
                    to_server: delay,
                    to_client: delay,
                },
            };
            ways.iter().for_each(|way| way.set(fault));
            tokio::time::sleep(Duration::from_millis(random(500))).await;
            ways.iter().for_each(FaultProxy::heal);
        }
    }
}

/// A number below `limit`.
fn random(limit: u64) -> u64 {
    random_bits() % limit.max(1)
}

fn pick<T>(choices: &[T]) -> &T {
    let which = usize::try_from(random(choices.len() as u64)).expect("a small number");
    &choices[which]
}
