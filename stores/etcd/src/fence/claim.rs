//! Raising marks.

use super::Ruled;
use super::look::Found;
use super::mark::{MarkValue, subject};
use crate::keys::Part;
use crate::record::wall_clock_ms;
use crate::site::{ROUNDS_MAX, Site, transact};
use crate::wire::kv::{Compare, RequestOp, TxnRequest};
use tenure_core::{
    Bump, Claimed, Fault, FencingToken, Horizon, LeaseName, Leases, Mark, ResourceName, Ruling, StoreError,
    Term, bump_clock_ms, bumped, check_owner, decide_claim, horizon, is_counted,
};
use tenure_remote::{Deed, after_a_step};

impl Site {
    /// Claims: looks, decides, and raises the mark if it is still what was decided upon.
    pub(super) async fn claim(
        &self,
        leases: Leases,
        resource: &ResourceName,
        term: &Term,
    ) -> Result<Ruled<Claimed>, StoreError> {
        for _round in 0..ROUNDS_MAX {
            let found = self.look(resource, counts(leases, &term.lease)).await?;
            let limit = match found.granted {
                Some(highest) => Horizon::Granted(highest),
                None => Horizon::Clock(horizon(wall_clock_ms(), found.token())),
            };
            let claimant = found.mark.as_ref().and_then(MarkValue::claimant);
            let ruled = check_owner(resource, term, found.lease())
                .and_then(|()| decide_claim(resource, term, claimant, found.token(), limit));
            match ruled {
                Err(refused) => return Ok(Ruled::refused(found.token(), refused)),
                Ok(Ruling::Holds) => return Ok(Ruled::Admitted(Claimed::Already)),
                Ok(Ruling::Raise) => {}
            }
            if self
                .set(resource, &found, &MarkValue::claimed(term), None)
                .await?
            {
                let from = found.token();
                return Ok(Ruled::Admitted(Claimed::Raised { from }));
            }
        }
        Err(self.restless_mark(resource))
    }

    /// Bumps the mark.
    pub(super) async fn bump(&self, leases: Leases, bump: &Bump) -> Result<Mark, StoreError> {
        let resource = &bump.resource;
        for round in 0..ROUNDS_MAX {
            let owner = match &bump.lease {
                Some(lease) => Some(lease.clone()),
                None => self.look(resource, None).await?.lease().cloned(),
            };
            let counted = owner.as_ref().and_then(|owner| counts(leases, owner));
            let found = self.look(resource, counted).await?;
            // A term that is granted between the look and the bump must not be above the mark, as if it were
            // a later one. Where each look meets one, as of a lock that is never idle, the mark goes above
            // what is granted until it is there.
            let reached = found.revision.saturating_add(ahead(round));
            let none_above = counted
                .map(|lease| Compare::not_written_after(&self.keys.part(lease, Part::Record), reached));
            let (mark, above) = (found.token(), bump.above.max(found.granted));
            let floor = floor(leases, mark.max(above), reached);
            let token = bumped(mark, above, floor).ok_or_else(|| {
                let message = format!("{}: no token is left above the mark", subject(resource));
                StoreError::not_applied(Fault::Invalid, message)
            })?;
            let lifted = MarkValue::lifted(owner, token);
            if self.set(resource, &found, &lifted, none_above).await? {
                // It was raised, whatever comes of the look at it.
                let found = self.look(resource, None).await.map_err(after_a_step)?;
                let shown = found.shown(resource);
                return shown.ok_or_else(|| after_a_step(self.restless_mark(resource)));
            }
        }
        Err(self.restless_mark(resource))
    }

    /// Sets the mark, if it is as it was found, and whatever else is asked holds; whether it was.
    async fn set(
        &self,
        resource: &ResourceName,
        found: &Found,
        mark: &MarkValue,
        also: Option<Compare>,
    ) -> Result<bool, StoreError> {
        let key = self.keys.mark(resource);
        let request = TxnRequest {
            compare: std::iter::once(Compare::written_at(&key, found.written))
                .chain(also)
                .collect(),
            success: vec![RequestOp::put(key, mark.encode(), 0)],
            failure: Vec::new(),
        };
        match transact(&self.requests, &request).await {
            Ok(answer) => Ok(answer.succeeded),
            Err(failure) => Err(failure.error(Deed::Write, &subject(resource), &self.place)),
        }
    }

    fn restless_mark(&self, resource: &ResourceName) -> StoreError {
        StoreError::not_applied(
            Fault::Busy,
            format!(
                "{} at {}: the mark, or its lease, changed {ROUNDS_MAX} times under the request; ask again",
                subject(resource),
                self.place
            ),
        )
    }
}

/// In so many rounds at first the mark goes no further than it must, so that the very next term is above it.
const EXACT_ROUNDS: u32 = 4;

/// How many revisions it goes ahead, in one round after the other: at last about as many as others make while
/// a request is on its way.
fn ahead(round: u32) -> i64 {
    match round.checked_sub(EXACT_ROUNDS) {
        Some(further) => 8_i64.pow(further + 1),
        None => 0,
    }
}

/// The lease whose record counts: one that is here.
fn counts(leases: Leases, lease: &LeaseName) -> Option<&LeaseName> {
    (leases == Leases::Here).then_some(lease)
}

/// What no token that was granted up to this revision is above, by the highest that is known. Every token of
/// a lease here is a revision of this cluster, also where the lease's record is gone: so the revision, unless
/// a token is no revision. Of leases elsewhere the clock tells as much as to any fence.
fn floor(leases: Leases, known: Option<FencingToken>, revision: i64) -> u64 {
    match leases {
        Leases::Here if known.is_none_or(is_counted) => u64::try_from(revision).unwrap_or(0),
        Leases::Here | Leases::Elsewhere => bump_clock_ms(known, wall_clock_ms()),
    }
}
