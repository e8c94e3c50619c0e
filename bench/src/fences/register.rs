//! A number that terms read, add one to and write back, with the history of every write that was accepted.

use clap::ValueEnum;
use tenure::core::Answer;
use tenure::{Fence, FencingToken, LeaseName, ResourceName, Term};

/// Which fence protects the number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Kind {
    Watermark,
    SqliteEnter,
    SqliteTable,
    MongoTransaction,
    MongoDocument,
}

impl Kind {
    pub const ALL: [Self; 5] = [
        Self::Watermark,
        Self::SqliteEnter,
        Self::SqliteTable,
        Self::MongoTransaction,
        Self::MongoDocument,
    ];
}

/// What became of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Accepted,
    /// By the fence.
    Refused,
    /// The store was busy or in conflict: nothing was decided, or nobody knows.
    Failed,
}

/// One write that was accepted: who, and what it had read.
pub type Write = (u64, i64);

pub trait Register: Send + Sync {
    fn fence(&self) -> &dyn Fence;

    /// Reads the number as the term, which has claimed. `None` if that was not possible.
    fn read<'a>(&'a self, term: &'a Term) -> Answer<'a, Option<i64>>;

    /// Writes `read + 1`, and notes the write, in one atomic step that the fence protects.
    fn write<'a>(&'a self, term: &'a Term, read: i64) -> Answer<'a, Outcome>;

    /// Every write that was accepted, in the order of their effect.
    fn history(&self) -> Answer<'_, Vec<Write>>;
}

pub fn resource() -> ResourceName {
    ResourceName::new("register").unwrap()
}

pub fn term(number: u64) -> Term {
    Term::new(
        LeaseName::new("bench").unwrap(),
        FencingToken::new(number).unwrap(),
    )
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
