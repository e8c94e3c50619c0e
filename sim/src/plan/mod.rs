//! What one seed means: a set-up of candidates and a store, and a calendar of faults.

mod calendar;
mod swarm;
mod timing;

pub use calendar::Planned;

use crate::chance::Chance;
use std::time::Duration;
use tenure_core::{Leases, Timing};

/// Most candidates of one plan, without twins.
pub const CANDIDATES_MAX: usize = 9;

/// Most leases that the candidates of one plan want.
pub const NAMES_MAX: usize = 3;

/// What the guarantees stand on, and whether it holds in a plan (see `GUARANTEES.md`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Assumptions {
    /// Every clock's rate is right to within ρ.
    pub rate: bool,
    /// The store's clock steps by less than the step allowance in one ttl.
    pub step: bool,
    /// The store keeps what it has acknowledged, and answers from its latest state.
    pub store: bool,
}

impl Assumptions {
    /// Whether all of them hold.
    #[must_use]
    pub fn all_hold(self) -> bool {
        self.rate && self.step && self.store
    }
}

/// The assumption that a plan breaks on purpose: then only the fence is promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// Clocks run far too fast or too slow, or stand still.
    Rate,
    /// The store's clock steps by up to a ttl.
    Step,
    /// The store loses what it has acknowledged.
    Store,
}

/// Who judges expiry in the model store of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreKind {
    /// The store's own clock, read inside the deciding statement.
    ServerClock,
    /// Nobody: the store compares and swaps, and each process observes by its own clock.
    Observed,
}

/// What a store that only compares and swaps can say of time, as a floor for tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenFloor {
    /// Its clock.
    Clock,
    /// Nothing: its records must never be removed.
    Nothing,
}

/// Whether a store grants the same at every renewal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grants {
    /// It does.
    Alike,
    /// Now more, now less: a renewal may end a lease sooner than the one before had promised. A holder is
    /// promised nothing then until it has heard of it.
    Varying,
    /// The same, and sometimes so little that it is over before the holder hears of it. Nobody is promised to
    /// lead on.
    Erratic,
}

/// A flaw planted in the model world, to prove that the invariants notice. No plan of a seed has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// The store grants a lease that somebody else holds.
    GrantsHeldLease,
    /// The store grants every term the token of the one before.
    TokenRepeats,
    /// A release ends the term of anybody.
    ReleaseIgnoresTerm,
    /// A renewal revives an expired lease.
    RenewalRevives,
    /// A renewal is confirmed and extends nothing.
    RenewalDoesNotExtend,
    /// A repeated attempt gets another token.
    SameAttemptGetsNewToken,
    /// The fence admits every write.
    FenceAdmitsAll,
    /// Workers read before they claim.
    ReadBeforeClaim,
    /// Processes release while their work goes on.
    ReleaseBeforeWorkEnded,
    /// The store expires every lease early, at four fifths of its ttl.
    ExpiresEarly,
    /// The store never frees an expired lease.
    NeverExpires,
}

/// One-way latency of messages where no fault delays them. Nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// The shortest.
    pub least: u64,
    /// The longest.
    pub most: u64,
}

/// What a leader does in its term. Nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Mean length of a term that nothing disturbs.
    pub term: u64,
    /// Mean pause between two steps of the work.
    pub think: u64,
    /// Longest computation between a read and the check before its write.
    pub compute: u64,
    /// How many of a thousand candidates have a progress gate.
    pub gated_per_mille: u64,
    /// Longest pause between the end of a term and the next campaign of its holder.
    pub rest: u64,
    /// How many of a thousand ends of a term hand the lease on within the process.
    pub hands_on_per_mille: u64,
}

/// How the model store behaves beyond the contract's letter.
#[derive(Clone, Copy, Debug)]
pub struct StoreHabits {
    /// Who judges expiry.
    pub kind: StoreKind,
    /// What it says of time, where it judges nothing.
    pub token_floor: TokenFloor,
    /// What is granted, in hundredths of what was asked.
    pub granted_percent: u64,
    /// Whether it grants that every time.
    pub grants: Grants,
    /// A fail-over extends every held lease by its ttl, as sessions do.
    pub refreshes_at_failover: bool,
    /// A read that decides nothing may be answered from the past.
    pub reads_lag: bool,
    /// The planted flaw; always `None` in the plan of a seed.
    pub flaw: Option<Flaw>,
}

