//! One request beside the engine's, for which nobody waits longer than they said.

use crate::sync::timeout;
use std::future::Future;
use std::time::Duration;
use tenure_core::{Fault, StoreError};

/// The answer to a request about `subject`, which is named in the error if it takes longer than `time_max`.
pub(crate) async fn answer_within<T>(
    time_max: Duration,
    subject: impl FnOnce() -> String,
    request: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    timeout(time_max, request).await.unwrap_or_else(|_| {
        let message = format!(
            "{}: no answer in {time_max:?}; is the store reachable?",
            subject()
        );
        Err(StoreError::not_applied(Fault::TimedOut, message))
    })
}
