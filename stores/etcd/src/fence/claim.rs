//! Raising marks.

use super::look::Found;
use super::mark::{MarkValue, subject};
use super::{Leases, Ruled};
use crate::record::wall_clock_ms;
use crate::site::{ROUNDS_MAX, Site, transact};
use crate::wire::kv::{Compare, RequestOp, TxnRequest};
use tenure_core::{
    Bump, Claimed, Fault, FenceError, FencingToken, Horizon, LeaseName, Mark, ResourceName, Ruling,
    StoreError, Term, bumped, decide_claim, horizon,
};
use tenure_remote::Deed;

impl Site {
    /// Claims: looks, decides, and raises the mark if it is still what was decided upon.
    pub(super) async fn claim(
        &self,
        leases: Leases,
        resource: &ResourceName,
        term: &Term,
    ) -> Result<Ruled<Claimed>, StoreError> {
        for _round in 0..ROUNDS_MAX {
            let found = self.look(resource, leases.here(&term.lease)).await?;
            let limit = match found.granted {
                Some(highest) => Horizon::Granted(highest),
                None => Horizon::Clock(horizon(wall_clock_ms(), found.token())),
            };
            match decide_claim(resource, term, found.lease(), found.token(), limit) {
                Err(refused) => return Ok(Ruled::refused(found.token(), refused)),
                Ok(Ruling::Holds) => return Ok(Ruled::Admitted(Claimed::Already)),
                Ok(Ruling::Raise) => {}
            }
            let raised = MarkValue {
                lease: Some(term.lease.clone()),
                token: term.token,
            };
            if self.set(resource, &found, &raised).await? {
                let from = found.token();
                return Ok(Ruled::Admitted(Claimed::Raised { from }));
            }
        }
        Err(self.restless_mark(resource))
    }

    /// Bumps the mark.
    pub(super) async fn bump(&self, leases: Leases, bump: &Bump) -> Result<Mark, StoreError> {
        let resource = &bump.resource;
        for _round in 0..ROUNDS_MAX {
            let owner = match &bump.lease {
                Some(lease) => Some(lease.clone()),
                None => self.look(resource, None).await?.lease().cloned(),
            };
            let found = self
                .look(resource, owner.as_ref().and_then(|owner| leases.here(owner)))
                .await?;
            let above = bump.above.max(found.granted);
            let floor = floor(leases, owner.as_ref(), &found);
            let token = bumped(found.token(), above, floor).ok_or_else(|| {
                let message = format!("{}: no token is left above the mark", subject(resource));
                StoreError::not_applied(Fault::Invalid, message)
            })?;
            let lifted = MarkValue { lease: owner, token };
            if self.set(resource, &found, &lifted).await? {
                let shown = self.look(resource, None).await?.shown(resource);
                return shown.ok_or_else(|| self.restless_mark(resource));
            }
        }
        Err(self.restless_mark(resource))
    }

    /// Sets the mark, if it is as it was found; whether it was.
    async fn set(
        &self,
        resource: &ResourceName,
        found: &Found,
        mark: &MarkValue,
    ) -> Result<bool, StoreError> {
        let key = self.keys.mark(resource);
        let request = TxnRequest {
            compare: vec![Compare::written_at(&key, found.written)],
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
                "{} at {}: the mark changed {ROUNDS_MAX} times under the request; ask again",
                subject(resource),
                self.place
            ),
        )
    }
}

/// What no token that was granted is above: the revision, where tokens are revisions of this cluster; else the clock.
fn floor(leases: Leases, owner: Option<&LeaseName>, found: &Found) -> u64 {
    let revision = FencingToken::from_signed(found.revision).map_or(0, FencingToken::number);
    let here = found.granted.is_some() || (owner.is_none() && leases == Leases::Here);
    // A mark above the revision was raised by tokens of another store.
    match here && found.token().is_none_or(|mark| mark.number() <= revision) {
        true => revision,
        false => revision.max(wall_clock_ms()),
    }
}

impl<T> Ruled<T> {
    fn refused(mark: Option<FencingToken>, error: FenceError) -> Self {
        Self::Refused { mark, error }
    }
}
