//! A mark as it is kept, and what it says of a term.

use tenure_core::{
    FenceError, FencingToken, Horizon, LeaseName, ResourceName, Ruling, Term, check_owner, decide_claim,
    decide_entry,
};

/// A mark that was understood, or that there is none.
#[derive(Clone, Default, Debug)]
pub(super) struct Kept {
    /// Whose tokens the mark compares; `None` until the first claim.
    pub(super) lease: Option<LeaseName>,
    /// The mark; `None` if there is none.
    pub(super) token: Option<FencingToken>,
    /// What an operator has raised it to. The number and not a word: a claim by an earlier Tenure raises the
    /// mark past it, and knows nothing of it.
    pub(super) bumped: Option<FencingToken>,
}

impl Kept {
    /// Who has claimed the mark: nobody, where an operator has raised it.
    pub(super) fn claimant(&self) -> Option<&LeaseName> {
        let is_bumped = self.bumped.is_some() && self.bumped == self.token;
        self.lease.as_ref().filter(|_| !is_bumped)
    }

    /// What a claim has to do to it.
    pub(super) fn claim(
        &self,
        resource: &ResourceName,
        term: &Term,
        limit: Horizon,
    ) -> Result<Ruling, FenceError> {
        check_owner(resource, term, self.lease.as_ref())?;
        decide_claim(resource, term, self.claimant(), self.token, limit)
    }

    /// Whether a term may enter by it.
    pub(super) fn entry(&self, resource: &ResourceName, term: &Term) -> Result<(), FenceError> {
        check_owner(resource, term, self.lease.as_ref())?;
        decide_entry(resource, term, self.claimant(), self.token)
    }
}
