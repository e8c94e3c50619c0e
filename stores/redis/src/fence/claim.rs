//! Raising marks.

use super::look::Found;
use super::script::RAISE;
use super::{RedisFence, subject};
use crate::fault::Deed;
use crate::script::Arguments;
use tenure_core::{
    Bump, Claimed, Fault, FenceError, FencingToken, Horizon, LeaseName, Mark, ResourceName, Ruling,
    StoreError, Term, bumped, decide_claim, horizon,
};

/// How often one claim looks and raises. It looks again only when the mark was raised meanwhile, by a later term.
const LOOKS_MAX: u32 = 8;

impl RedisFence {
    /// Claims: looks, decides, and raises the mark if it is still what was decided upon.
    pub(super) async fn raise(&self, resource: &ResourceName, term: &Term) -> Result<Claimed, FenceError> {
        for _look in 0..LOOKS_MAX {
            let found = self.look(resource, Some(&term.lease)).await?;
            let limit = match found.granted {
                Some(highest) => Horizon::Granted(highest),
                None => Horizon::Clock(horizon(found.now_ms, found.token)),
            };
            let ruled = decide_claim(resource, term, found.lease.as_ref(), found.token, limit);
            match ruled.or_else(|error| self.refuse(found.token, error))? {
                Ruling::Holds => return Ok(Claimed::Already),
                Ruling::Raise => {}
            }
            if self.set(resource, &found, Some(&term.lease), term.token).await? {
                return Ok(Claimed::Raised { from: found.token });
            }
        }
        Err(restless(resource))
    }

    /// Bumps the mark.
    pub(super) async fn lift(&self, bump: &Bump) -> Result<Mark, FenceError> {
        let resource = &bump.resource;
        for _look in 0..LOOKS_MAX {
            let owner = match &bump.lease {
                Some(lease) => Some(lease.clone()),
                None => self.look(resource, None).await?.lease,
            };
            let found = self.look(resource, owner.as_ref()).await?;
            let above = bump.above.max(found.granted);
            let token = bumped(found.token, above, found.now_ms).ok_or_else(|| {
                StoreError::not_applied(
                    Fault::Invalid,
                    format!("{}: no token is left above the mark", subject(resource)),
                )
            })?;
            if self.set(resource, &found, owner.as_ref(), token).await? {
                let shown = self.look(resource, None).await?.shown(resource);
                return shown.ok_or_else(|| restless(resource));
            }
        }
        Err(restless(resource))
    }

    /// Sets the mark, if it is as it was found; `false` if it is not.
    async fn set(
        &self,
        resource: &ResourceName,
        found: &Found,
        lease: Option<&LeaseName>,
        token: FencingToken,
    ) -> Result<bool, FenceError> {
        let keys = &self.site().keys;
        let text = |lease: Option<&LeaseName>| lease.map_or_else(String::new, ToString::to_string);
        let arguments = Arguments::on([keys.marks(), keys.mark(resource)])
            .with(resource)
            .with(text(found.lease.as_ref()))
            .with(found.token.map_or_else(String::new, |token| token.to_string()))
            .with(text(lease))
            .with(token);
        let mut reply = self
            .ask(&RAISE, arguments, Deed::Write, subject(resource))
            .await?;
        Ok(reply.word()? == "raised")
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
