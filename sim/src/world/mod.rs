//! A world in virtual time: processes, a network, a store, a register, an operator and a calendar of faults.
//!
//! One thread, one queue; what happens is a function of the plan. Real time is counted in nanoseconds; only
//! the world knows it, and every process and the store have clocks of their own.

mod arrival;
mod befall;
mod calm;
mod campaigns;
pub(crate) mod clock;
mod driver;
mod happening;
mod judge;
mod life;
mod network;
mod operator;
mod outage;
mod process;
mod queue;
mod talk;
mod truth;
mod watch;
mod work;

use crate::chance::{Chance, mix};
use crate::faults::{FaultCounts, FaultKind};
use crate::invariants::{
    Breach, Exclusivity, FenceIsMonotone, NoLostUpdate, OneAttemptPerToken, TokensRise, Truth, Verdict,
};
use crate::narrate::Narrator;
use crate::outcome::{Outcome, Violation};
use crate::plan::{Assumptions, NAMES_MAX, Plan, purpose};
use crate::register::{Access, FenceRule, Register};
use crate::sometimes::{Sights, Sometimes};
use crate::stores::{Memory, Store};
use clock::Clock;
use happening::Happening;
use network::Network;
use process::{NEVER, Process};
use queue::Queue;
use talk::Talks;
use tenure_core::{CandidateId, LeaseName, Note, ResourceName};

/// Processes beside the candidates that may run as twins.
const TWINS: usize = 2;

/// How many tokens released by force are remembered: more than anybody can still believe in.
const FORCED_MAX: usize = 16;

/// A world that runs one plan.
pub(crate) struct World<'plan> {
    plan: &'plan Plan,
    /// Which of the planned faults come; `None` for all.
    keep: Option<&'plan [u32]>,
    now: u64,
    queue: Queue,
    names: Vec<LeaseName>,
    /// What the works of a lease write to.
    resource: ResourceName,
    note: Note,
    processes: Vec<Process>,
    starts: u32,
    network: Network,
    store: Store,
    talks: Talks,
    /// Accesses to the register that are under way.
    accesses: Vec<Access>,
    accesses_free: Vec<u32>,
    /// How many requests the store has applied.
    applications: u64,
    leases: [LeaseView; NAMES_MAX],
    chance: Chance,
    calm: Calm,
    assumptions: Assumptions,
    /// Nobody campaigns until then.
    lull_until: u64,
    last_step: u64,
    /// When the last write that was held up leaves: a fault like any other, until then.
    last_late_write: u64,
    /// How many short outages there have been, and how long the last one was.
    outages: u32,
    last_outage: u64,
    /// What the store comes back with.
    coming: outage::Return,
    outcome: Outcome,
    narrator: Option<Narrator<'plan>>,
}

/// One lease as it truly is, with the laws that watch over it.
#[derive(Clone, Copy, Debug)]
struct LeaseView {
    truth: Option<Truth>,
    /// When the record expires, in real time, as the store's clock runs now.
    expires_real: u64,
    /// The same, until it was looked at.
    expiry_due: u64,
    /// The latest tokens that an operator released under their holders: nothing is promised of belief in
    /// them.
    forced: [u64; FORCED_MAX],
    register: Register,
    exclusivity: Exclusivity,
    tokens: TokensRise,
    attempts: OneAttemptPerToken,
    fence: FenceIsMonotone,
    updates: NoLostUpdate,
    /// Which application of a request changed the record last.
    last_applied: u64,
    /// When a term began last, in real time.
    granted_at: u64,
    /// Who led when that was asked last.
    leader: u64,
}

/// How far the run has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Calm {
    Faults,
    Healing,
    Quiet,
    Over,
}

