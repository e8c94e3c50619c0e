//! Reading marks, each of which is a row.

use super::raising::{BumpSetUp, ClaimRow};
use crate::errors::fence_subject;
use crate::refusals::Notes;
use crate::shown::shortened;
use crate::turns::ClaimTurns;
use std::future::Future;
use tenure_core::{
    Bump, Cursor, Fault, FenceError, FencingToken, LeaseName, Leases, ListedMark, Mark, MarkPage,
    REMOVE_MARK, ResourceName, StoreError, Term, check_owner, decide_entry,
};

/// What a fence asks of its system, where each mark is a row.
pub trait Marks: Notes {
    /// Where it is, for people.
    fn place(&self) -> &str;

    /// The table of the marks, for messages.
    fn marks_table(&self) -> String;

    /// For a server that has not said what it was asked.
    fn without_verdict(&self, subject: &str) -> StoreError;

    /// Whose turn it is to raise a mark.
    fn claim_turns(&self) -> &ClaimTurns;

    /// What is sought, in the order of the resources, and one more than a page has at most.
    fn rows(
        &self,
        subject: &str,
        sought: Sought<'_>,
    ) -> impl Future<Output = Result<Vec<MarkRow>, StoreError>> + Send;

    /// Claims, in one round trip. It has its turn.
    fn claim(
        &self,
        leases: Leases,
        resource: &ResourceName,
        term: &Term,
    ) -> impl Future<Output = Result<ClaimRow, StoreError>> + Send;

    /// Bumps the mark, as it has its turn; answers with it, or with `None` where no token is left above it.
    fn bump(
        &self,
        leases: Leases,
        bump: &Bump,
    ) -> impl Future<Output = Result<Option<i64>, StoreError>> + Send;

    /// What the set-up that is there would do with this bump.
    fn bump_set_up(&self, bump: &Bump) -> impl Future<Output = Result<BumpSetUp, StoreError>> + Send;
}

/// Which marks.
#[derive(Clone, Copy, Debug)]
pub enum Sought<'a> {
    /// That of a resource.
    Of(&'a ResourceName),
    /// Those of the resources behind this text.
    After(&'a str),
}

/// A mark as the server shows it.
#[derive(Clone, Default, Debug)]
pub struct MarkRow {
    /// The resource.
    pub resource: String,
    /// Whose tokens they are.
    pub lease: Option<String>,
    /// The mark itself.
    pub token: Option<i64>,
    /// The token to which an operator has raised it.
    pub bumped_token: Option<i64>,
    /// How many were refused.
    pub refused: Option<i64>,
    /// The token that was refused last.
    pub last_refused: Option<i64>,
}

impl MarkRow {
    /// The mark; one that is no mark is refused rather than believed.
    ///
    /// # Errors
    /// [`Fault::Unreadable`], not applied, with the way out.
    pub fn read(self, site: &impl Marks) -> Result<Mark, StoreError> {
        let wrong = |column: &str| {
            let (resource, table) = (shortened(&self.resource), site.marks_table());
            let message = format!(
                "fence \"{resource}\" in {table}: column {column} is no valid value; it was left as it is; mend it, or {REMOVE_MARK}"
            );
            StoreError::not_applied(Fault::Unreadable, message)
        };
        let token_of = |token| FencingToken::from_signed(token).ok();
        let resource = ResourceName::new(&self.resource).map_err(|_| wrong("resource"))?;
        let lease = self.lease.as_ref().map(LeaseName::new).transpose();
        let lease = lease.map_err(|_| wrong("lease"))?;
        let token = self.token.and_then(token_of).ok_or_else(|| wrong("token"))?;
        // By the column of that name: the token and not a word, as a claim by an earlier Tenure raises the
        // mark past it, and knows nothing of it.
        let bumped = lease.is_none() || self.bumped_token == Some(token.signed());
        Ok(Mark {
            resource,
            lease,
            token,
            bumped,
            // No row of refusals: none was refused.
            refused: self.refused.map_or(0, |count| u64::try_from(count).unwrap_or(0)),
            last_refused: self.last_refused.and_then(token_of),
        })
    }
}

/// Nobody, where an operator has raised the mark.
fn claimant(mark: &Mark) -> Option<&LeaseName> {
    mark.lease.as_ref().filter(|_| !mark.bumped)
}

/// Whether a term may enter by the mark that was found.
///
/// # Errors
/// The refusal.
pub fn ruled(resource: &ResourceName, term: &Term, found: Option<&Mark>) -> Result<(), FenceError> {
    check_owner(resource, term, found.and_then(|mark| mark.lease.as_ref()))?;
    let (claimant, token) = (found.and_then(claimant), found.map(|mark| mark.token));
    decide_entry(resource, term, claimant, token)
}

/// The mark of `resource`, with its refusals.
pub(super) async fn mark<S: Marks>(site: &S, resource: &ResourceName) -> Result<Option<Mark>, StoreError> {
    let found = site.rows(&fence_subject(resource), Sought::Of(resource)).await?;
    found.into_iter().next().map(|row| row.read(site)).transpose()
}

/// A page of marks after `after`.
pub(super) async fn page<S: Marks>(site: &S, after: Option<&Cursor>) -> Result<MarkPage, StoreError> {
    let after = Sought::After(after.map_or("", Cursor::as_text));
    let found = site.rows("the fence", after).await?;
    let listed = found.into_iter().map(|row| {
        let resource = row.resource.clone();
        let listed = ListedMark::from_read(|| shortened(&resource), row.read(site))?;
        Ok((Cursor::behind(&resource), listed))
    });
    Ok(MarkPage::beginning(
        listed.collect::<Result<Vec<_>, StoreError>>()?,
    ))
}
