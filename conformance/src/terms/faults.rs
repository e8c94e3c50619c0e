//! What is done to the networks and to the members.

use super::{Campaign, Deployment, pick, random, random_place, random_time};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use tenure_testkit::{Cut, Fault, FaultProxy, RequestFault};
use tokio::sync::Notify;

/// A way is slower by at most this, in each direction.
const DELAY_MAX: Duration = Duration::from_millis(150);

/// A network is silent, or slow, for at most so long.
const SILENCE_MAX: Duration = Duration::from_millis(500);

/// A repeated request comes at most so much later.
const LATE_MAX: Duration = Duration::from_millis(1_500);

/// After so many strikes nobody waits any longer for a command that was never struck.
const STRIKES_MAX: u64 = 200;

/// How often what was done.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    /// Faults of the network of a process, or of several.
    pub network: u64,
    /// Members that were killed, and started again.
    pub killed: u64,
    /// Members that were frozen.
    pub frozen: u64,
    /// Members that were cut off from the others, one way or both, and still answered their clients.
    pub cut_off: u64,
    /// How often members were harmed while a network was silent, or slow.
    pub overlaps: u64,
}

impl Faults {
    /// Whether members were harmed often enough, each way that there is, and beside faults of the network
    /// where there are networks.
    pub(super) fn are_enough(&self, campaign: &Campaign, can_be: Possible) -> bool {
        let least = campaign.harms_min();
        self.killed.min(self.frozen) >= least
            && (!can_be.cut_off || self.cut_off >= least)
            && (!can_be.struck || self.overlaps >= least)
    }
}

/// What can be done to a deployment, beside killing and freezing its members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Possible {
    /// Processes have networks.
    pub(super) struck: bool,
    /// There is a network between the members.
    pub(super) cut_off: bool,
}

/// What befalls the networks and the members, beside each other, until it is over.
pub(super) struct Storm<'a> {
    campaign: &'a Campaign,
    /// Those that can be struck.
    networks: Vec<&'a [Arc<FaultProxy>]>,
    can_be: Possible,
    faults: Cell<Faults>,
    is_silent: Cell<bool>,
    is_harmed: Cell<bool>,
    is_over: Cell<bool>,
    /// Members are to be harmed, or it is over.
    harm: Notify,
}

impl<'a> Storm<'a> {
    pub(super) fn new(
        campaign: &'a Campaign,
        networks: &'a [Vec<Arc<FaultProxy>>],
        can_be: Possible,
    ) -> Self {
        let networks = networks.iter().map(Vec::as_slice);
        Self {
            campaign,
            networks: networks.filter(|ways| !ways.is_empty()).collect(),
            can_be,
            faults: Cell::default(),
            is_silent: Cell::default(),
            is_harmed: Cell::default(),
            is_over: Cell::default(),
            harm: Notify::new(),
        }
    }

    pub(super) fn faults(&self) -> Faults {
        self.faults.get()
    }

    /// Whether enough was done to show something.
    pub(super) fn has_done_enough(&self) -> bool {
        let faults = self.faults();
        let ways = self.networks.iter().copied().flatten();
        let all_struck = faults.network >= STRIKES_MAX || unstruck(self.campaign, ways).is_empty();
        faults.are_enough(self.campaign, self.can_be) && (!self.can_be.struck || all_struck)
    }

    /// Nothing more begins.
    pub(super) fn end(&self) {
        self.is_over.set(true);
    }

    fn count(&self, add: impl FnOnce(&mut Faults)) {
        let mut faults = self.faults.get();
        add(&mut faults);
        self.faults.set(faults);
    }

    /// Strikes networks, one after the other or some together, and now and then has members be harmed.
    pub(super) async fn strike(&self) {
        while !self.is_over.get() {
            tokio::time::sleep(Duration::from_millis(20 + random(60))).await;
            if !self.networks.is_empty() {
                let struck = match random(2) {
                    0 => vec![pick(&self.networks)],
                    _ => some_of(&self.networks),
                };
                self.count(|faults| faults.network += 1);
                self.strike_once(struck.into_iter().flat_map(|ways| some_of(ways)).collect())
                    .await;
            }
            if random(self.campaign.faults_per_harm) == 0 {
                self.harm.notify_one();
            }
        }
        self.harm.notify_one();
    }