impl<'plan> World<'plan> {
    pub(crate) fn new(
        plan: &'plan Plan,
        keep: Option<&'plan [u32]>,
        narrator: Option<Narrator<'plan>>,
    ) -> Self {
        let mut chance = Chance::of(plan.seed, purpose::WORLD);
        let names: Vec<LeaseName> = (0..plan.names)
            .map(|number| {
                LeaseName::new(["job", "ledger", "sweep"][usize::from(number)]).expect("a valid name")
            })
            .collect();
        let store_clock = Clock::new(
            1_700_000_000_000_000_000 + chance.below(1_000_000_000_000),
            chance.weighted(&[(0, 2), (1, 1), (-1, 1)]) * plan.rate_error_ppm,
        );
        let memory = if plan.assumptions().store {
            Memory::Forgets
        } else {
            Memory::Keeps
        };
        let store = Store::new(store_clock, plan.store, &names, memory);
        let mut world = Self {
            plan,
            keep,
            now: 0,
            queue: Queue::default(),
            names,
            resource: ResourceName::new("data").expect("a valid name"),
            note: Note::default(),
            processes: Vec::with_capacity(usize::from(plan.candidates) + TWINS),
            starts: 0,
            network: Network::default(),
            store,
            talks: Talks::default(),
            accesses: Vec::new(),
            accesses_free: Vec::new(),
            applications: 0,
            leases: [LeaseView::new(); NAMES_MAX],
            chance,
            calm: Calm::Faults,
            assumptions: plan.assumptions(),
            lull_until: 0,
            last_step: 0,
            last_late_write: 0,
            outages: 0,
            last_outage: 0,
            coming: outage::Return::default(),
            outcome: Outcome::new(plan.seed),
            narrator,
        };
        for slot in 0..usize::from(plan.candidates) + TWINS {
            world.add_process(slot);
        }
        world
    }

    fn add_process(&mut self, slot: usize) {
        let mut dice = Chance::of(self.plan.seed, purpose::PROCESS + slot as u64);
        let id = CandidateId::new(format!("c{slot}")).expect("a valid id");
        let timing = self.plan.timings[slot % self.plan.timings.len()];
        let rate_ppm = dice.weighted(&[(0, 2), (1, 1), (-1, 1)]) * self.plan.rate_error_ppm;
        // Clocks of different machines have nothing in common but, nearly, their rate.
        let clock = Clock::new(1_000_000_000 + dice.below(1_000_000_000_000_000), rate_ppm);
        self.processes.push(Process::new(id, timing, clock, dice));
    }

