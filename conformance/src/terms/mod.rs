//! Leader-terms under random faults, on real servers: `bench terms` brings the servers.
//!
//! A few processes, each behind a network of its own that delays, cuts, swallows and (where its proxies know
//! one request from another) repeats, want many leases without end; beside that members of the deployment are
//! frozen now and then, killed and started again, or cut off from each other. It is a violation if a token is
//! given twice, if tokens do not rise, if two believe that they hold a lease at the same time, if a term is
//! lost before its deadline, if one is extended by the token of the one before, which is asked for in the
//! same batch, or if the release of one before gives anything back.

mod alone;
mod contender;
mod faults;
mod seen;
mod witness;

pub use alone::run_alone;
pub use seen::Seen;

use crate::asking::random_bits;
use contender::Contender;
use faults::{Possible, Storm, unstruck};
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::{Durability, LeaseStore};
use tenure_testkit::{FaultProxy, Network};
use tokio::task::JoinSet;
use witness::Witness;

/// For so long no lease may begin a term before a run is given up, and any lease may take so long to begin
/// one after all harm.
const STALL_MAX: Duration = Duration::from_secs(120);

/// How often it is looked whether a run is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Of so many terms, one at least meets each kind of harm.
const HARM_ONE_IN: u64 = 1_000;

/// What a run is to be like.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// How many terms; more, until enough members were harmed.
    pub terms: u64,
    /// What is judged.
    pub promise: Promise,
    /// Short, so that many terms expire; long against a round trip.
    pub ttl: Duration,
    /// Leases side by side: most of a term's time is spent waiting, for an expiry or for a fault to pass.
    pub leases: usize,
    /// The commands by which the proxies know requests that may be lost or repeated; none, where they can
    /// only count: there nothing is repeated.
    pub commands: &'static [&'static str],
    /// Members are frozen and killed after about so many faults of the network.
    pub faults_per_harm: u64,
    /// At most so many of them at once.
    pub harmed_max: usize,
    /// For so long at most.
    pub harm_time_max: Duration,
}

impl Campaign {
    /// So many members are killed at least, and so many frozen, and members harmed so often while a network
    /// is silent or slow.
    #[must_use]
    pub fn harms_min(&self) -> u64 {
        (self.terms / HARM_ONE_IN).max(1)
    }
}

/// What the deployment promises, and is held to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promise {
    /// Exclusion, and tokens that rise and never repeat: what [`Durability::Safe`] says.
    Exclusion,
    /// Tokens alone, as of [`Durability::FenceOnly`]: two may believe, and terms may be lost, which is
    /// counted and no violation.
    Tokens,
}

impl Promise {
    /// What a store says of itself.
    #[must_use]
    pub fn of(store: &dyn LeaseStore) -> Self {
        match store.traits().durability {
            Durability::Safe => Self::Exclusion,
            Durability::FenceOnly(_) => Self::Tokens,
        }
    }
}

/// What wants the leases: a store as one process has it.
pub struct Process {
    /// Connected through all of `ways`.
    pub store: Arc<dyn LeaseStore>,
    /// The proxies to the members of the deployment; none, where there can be none.
    pub ways: Vec<Arc<FaultProxy>>,
}

/// The server, or the servers, that keep the leases.
pub trait Deployment {
    /// How many members can be killed and frozen, each by itself.
    fn members(&self) -> usize;
    /// Kills a member.
    fn kill(&mut self, member: usize);
    /// Starts a member that was killed with what it has kept.
    fn restart(&mut self, member: usize) -> impl Future<Output = ()>;
    /// Stops a member where it is.
    fn freeze(&mut self, member: usize);
    /// Lets it go on.
    fn thaw(&mut self, member: usize);
    /// What is between the members, if it can be cut.
    fn between(&self) -> Option<Between> {
        None
    }
}

