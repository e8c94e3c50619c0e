//! A quorum: leases in several servers that know nothing of each other, held by whoever has a majority.

mod acquire;
mod adopt;
mod agree;
mod candidacy;
mod guess;
mod latest;
mod member;
mod purge;
mod read;
mod record;
mod remains;
mod rivals;
mod store;
mod terms;
mod token;
mod tries;
mod watch;
mod weigh;

pub use store::QuorumStore;

use crate::membership::Membership;
use latest::Tries;
use member::Member;
use rivals::Rivals;
use std::sync::Arc;
use tenure_core::{Certainty, Durability, Fault, StoreError};
use tokio::sync::Semaphore;

/// The members of a quorum.
pub(crate) struct Quorum {
    members: Vec<Arc<Member>>,
    /// Whether they are those that every candidate names.
    membership: Arc<Membership>,
    /// Hosts, database and prefix, for people.
    place: String,
    /// What a confirmed write is worth there; known once the members were asked.
    durability: Durability,
    /// Who brings terms to members that missed them.
    adoptions: Arc<Semaphore>,
    /// The acquisitions under way, those that left something, and those whose terms may be believed.
    tries: Tries,
    /// Whether anybody else asks.
    rivals: Rivals,
}

/// What a request may have changed though too few members agreed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Nothing,
    /// Some have carried it out, or still may.
    Possible,
}

impl Effect {
    /// Of so many members that have carried it out, or still may.
    fn of(members: usize) -> Self {
        match members {
            0 => Self::Nothing,
            _ => Self::Possible,
        }
    }

    /// And of so many more.
    fn add(&mut self, members: usize) {
        if members > 0 {
            *self = Self::Possible;
        }
    }

    /// An error of a request that has this effect.
    fn told_in(self, mut error: StoreError) -> StoreError {
        if self == Self::Possible {
            error.certainty = Certainty::Unknown;
        }
        error
    }
}

/// How many of those that failed may have carried it out all the same.
fn unsure(errors: &[StoreError]) -> usize {
    let unsure = errors
        .iter()
        .filter(|error| error.certainty == Certainty::Unknown);
    unsure.count()
}

impl Quorum {
    /// How many members decide.
    fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// Whether so many can stand in the way of every majority.
    fn blocks(&self, count: usize) -> bool {
        count > self.members.len() - self.majority()
    }

    /// Too few members answered. The failure of one stands for those of all.
    fn undecided(&self, subject: &str, answered: usize, errors: &[StoreError], effect: Effect) -> StoreError {
        self.too_few(subject, answered, "answered", errors, effect)
    }

    /// Too few members have confirmed a token, of those that answered.
    fn unconfirmed(&self, subject: &str, agreed: usize, errors: &[StoreError], effect: Effect) -> StoreError {
        self.too_few(subject, agreed, "have confirmed its token", errors, effect)
    }

    /// Too few members did this.
    fn too_few(
        &self,
        subject: &str,
        count: usize,
        did: &str,
        errors: &[StoreError],
        effect: Effect,
    ) -> StoreError {
        // A mistake that only a person can mend is told as such only where it stands in the way of every
        // majority; and so is one that is final, beside logins that are refused and records that cannot be
        // read.
        let stands_in_the_way = |is_such: fn(Fault) -> bool| {
            let such = errors.iter().filter(|error| is_such(error.fault)).count();
            self.blocks(such)
        };
        let told = if stands_in_the_way(Fault::is_final) {
            errors.iter().find(|error| error.fault.is_final())
        } else if stands_in_the_way(Fault::is_misconfiguration) {
            let passes = |fault: Fault| fault.is_misconfiguration() && !fault.is_final();
            errors.iter().find(|error| passes(error.fault))
        } else {
            errors.iter().find(|error| !error.fault.is_misconfiguration())
        };
        let unsure = effect == Effect::Possible || unsure(errors) > 0;
        let why = told.map_or_else(String::new, |error| format!("; one says: {}", error.message));
        StoreError {
            fault: told.map_or(Fault::Unreachable, |error| error.fault),
            certainty: if unsure {
                Certainty::Unknown
            } else {
                Certainty::NotApplied
            },
            message: format!(
                "{subject} at the quorum {}: {count} of {} members {did}, and {} must agree{why}",
                self.place,
                self.members.len(),
                self.majority()
            ),
        }
    }
}
