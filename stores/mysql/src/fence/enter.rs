//! Entering the user's transactions.

use super::marks::ruled;
use super::{MysqlFence, subject};
use crate::fault::{has_changed, is_refusal, store_error};
use crate::schema::{call, literal, quoted};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Error, Transaction};
use tenure_core::{Fault, FenceError, ResourceName, StoreError, Term};
use tenure_remote::Deed;

impl MysqlFence {
    /// Admits a term into the user's own transaction, or refuses it: to be called in the transaction that writes, before
    /// it commits, best as its first statement. One round trip.
    ///
    /// # Guarantee
    /// If this admits and the transaction commits, then no later term had claimed `resource` when it committed. It
    /// locks the row of the mark, shared, until the transaction ends; a claim of a later term waits for that.
    ///
    /// Enter the outermost transaction, not behind a savepoint: rolling back to one takes the lock back, and what is written
    /// after it is unfenced, but for [guarded](Self::guard) tables. And in MariaDB not a transaction that is prepared by
    /// `XA PREPARE`, below `SERIALIZABLE`: preparing gives shared locks back, and a later term may claim before `XA COMMIT`.
    ///
    /// # Errors
    /// Roll back after any of them:
    /// - [`FenceError::Stale`]: a later term has claimed; stop the work;
    /// - [`FenceError::Unclaimed`]: this term has not claimed;
    /// - [`FenceError::Foreign`]: the resource belongs to another lease;
    /// - [`FenceError::Store`]: [`Fault::Busy`] if the transaction had begun to read, at
    ///   `REPEATABLE READ`, before the mark was claimed: begin it again.
    pub async fn enter(
        &self,
        transaction: &mut Transaction<'_>,
        resource: &ResourceName,
        term: &Term,
    ) -> Result<(), FenceError> {
        let (lease, token) = (term.lease.as_str(), term.token.signed());
        let literals = [literal(resource.as_str()), literal(lease), token.to_string()];
        let called = call("enter", &literals);
        // The transaction may be in another database of the server.
        let place = format!("CALL {}.", quoted(&self.site.dial.url.database));
        let statement = called.replacen("CALL ", &place, 1);
        let Err(error) = transaction.query_drop(statement).await else {
            return Ok(());
        };
        let refused = matches!(&error, Error::Server(answer) if is_refusal(answer) || has_changed(answer));
        if !refused {
            let failed = store_error(&error, Deed::Read, &subject(resource), self.site.place());
            return Err(FenceError::Store(failed));
        }
        // Which refusal it is, the mark says as it is now; what the transaction saw may be older.
        let found = self.find(resource).await?;
        match ruled(resource, term, found.as_ref()) {
            Err(refusal) => self.refuse(found.as_ref(), refusal),
            Ok(()) => Err(FenceError::Store(StoreError::not_applied(
                Fault::Busy,
                format!(
                    "{} at {}: the transaction began to read before the claim; begin it again, and enter it first",
                    subject(resource),
                    self.site.place()
                ),
            ))),
        }
    }

    /// The refusal of a [guarded](Self::guard) table of `resource`, or of the procedure that enters, in an error of the
    /// driver's, counted beside the mark; `None` if it is another error.
    ///
    /// # Errors
    /// [`FenceError::Store`]: it is a refusal, but the mark that says which cannot be read.
    pub async fn refusal(
        &self,
        resource: &ResourceName,
        term: &Term,
        error: &Error,
    ) -> Result<Option<FenceError>, FenceError> {
        let Error::Server(answer) = error else {
            return Ok(None);
        };
        if !is_refusal(answer) {
            return Ok(None);
        }
        let found = self.find(resource).await?;
        // The term holds the mark, but the transaction had not entered.
        let unclaimed = || FenceError::Unclaimed {
            resource: resource.clone(),
            token: term.token,
        };
        let refusal = ruled(resource, term, found.as_ref())
            .err()
            .unwrap_or_else(unclaimed);
        if found.is_some() {
            self.noter.count(&self.thread, &refusal);
        }
        Ok(Some(refusal))
    }
}
