//! Raising marks.

use super::look::Found;
use super::mark::MarkValue;
use super::{FenceSite, Refusal, subject};
use crate::api::{Condition, Put};
use tenure_core::{
    Bump, Claimed, Fault, Horizon, Leases, Mark, ResourceName, Ruling, StoreError, Term, bump_clock_ms,
    bumped, horizon,
};
use tenure_remote::after_a_step;

/// How often one claim looks and raises. It looks again when the mark was raised meanwhile, by a later term.
const LOOKS_MAX: u32 = 32;

impl FenceSite {
    /// Claims: looks, decides, and raises the mark if it is still what was decided upon.
    pub(super) async fn raise(
        &self,
        leases: Leases,
        resource: &ResourceName,
        term: &Term,
    ) -> Result<Claimed, Refusal> {
        for _look in 0..LOOKS_MAX {
            let (found, granted) =
                tokio::try_join!(self.look(resource), self.granted(leases, Some(&term.lease)))?;
            let limit = match granted {
                Some(highest) => Horizon::Granted(highest),
                None => Horizon::Clock(horizon(self.clock_ms(resource).await?, found.token())),
            };
            let ruling = found.claim(resource, term, limit).map_err(|error| Refusal {
                error,
                beside: found.token(),
            })?;
            match ruling {
                Ruling::Holds => return Ok(Claimed::Already),
                Ruling::Raise => {}
            }
            if self.set(resource, &found, MarkValue::claimed(term)).await? {
                let from = found.token();
                return Ok(Claimed::Raised { from });
            }
        }
        Err(restless(resource).into())
    }

    /// Bumps the mark.
    pub(super) async fn lift(&self, leases: Leases, bump: &Bump) -> Result<Mark, StoreError> {
        let resource = &bump.resource;
        for _look in 0..LOOKS_MAX {
            let found = self.look(resource).await?;
            let owner = bump.lease.as_ref().or(found.lease());
            let (granted, now_ms) = tokio::try_join!(self.granted(leases, owner), self.clock_ms(resource))?;
            let (mark, above) = (found.token(), bump.above.max(granted));
            let clock_ms = bump_clock_ms(mark.max(above), now_ms);
            let token = bumped(mark, above, clock_ms).ok_or_else(|| {
                let message = format!("{}: no token is left above the mark", subject(resource));
                StoreError::not_applied(Fault::Invalid, message)
            })?;
            let lifted = MarkValue::lifted(owner.cloned(), token);
            if self.set(resource, &found, lifted).await? {
                // It was raised, whatever comes of the look at it.
                let shown = self.shown(resource).await.map_err(after_a_step)?;
                return shown.ok_or_else(|| after_a_step(restless(resource)));
            }
        }
        Err(restless(resource))
    }

    /// Sets the mark, if it is as it was found; `false` if it is not.
    async fn set(&self, resource: &ResourceName, found: &Found, to: MarkValue) -> Result<bool, StoreError> {
        let key = self.keys.mark(resource);
        let condition = Condition::last_is(found.revision, found.epoch);
        match self
            .link
            .put(&self.stream, &key, to.encode(), condition, &subject(resource))
            .await?
        {
            Put::As { sequence, epoch } => {
                let raised = Found {
                    mark: Some(to),
                    revision: sequence,
                    epoch,
                };
                self.remember(resource, &raised);
                Ok(true)
            }
            Put::Conflict => Ok(false),
        }
    }
}

pub(super) fn restless(resource: &ResourceName) -> StoreError {
    StoreError::not_applied(
        Fault::Busy,
        format!(
            "{}: the mark changed {LOOKS_MAX} times under the request; try again",
            subject(resource)
        ),
    )
}
