//! Raising marks, each of which is a row.

use super::marks::{self, MarkRow, Marks};
use crate::errors::{after_a_step, fence_subject};
use tenure_core::{
    Bump, Claimed, Fault, FenceError, FencingToken, Horizon, Leases, Mark, ResourceName, Ruling, StoreError,
    Term, decide_claim, horizon,
};

/// What a claim was judged by, as the server found it under the lock of the mark.
#[derive(Clone, Default, Debug)]
pub struct ClaimRow {
    /// Whose tokens the mark has: nobody's, where they are the term's and nobody has claimed it.
    pub lease: Option<String>,
    /// The mark before.
    pub token: Option<i64>,
    /// What the lease has been granted, by its record here.
    pub granted: Option<i64>,
    /// The server's clock.
    pub clock_ms: Option<i64>,
    /// Whether the server has raised the mark.
    pub raised: bool,
}

/// The same, understood.
pub(super) struct Found {
    pub(super) mark: Option<Mark>,
    granted: Option<FencingToken>,
    clock_ms: u64,
    raised: bool,
}

impl Found {
    /// The rules that all fences share, on what the server has found. They and its own decision must agree.
    pub(super) fn ruled(&self, resource: &ResourceName, term: &Term) -> Result<Claimed, FenceError> {
        let mark = self.mark.as_ref().map(|mark| mark.token);
        let owner = self.mark.as_ref().and_then(|mark| mark.lease.as_ref());
        let limit = match self.granted {
            Some(highest) => Horizon::Granted(highest),
            None => Horizon::Clock(horizon(self.clock_ms, mark)),
        };
        match decide_claim(resource, term, owner, mark, limit)? {
            Ruling::Raise if self.raised => Ok(Claimed::Raised { from: mark }),
            Ruling::Holds if !self.raised => Ok(Claimed::Already),
            Ruling::Raise | Ruling::Holds => Err(FenceError::Store(StoreError::unknown(
                // Only a person mends it: no claim of this set-up is to be waited for.
                Fault::Unsupported,
                format!(
                    "{}: the server's decision is not that of this version of Tenure; run `tenure store init`, then claim \
                     again",
                    fence_subject(resource)
                ),
            ))),
        }
    }
}

/// Claims, in one round trip.
pub(super) async fn claim<S: Marks>(
    site: &S,
    leases: Leases,
    resource: &ResourceName,
    term: &Term,
) -> Result<Found, StoreError> {
    let subject = fence_subject(resource);
    let _turn = site.claim_turns().begin(&subject, site.place()).await?;
    let row = site.claim(leases, resource, term).await;
    let row = row.map_err(|mut error| {
        if error.fault == Fault::Busy {
            error.message.push_str(
                "; an open transaction of an earlier term may hold the mark: claim again, or end its session",
            );
        }
        error
    })?;
    let shown = MarkRow {
        resource: resource.to_string(),
        lease: row.lease,
        token: row.token,
        ..MarkRow::default()
    };
    let mark = match row.token.map(|_| shown.read(site)) {
        // The server has committed it.
        Some(Err(error)) if row.raised => return Err(after_a_step(error)),
        read => read.transpose()?,
    };
    Ok(Found {
        mark,
        // A set-up from before may have gone by the record all the same: then its decision is another.
        granted: row
            .granted
            .filter(|_| leases == Leases::Here)
            .and_then(|token| FencingToken::from_signed(token).ok()),
        // One before 1970 is as good as none: a token is then from the future, and is refused.
        clock_ms: row
            .clock_ms
            .and_then(|clock| u64::try_from(clock).ok())
            .unwrap_or(0),
        raised: row.raised,
    })
}

/// Bumps the mark; answers with it.
pub(super) async fn bump<S: Marks>(site: &S, leases: Leases, bump: &Bump) -> Result<Mark, StoreError> {
    let resource = &bump.resource;
    let subject = fence_subject(resource);
    if let Some(lack) = site.bump_set_up(bump).await?.lack(leases) {
        let message = format!(
            "{subject} at {}: the set-up is of an earlier Tenure, {lack}; nothing was changed: run `tenure store init`, \
             then bump it again",
            site.place()
        );
        return Err(StoreError::not_applied(Fault::Unsupported, message));
    }
    let _turn = site.claim_turns().begin(&subject, site.place()).await?;
    if site.bump(leases, bump).await?.is_none() {
        // One that is none is told as such.
        marks::mark(site, resource).await?;
        let message = format!("{subject}: no token is left above the mark");
        return Err(StoreError::not_applied(Fault::Invalid, message));
    }
    // It was raised, whatever comes of the look at it.
    let mark = marks::mark(site, resource).await.map_err(after_a_step)?;
    mark.ok_or_else(|| site.without_verdict(&subject))
}

/// What the set-up that is there does with a bump; `None` where nobody knows, as where its text is hidden
/// from this role.
#[derive(Clone, Copy, Debug)]
pub struct BumpSetUp {
    /// It notes that the mark was bumped.
    pub notes_it: Option<bool>,
    /// It hears where the leases are, or it has no record of this one.
    pub hears_of_leases: Option<bool>,
}

impl BumpSetUp {
    /// Why it is of an earlier Tenure, and would bump the mark wrongly.
    fn lack(self, leases: Leases) -> Option<&'static str> {
        match (self.notes_it, self.hears_of_leases, leases) {
            // It would raise the mark, and leave it to whoever is granted that very number.
            (Some(false), _, _) => Some("in which a bumped mark admits the term of its own number"),
            (_, Some(false), Leases::Elsewhere) => {
                Some("which would raise the mark above a record of that lease here, although it is elsewhere")
            }
            (_, _, Leases::Here | Leases::Elsewhere) => None,
        }
    }
}
