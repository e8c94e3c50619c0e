use super::{MongoFence, stripes, subject};
use crate::site::write_concern;
use mongodb::ClientSession;
use mongodb::bson::doc;
use mongodb::error::{Error, ErrorKind};
use std::fmt;
use tenure_core::{Fault, FenceError, ResourceName, StoreError, Term};

/// Why a transaction was not admitted.
///
/// It turns into the driver's own error by `?`, so that the closure of a driver's transaction can end with
/// it; [`MongoFence::refusal`] finds the refusal in there again.
#[derive(Clone, Debug)]
pub enum EnterError {
    /// The fence refused, or its mark cannot be understood. Abort the transaction; do not repeat it.
    Refused(FenceError),
    /// The driver failed: its error as it was, with the labels that say whether the transaction may be
    /// repeated (`TransientTransactionError`, as after a conflict with a claim). Abort the transaction.
    Driver(Error),
}

impl fmt::Display for EnterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::Driver(error) => error.kind.fmt(f),
        }
    }
}

impl std::error::Error for EnterError {}

impl From<FenceError> for EnterError {
    fn from(refused: FenceError) -> Self {
        Self::Refused(refused)
    }
}

impl From<Error> for EnterError {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

impl From<EnterError> for Error {
    fn from(error: EnterError) -> Self {
        match error {
            EnterError::Refused(refused) => Self::custom(refused),
            EnterError::Driver(error) => error,
        }
    }
}

impl MongoFence {
    /// Admits the session's open transaction if `term` holds the mark of `resource`.
    ///
    /// # Guarantee
    /// If the transaction commits, no later term had claimed the resource before. A stripe of the resource is
    /// written in it: a claim that comes meanwhile waits until the transaction has ended, and one that came
    /// before makes it fail with a conflict.
    ///
    /// # To ensure correctness
    /// Commit with `w: "majority"`. Without it, a fail-over may take the data back, but never lets a stale
    /// write in.
    ///
    /// # Errors
    /// [`EnterError`]. In every case the transaction must be aborted; the driver's `and_run` does that.
    ///
    /// # Cost
    /// One round trip; a refusal two.
    pub async fn enter(
        &self,
        session: &mut ClientSession,
        resource: &ResourceName,
        term: &Term,
    ) -> Result<(), EnterError> {
        self.require_transaction(session, resource).await?;
        let claimed = stripes::one_claimed(resource, self.turn.next(), term);
        let entered = self
            .marks
            .update_one(claimed, stripes::entered())
            .session(session)
            .await?;
        if entered.matched_count == 1 {
            return Ok(());
        }
        // Outside the transaction, whose snapshot may be older than a claim.
        Ok(self.unentered(resource, term).await?)
    }

    /// The fence's refusal in an error that came out of a driver's transaction; `None` if it is another's.
    #[must_use]
    pub fn refusal(error: &Error) -> Option<&FenceError> {
        error.get_custom::<FenceError>()
    }

    /// Outside a transaction, entering would be a check beside the write, and stale writes would get in.
    ///
    /// The driver does not tell whether a transaction is open, but in one it refuses a write concern before
    /// anything is sent. Where none is open, this is an update that matches nothing.
    async fn require_transaction(
        &self,
        session: &mut ClientSession,
        resource: &ResourceName,
    ) -> Result<(), EnterError> {
        let probe = self
            .marks
            .update_one(
                doc! { "_id": { "$in": [] } },
                doc! { "$set": { "entries": 0_i64 } },
            )
            .write_concern(write_concern(super::REQUEST_TIME_MAX))
            .session(session)
            .await;
        match probe {
            Err(error) if matches!(&*error.kind, ErrorKind::InvalidArgument { message, .. } if message.contains("transaction")) => {
                Ok(())
            }
            Err(error) => Err(EnterError::Driver(error)),
            Ok(_) => Err(EnterError::Refused(FenceError::Store(StoreError::not_applied(
                Fault::Invalid,
                format!(
                    "{} at {}: the session has no open transaction; call start_transaction first, then enter, then write",
                    subject(resource),
                    self.namespace
                ),
            )))),
        }
    }
}