    /// One fault, which passes.
    async fn strike_once(&self, ways: Vec<&Arc<FaultProxy>>) {
        match random(8) {
            which @ 0..4 => {
                let cut = [RequestFault::CutBefore, RequestFault::CutAfter];
                let late = random_time(LATE_MAX);
                let repeated = [RequestFault::Duplicate, RequestFault::DuplicateLater(late)];
                let half = usize::try_from(which % 2).expect("0 or 1");
                for way in ways {
                    let fault = if which < 2 { cut[half] } else { repeated[half] };
                    match self.campaign.commands {
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
                self.is_silent.set(true);
                self.count(|faults| faults.overlaps += u64::from(self.is_harmed.get()));
                tokio::time::sleep(random_time(SILENCE_MAX)).await;
                self.is_silent.set(false);
                ways.iter().for_each(|way| way.heal());
            }
        }
    }

    /// Harms members whenever it is time to.
    pub(super) async fn harm(&self, deployment: &mut impl Deployment) {
        loop {
            self.harm.notified().await;
            if self.is_over.get() {
                return;
            }
            self.is_harmed.set(true);
            self.count(|faults| faults.overlaps += u64::from(self.is_silent.get()));
            self.harm_once(deployment).await;
            self.is_harmed.set(false);
        }
    }

    /// Freezes, kills and cuts off members that stand beside each other, and lets them go on, starts them
    /// again and heals the cuts.
    async fn harm_once(&self, deployment: &mut impl Deployment) {
        let (members, first) = (deployment.members(), random_place(deployment.members()));
        let count = 1 + random_place(self.campaign.harmed_max.min(members));
        let (mut killed, mut frozen, mut cut_off) = (Vec::new(), Vec::new(), 0);
        for member in (0..count).map(|step| (first + step) % members) {
            match (random(3), deployment.between()) {
                (0, Some(between)) => {
                    let cuts = [Cut::Both, Cut::WhatItSends, Cut::WhatItHears];
                    between.network.cut_off(&between.members[member], *pick(&cuts));
                    cut_off += 1;
                }
                _ if random(2) == 0 => {
                    deployment.kill(member);
                    killed.push(member);
                }
                _ => {
                    deployment.freeze(member);
                    frozen.push(member);
                }
            }
        }
        tokio::time::sleep(random_time(self.campaign.harm_time_max)).await;
        // First: who starts may need a majority of the others.
        if let Some(between) = deployment.between().filter(|_| cut_off > 0) {
            between.network.heal();
        }
        for member in &frozen {
            deployment.thaw(*member);
        }
        for member in &killed {
            deployment.restart(*member).await;
        }
        self.count(|faults| {
            faults.killed += killed.len() as u64;
            faults.frozen += frozen.len() as u64;
            faults.cut_off += cut_off;
        });
    }
}

/// The commands that were to be lost and repeated, and of which no request was.
pub(super) fn unstruck<'a>(
    campaign: &Campaign,
    ways: impl Iterator<Item = &'a Arc<FaultProxy>> + Clone,
) -> Vec<&'static str> {
    let is_struck = |command: &&str| ways.clone().any(|way| way.struck(command) > 0);
    let commands = campaign.commands.iter().copied();
    commands.filter(|command| !is_struck(command)).collect()
}

/// Half of the time all, else some, at least one.
fn some_of<T>(choices: &[T]) -> Vec<&T> {
    let always = random_place(choices.len());
    let are_all = random(2) == 0;
    let chosen = |(place, _): &(usize, _)| are_all || *place == always || random(2) == 0;
    choices
        .iter()
        .enumerate()
        .filter(chosen)
        .map(|(_, choice)| choice)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Faults, Possible};
    use crate::terms::{Campaign, Promise};
    use std::time::Duration;

    /// Each kind of harm is wanted twice.
    const CAMPAIGN: Campaign = Campaign {
        terms: 2_000,
        promise: Promise::Exclusion,
        ttl: Duration::from_millis(500),
        leases: 1,
        commands: &[],
        faults_per_harm: 1,
        harmed_max: 1,
        harm_time_max: Duration::ZERO,
    };

    const ENOUGH: Faults = Faults {
        network: 0,
        killed: 2,
        frozen: 2,
        cut_off: 2,
        overlaps: 2,
    };

    const EVERYTHING: Possible = Possible {
        struck: true,
        cut_off: true,
    };

    #[test]
    fn harm_of_every_kind_is_wanted() {
        assert!(ENOUGH.are_enough(&CAMPAIGN, EVERYTHING));
        for lack in [
            Faults { killed: 1, ..ENOUGH },
            Faults { frozen: 1, ..ENOUGH },
            Faults { cut_off: 1, ..ENOUGH },
            Faults {
                overlaps: 1,
                ..ENOUGH
            },
        ] {
            assert!(!lack.are_enough(&CAMPAIGN, EVERYTHING), "{lack:?}");
        }
    }

    #[test]
    fn harm_that_cannot_be_done_is_not_wanted() {
        let no_cuts = Faults { cut_off: 0, ..ENOUGH };
        let one_member = Possible {
            cut_off: false,
            ..EVERYTHING
        };
        assert!(no_cuts.are_enough(&CAMPAIGN, one_member));
        let no_overlaps = Faults {
            overlaps: 0,
            ..ENOUGH
        };
        let no_network = Possible {
            struck: false,
            ..EVERYTHING
        };
        assert!(no_overlaps.are_enough(&CAMPAIGN, no_network));
    }
}