/// Changes to the plan of a seed, for shrinking and for replaying what was shrunk.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Edit {
    /// The ordinals of the faults that are kept; `None` keeps all.
    pub keep: Option<Vec<u32>>,
    /// That many candidates, 2 ..= 9, whatever the seed says.
    pub candidates: Option<u8>,
    /// The end, in nanoseconds of real time.
    pub until: Option<u64>,
    /// A planted flaw, for the tests of the simulator.
    pub flaw: Option<Flaw>,
}

/// Everything that one seed means.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// Candidates, 2 ..= 9.
    pub candidates: u8,
    /// Leases that every candidate wants, 1 ..= 3.
    pub names: u8,
    /// The timing of each candidate.
    pub timings: Vec<Timing>,
    /// ρ: the least that any of the timings allows, in parts per million. Clocks keep to it.
    pub rate_error_ppm: i64,
    /// ρ for those who observe: the most that any of the timings allows, in parts per million.
    pub observers_rate_error_ppm: u32,
    /// How far the store's clock may step in one ttl: the least step allowance, less the millisecond by which
    /// a store that counts in milliseconds is imprecise. Nanoseconds.
    pub step_budget: u64,
    /// The longest ttl of any candidate, as granted. Nanoseconds.
    pub ttl_longest: u64,
    /// The shortest request time-out of any candidate. Nanoseconds.
    pub timeout_shortest: u64,
    /// How fast messages are.
    pub latency: Latency,
    /// How the store behaves.
    pub store: StoreHabits,
    /// Where the leases are whose terms the fence admits: beside its marks, where it finds their records, or
    /// elsewhere.
    pub leases: Leases,
    /// What leaders do.
    pub work: Work,
    /// What is broken on purpose.
    pub broken: Option<Broken>,
    /// How long faults go on. Nanoseconds of real time.
    pub horizon: u64,
    /// The faults, by time. The place of a fault in this list is its ordinal.
    pub calendar: Vec<Planned>,
    /// When the run is cut off, if before its end.
    pub until: Option<u64>,
}

/// The purposes for which chance is drawn: one stream each.
pub(crate) mod purpose {
    pub(crate) const CANDIDATES: u64 = 1;
    pub(crate) const TIMING: u64 = 2;
    pub(crate) const STORE: u64 = 3;
    pub(crate) const WORK: u64 = 4;
    pub(crate) const BROKEN: u64 = 5;
    pub(crate) const CALENDAR: u64 = 6;
    pub(crate) const WORLD: u64 = 7;
    pub(crate) const FENCE: u64 = 8;
    pub(crate) const PROCESS: u64 = 1_000;
}

/// Terms that a plan is long enough for, if nothing disturbs them.
const TERMS_PLANNED: u64 = 60;

impl Plan {
    /// The plan of a seed, edited.
    #[must_use]
    pub fn of_seed(seed: u64, edit: &Edit) -> Self {
        let drawn = Chance::of(seed, purpose::CANDIDATES).weighted(&[
            (2_u8, 22),
            (3, 44),
            (4, 12),
            (5, 9),
            (6, 4),
            (7, 3),
            (8, 3),
            (9, 3),
        ]);
        let asked = edit.candidates.unwrap_or(drawn);
        let candidates = asked.clamp(2, u8::try_from(CANDIDATES_MAX).unwrap_or(u8::MAX));
        let timings = timing::of_candidates(&mut Chance::of(seed, purpose::TIMING));
        let broken = broken(&mut Chance::of(seed, purpose::BROKEN));
        let mut chance = Chance::of(seed, purpose::STORE);
        let store = habits(&mut chance, broken, edit.flaw);
        let names = chance.weighted(&[(1_u8, 85), (2, 10), (3, 5)]);
        let timeout_shortest = least(&timings, |timing| nanoseconds(timing.request_timeout()));
        let latency = latency(&mut chance, timeout_shortest);
        let asked_longest = most(&timings, |timing| nanoseconds(timing.ttl().duration()));
        let ttl_longest = asked_longest / 100 * store.granted_percent.max(100);
        let allowance = least(&timings, |timing| {
            nanoseconds(timing.ttl().duration() - timing.trust(timing.ttl()))
                .saturating_sub(2 * nanoseconds(timing.ttl().duration()) / MILLION * u64::from(ppm(timing)))
        });
        let rate_error_ppm = least(&timings, |timing| u64::from(ppm(timing))).cast_signed();
        let mut chance = Chance::of(seed, purpose::WORK);
        let work = work(&mut chance, asked_longest, &timings);
        let horizon = TERMS_PLANNED * (work.term + work.rest / 2 + asked_longest / 6);
        let mut plan = Self {
            seed,
            candidates,
            names,
            observers_rate_error_ppm: timings.iter().map(ppm).max().unwrap_or(0),
            timings,
            rate_error_ppm,
            step_budget: allowance.saturating_sub(1_000_001),
            ttl_longest,
            timeout_shortest,
            latency,
            store,
            leases: Chance::of(seed, purpose::FENCE).weighted(&[(Leases::Here, 1), (Leases::Elsewhere, 1)]),
            work,
            broken,
            horizon,
            calendar: Vec::new(),
            until: edit.until,
        };
        plan.calendar = calendar::of(&plan);
        plan
    }

