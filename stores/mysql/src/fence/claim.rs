//! Raising marks.

use super::subject;
use crate::row::{is_null, number, text};
use crate::schema::{LEASES_ELSEWHERE, call, literal, literal_or_null};
use crate::site::Site;
use mysql_async::Row;
use tenure_core::{
    Bump, Claimed, Fault, FenceError, FencingToken, Horizon, LeaseName, Leases, Mark, ResourceName, Ruling,
    StoreError, Term, decide_claim, horizon,
};
use tenure_remote::{Deed, after_a_step};

/// What a claim was judged by, as the server found it under the lock of the mark: without its lease, where
/// that is the term's and nobody has claimed the mark.
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

/// What calls a procedure that raises marks, and tells it where the leases are.
fn telling(leases: Leases, call: &str) -> String {
    match leases {
        Leases::Here => call.to_owned(),
        Leases::Elsewhere => format!("{LEASES_ELSEWHERE}; {call}"),
    }
}

impl Site {
    /// Claims, in one round trip.
    pub(super) async fn claim(
        &self,
        leases: Leases,
        resource: &ResourceName,
        term: &Term,
    ) -> Result<Found, StoreError> {
        let subject = subject(resource);
        let statement = telling(
            leases,
            &call(
                "claim",
                &[
                    literal(resource.as_str()),
                    literal(term.lease.as_str()),
                    term.token.signed().to_string(),
                ],
            ),
        );
        let _turn = self.claim_turns.begin(&subject, self.place()).await?;
        let rows = self.raise(&subject, &statement).await;
        let rows = rows.map_err(|mut error| {
            if error.fault == Fault::Busy {
                error
                    .message
                    .push_str("; an open transaction of an earlier term may hold the mark: claim again, or end its session");
            }
            error
        })?;
        let row = rows.first().ok_or_else(|| self.without_verdict(&subject))?;
        let raised = number(row, 4).ok_or_else(|| self.without_verdict(&subject))? != 0;
        let mark = match number(row, 1) {
            Some(mark) => match self.understood(resource.as_str(), text(row, 0), Some(mark)) {
                // The server has committed it.
                Err(error) if raised => return Err(after_a_step(error)),
                mark => Some(mark?),
            },
            None => None,
        };
        Ok(Found {
            mark,
            // A procedure from before may have gone by the record all the same: then its decision is another.
            granted: number(row, 2)
                .filter(|_| leases == Leases::Here)
                .and_then(|token| FencingToken::from_signed(token).ok()),
            clock_ms: number(row, 3)
                .and_then(|clock| u64::try_from(clock).ok())
                .unwrap_or(0),
            raised,
        })
    }

    /// What raises a mark, and may wait for that: on connections of its own, whose turn it is.
    async fn raise(&self, subject: &str, statement: &str) -> Result<Vec<Row>, StoreError> {
        self.ask_on(&self.claims, Deed::Write, subject, statement).await
    }

    /// Bumps the mark; answers with it.
    pub(super) async fn bump(&self, leases: Leases, bump: &Bump) -> Result<Mark, StoreError> {
        let resource = &bump.resource;
        let subject = subject(resource);
        if let Some(lack) = self.lack_of_earlier_set_up(leases, bump, &subject).await? {
            let message = format!(
                "{subject} at {}: the set-up is of an earlier Tenure, {lack}; nothing was changed: run `tenure store init`, \
                 then bump it again",
                self.place()
            );
            return Err(StoreError::not_applied(Fault::Unsupported, message));
        }
        let above = bump.above.map(FencingToken::signed);
        let statement = telling(
            leases,
            &call(
                "bump",
                &[
                    literal(resource.as_str()),
                    above.map_or_else(|| "NULL".to_owned(), |above| above.to_string()),
                    literal_or_null(bump.lease.as_ref().map(LeaseName::as_str)),
                ],
            ),
        );
        let _turn = self.claim_turns.begin(&subject, self.place()).await?;
        let rows = self.raise(&subject, &statement).await?;
        let row = rows.first().ok_or_else(|| self.without_verdict(&subject))?;
        if is_null(row, 0) {
            // One that is none is told as such.
            self.kept(resource).await?;
            let message = format!("{subject}: no token is left above the mark");
            return Err(StoreError::not_applied(Fault::Invalid, message));
        }
        number(row, 0).ok_or_else(|| self.without_verdict(&subject))?;
        // It was raised, whatever comes of the look at it.
        let kept = self.kept(resource).await.map_err(after_a_step)?;
        kept.map(|kept| kept.mark)
            .ok_or_else(|| self.without_verdict(&subject))
    }

    /// Why the procedure, of an earlier Tenure, would bump the mark wrongly.
    async fn lack_of_earlier_set_up(
        &self,
        leases: Leases,
        bump: &Bump,
        subject: &str,
    ) -> Result<Option<&'static str>, StoreError> {
        // A record counts only where there is one. Where the text is hidden from this role, nobody knows what
        // the procedure hears.
        let asked = format!(
            "SELECT {NOTES_BUMPS}, {HEARS_OF_LEASES} OR NOT EXISTS (SELECT 1 FROM tenure_leases WHERE name = COALESCE({}, \
             (SELECT lease FROM tenure_fences WHERE resource = {})))",
            literal_or_null(bump.lease.as_ref().map(LeaseName::as_str)),
            literal(bump.resource.as_str())
        );
        let found = self.ask(Deed::Read, subject, &asked).await?;
        let says = |column| found.first().and_then(|row| number(row, column));
        Ok(match (says(0), says(1), leases) {
            // It would raise the mark, and leave it to whoever is granted that very number.
            (Some(0), _, _) => Some("in which a bumped mark admits the term of its own number"),
            (_, Some(0), Leases::Elsewhere) => {
                Some("which would raise the mark above a record of that lease here, although it is elsewhere")
            }
            (_, _, Leases::Here | Leases::Elsewhere) => None,
        })
    }
}

/// Whether a bump notes that it was one: by the procedure's text, or where that is hidden from this role, by
/// the column.
const NOTES_BUMPS: &str = "COALESCE(
    (SELECT MAX(ROUTINE_DEFINITION LIKE '%bumped_token%') FROM information_schema.ROUTINES
        WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME = 'tenure_bump_1'),
    (SELECT MAX(COLUMN_NAME = 'bumped_token') FROM information_schema.COLUMNS
        WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'tenure_fences'))";

/// Whether a bump hears where the leases are.
const HEARS_OF_LEASES: &str = "COALESCE((SELECT MAX(ROUTINE_DEFINITION LIKE '%tenure_lease_store%')
    FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME = 'tenure_bump_1'), 0)";
