//! The fence contract: what every fence promises, whatever keeps its marks.

mod error;
mod mark;
mod page;
mod refusals;

pub use error::{FenceError, Horizon};
pub use mark::{
    Bump, Leases, Mark, Ruling, bump_clock_ms, bumped, check_owner, decide_claim, decide_entry, horizon,
    is_counted,
};
pub use page::{ListedMark, MARKS_MAX, MarkPage, REMOVE_MARK};
pub use refusals::{REFUSALS_METRIC, RefusalLine, Refusals, Refused, UntoldRefusals};

use crate::store::{Answer, Cursor};
use crate::{FencingToken, ResourceName, Term};

/// What a claim found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Claimed {
    /// The mark was raised to this term's token, from this one (`None`: the resource had none).
    Raised {
        /// The mark before.
        from: Option<FencingToken>,
    },
    /// This term had claimed the resource before.
    Already,
}

/// The data path's refusal of old terms: a mark per resource that only rises.
///
/// Two steps, in this order:
/// 1. **claim**, once per term, before the term first reads the state that it will change;
/// 2. **enter**, in the very transaction that writes: it admits the term that holds the mark and refuses any
///    other, and conflicts with a claim that happens meanwhile. Transactions differ from store to store, so
///    `enter` belongs to each fence's own type.
///
/// Both are needed. With a check beside the write instead of in its transaction, stale writes get in. Without
/// the claim before the first read, accepted writes are lost.
///
/// The first claim binds the resource to the lease of its term: tokens of two leases cannot be compared.
///
/// Every refusal is counted beside the mark, and logged, at the cost of the refused: see [`Refusals`].
pub trait Fence: Send + Sync {
    /// Raises the mark of `resource` to the token of `term`. Idempotent for one term.
    ///
    /// # Errors
    /// - [`FenceError::Stale`] if the mark is higher: this term is over, whatever it believes. Also where
    ///   there is no mark, if the fence knows the lease's record and that shows a later term: a mark may have
    ///   stood here that was removed;
    /// - [`FenceError::Foreign`] if the resource belongs to another lease;
    /// - [`FenceError::Future`] for a token that cannot have been granted yet: exactly known where the lease
    ///   is in the store of the fence, and by the clock elsewhere ([`Horizon`]);
    /// - [`FenceError::Store`]: claim again.
    fn claim<'a>(
        &'a self,
        resource: &'a ResourceName,
        term: &'a Term,
    ) -> Answer<'a, Result<Claimed, FenceError>>;

    /// Whether `term` would be admitted now.
    ///
    /// Advice: a later term may claim before the write that follows. To enforce, enter in its transaction.
    ///
    /// # Errors
    /// [`FenceError::Stale`], [`FenceError::Unclaimed`] or [`FenceError::Foreign`], counted like every
    /// refusal; [`FenceError::Store`].
    fn check<'a>(&'a self, resource: &'a ResourceName, term: &'a Term) -> Answer<'a, Result<(), FenceError>>;

    /// The mark of `resource`; `None` if there is none.
    ///
    /// # Errors
    /// [`FenceError::Store`].
    fn mark<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Option<Mark>, FenceError>>;

    /// The marks after `after`, in the order of their resources (bytes of UTF-8), [`MARKS_MAX`] at most. For
    /// people.
    ///
    /// A mark that cannot be understood is listed as [`ListedMark::Unreadable`], and hides no other. A page
    /// may have fewer marks than that, or none, and say where the next begins: only one that does not is the
    /// last.
    ///
    /// # Errors
    /// [`FenceError::Store`].
    fn marks<'a>(&'a self, after: Option<&'a Cursor>) -> Answer<'a, Result<MarkPage, FenceError>>;

    /// Raises a mark above every token that may have been granted, and answers with it. From then on no term
    /// is admitted until a later one has claimed. For an operator.
    ///
    /// # Errors
    /// [`FenceError::Store`]; nothing was changed unless it says so.
    fn bump<'a>(&'a self, bump: &'a Bump) -> Answer<'a, Result<Mark, FenceError>>;

    /// Counts a refusal that somebody in front of this fence has decided by what the fence had told it
    /// before: as if the fence had refused itself, so beside the mark, in the metric and in the log. Not for
    /// what a method here has refused: that is counted. An error that is no refusal is ignored.
    ///
    /// Only for a resource that has a mark. Returns at once, and what was counted is noted later, as for
    /// [`Refusals`].
    ///
    /// A fence that wraps another passes it on.
    fn count_refusal(&self, refusal: &FenceError);

    /// Writes the refusals that were counted and not yet noted: before a process ends. A minute at most,
    /// where a server is silent; what could not be written stays counted. A fence without a server does so
    /// when it is dropped, and not here.
    fn note_refusals(&self) -> Answer<'_, ()>;
}
