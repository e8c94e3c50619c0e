use crate::milestone::Milestone;
use std::fmt;
use std::time::Duration;
use tenure_core::{Timing, TimingOptions, Ttl};

/// The model's unit of time. Every clock moves by whole ticks.
pub(crate) const TICK: Duration = Duration::from_millis(100);
/// What a candidate asks for: 5 ticks.
pub(crate) const ASKED_TICKS: u32 = 5;
/// What the store grants: 4 ticks, so that counting by the asked ttl is a mistake that shows. One of them is
/// the margin; with fewer than three to trust, no renewal could be answered later than in the tick of its
/// sending.
pub(crate) const GRANTED_TICKS: u32 = 4;
/// Most candidates.
pub const CANDIDATES_MAX: usize = 3;

/// Something that can happen beside messages, time, and taking, renewing and releasing a lease.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Feature {
    /// A request that was applied is applied once more, at any later time.
    Duplicates,
    /// An answer arrives after its request was given up.
    LateReplies,
    /// A process dies, and another starts in its place; its messages live on.
    Crashes,
    /// The store answers with an error, though the request was or was not applied.
    StoreErrors,
    /// The watch reports something, or that it has missed something.
    Hints,
    /// A campaign is withdrawn, at any moment.
    Withdrawals,
    /// A holder is asked by its user, or through the record, to step down.
    Requests,
    /// When the work of a term ends, another in the same process goes on with the lease.
    HandOns,
    /// An operator vacates a lease while its holder works.
    ForcedReleases,
    /// The work claims a fence, reads, and writes, and does not look at a clock in between.
    Fence,
}

impl Feature {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Duplicates,
        Self::LateReplies,
        Self::Crashes,
        Self::StoreErrors,
        Self::Hints,
        Self::Withdrawals,
        Self::Requests,
        Self::HandOns,
        Self::ForcedReleases,
        Self::Fence,
    ];
}

/// What is explored, and within which bounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configuration {
    /// What it is called in reports.
    pub name: &'static str,
    /// How many candidates: 1 ..= [`CANDIDATES_MAX`].
    pub candidates: usize,
    /// How many late messages there are at a time: 0 ..= 3. More are lost.
    pub late_max: usize,
    /// By how many ticks an engine may be woken too late.
    pub overdue_max: u8,
    /// What can happen.
    pub features: Vec<Feature>,
}