/// A network that can be cut.
#[derive(Clone, Debug)]
pub struct Between {
    /// The network.
    pub network: Network,
    /// Where each of the members listens.
    pub members: Vec<String>,
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

/// Runs until there were as many terms as the campaign wants, and as much harm, and then, with all faults
/// over, until each lease has begun one more; tells what was seen. A run in which no term begins for two
/// minutes ends there, and tells so as a violation, and so is a lease that nobody can have any more.
///
/// # Panics
/// If a store says less, or more, of what it is worth than the campaign holds it to.
pub async fn run(campaign: &Campaign, deployment: &mut impl Deployment, processes: Vec<Process>) -> Seen {
    run_within(STALL_MAX, campaign, deployment, processes).await
}

/// As [`run`], with another time than two minutes.
///
/// # Panics
/// As [`run`].
pub async fn run_within(
    stall_max: Duration,
    campaign: &Campaign,
    deployment: &mut impl Deployment,
    processes: Vec<Process>,
) -> Seen {
    let count = Arc::new(Count {
        terms: AtomicU64::new(0),
        wanted: campaign.terms,
    });
    let witnesses: Vec<_> = (0..campaign.leases).map(|_| Arc::default()).collect();
    let (mut contending, mut networks) = (JoinSet::new(), Vec::new());
    for (number, Process { store, ways }) in processes.into_iter().enumerate() {
        let traits = store.traits();
        assert_eq!(
            Promise::of(&*store),
            campaign.promise,
            "what is judged is not what {traits:?} promises"
        );
        for (lease, witness) in witnesses.iter().enumerate() {
            let contender = Contender::new(number, lease, campaign.ttl, &store, &count, witness);
            contending.spawn(contender.contend());
        }
        networks.push(ways);
    }
    let ways = || networks.iter().flatten();
    let can_be = Possible {
        struck: ways().next().is_some(),
        cut_off: deployment.between().is_some(),
    };
    let began = Instant::now();
    let storm = Storm::new(campaign, &networks, can_be);
    let ending = afflict(stall_max, &storm, deployment, &count, &mut contending).await;
    let faults = storm.faults();
    networks.iter().flatten().for_each(|way| way.heal());
    witnesses.iter().for_each(|witness| locked(witness).heal());
    if ending == Ending::Complete {
        let all_end = async {
            while let Some(ended) = contending.join_next().await {
                ended.expect("a contender ends by itself");
            }
        };
        // Those that are over it are violations, below.
        let _in_time = tokio::time::timeout(stall_max, all_end).await;
    }
    contending.shutdown().await;
    let mut sum = Witness::default();
    witnesses.iter().for_each(|witness| sum.add(witness));
    match ending {
        Ending::Stalled => sum.violate(format!("no term began for {stall_max:?}, after {}", count.now())),
        Ending::Complete => {
            let dead = |(_, witness): &(usize, &Arc<_>)| !locked(witness).has_led_since();
            for (lease, _) in witnesses.iter().enumerate().filter(dead) {
                sum.violate(format!(
                    "job-{lease} began no term for {stall_max:?} after all harm"
                ));
            }
        }
    }
    Seen {
        has_networks: can_be.struck,
        is_harmed: faults.are_enough(campaign, can_be),
        unstruck: unstruck(campaign, ways()),
        ..sum.told(campaign, began.elapsed(), faults)
    }
}

fn locked(witness: &Mutex<Witness>) -> MutexGuard<'_, Witness> {
    witness.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Complete,
    Stalled,
}

/// Does harm until there were enough terms, and enough of it.
async fn afflict(
    stall_max: Duration,
    storm: &Storm<'_>,
    deployment: &mut impl Deployment,
    count: &Count,
    contending: &mut JoinSet<()>,
) -> Ending {
    let watching = async {
        let mut seen = (0, Instant::now());
        let ending = loop {
            tokio::time::sleep(LOOK_EVERY).await;
            while let Some(ended) = contending.try_join_next() {
                ended.expect("a contender ends by itself");
            }
            if count.is_reached() && storm.has_done_enough() {
                break Ending::Complete;
            }
            if count.now() > seen.0 {
                seen = (count.now(), Instant::now());
            }
            if seen.1.elapsed() >= stall_max {
                break Ending::Stalled;
            }
        };
        storm.end();
        ending
    };
    let (ending, (), ()) = tokio::join!(watching, storm.strike(), storm.harm(deployment));
    ending
}

/// A number below `limit`.
fn random(limit: u64) -> u64 {
    random_bits() % limit.max(1)
}

/// Of so many, one by chance.
fn random_place(count: usize) -> usize {
    usize::try_from(random(count as u64)).expect("a small number")
}

fn pick<T>(choices: &[T]) -> &T {
    &choices[random_place(choices.len())]
}

/// A time of at most this.
fn random_time(longest: Duration) -> Duration {
    Duration::from_millis(random(u64::try_from(longest.as_millis()).unwrap_or(u64::MAX)))
}
