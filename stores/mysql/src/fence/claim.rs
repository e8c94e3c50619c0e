//! What a fence asks of the server: above all, raising marks.

use super::subject;
use crate::row::{is_null, number, text};
use crate::schema::{LEASES_ELSEWHERE, call, literal, literal_or_null};
use crate::site::Site;
use mysql_async::Row;
use tenure_core::{Bump, FencingToken, LeaseName, Leases, ResourceName, StoreError, Term};
use tenure_remote::{BumpSetUp, ClaimRow, ClaimTurns, Deed, MarkRow, Marks, Sought};

/// What calls a procedure that raises marks, and tells it where the leases are.
fn telling(leases: Leases, call: &str) -> String {
    match leases {
        Leases::Here => call.to_owned(),
        Leases::Elsewhere => format!("{LEASES_ELSEWHERE}; {call}"),
    }
}

impl Marks for Site {
    fn place(&self) -> &str {
        Site::place(self)
    }

    fn marks_table(&self) -> String {
        format!("{}.tenure_fences", self.dial.url.database)
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
        let rows = self.raise(&subject, &statement).await?;
        let row = rows.first().ok_or_else(|| self.without_verdict(&subject))?;
        let raised = number(row, 4).ok_or_else(|| self.without_verdict(&subject))? != 0;
        Ok(ClaimRow {
            lease: text(row, 0).map(str::to_owned),
            token: number(row, 1),
            granted: number(row, 2),
            clock_ms: number(row, 3),
            raised,
        })
    }

    async fn bump(&self, leases: Leases, bump: &Bump) -> Result<Option<i64>, StoreError> {
        let subject = subject(&bump.resource);
        let above = bump.above.map(FencingToken::signed);
        let statement = telling(
            leases,
            &call(
                "bump",
                &[
                    literal(bump.resource.as_str()),
                    above.map_or_else(|| "NULL".to_owned(), |above| above.to_string()),
                    literal_or_null(bump.lease.as_ref().map(LeaseName::as_str)),
                ],
            ),
        );
        let rows = self.raise(&subject, &statement).await?;
        let row = rows.first().ok_or_else(|| self.without_verdict(&subject))?;
        match number(row, 0) {
            None if !is_null(row, 0) => Err(self.without_verdict(&subject)),
            raised => Ok(raised),
        }
    }

    async fn bump_set_up(&self, bump: &Bump) -> Result<BumpSetUp, StoreError> {
        // A record counts only where there is one. Where the text is hidden from this role, nobody knows what
        // the procedure hears.
        let asked = format!(
            "SELECT {NOTES_BUMPS}, {HEARS_OF_LEASES} OR NOT EXISTS (SELECT 1 FROM tenure_leases WHERE name = COALESCE({}, \
             (SELECT lease FROM tenure_fences WHERE resource = {})))",
            literal_or_null(bump.lease.as_ref().map(LeaseName::as_str)),
            literal(bump.resource.as_str())
        );
        let found = self.ask(Deed::Read, &subject(&bump.resource), &asked).await?;
        let says = |column| {
            found
                .first()
                .and_then(|row| number(row, column))
                .map(|says| says != 0)
        };
        Ok(BumpSetUp {
            notes_it: says(0),
            hears_of_leases: says(1),
        })
    }
}

impl Site {
    /// What raises a mark, and may wait for that: on connections of its own, whose turn it is.
    async fn raise(&self, subject: &str, statement: &str) -> Result<Vec<Row>, StoreError> {
        self.ask_on(&self.claims, Deed::Write, subject, statement).await
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
