//! Raising marks.

use super::subject;
use crate::row::{number, text};
use crate::schema::{call, literal, literal_or_null};
use crate::site::Site;
use tenure_core::{
    Bump, Claimed, Fault, FenceError, FencingToken, Horizon, LeaseName, Mark, ResourceName, Ruling,
    StoreError, Term, decide_claim, horizon,
};
use tenure_remote::Deed;

/// What a claim was judged by, as the server found it under the lock of the mark.
pub(super) struct Found {
    pub(super) mark: Option<Mark>,
    granted: Option<FencingToken>,
    clock_ms: u64,
    /// Whether the server has raised the mark.
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
                Fault::Internal,
                format!(
                    "{}: the server's decision is not that of this version of Tenure; run `tenure store init`, then claim \
                     again",
                    subject(resource)
                ),
            ))),
        }
    }
}

impl Site {
    /// Claims, in one round trip.
    pub(super) async fn claim(&self, resource: &ResourceName, term: &Term) -> Result<Found, StoreError> {
        let subject = subject(resource);
        let statement = call(
            "claim",
            &[
                literal(resource.as_str()),
                literal(term.lease.as_str()),
                term.token.signed().to_string(),
            ],
        );
        let rows = self.ask(Deed::Write, &subject, &statement).await;
        let rows = rows.map_err(|mut error| {
            if error.fault == Fault::Busy {
                error
                    .message
                    .push_str("; an open transaction of an earlier term may hold the mark: claim again, or end its session");
            }
            error
        })?;
        let row = rows.first().ok_or_else(|| self.without_verdict(&subject))?;
        let mark = match number(row, 1) {
            Some(mark) => Some(self.understood(resource.as_str(), text(row, 0), Some(mark))?),
            None => None,
        };
        Ok(Found {
            mark,
            granted: number(row, 2).and_then(|token| FencingToken::from_signed(token).ok()),
            clock_ms: number(row, 3)
                .and_then(|clock| u64::try_from(clock).ok())
                .unwrap_or(0),
            raised: number(row, 4).ok_or_else(|| self.without_verdict(&subject))? != 0,
        })
    }

    /// Bumps the mark; answers with it.
    pub(super) async fn bump(&self, bump: &Bump) -> Result<Mark, StoreError> {
        let resource = &bump.resource;
        let above = bump.above.map(FencingToken::signed);
        let statement = call(
            "bump",
            &[
                literal(resource.as_str()),
                above.map_or_else(|| "NULL".to_owned(), |above| above.to_string()),
                literal_or_null(bump.lease.as_ref().map(LeaseName::as_str)),
            ],
        );
        let subject = subject(resource);
        let rows = self.ask(Deed::Write, &subject, &statement).await?;
        let raised = rows.first().and_then(|row| number(row, 0));
        if raised.is_none() {
            let message = format!("{subject}: no token is left above the mark");
            return Err(StoreError::not_applied(Fault::Invalid, message));
        }
        self.mark(resource)
            .await?
            .ok_or_else(|| self.without_verdict(&subject))
    }
}
