//! The work of an admitted request: it runs to its end, whether or not anybody waits for it.

use crate::gate::Admission;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tracing::debug;

/// The future of the inner service, with its admission.
///
/// A server drops it when the connection breaks, a timeout around it when its time is over. What the handler
/// has begun is under way then: a statement is at the database, a thread of the blocking pool runs. Dropping
/// would open the gate to a later term while the effect is still to come. So what is dropped unfinished goes
/// on in a task of its own, admission and all.
pub(crate) struct Completion<F: Future + Send + 'static> {
    inside: Option<Inside<F>>,
    runtime: Handle,
}

struct Inside<F> {
    // Dropped before the admission: also what the work does while it is dropped is done before a later term
    // gets in.
    work: Pin<Box<F>>,
    admission: Admission,
}

impl<F: Future + Send + 'static> Completion<F> {
    /// # Panics
    /// Outside a tokio runtime.
    pub(crate) fn new(work: F, admission: Admission) -> Self {
        let work = Box::pin(work);
        Self {
            inside: Some(Inside { work, admission }),
            runtime: Handle::current(),
        }
    }
}

impl<F: Future + Send + 'static> Future for Completion<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // Taken out, so that a work that panics is dropped with its admission and is never polled again.
        let mut inside = self.inside.take().expect("a future is not polled after its end");
        let outcome = inside.work.as_mut().poll(context);
        if outcome.is_pending() {
            self.inside = Some(inside);
        }
        outcome
    }
}

impl<F: Future + Send + 'static> Drop for Completion<F> {
    fn drop(&mut self) {
        if let Some(Inside { work, admission }) = self.inside.take() {
            debug!(
                "nobody waits any more for a request of {} to \"{}\"; it runs to its end",
                admission.term(),
                admission.resource()
            );
            self.runtime.spawn(async move {
                drop(work.await);
                drop(admission);
            });
        }
    }
}
