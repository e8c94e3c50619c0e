//! Many seeds, on every core, and what came of them all.

use crate::faults::{FaultCounts, FaultKind};
use crate::outcome::{Outcome, Violation};
use crate::plan::{Edit, Plan};
use crate::sometimes::{Sights, Sometimes};
use crate::world::World;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// When a campaign is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// After this many leader-terms, and the seeds that are under way then.
    Terms(u64),
    /// After this many leader-terms with every assumption, and the seeds that are under way then.
    SoundTerms(u64),
    /// After this many seeds.
    Seeds(u64),
}

/// What a campaign runs.
#[derive(Clone, Debug)]
pub struct CampaignOptions {
    /// The first seed; the others follow it.
    pub first_seed: u64,
    /// When it is done.
    pub target: Target,
    /// Threads; at least 1.
    pub threads: usize,
    /// Changes to every plan: a number of candidates, for one.
    pub edit: Edit,
}

/// What came of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Seeds that were run: all from the first one on.
    pub seeds: u64,
    /// Terms that processes led.
    pub terms: u64,
    /// Of these, the terms for which an assumption was broken, or which an operator broke.
    pub fence_only_terms: u64,
    /// Terms for which not even the fence was promised.
    pub lapsed_terms: u64,
    /// Things that happened.
    pub happenings: u64,
    /// Simulated time, in nanoseconds.
    pub simulated: u128,
    /// Faults that happened.
    pub faults: FaultCounts,
    /// What was reached.
    pub sights: Sights,
    /// The first violation of each law, by law.
    pub violations: Vec<Violation>,
}

/// A count that is too small for the campaign to mean what it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Floor {
    /// A kind of fault happened too rarely.
    Fault(FaultKind, u64),
    /// Something that must be reached sometimes was reached too rarely.
    Sight(Sometimes, u64),
    /// Too few of the terms had every assumption hold: this many of a thousand.
    SoundTerms(u64),
    /// In too many of the terms not even the fence was promised: in this many of a thousand.
    LapsedTerms(u64),
    /// So few terms that what is rare need not have happened in them.
    FewTerms(u64),
}

/// Terms of a thousand, at least, for which every assumption must hold.
const SOUND_PER_MILLE: u64 = 800;

/// Terms of a thousand, at most, for which not even the fence may be promised.
const LAPSED_PER_MILLE: u64 = 20;

impl Totals {
    /// Terms for which every assumption held: two leaders break a promise there.
    #[must_use]
    pub fn sound_terms(&self) -> u64 {
        self.terms - self.fence_only_terms
    }

    /// Every count that is below its floor.
    #[must_use]
    pub fn below_floor(&self) -> Vec<Floor> {
        let faults = self.faults.below_floor(self.terms);
        let sights = self.sights.below_floor(self.terms);
        let per_mille = |terms: u64| terms * 1_000 / self.terms.max(1);
        let (sound, lapsed) = (per_mille(self.sound_terms()), per_mille(self.lapsed_terms));
        let mut below: Vec<Floor> = faults
            .into_iter()
            .map(|(kind, count)| Floor::Fault(kind, count))
            .collect();
        below.extend(
            sights
                .into_iter()
                .map(|(sight, count)| Floor::Sight(sight, count)),
        );
        if self.terms < Sometimes::terms_of_the_rarest() {
            below.push(Floor::FewTerms(self.terms));
        }
        if sound < SOUND_PER_MILLE && self.terms > 0 {
            below.push(Floor::SoundTerms(sound));
        }
        if lapsed > LAPSED_PER_MILLE {
            below.push(Floor::LapsedTerms(lapsed));
        }
        below
    }

    fn add(&mut self, outcome: Outcome) {
        self.seeds += 1;
        self.terms += outcome.terms;
        self.fence_only_terms += outcome.fence_only_terms;
        self.lapsed_terms += outcome.lapsed_terms;
        self.happenings += outcome.happenings;
        self.simulated += u128::from(outcome.simulated);
        self.faults.merge(&outcome.faults);
        self.sights.merge(&outcome.sights);
        self.violations.extend(outcome.violation);
    }

    fn merge(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.terms += other.terms;
        self.fence_only_terms += other.fence_only_terms;
        self.lapsed_terms += other.lapsed_terms;
        self.happenings += other.happenings;
        self.simulated += other.simulated;
        self.faults.merge(&other.faults);
        self.sights.merge(&other.sights);
        self.violations.extend(other.violations);
    }

    /// Keeps the first violation of each law.
    fn first_of_each_law(&mut self) {
        self.violations
            .sort_by_key(|violation| (violation.breach.law.name, violation.seed));
        self.violations
            .dedup_by_key(|violation| violation.breach.law.name);
    }
}

/// Many seeds.
#[derive(Debug)]
pub struct Campaign;

/// How often the progress is told.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

impl Campaign {
    /// Runs seeds until the target is reached, or soon after a violation: what is under way then is finished.
    ///
    /// `progress` is called from time to time with the seeds and the terms so far.
    pub fn run(options: &CampaignOptions, progress: impl FnMut(u64, u64)) -> Totals {
        let course = Course::default();
        let totals = Mutex::new(Totals::default());
        thread::scope(|scope| {
            for _ in 0..options.threads.max(1) {
                scope.spawn(|| {
                    // However the thread ends, whoever waits for it must not wait for ever.
                    let _done = Done(&course);
                    let mine = work(options, &course);
                    totals
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .merge(mine);
                });
            }
            watch(options, &course, progress);
        });
        let mut totals = totals
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        totals.first_of_each_law();
        totals
    }
}

/// What the threads of a campaign share.
#[derive(Default)]
struct Course {
    next: AtomicU64,
    terms: AtomicU64,
    sound_terms: AtomicU64,
    stopped: AtomicBool,
    done: AtomicU64,
}

struct Done<'course>(&'course Course);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.done.fetch_add(1, Ordering::SeqCst);
    }
}

fn work(options: &CampaignOptions, course: &Course) -> Totals {
    let mut totals = Totals::default();
    while !course.stopped.load(Ordering::Relaxed) {
        let number = course.next.fetch_add(1, Ordering::Relaxed);
        if matches!(options.target, Target::Seeds(seeds) if number >= seeds) {
            break;
        }
        let seed = options.first_seed.wrapping_add(number);
        let plan = Plan::of_seed(seed, &options.edit);
        let outcome = World::new(&plan, options.edit.keep.as_deref(), None).run();
        let terms = course.terms.fetch_add(outcome.terms, Ordering::Relaxed) + outcome.terms;
        let sound = outcome.terms - outcome.fence_only_terms;
        let sound = course.sound_terms.fetch_add(sound, Ordering::Relaxed) + sound;
        let enough = match options.target {
            Target::Terms(wanted) => terms >= wanted,
            Target::SoundTerms(wanted) => sound >= wanted,
            Target::Seeds(_) => false,
        };
        if enough || outcome.violation.is_some() {
            course.stopped.store(true, Ordering::Relaxed);
        }
        totals.add(outcome);
    }
    totals
}

fn watch(options: &CampaignOptions, course: &Course, mut progress: impl FnMut(u64, u64)) {
    let threads = options.threads.max(1) as u64;
    while course.done.load(Ordering::SeqCst) < threads {
        thread::sleep(PROGRESS_EVERY / 10);
        progress(
            course.next.load(Ordering::Relaxed),
            course.terms.load(Ordering::Relaxed),
        );
    }
}
