//! Entering the user's transactions, and committing them.

use super::{MysqlFence, subject};
use crate::fault::{has_changed, is_refusal, store_error};
use crate::schema::{call, literal, quoted};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Error, Transaction};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use tenure_core::{Fault, FenceError, ResourceName, StoreError, Term};
use tenure_remote::{Deed, after_a_step, ruled};

impl MysqlFence {
    /// Admits a term into the user's own transaction, or refuses it: to be called in the transaction that
    /// writes, before it commits, best as its first statement. One round trip.
    ///
    /// # Guarantee
    /// If this admits and the transaction commits, then no later term had claimed `resource` when it
    /// committed. It locks the row of the mark, shared, until the transaction ends; a claim of a later term
    /// waits for that.
    ///
    /// Enter the outermost transaction, not behind a savepoint, also not once more: rolling back to one takes
    /// the lock of an entry behind it back, and what is written after it is unfenced, but for
    /// [guarded](Self::guard) tables; and releasing one, as nested blocks of a framework do,
    /// [`commit`](Self::commit) takes for the same. And no branch of `XA`: what is prepared outlives the
    /// server, and the lock of its entry does not. After a restart or a fail-over, and in MariaDB below
    /// `SERIALIZABLE` as soon as it is prepared, a later term may claim before `XA COMMIT`.
    ///
    /// It is the very transaction that entered which must commit. Roll back after any error of the server,
    /// also of your own statements: some roll the whole transaction back (1213, the victim of a deadlock).
    /// And let no statement stand between entering and the commit that commits by itself: `TRUNCATE`,
    /// `CREATE`, `ALTER`, `DROP` and `RENAME` (but of temporary tables), `LOCK TABLES`, `ANALYZE`,
    /// `OPTIMIZE`, `GRANT`, `BEGIN`. After either, each statement that follows commits by itself and is not
    /// fenced, and a `COMMIT` says that all is well; [`commit`](Self::commit) says that it is not, and a
    /// guarded table refuses a stale term there, too.
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
        let place = format!("CALL {}.", quoted(&self.0.site().dial.url.database));
        let entered = entry(resource);
        let statement = format!("{}; SAVEPOINT {entered}", called.replacen("CALL ", &place, 1));
        let Err(error) = transaction.query_drop(statement).await else {
            return Ok(());
        };
        let refused = matches!(&error, Error::Server(answer) if is_refusal(answer) || has_changed(answer));
        if !refused {
            let failed = store_error(&error, Deed::Read, &subject(resource), self.0.site().place());
            return Err(FenceError::Store(failed));
        }
        // Which refusal it is, the mark says as it is now; what the transaction saw may be older.
        let found = self.0.find(resource).await?;
        match ruled(resource, term, found.as_ref()) {
            Err(refusal) => self.0.refuse(found.as_ref(), refusal),
            Ok(()) => Err(FenceError::Store(StoreError::not_applied(
                Fault::Busy,
                format!(
                    "{} at {}: the transaction began to read before the claim; begin it again, and enter it first",
                    subject(resource),
                    self.0.site().place()
                ),
            ))),
        }
    }

    /// Commits a transaction that has [entered](Self::enter), if it is still the one that did. Two round
    /// trips.
    ///
    /// In place of the driver's own `commit`, which succeeds also where nothing is left to commit. Where
    /// several resources were entered, name the first.
    ///
    /// # Errors
    /// [`FenceError::Store`]; what was not committed yet is rolled back. With [`Fault::Invalid`], and
    /// unknown: it had not entered; or the transaction that had has ended before: what was written since may
    /// be committed, and was not fenced; or a savepoint from before an entry was released or rolled back: the
    /// server does not tell these apart. Of the last nothing is committed, nor is it the next time: enter
    /// before any savepoint.
    pub async fn commit(
        &self,
        mut transaction: Transaction<'_>,
        resource: &ResourceName,
    ) -> Result<(), FenceError> {
        let (subject, place) = (subject(resource), self.0.site().place());
        // The session stops to show the term as well: whoever has it next is not to write to guarded tables
        // by that.
        let released = format!("RELEASE SAVEPOINT {}; SET @tenure_term = NULL", entry(resource));
        let failed = match transaction.query_drop(released).await {
            Ok(()) => {
                let committed = transaction.commit().await;
                return committed
                    .map_err(|error| FenceError::Store(store_error(&error, Deed::Write, &subject, place)));
            }
            Err(Error::Server(answer)) if answer.code == NO_SAVEPOINT => StoreError::unknown(
                Fault::Invalid,
                format!(
                    "{subject} at {place}: no entry is found in an open transaction: either a statement has committed it \
                     (TRUNCATE, any CREATE, ALTER or DROP, LOCK TABLES) or an error has rolled it back, and what was written \
                     since may be committed, and was not fenced: look at it, and begin again; or a savepoint from before an \
                     entry was released or rolled back, and nothing is committed: enter before any savepoint"
                ),
            ),
            Err(error) => after_a_step(store_error(&error, Deed::Write, &subject, place)),
        };
        // A session that does not commit by itself has begun another one. Where the connection is gone, so is
        // that.
        let _ended = transaction.rollback().await;
        Err(FenceError::Store(failed))
    }

    /// The refusal of a [guarded](Self::guard) table of `resource`, or of the procedure that enters, in an
    /// error of the driver's, counted beside the mark; `None` if it is another error.
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
        let found = self.0.find(resource).await?;
        // The term holds the mark, but the transaction had not entered.
        let unclaimed = || FenceError::Unclaimed {
            resource: resource.clone(),
            token: term.token,
        };
        let refusal = ruled(resource, term, found.as_ref())
            .err()
            .unwrap_or_else(unclaimed);
        if found.is_some() {
            self.0.count_refusal(&refusal);
        }
        Ok(Some(refusal))
    }
}

/// The savepoint that an entry leaves in its transaction. However that ends, the server forgets it, so nobody
/// has to ask which transaction is open, which needs privileges. But the server forgets it also with any
/// earlier savepoint that is rolled back or released, and of two entries it knows the later one alone. It is
/// the resource's own, as a later entry of another would put it into another transaction.
fn entry(resource: &ResourceName) -> String {
    let mut hasher = DefaultHasher::new();
    resource.as_str().hash(&mut hasher);
    format!("tenure_entered_{:016x}", hasher.finish())
}

/// What a server answers to who names a savepoint that it does not know.
const NO_SAVEPOINT: u16 = 1305;
