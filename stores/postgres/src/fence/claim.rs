//! Raising marks.

use super::subject;
use crate::fault::Deed;
use crate::schema::{ELSEWHERE, LEASES, literal};
use crate::site::{Site, Typed, least_busy};
use tenure_core::{
    Bump, Claimed, Fault, FenceError, FencingToken, Horizon, LeaseName, Leases, Mark, ResourceName, Ruling,
    StoreError, Term, decide_claim, horizon,
};
use tenure_remote::after_a_step;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

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

/// The first argument of a function that raises marks. Arguments are there before the function runs: so it
/// knows by then where the leases are, also behind a pooler that gives each transaction another session.
fn telling(leases: Leases, argument: &str) -> String {
    match leases {
        Leases::Here => argument.to_owned(),
        Leases::Elsewhere => format!(
            "CASE WHEN pg_catalog.set_config('{LEASES}', '{ELSEWHERE}', true) IS NOT NULL THEN {argument} END"
        ),
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
        let resource_asked = telling(leases, "$1");
        // The function of an earlier set-up would tell from a replica that a term may go on, or may not.
        let statement = format!(
            "SELECT found.*, pg_catalog.pg_is_in_recovery() FROM {}.claim({resource_asked}, $2, $3) found",
            self.schema()
        );
        let (lease, token) = (term.lease.as_str(), term.token.signed());
        let parameters: [Typed<'_>; 3] = [
            (&resource.as_str(), Type::TEXT),
            (&lease, Type::TEXT),
            (&token, Type::INT8),
        ];
        let _turn = self.claim_turns.begin(&subject, &self.place).await?;
        let rows = self.raise(&subject, &statement, &parameters).await;
        let rows = rows.map_err(|mut error| {
            if error.fault == Fault::Busy {
                error
                    .message
                    .push_str("; an open transaction of an earlier term may hold the mark: claim again, or end its session");
            }
            error
        })?;
        let row = rows.first().ok_or_else(|| self.without_verdict(&subject))?;
        let text = |index| row.try_get::<_, Option<String>>(index).ok().flatten();
        let number = |index| row.try_get::<_, Option<i64>>(index).ok().flatten();
        let says = |index| row.try_get(index).map_err(|_| self.without_verdict(&subject));
        let (raised, by_replica): (bool, bool) = (says(4)?, says(5)?);
        if by_replica {
            return Err(self.by_replica(&subject));
        }
        let mark = match number(1) {
            Some(mark) => match self.understood(resource.as_str(), text(0).as_deref(), Some(mark)) {
                // The server has committed it.
                Err(error) if raised => return Err(after_a_step(error)),
                mark => Some(mark?),
            },
            None => None,
        };
        Ok(Found {
            mark,
            // A function from before may have gone by the record all the same: then its decision is another.
            granted: number(2)
                .filter(|_| leases == Leases::Here)
                .and_then(|token| FencingToken::from_signed(token).ok()),
            clock_ms: number(3).and_then(|clock| u64::try_from(clock).ok()).unwrap_or(0),
            raised,
        })
    }

    /// What raises a mark, and may wait for that: on connections of its own, whose turn it is.
    async fn raise(
        &self,
        subject: &str,
        statement: &str,
        parameters: &[Typed<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let lane = least_busy(&self.claims);
        self.ask_on(lane, Deed::Write, subject, statement, parameters)
            .await
    }

    /// Bumps the mark; answers with it.
    pub(super) async fn bump(&self, leases: Leases, bump: &Bump) -> Result<Mark, StoreError> {
        let resource = &bump.resource;
        let subject = subject(resource);
        if let Some(lack) = self.lack_of_earlier_set_up(leases, bump, &subject).await? {
            let message = format!(
                "{subject} at {}: the set-up is of an earlier Tenure, {lack}; nothing was changed: run `tenure store init`, \
                 then bump it again",
                self.place
            );
            return Err(StoreError::not_applied(Fault::Unsupported, message));
        }
        let resource_asked = telling(leases, "$1");
        let statement = format!("SELECT {}.bump({resource_asked}, $2, $3)", self.schema());
        let above = bump.above.map(FencingToken::signed);
        let lease = bump.lease.as_ref().map(LeaseName::as_str);
        let parameters: [Typed<'_>; 3] = [
            (&resource.as_str(), Type::TEXT),
            (&above, Type::INT8),
            (&lease, Type::TEXT),
        ];
        let _turn = self.claim_turns.begin(&subject, &self.place).await?;
        let rows = self.raise(&subject, &statement, &parameters).await?;
        let raised = rows.first().and_then(|row| row.try_get::<_, Option<i64>>(0).ok());
        if raised.ok_or_else(|| self.without_verdict(&subject))?.is_none() {
            // One that is none is told as such.
            self.kept(resource).await?;
            let message = format!("{subject}: no token is left above the mark");
            return Err(StoreError::not_applied(Fault::Invalid, message));
        }
        // It was raised, whatever comes of the look at it.
        let kept = self.kept(resource).await.map_err(after_a_step)?;
        kept.map(|kept| kept.mark)
            .ok_or_else(|| self.without_verdict(&subject))
    }

    /// Why the function, of an earlier Tenure, would bump the mark wrongly.
    async fn lack_of_earlier_set_up(
        &self,
        leases: Leases,
        bump: &Bump,
        subject: &str,
    ) -> Result<Option<&'static str>, StoreError> {
        let schema = self.schema();
        // A record counts only where there is one.
        let asked = format!(
            "SELECT prosrc LIKE '%bumped_token%', prosrc LIKE '%{LEASES}%' OR NOT EXISTS (SELECT FROM {schema}.leases l \
             WHERE l.name::text OPERATOR(pg_catalog.=) coalesce($2, (SELECT f.lease::text FROM {schema}.fences f \
             WHERE f.resource::text OPERATOR(pg_catalog.=) $1))) \
             FROM pg_catalog.pg_proc WHERE oid = to_regprocedure({})",
            literal(&format!("{schema}.bump(text, bigint, text)"))
        );
        let lease = bump.lease.as_ref().map(LeaseName::as_str);
        let parameters: [Typed<'_>; 2] = [(&bump.resource.as_str(), Type::TEXT), (&lease, Type::TEXT)];
        let found = self.ask(Deed::Read, subject, &asked, &parameters).await?;
        // One that is missing is said when it is called.
        let says = |column| found.first().and_then(|row| row.try_get(column).ok());
        Ok(match (says(0), says(1), leases) {
            // It would raise the mark, and leave it to whoever is granted that very number.
            (Some(false), _, _) => Some("in which a bumped mark admits the term of its own number"),
            (_, Some(false), Leases::Elsewhere) => {
                Some("which would raise the mark above a record of that lease here, although it is elsewhere")
            }
            (_, _, Leases::Here | Leases::Elsewhere) => None,
        })
    }
}
