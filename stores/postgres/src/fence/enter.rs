//! Entering the user's transactions.

use super::marks::BUMPED_TOKEN;
use super::{PostgresFence, subject};
use crate::fault::{Deed, store_error};
use crate::schema::{showing, turnstile};
use crate::site::Typed;
use tenure_core::{Fault, FenceError, ResourceName, StoreError, Term};
use tenure_remote::{MarkRow, ruled};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Transaction};

/// The states of SQL by which the functions of the schema refuse.
const REFUSALS: [&str; 3] = ["TN001", "TN002", "TN003"];

impl PostgresFence {
    /// Admits a term into the user's own transaction, or refuses it: to be called in the transaction that
    /// writes, before it commits, best as its first statement. One round trip.
    ///
    /// # Guarantee
    /// If this admits and the transaction commits, then no later term had claimed `resource` when it
    /// committed. It locks the row of the mark, shared, until the transaction ends; a claim of a later term
    /// waits for that, and while it waits, whoever would enter anew waits for it. Enter in the outermost
    /// transaction, not behind a savepoint that may be rolled back: that leaves what was entered behind it.
    ///
    /// # Errors
    /// Roll back after any of them:
    /// - [`FenceError::Stale`]: a later term has claimed; stop the work;
    /// - [`FenceError::Unclaimed`]: this term has not claimed;
    /// - [`FenceError::Foreign`]: the resource belongs to another lease;
    /// - [`FenceError::Store`]: [`Fault::Busy`] if the mark was claimed after the transaction had begun to
    ///   read, at `REPEATABLE READ` or above: begin it again.
    pub async fn enter(
        &self,
        transaction: &Transaction<'_>,
        resource: &ResourceName,
        term: &Term,
    ) -> Result<(), FenceError> {
        // In the user's session, whose search path may hold others' operators: each is the server's by name
        // or by exact types. The turnstile stands in a condition that knows no row: it is passed before a row
        // is looked at, and locked.
        let statement = format!(
            "SELECT lease, token, {BUMPED_TOKEN}, CASE WHEN lease = $2 AND token = $3 AND {BUMPED_TOKEN} IS DISTINCT FROM token \
             THEN pg_catalog.concat({}) END FROM {}.fences f \
             WHERE resource = $1 AND (SELECT pg_catalog.pg_advisory_xact_lock_shared({})) IS NOT NULL FOR SHARE",
            showing("$1", "$3::text || ' '::text || $2"),
            self.0.site().schema(),
            turnstile(&self.0.site().dial.url.schema, "$1")
        );
        let (lease, token) = (term.lease.as_str(), term.token.signed());
        let parameters: [Typed<'_>; 3] = [
            (&resource.as_str(), Type::TEXT),
            (&lease, Type::TEXT),
            (&token, Type::INT8),
        ];
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> = parameters.into_iter().collect();
        match transaction.query_typed(&statement, &parameters).await {
            Ok(rows) => {
                let found = rows.first().map(|row| {
                    let shown = MarkRow {
                        resource: resource.to_string(),
                        lease: row.try_get(0).ok().flatten(),
                        token: row.try_get(1).ok(),
                        bumped_token: row.try_get(2).ok().flatten(),
                        ..MarkRow::default()
                    };
                    shown.read(&**self.0.site())
                });
                let found = found.transpose()?;
                match ruled(resource, term, found.as_ref()) {
                    // The first claim may be later than what the transaction sees.
                    Err(FenceError::Unclaimed { .. }) if found.is_none() => {
                        let message = format!(
                            "{} at {}: the transaction began to read before the claim; begin it again, and enter it first",
                            subject(resource),
                            self.0.site().place
                        );
                        let failed = StoreError::not_applied(Fault::Busy, message);
                        self.as_it_is_now(resource, term, failed).await
                    }
                    ruled => ruled.or_else(|error| self.0.refuse(found.as_ref(), error)),
                }
            }
            Err(error) => {
                let failed = store_error(&error, Deed::Read, &subject(resource), &self.0.site().place);
                match failed.fault {
                    Fault::Busy => self.as_it_is_now(resource, term, failed).await,
                    _ => Err(FenceError::Store(failed)),
                }
            }
        }
    }

    /// What to say of an entry that failed because all that the transaction sees may be older than a claim.
    /// If that was a later term's, say so: beginning again would be in vain.
    async fn as_it_is_now(
        &self,
        resource: &ResourceName,
        term: &Term,
        failed: StoreError,
    ) -> Result<(), FenceError> {
        let found = self.0.find(resource).await?;
        ruled(resource, term, found.as_ref()).or_else(|error| self.0.refuse(found.as_ref(), error))?;
        Err(FenceError::Store(failed))
    }

    /// The refusal of the schema's own functions, of a [guarded](Self::guard) table or of `enter`, in an
    /// error of the driver's, counted beside the mark; `None` if it is another error.
    ///
    /// Where the mark cannot be read, the refusal is [`FenceError::Store`]: the server refused, but which
    /// term has claimed is not known.
    pub async fn refusal(&self, term: &Term, error: &Error) -> Option<FenceError> {
        let refused = error
            .as_db_error()
            .filter(|answer| REFUSALS.contains(&answer.code().code()))?;
        let resource = ResourceName::new(refused.constraint()?).ok()?;
        let found = match self.0.find(&resource).await {
            Ok(found) => found,
            Err(unread) => return Some(unread),
        };
        // The term holds the mark, but the transaction had not entered.
        let unclaimed = || FenceError::Unclaimed {
            resource: resource.clone(),
            token: term.token,
        };
        let refusal = ruled(&resource, term, found.as_ref())
            .err()
            .unwrap_or_else(unclaimed);
        if found.is_some() {
            self.0.count_refusal(&refusal);
        }
        Some(refusal)
    }
}
