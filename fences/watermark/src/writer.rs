//! Marks on their way into the file: whoever has raised one waits for a write that has it, and all that wait
//! share one.

use crate::RESOURCES_MAX;
use crate::watermark::Marks;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use tenure_core::{Fault, FenceError, StoreError};
use tokio::sync::oneshot;

/// Most that wait for a write: a claim of each resource. One more is told to claim again.
const WAITING_MAX: usize = RESOURCES_MAX;

/// Writes what was raised, on one thread at a time, which lives for as long as somebody waits.
///
/// A new leader claims all its resources in one moment: a thread for each would take the process down.
#[derive(Default)]
pub(crate) struct Writer {
    line: Arc<Line>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Line(Mutex<State>);

#[derive(Default)]
struct State {
    /// Those whose marks the next write has.
    waiting: Vec<oneshot::Sender<Result<(), FenceError>>>,
    /// Whether somebody writes until nobody waits; when not, whoever comes begins.
    writing: bool,
}

impl Writer {
    /// Waits until what was raised before is in the file; whoever waits no more has it written all the same.
    ///
    /// Where the system gives no thread to write it on, it is written on this one.
    pub(crate) async fn write(&self, marks: &Arc<Marks>) -> Result<(), FenceError> {
        let (written, told) = oneshot::channel();
        if self.line.join(written)? {
            self.begin(Arc::clone(marks));
        }
        // Never told: the thread has ended.
        told.await
            .unwrap_or_else(|_| Err(not_written(Fault::Internal, "could not be written")))
    }

    fn begin(&self, marks: Arc<Marks>) {
        // Held over both steps: the thread after this one may begin at once, and is the one to wait for.
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let (line, beside) = (Arc::clone(&self.line), Arc::clone(&marks));
        let named = Builder::new().name("tenure-watermark".to_owned());
        // None of the runtime's: where the system gives it none, it panics, and keeps what it was to do for
        // ever.
        match named.spawn(move || line.write_while_awaited(beside)) {
            Ok(begun) => *thread = Some(begun),
            Err(_no_thread) => {
                drop(thread);
                self.line.write_while_awaited(marks);
            }
        }
    }

    /// Waits for a write that is under way: it keeps the file locked.
    pub(crate) fn end(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _panicked = thread.join();
        }
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether whoever joins is to begin the writing.
    fn join(&self, written: oneshot::Sender<Result<(), FenceError>>) -> Result<bool, FenceError> {
        let mut state = self.lock();
        if state.waiting.len() >= WAITING_MAX {
            return Err(not_written(
                Fault::Busy,
                "is being written, and as many claims wait for that as may",
            ));
        }
        state.waiting.push(written);
        Ok(!std::mem::replace(&mut state.writing, true))
    }

    fn write_while_awaited(&self, marks: Arc<Marks>) {
        let begun = Begun(self);
        let mut marks = Some(marks);
        while let Some(keeps) = &marks {
            // Before the marks are looked at: who comes later may have raised one that this write has not.
            let answered = std::mem::take(&mut self.lock().waiting);
            let outcome = keeps.save();
            // Before the answers: whoever hears one may drop the watermark, and find its file free.
            if begun.is_over() {
                marks = None;
            }
            for waits in answered {
                let _given_up = waits.send(outcome.clone());
            }
        }
    }
}

/// Somebody writes: if that panics, nobody is left waiting for it.
struct Begun<'a>(&'a Line);

impl Begun<'_> {
    /// Whether nobody waits for another write. The next one to come begins anew.
    fn is_over(&self) -> bool {
        let mut state = self.0.lock();
        state.writing = !state.waiting.is_empty();
        !state.writing
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.0.lock() = State::default();
        }
    }
}

/// What was raised in memory refuses earlier terms all the same.
fn not_written(fault: Fault, why: &str) -> FenceError {
    FenceError::Store(StoreError::unknown(
        fault,
        format!("the watermark {why}; claim again"),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::{Line, WAITING_MAX};
    use tenure_core::{Certainty, Fault, FenceError};
    use tokio::sync::oneshot;

    #[test]
    fn one_more_than_may_wait_for_a_write_is_told_to_claim_again() {
        let line = Line::default();
        for nth in 0..WAITING_MAX {
            assert_eq!(line.join(oneshot::channel().0), Ok(nth == 0));
        }
        let refused = line.join(oneshot::channel().0).unwrap_err();
        assert!(
            matches!(&refused, FenceError::Store(error) if (error.fault, error.certainty) == (Fault::Busy, Certainty::Unknown)),
            "{refused}"
        );
    }
}
