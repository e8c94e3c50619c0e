//! A number that terms read, add one to and write back, with the history of every write that was accepted.

use tenure::contract::Answer;
use tenure::{Fence, FenceError, FencingToken, LeaseName, ResourceName, Term};

/// What became of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Accepted,
    /// By the fence.
    Refused,
    /// The store was busy or in conflict: nothing was decided, or nobody knows.
    Undecided,
}

impl Outcome {
    /// What became of a write that did not get past a fence.
    pub fn of(error: &FenceError) -> Self {
        match error {
            FenceError::Store(_) => Self::Undecided,
            _ => Self::Refused,
        }
    }
}

/// Why a term has not claimed, or may not have: in the fence's words.
#[derive(Debug)]
pub enum NotClaimed {
    Refused(String),
    /// To be claimed again.
    Undecided(String),
}

/// What supersedes an older term, so that what it begins to write from then on is stale.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Superseded {
    /// A later term's claim of the resource has returned.
    ByClaim,
    /// A later term has read the number, which claims what the number is in.
    ByRead,
}

/// Who gives up what a writer holds that is frozen in the midst of its write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrozenWriter {
    /// It holds nothing, or the server ends its transaction.
    HoldsNothingForLong,
    /// Only the writer itself: nobody claims until it is thawed.
    HoldsUntilThawed,
}

/// One write that was accepted: who, and what it had read.
pub type Write = (u64, i64);

pub trait Register: Send + Sync {
    /// Claims the resource.
    fn claim<'a>(&'a self, term: &'a Term) -> Answer<'a, Result<(), NotClaimed>>;

    /// Reads the number as the term, which has claimed. `None` if that was not possible.
    fn read<'a>(&'a self, term: &'a Term) -> Answer<'a, Option<i64>>;

    /// Writes `read + 1`, and notes the write, in one atomic step that the fence protects.
    fn write<'a>(&'a self, term: &'a Term, read: i64) -> Answer<'a, Outcome>;

    /// Every write that was accepted, in the order of their effect.
    fn history(&self) -> Answer<'_, Vec<Write>>;

    /// The same write of a number that no fence protects: what a fenced one is compared with. `None` where
    /// there is none.
    fn write_bare(&self, _read: i64) -> Option<Answer<'_, ()>> {
        None
    }

    fn superseded(&self) -> Superseded {
        Superseded::ByClaim
    }

    fn frozen_writer(&self) -> FrozenWriter {
        FrozenWriter::HoldsNothingForLong
    }
}

/// Claims the resource of a fence.
pub async fn claim(fence: &dyn Fence, term: &Term) -> Result<(), NotClaimed> {
    match fence.claim(&resource(), term).await {
        Ok(_) => Ok(()),
        Err(error @ FenceError::Store(_)) => Err(NotClaimed::Undecided(error.to_string())),
        Err(error) => Err(NotClaimed::Refused(error.to_string())),
    }
}

pub fn resource() -> ResourceName {
    ResourceName::new("register").unwrap()
}

pub fn lease() -> LeaseName {
    LeaseName::new("bench").unwrap()
}

pub fn term(number: u64) -> Term {
    Term::new(lease(), FencingToken::new(number).unwrap())
}

/// Each write must have read what the write before it left, and no older term may write after a later one.
pub async fn judge_history(register: &dyn Register) {
    let history = register.history().await;
    let lost = history
        .iter()
        .zip(0..)
        .filter(|((_, read), index)| read != index)
        .count();
    let backwards = history.windows(2).filter(|pair| pair[1].0 < pair[0].0).count();
    let mut terms: Vec<u64> = history.iter().map(|(token, _)| *token).collect();
    terms.dedup();
    let verdict = if lost + backwards == 0 { "kept" } else { "BROKEN" };
    println!(
        "  history of {} accepted writes by {} terms: {lost} lost updates, {backwards} out of order: {verdict}",
        history.len(),
        terms.len()
    );
    assert!(!history.is_empty(), "nothing was accepted: this shows nothing");
    assert_eq!(lost + backwards, 0);
}