impl Configuration {
    /// Some seconds: two candidates, and messages that come late, twice, or never. About 4·10^6 states.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            name: "quick",
            candidates: 2,
            late_max: 1,
            overdue_max: 0,
            features: vec![Feature::Duplicates, Feature::LateReplies],
        }
    }

    /// Half a minute: the same, with crashes, and with holders that are asked to step down. About 10^7
    /// states.
    #[must_use]
    pub fn two_candidates() -> Self {
        Self {
            name: "two candidates",
            features: vec![Feature::Duplicates, Feature::Crashes, Feature::Requests],
            ..Self::quick()
        }
    }

    /// Three candidates, of which two can die while the third takes over, and holders that are asked to step
    /// down. More than 10^8 states.
    #[must_use]
    pub fn three_candidates() -> Self {
        Self {
            name: "three candidates",
            candidates: 3,
            late_max: 0,
            features: vec![Feature::Crashes, Feature::Requests],
            ..Self::quick()
        }
    }

    /// Two candidates, from every side: with all features, but not all at once. Each is exhausted in a minute
    /// or so; together they reach every [`Milestone`].
    #[must_use]
    pub fn slices() -> Vec<Self> {
        let slice = |name, late_max, overdue_max, features: &[Feature]| Self {
            name,
            candidates: 2,
            late_max,
            overdue_max,
            features: features.to_vec(),
        };
        vec![
            Self::quick(),
            Self::two_candidates(),
            slice(
                "errors, hints and withdrawals",
                0,
                0,
                &[Feature::StoreErrors, Feature::Hints, Feature::Withdrawals],
            ),
            slice(
                "operators and the fence",
                0,
                0,
                &[Feature::Requests, Feature::ForcedReleases, Feature::Fence],
            ),
            slice(
                "crashes and the fence",
                0,
                0,
                &[Feature::Crashes, Feature::Requests, Feature::Fence],
            ),
            slice("withdrawals and late messages", 1, 0, &[Feature::Withdrawals]),
            slice(
                "handing on, and late messages",
                1,
                0,
                &[Feature::HandOns, Feature::Withdrawals],
            ),
            slice("pauses", 0, 3, &[Feature::Crashes]),
            slice("pauses and late messages", 1, 2, &[]),
        ]
    }

    /// Those of the [`slices`](Self::slices) that every run explores beside
    /// [`two_candidates`](Self::two_candidates): together as long as that.
    #[must_use]
    pub fn slices_of_every_run() -> Vec<Self> {
        let names = ["errors, hints and withdrawals", "crashes and the fence"];
        let mut slices = Self::slices();
        slices.retain(|slice| names.contains(&slice.name));
        slices
    }

    /// What must be reached when everything was explored.
    #[must_use]
    pub fn milestones(&self) -> Vec<Milestone> {
        let possible = |milestone: &Milestone| match milestone {
            Milestone::TakenOver | Milestone::TakenAfterRelease => self.candidates > 1,
            // Who believes is right, so that only an operator can give a believer a successor.
            Milestone::ToldOfSuccessor => self.candidates > 1 && self.has(Feature::ForcedReleases),
            Milestone::Renewed
            | Milestone::Departed
            | Milestone::EndedAtDeadline
            | Milestone::RequestGivenUp
            | Milestone::UnknownOutcome
            | Milestone::GrantedAgain => true,
            Milestone::Superseded | Milestone::LateRequestApplied | Milestone::LateRequestRefused => {
                self.late_max > 0
            }
            Milestone::OrphanReleased => self.has(Feature::Withdrawals),
            Milestone::HandedOverOnDemand => self.has(Feature::Requests),
            Milestone::HandedOn => self.has(Feature::HandOns),
            Milestone::Crashed => self.has(Feature::Crashes),
            Milestone::FenceRaised | Milestone::StaleRefused => {
                self.has(Feature::Fence) && self.candidates > 1
            }
            Milestone::ForcedRelease => self.has(Feature::ForcedReleases),
        };
        Milestone::ALL.into_iter().filter(possible).collect()
    }

    /// Whether this can happen.
    #[must_use]
    pub fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} candidates, {} late message(s), ttl {ASKED_TICKS} ticks asked and {GRANTED_TICKS} \
             granted, clocks 1 tick apart, engines woken up to {} tick(s) late",
            self.name, self.candidates, self.late_max, self.overdue_max
        )?;
        for (index, feature) in self.features.iter().enumerate() {
            let comma = if index == 0 { "; with " } else { ", " };
            write!(f, "{comma}{feature:?}")?;
        }
        Ok(())
    }
}

/// The timing of every candidate.
///
/// The clocks of the model may run apart by one tick, so a holder must take off one tick of what was granted.
/// Half of that is given to the rate error (2ρ of 4 ticks is half a tick), half to the step allowance. So
/// whoever forgets one of them, or takes ρ for 2ρ, believes half a tick too long, which is a whole tick on
/// clocks that move by ticks. Everything else is as short as the inequalities allow, and due at the next
/// tick.
pub(crate) fn timing() -> Timing {
    let ttl = TICK * ASKED_TICKS;
    TimingOptions {
        renew_every: Some(Duration::from_millis(90)),
        retry_every: Some(Duration::from_millis(90)),
        request_timeout: Some(TICK),
        grace: Some(Duration::ZERO),
        spread: Some(Duration::ZERO),
        clock_rate_error_ppm: 62_500,
        step_allowance: Some(Duration::from_millis(50)),
        ..TimingOptions::new(ttl)
    }
    .check()
    .expect("the timing of the model keeps every inequality, by test")
}

/// The ttl that the store grants, whatever is asked.
pub(crate) fn granted() -> Ttl {
    let ttl = TICK * GRANTED_TICKS;
    Ttl::try_from(ttl).expect("four ticks are a ttl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_is_just_the_tick_by_which_clocks_may_differ() {
        let trusted = timing().trust(granted());
        assert_eq!(trusted, TICK * (GRANTED_TICKS - 1));
        // Whoever counts by the asked ttl believes a tick too long.
        assert!(timing().trust(timing().ttl()) > trusted);
    }
}
