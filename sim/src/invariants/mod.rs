//! What must never happen: one small file for each promise, named after it.
//!
//! Every law watches the world from outside (records, clocks in real time, the register's history, what an
//! engine says) and reckons by itself: none of the engine's own arithmetic is used to judge the engine. Each
//! says what it assumes, and is applied only where that holds.

mod attempt_rotates;
mod belief_is_sound;
mod deadline_holds;
mod doubt_comes_in_time;
mod end_has_a_reason;
mod engine_sleeps;
mod exclusivity;
mod fence_is_monotone;
mod hint_is_followed;
mod liveness;
mod no_change_without_cause;
mod no_lost_update;
mod no_request_outlasts;
mod nothing_is_left;
mod observers_never_go_back;
mod once_each;
mod one_attempt_per_token;
mod one_believer;
mod one_term_per_attempt;
mod release_comes_last;
mod release_is_prompt;
mod renewal_is_inert;
mod request_budget;
mod retries;
mod stuck_work_ends;
mod tokens_rise;
mod twin_is_told;
mod wish_is_told;
mod withdrawn_asks_no_more;

pub use attempt_rotates::AttemptRotates;
pub use belief_is_sound::{Believed, belief_is_sound};
pub use deadline_holds::{
    Extension, authority_ends_at_the_deadline, belief_never_extends_late, late_grant_begins_no_term,
};
pub use doubt_comes_in_time::doubt_comes_in_time;
pub use end_has_a_reason::{campaign_end_is_a_misconfiguration, end_has_a_reason, loss_ends_the_term};
pub use engine_sleeps::engine_sleeps;
pub use exclusivity::Exclusivity;
pub use fence_is_monotone::FenceIsMonotone;
pub use hint_is_followed::HintIsFollowed;
pub use liveness::{leader_exists, leader_is_stable, outage_is_survived};
pub use no_change_without_cause::no_change_without_cause;
pub use no_lost_update::NoLostUpdate;
pub use no_request_outlasts::no_request_outlasts;
pub use nothing_is_left::{nothing_is_left, nothing_is_under_way};
pub use observers_never_go_back::ObserversNeverGoBack;
pub use once_each::OnceEach;
pub use one_attempt_per_token::OneAttemptPerToken;
pub use one_believer::one_believer;
pub use one_term_per_attempt::OneTermPerAttempt;
pub use release_comes_last::ReleaseComesLast;
pub use release_is_prompt::{release_is_prompt, release_is_seen_through};
pub use renewal_is_inert::{release_touches_only_its_term, renewal_is_inert};
pub use request_budget::{Role, request_budget};
pub use retries::{Pauses, Retries};
pub use stuck_work_ends::stuck_work_ends;
pub use tokens_rise::TokensRise;
pub use twin_is_told::twin_is_told;
pub use wish_is_told::wish_is_told;
pub use withdrawn_asks_no_more::WithdrawnAsksNoMore;

use crate::plan::Assumptions;

/// What a law stands on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Assumes {
    /// Nothing at all.
    Nothing,
    /// The store keeps what it has acknowledged.
    Store,
    /// The store keeps what it has acknowledged, or its clock is ahead of the last token that it gave.
    StoreOrClock,
    /// Clocks are right to within ρ, the store's clock steps within the allowance, and the store keeps.
    RateStepStore,
}

impl Assumes {
    /// Whether a law that assumes this applies where these hold.
    #[must_use]
    pub fn holds(self, assumptions: Assumptions) -> bool {
        match self {
            // Where the store forgets, the world itself follows whether its clock is ahead of the last token.
            Self::Nothing | Self::StoreOrClock => true,
            Self::Store => assumptions.store,
            Self::RateStepStore => assumptions.all_hold(),
        }
    }
}

/// A promise that is watched.
#[derive(PartialEq, Eq, Debug)]
pub struct Law {
    /// Its name: what always holds, words joined by hyphens.
    pub name: &'static str,
    /// Where it is promised: the label in `GUARANTEES.md`.
    pub guarantee: &'static str,
    /// Where it comes from: the invariant of the research on verification that it states.
    pub source: &'static str,
    /// What it stands on.
    pub assumes: Assumes,
}

/// Every law, in the order of the guarantees.
pub const LAWS: &[&Law] = &[
    &exclusivity::LAW,
    &belief_is_sound::LAW,
    &one_believer::LAW,
    &deadline_holds::LAW,
    &deadline_holds::BEGINNING_LAW,
    &tokens_rise::LAW,
    &one_attempt_per_token::LAW,
    &attempt_rotates::LAW,
    &fence_is_monotone::LAW,
    &no_lost_update::LAW,
    &no_change_without_cause::LAW,
    &renewal_is_inert::LAW,
    &renewal_is_inert::RELEASE_LAW,
    &release_comes_last::LAW,
    &wish_is_told::LAW,
    &end_has_a_reason::LAW,
    &end_has_a_reason::CAMPAIGN_LAW,
    &end_has_a_reason::LOSS_LAW,
    &once_each::LAW,
    &one_term_per_attempt::LAW,
    &nothing_is_left::LAW,
    &withdrawn_asks_no_more::LAW,
    &twin_is_told::LAW,
    &liveness::OUTAGE_LAW,
    &doubt_comes_in_time::LAW,
    &liveness::TAKEOVER_LAW,
    &liveness::STABILITY_LAW,
    &hint_is_followed::LAW,
    &release_is_prompt::LAW,
    &release_is_prompt::PERSISTENCE_LAW,
    &retries::RETRY_LAW,
    &request_budget::LAW,
    &retries::PACE_LAW,
    &engine_sleeps::LAW,
    &no_request_outlasts::LAW,
    &observers_never_go_back::LAW,
    &stuck_work_ends::LAW,
];

/// A law that was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Breach {
    /// Which.
    pub law: &'static Law,
    /// How, in one line.
    pub what: String,
}

/// Whether a law holds. The breach is boxed: the good case is the hot one.
pub type Verdict = Result<(), Box<Breach>>;

/// A verdict: the law holds if `sound`; if not, `what` says how.
pub(crate) fn hold(law: &'static Law, sound: bool, what: impl FnOnce() -> String) -> Verdict {
    if sound {
        Ok(())
    } else {
        Err(Box::new(Breach { law, what: what() }))
    }
}

/// What the store's record of one lease says: the truth that beliefs are measured with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truth {
    /// The process that holds it, or held it last: its instance, unique in a world.
    pub holder: u64,
    /// The token.
    pub token: u64,
    /// The attempt.
    pub attempt: u64,
    /// When it expires by the store's clock, in milliseconds; `u64::MAX` where the store has no clock.
    pub expires_ms: u64,
    /// Whether it was given back.
    pub released: bool,
}

impl Truth {
    /// Whether somebody holds the lease when the store's clock shows this.
    #[must_use]
    pub fn is_held(&self, clock_ms: u64) -> bool {
        !self.released && clock_ms < self.expires_ms
    }

    /// Whether it is this very term.
    #[must_use]
    pub fn is_term(&self, holder: u64, token: u64, attempt: u64) -> bool {
        (self.holder, self.token, self.attempt) == (holder, token, attempt)
    }
}
