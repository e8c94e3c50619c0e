//! What is done to the networks and to the members.

use super::{Campaign, Deployment, pick, random, random_place, random_time};
use std::sync::Arc;
use std::time::Duration;
use tenure_testkit::{Fault, FaultProxy, RequestFault};

/// A way is slower by at most this, in each direction.
const DELAY_MAX: Duration = Duration::from_millis(150);

/// A network is silent, or slow, for at most so long.
const SILENCE_MAX: Duration = Duration::from_millis(500);

/// A repeated request comes at most so much later.
const LATE_MAX: Duration = Duration::from_millis(1_500);

/// How often what was done.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    /// Faults of a process's network.
    pub network: u64,
    /// Members that were killed, and started again.
    pub killed: u64,
    /// Members that were frozen.
    pub frozen: u64,
}

impl Faults {
    /// One fault of a process's network, which passes: on the ways to all members, or to some.
    pub(super) async fn strike(&mut self, campaign: &Campaign, ways: &[Arc<FaultProxy>]) {
        self.network += 1;
        let ways = some_of(ways);
        match random(8) {
            which @ 0..4 => {
                let cut = [RequestFault::CutBefore, RequestFault::CutAfter];
                let late = random_time(LATE_MAX);
                let repeated = [RequestFault::Duplicate, RequestFault::DuplicateLater(late)];
                let half = usize::try_from(which % 2).expect("0 or 1");
                for way in ways {
                    let fault = if which < 2 { cut[half] } else { repeated[half] };
                    match campaign.commands {
                        [] => way.next_requests(1, cut[half]),
                        commands => way.next_commands(1, pick::<&str>(commands), fault),
                    }
                }
            }
            4 => ways.iter().for_each(|way| way.cut_connections()),
            which => {
                let fault = match which {
                    5 => Fault::BlackHole,
                    6 => Fault::HalfOpen,
                    _ => Fault::Delay {
                        to_server: random_time(DELAY_MAX),
                        to_client: random_time(DELAY_MAX),
                    },
                };
                ways.iter().for_each(|way| way.set(fault));
                tokio::time::sleep(random_time(SILENCE_MAX)).await;
                ways.iter().for_each(|way| way.heal());
            }
        }
    }

    /// Freezes and kills members that stand beside each other, and lets them go on and starts them again.
    pub(super) async fn harm(&mut self, campaign: &Campaign, deployment: &mut impl Deployment) {
        let (members, first) = (deployment.members(), random_place(deployment.members()));
        let count = 1 + random_place(campaign.harmed_max.min(members));
        let (mut killed, mut frozen) = (Vec::new(), Vec::new());
        for member in (0..count).map(|step| (first + step) % members) {
            match random(2) {
                0 => {
                    deployment.kill(member);
                    killed.push(member);
                }
                _ => {
                    deployment.freeze(member);
                    frozen.push(member);
                }
            }
        }
        tokio::time::sleep(random_time(campaign.harm_time_max)).await;
        // First: who starts may need a majority of the others.
        for member in &frozen {
            deployment.thaw(*member);
        }
        for member in &killed {
            deployment.restart(*member).await;
        }
        self.killed += killed.len() as u64;
        self.frozen += frozen.len() as u64;
    }
}

/// Half of the time all, else some, at least one.
fn some_of(ways: &[Arc<FaultProxy>]) -> Vec<&Arc<FaultProxy>> {
    let always = random_place(ways.len());
    let are_all = random(2) == 0;
    let struck = |(place, _): &(usize, _)| are_all || *place == always || random(2) == 0;
    ways.iter()
        .enumerate()
        .filter(struck)
        .map(|(_, way)| way)
        .collect()
}