    /// Runs until the plan's end, or the first violation.
    pub(crate) fn run(mut self) -> Outcome {
        for slot in 0..self.plan.candidates {
            self.start(slot);
        }
        for (ordinal, planned) in self.plan.calendar.iter().enumerate() {
            let ordinal = u32::try_from(ordinal).expect("a calendar is short");
            if self.keep.is_none_or(|keep| keep.binary_search(&ordinal).is_ok()) {
                self.queue.plan(planned.at, Happening::Fault { ordinal });
            }
        }
        self.queue.plan(self.plan.horizon, Happening::Calm);
        let until = self.plan.until.unwrap_or(NEVER);
        while let Some((at, happening)) = self.queue.next() {
            if at > until || self.calm == Calm::Over || self.outcome.violation.is_some() {
                break;
            }
            if self.expiry_is_due(at) {
                self.cross_expiries(at);
                if self.outcome.violation.is_some() {
                    break;
                }
            }
            self.now = at;
            self.outcome.trace(mix(at ^ happening.code().rotate_left(40)));
            self.happen(happening);
        }
        self.outcome.simulated = self.now;
        self.outcome
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Wake { slot, instance } => self.wake(slot, instance),
            Happening::Arrives { message } => self.arrive(message),
            Happening::Replies { message } => self.reply(message),
            Happening::Hint {
                slot,
                instance,
                name,
                change,
                token,
            } => self.hint(happening, slot, instance, name, change, token),
            Happening::WatchBegins { slot, instance } => self.watch_begins(slot, instance),
            Happening::Campaigns { slot, instance, name } => self.campaigns(happening, slot, instance, name),
            Happening::Withdraws { slot, instance, name } => self.withdraws(slot, instance, name),
            Happening::Works { slot, name, serial } => self.works(happening, slot, name, serial),
            Happening::WriteLeaves { access } => self.write_leaves(happening, access),
            Happening::Accesses { access } => self.accesses(access),
            Happening::WorkEnds { slot, name, serial } => self.work_ends(happening, slot, name, serial),
            Happening::Fault { ordinal } => self.befall(ordinal),
            Happening::Resumes { slot } => self.resume(slot),
            Happening::Starts { slot, instance } => self.restart(slot, instance),
            Happening::TwinEnds { slot, instance } => self.twin_ends(slot, instance),
            Happening::Heals { slot, number } => self.heal_partition(slot, number),
            Happening::StoreReturns => self.store_returns(),
            Happening::HerdLooks { name } => self.herd_looks(name),
            Happening::CleansUp { name } => self.cleans_up(name),
            Happening::Calm => self.begin_calm(),
            Happening::MustLead => self.must_lead(),
            Happening::QuietEnds => self.quiet_ends(),
            Happening::OutageJudged => self.outage_judged(),
            Happening::Ends => self.calm = Calm::Over,
        }
    }

    /// Takes a verdict in: a breach of a law that applies here is a violation, and the run ends.
    fn judge(&mut self, verdict: Verdict) {
        if let Err(breach) = verdict {
            self.breached(self.now, *breach);
        }
    }

    #[cold]
    fn breached(&mut self, at: u64, breach: Breach) {
        if breach.law.assumes.holds(self.assumptions) {
            self.tell(|| {
                format!(
                    "VIOLATION of {} ({}): {}",
                    breach.law.name, breach.law.guarantee, breach.what
                )
            });
            let seed = self.plan.seed;
            self.outcome
                .violation
                .get_or_insert(Violation { seed, at, breach });
        } else if breach.law.name == "one-believer" {
            self.outcome.sights.add(Sometimes::TwoBelieversBeyondAssumptions);
        }
    }

    /// Counts a fault that has truly happened.
    fn struck(&mut self, kind: FaultKind) {
        self.outcome.faults.add(kind);
    }

    fn saw(&mut self, sight: Sometimes) {
        self.outcome.sights.add(sight);
    }

    /// Tells the narrator, if there is one.
    fn tell(&mut self, what: impl FnOnce() -> String) {
        if let Some(narrator) = &mut self.narrator {
            narrator.tell(self.now, &what());
        }
    }

    fn name_index(&self, name: &LeaseName) -> usize {
        if self.names.len() == 1 {
            return 0;
        }
        self.names.iter().position(|known| known == name).unwrap_or(0)
    }

    fn fence_rule(&self) -> FenceRule {
        if self.plan.store.flaw == Some(crate::plan::Flaw::FenceAdmitsAll) {
            FenceRule::Ignored
        } else {
            FenceRule::Kept
        }
    }
}

impl LeaseView {
    fn new() -> Self {
        Self {
            truth: None,
            expires_real: NEVER,
            expiry_due: NEVER,
            forced: [0; FORCED_MAX],
            register: Register::default(),
            exclusivity: Exclusivity::default(),
            tokens: TokensRise::default(),
            attempts: OneAttemptPerToken::default(),
            fence: FenceIsMonotone::default(),
            updates: NoLostUpdate::default(),
            last_applied: 0,
            granted_at: 0,
            leader: 0,
        }
    }
}

/// For the sum of a world's counts.
impl Outcome {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            terms: 0,
            fence_only_terms: 0,
            lapsed_terms: 0,
            happenings: 0,
            simulated: 0,
            faults: FaultCounts::default(),
            sights: Sights::default(),
            trace_hash: mix(seed),
            violation: None,
        }
    }

    fn trace(&mut self, what: u64) {
        self.happenings += 1;
        self.trace_hash = (self.trace_hash ^ what)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }
}
