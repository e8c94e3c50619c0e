//! What a fence asks of the server: above all, raising marks.

use super::subject;
use crate::fault::Deed;
use crate::schema::{ELSEWHERE, LEASES, literal};
use crate::site::{Site, Typed, least_busy};
use tenure_core::{Bump, FencingToken, LeaseName, Leases, ResourceName, StoreError, Term};
use tenure_remote::{BumpSetUp, ClaimRow, ClaimTurns, MarkRow, Marks, Sought};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

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

impl Marks for Site {
    fn place(&self) -> &str {
        &self.place
    }

    fn marks_table(&self) -> String {
        format!("{}.fences", self.dial.url.schema)
    }

    fn without_verdict(&self, subject: &str) -> StoreError {
        Site::without_verdict(self, subject)
    }

    fn claim_turns(&self) -> &ClaimTurns {
        &self.claim_turns
    }

    async fn rows(&self, subject: &str, sought: Sought<'_>) -> Result<Vec<MarkRow>, StoreError> {
        self.sought(subject, sought).await
    }

    async fn claim(
        &self,
        leases: Leases,
        resource: &ResourceName,
        term: &Term,
    ) -> Result<ClaimRow, StoreError> {
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
        let rows = self.raise(&subject, &statement, &parameters).await?;
        let row = rows.first().ok_or_else(|| self.without_verdict(&subject))?;
        let number = |index| row.try_get(index).ok().flatten();
        let says = |index| row.try_get(index).map_err(|_| self.without_verdict(&subject));
        let (raised, by_replica): (bool, bool) = (says(4)?, says(5)?);
        if by_replica {
            return Err(self.by_replica(&subject));
        }
        Ok(ClaimRow {
            lease: row.try_get(0).ok().flatten(),
            token: number(1),
            granted: number(2),
            clock_ms: number(3),
            raised,
        })
    }

    async fn bump(&self, leases: Leases, bump: &Bump) -> Result<Option<i64>, StoreError> {
        let subject = subject(&bump.resource);
        let resource_asked = telling(leases, "$1");
        let statement = format!("SELECT {}.bump({resource_asked}, $2, $3)", self.schema());
        let above = bump.above.map(FencingToken::signed);
        let lease = bump.lease.as_ref().map(LeaseName::as_str);
        let parameters: [Typed<'_>; 3] = [
            (&bump.resource.as_str(), Type::TEXT),
            (&above, Type::INT8),
            (&lease, Type::TEXT),
        ];
        let rows = self.raise(&subject, &statement, &parameters).await?;
        let raised = rows.first().and_then(|row| row.try_get(0).ok());
        raised.ok_or_else(|| self.without_verdict(&subject))
    }

    async fn bump_set_up(&self, bump: &Bump) -> Result<BumpSetUp, StoreError> {
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
        let found = self
            .ask(Deed::Read, &subject(&bump.resource), &asked, &parameters)
            .await?;
        // One that is missing is said when it is called.
        let says = |column| found.first().and_then(|row| row.try_get(column).ok());
        Ok(BumpSetUp {
            notes_it: says(0),
            hears_of_leases: says(1),
        })
    }
}

impl Site {
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
}
