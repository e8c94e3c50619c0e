//! Raising marks.

use super::mark::Kept;
use super::script::RAISE;
use super::{RedisFence, subject};
use crate::fault::Deed;
use crate::script::Arguments;
use std::sync::Arc;
use tenure_core::{
    Bump, Claimed, Fault, FenceError, FencingToken, Horizon, LeaseName, Leases, Mark, ResourceName, Ruling,
    StoreError, Term, bump_clock_ms, bumped, horizon,
};
use tenure_remote::after_a_step;

/// How often one claim looks and raises. It looks again only when the mark was raised meanwhile, by a later
/// term.
const LOOKS_MAX: u32 = 8;

impl RedisFence {
    /// Claims: looks, decides, and raises the mark if it is still what was decided upon.
    pub(super) async fn raise(&self, resource: &ResourceName, term: &Term) -> Result<Claimed, FenceError> {
        self.leases_are_beside().await?;
        for _look in 0..LOOKS_MAX {
            let found = self.look(resource, Some(&term.lease)).await?;
            let limit = match found.granted {
                Some(highest) => Horizon::Granted(highest),
                None => Horizon::Clock(horizon(found.now_ms, found.kept.token)),
            };
            let ruled = found.kept.claim(resource, term, limit);
            match ruled.or_else(|error| self.0.refuse(found.kept.token.as_ref(), error))? {
                Ruling::Holds => return Ok(Claimed::Already),
                Ruling::Raise => {}
            }
            let claimed = Kept {
                lease: Some(term.lease.clone()),
                token: Some(term.token),
                bumped: None,
            };
            if self.set(resource, &found.kept, &claimed).await? {
                let from = found.kept.token;
                return Ok(Claimed::Raised { from });
            }
        }
        Err(restless(resource))
    }

    /// Bumps the mark.
    pub(super) async fn lift(&self, bump: &Bump) -> Result<Mark, FenceError> {
        let resource = &bump.resource;
        self.leases_are_beside().await?;
        for _look in 0..LOOKS_MAX {
            let owner = match &bump.lease {
                Some(lease) => Some(lease.clone()),
                None => self.look(resource, None).await?.kept.lease,
            };
            let found = self.look(resource, owner.as_ref()).await?;
            let above = bump.above.max(found.granted);
            let mark = found.kept.token;
            let clock_ms = bump_clock_ms(mark.max(above), found.now_ms);
            let token = bumped(mark, above, clock_ms).ok_or_else(|| {
                StoreError::not_applied(
                    Fault::Invalid,
                    format!("{}: no token is left above the mark", subject(resource)),
                )
            })?;
            let lifted = Kept {
                lease: owner,
                token: Some(token),
                bumped: Some(token),
            };
            if self.set(resource, &found.kept, &lifted).await? {
                // It was raised, whatever comes of the look at it.
                let found = self.look(resource, None).await.map_err(after_the_raise)?;
                let shown = found.shown(resource);
                return shown.ok_or_else(|| after_the_raise(restless(resource)));
            }
        }
        Err(restless(resource))
    }

    /// What one member of a quorum has of a lease is not what was granted.
    async fn leases_are_beside(&self) -> Result<(), StoreError> {
        if self.0.leases() == Leases::Elsewhere {
            return Ok(());
        }
        let site = Arc::clone(self.0.site());
        let looked = self.0.run(async move { site.is_alone_in_time().await }).await?;
        looked.map_err(|error| match error.fault {
            Fault::Invalid => StoreError {
                message: format!("{}; a fence there needs Leases::Elsewhere", error.message),
                ..error
            },
            _ => error,
        })
    }

    /// Sets the mark, if it is as it was found; `false` if it is not.
    async fn set(&self, resource: &ResourceName, found: &Kept, to: &Kept) -> Result<bool, FenceError> {
        let keys = &self.0.site().keys;
        let lease = |kept: &Kept| kept.lease.as_ref().map_or_else(String::new, LeaseName::to_string);
        let token = |token: Option<FencingToken>| token.map_or_else(String::new, |token| token.to_string());
        let mut arguments = Arguments::on([keys.marks(), keys.mark(resource)]).with(resource);
        for kept in [found, to] {
            arguments.push(lease(kept));
            arguments.push(token(kept.token));
            arguments.push(token(kept.bumped));
        }
        let mut reply = self
            .ask(&RAISE, arguments, Deed::Write, subject(resource))
            .await?;
        Ok(reply.word()? == "raised")
    }
}

fn after_the_raise(error: FenceError) -> FenceError {
    match error {
        FenceError::Store(error) => FenceError::Store(after_a_step(error)),
        refusal => refusal,
    }
}

fn restless(resource: &ResourceName) -> FenceError {
    FenceError::Store(StoreError::not_applied(
        Fault::Busy,
        format!(
            "{}: the mark changed {LOOKS_MAX} times under the request; claim again",
            subject(resource)
        ),
    ))
}