    /// What holds in this plan.
    #[must_use]
    pub fn assumptions(&self) -> Assumptions {
        Assumptions {
            rate: self.broken != Some(Broken::Rate),
            step: self.broken != Some(Broken::Step),
            store: self.broken != Some(Broken::Store),
        }
    }
}

const MILLION: u64 = 1_000_000;

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn ppm(timing: &Timing) -> u32 {
    timing.explain().clock_rate_error_ppm
}

fn least(timings: &[Timing], of: impl Fn(&Timing) -> u64) -> u64 {
    timings.iter().map(of).min().unwrap_or(0)
}

fn most(timings: &[Timing], of: impl Fn(&Timing) -> u64) -> u64 {
    timings.iter().map(of).max().unwrap_or(0)
}

fn broken(chance: &mut Chance) -> Option<Broken> {
    chance.weighted(&[
        (None, 84),
        (Some(Broken::Store), 9),
        (Some(Broken::Step), 4),
        (Some(Broken::Rate), 3),
    ])
}

fn habits(chance: &mut Chance, broken: Option<Broken>, flaw: Option<Flaw>) -> StoreHabits {
    let granted_percent = chance.weighted(&[(100, 80), (70, 8), (45, 6), (130, 6)]);
    let observed = chance.per_mille(220) && broken != Some(Broken::Step) && flaw.is_none();
    let token_floor = chance.weighted(&[(TokenFloor::Clock, 2), (TokenFloor::Nothing, 1)]);
    StoreHabits {
        kind: if observed {
            StoreKind::Observed
        } else {
            StoreKind::ServerClock
        },
        token_floor,
        granted_percent: if observed { 100 } else { granted_percent },
        grants: if observed || flaw.is_some() {
            Grants::Alike
        } else {
            chance.weighted(&[(Grants::Alike, 90), (Grants::Varying, 7), (Grants::Erratic, 3)])
        },
        refreshes_at_failover: chance.per_mille(500) && broken.is_none() && !observed,
        reads_lag: chance.per_mille(500),
        flaw,
    }
}

fn latency(chance: &mut Chance, timeout_shortest: u64) -> Latency {
    let least = chance
        .weighted(&[(20_000, 4), (300_000, 4), (2_000_000, 1)])
        .min(timeout_shortest / 40);
    let longest = timeout_shortest / chance.weighted(&[(10, 1), (30, 3), (100, 3)]);
    Latency {
        least,
        most: longest.clamp(least, 60_000_000.max(least)),
    }
}

fn work(chance: &mut Chance, ttl: u64, timings: &[Timing]) -> Work {
    let grace = least(timings, |timing| nanoseconds(timing.grace()));
    let term = ttl * chance.weighted(&[(2, 2), (7, 3), (13, 4), (25, 2)]) / 10;
    let compute_share = chance.weighted(&[(1, 3), (10, 2), (40, 1)]);
    Work {
        term,
        think: term / chance.weighted(&[(1, 3), (2, 2), (6, 1)]),
        compute: (ttl * compute_share / 100).min(grace).max(1_000_000),
        gated_per_mille: chance.weighted(&[(0, 2), (300, 2), (1000, 1)]),
        rest: ttl * chance.weighted(&[(1, 5), (10, 3), (60, 1)]) / 100,
        hands_on_per_mille: chance.weighted(&[(0, 5), (250, 2), (900, 1)]),
    }
}
