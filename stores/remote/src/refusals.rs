//! Refusals on their way into the database: at the cost of the refused, not of the term that holds the mark.

use crate::thread::OwnThread;
use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::{FenceError, FencingToken, RefusalLine, Refusals, Refused, ResourceName};

/// Shortest time between two notes: a refused writer that tries without end costs one small write a second.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// Longest pause after a round of notes of which not all were written: a database that stays away is asked
/// once in that time, and says so once in the log.
const NOTE_AGAIN_MAX: Duration = Duration::from_secs(30);

/// Longest pause of a note before it compares and writes anew, because another was first.
const ROUND_PAUSE_MAX_US: u64 = 50_000;

/// How long one note may take.
const NOTE_TIME_MAX: Duration = Duration::from_secs(5);

/// After how long no further note of a round begins: of many resources each may take its whole time where the
/// database is silent.
const ROUND_TIME_MAX: Duration = Duration::from_secs(30);

/// Where a fence keeps its refusals.
pub trait Notes: Send + Sync + 'static {
    /// Adds `count` refusals of `resource`, the last of `last`.
    ///
    /// # Errors
    /// Why it could not be written, without a secret: it goes into the log.
    fn note(
        &self,
        resource: &ResourceName,
        count: u64,
        last: FencingToken,
    ) -> impl Future<Output = Result<(), String>> + Send;
}

impl<N: Notes> Notes for Arc<N> {
    fn note(
        &self,
        resource: &ResourceName,
        count: u64,
        last: FencingToken,
    ) -> impl Future<Output = Result<(), String>> + Send {
        N::note(self, resource, count, last)
    }
}

/// Waits for a moment, of another length each time, before a note that another was faster than compares and
/// writes anew: those who count the same resource at once must not meet again and again.
pub async fn pause_between_rounds() {
    let any = RandomState::new().build_hasher().finish();
    tokio::time::sleep(Duration::from_micros(any % ROUND_PAUSE_MAX_US)).await;
}

/// Counts refusals, and notes them in a task that lives from the first of them until all are noted and there
/// were none for a second, or the fence is gone.
#[derive(Debug)]
pub struct Noter<N: Notes> {
    notes: N,
    state: Mutex<State>,
    /// Held while a note is written: whoever ends the process waits for one that is under way.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Default, Debug)]
struct State {
    refusals: Refusals,
    running: bool,
}

impl<N: Notes> Noter<N> {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(notes: N) -> Arc<Self> {
        Arc::new(Self {
            notes,
            state: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        })
    }

    /// Where they are kept.
    #[must_use]
    pub fn notes(&self) -> &N {
        &self.notes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts `error` if it is a refusal, and has it noted on `thread`.
    pub fn count(self: &Arc<Self>, thread: &OwnThread, error: &FenceError) {
        if self.begins(error) {
            let noter = Arc::clone(self);
            thread.leave(async move { noter.note_until_quiet().await });
        }
    }

    /// Counts `error` if it is a refusal, and has it noted on the runtime that this is called on, where there
    /// is one.
    pub fn count_here(self: &Arc<Self>, error: &FenceError) {
        if !self.begins(error) {
            return;
        }
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let noter = Arc::clone(self);
                runtime.spawn(async move { noter.note_until_quiet().await });
            }
            // Counted all the same: the next one, or the last note, takes it along.
            Err(_none) => self.lock().running = false,
        }
    }

    /// Counts; whether a task has to be started now.
    fn begins(&self, error: &FenceError) -> bool {
        if error.refused().is_none() {
            return false;
        }
        #[cfg(feature = "metrics")]
        metrics::counter!(tenure_core::REFUSALS_METRIC, "reason" => error.reason().unwrap_or_default())
            .increment(1);
        let mut state = self.lock();
        state.refusals.count(error);
        !std::mem::replace(&mut state.running, true)
    }

    async fn note_until_quiet(self: &Arc<Self>) {
        let mut task = Task {
            noter: self,
            ended: false,
        };
        let mut pause = NOTE_EVERY;
        loop {
            let all = self.note_all().await;
            pause = match all {
                true => NOTE_EVERY,
                false => (pause * 2).min(NOTE_AGAIN_MAX),
            };
            tokio::time::sleep(pause).await;
            let mut state = self.lock();
            // On a runtime of the user's this would go on for as long as the database is away, also for
            // nobody.
            let is_for_nobody = !all && Arc::strong_count(self) == 1;
            if is_for_nobody || state.refusals.is_empty() {
                state.running = false;
                task.ended = true;
                return;
            }
        }
    }

    /// Writes what has been counted, after a note that is under way, and tells of it in the log. What cannot
    /// be written, in half a minute each, stays counted, and is written with a later note.
    pub async fn note(&self) {
        let _all = self.note_all().await;
    }

    /// The same; whether all of it was written.
    async fn note_all(&self) -> bool {
        let _turn = self.writing.lock().await;
        let (line, left) = {
            let mut state = self.lock();
            (state.refusals.take_line(), state.refusals.take().collect())
        };
        // Here, and not where they happen: a refused writer may try a million times.
        if let Some(RefusalLine { refusals, last }) = line {
            tracing::warn!(refusals, "{last}");
        }
        let mut pending = Pending { noter: self, left };
        let began = tokio::time::Instant::now();
        let (mut failed, mut why) = (0, None);
        while let Some((resource, refused)) = pending.left.get(failed)
            && began.elapsed() < ROUND_TIME_MAX
        {
            let noting = self.notes.note(resource, refused.count, refused.last);
            match tokio::time::timeout(NOTE_TIME_MAX, noting).await {
                Ok(Ok(())) => {
                    pending.left.remove(failed);
                    continue;
                }
                Ok(Err(error)) => why = Some(error),
                Err(_late) => why = Some(format!("no answer within {NOTE_TIME_MAX:?}")),
            }
            failed += 1;
        }
        if let (Some(why), Some((resource, _))) = (why, pending.left.last()) {
            let refusals: u64 = pending.left.iter().map(|(_, refused)| refused.count).sum();
            tracing::warn!(%resource, refusals, "refusals could not be noted: {why}");
        }
        pending.left.is_empty()
    }
}

/// What was taken to be noted. What is left of it, also where the note is given up, goes back.
struct Pending<'a, N: Notes> {
    noter: &'a Noter<N>,
    left: Vec<(ResourceName, Refused)>,
}

impl<N: Notes> Drop for Pending<'_, N> {
    fn drop(&mut self) {
        let mut state = self.noter.lock();
        for (resource, refused) in self.left.drain(..) {
            state.refusals.put_back(&resource, refused);
        }
    }
}

/// A task that is dropped with its runtime must not keep another from being started.
struct Task<'a, N: Notes> {
    noter: &'a Noter<N>,
    ended: bool,
}

impl<N: Notes> Drop for Task<'_, N> {
    fn drop(&mut self) {
        if !self.ended {
            self.noter.lock().running = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NOTE_TIME_MAX, Noter, Notes, ROUND_TIME_MAX};
    use std::future::pending;
    use tenure_core::{FenceError, FencingToken, ResourceName};

    const RESOURCES: usize = 100;

    struct Silent;

    impl Notes for Silent {
        async fn note(&self, _: &ResourceName, _: u64, _: FencingToken) -> Result<(), String> {
            pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn notes_to_a_silent_database_are_given_up_in_time_however_many_there_are_and_stay_counted() {
        let noter = Noter::new(Silent);
        let token = |number| FencingToken::new(number).expect("a token");
        for number in 0..RESOURCES {
            let resource = ResourceName::new(format!("table-{number}")).expect("a name");
            noter.count_here(&FenceError::Stale {
                resource,
                token: token(1),
                mark: token(2),
            });
        }
        let began = tokio::time::Instant::now();
        noter.note().await;
        // After the round of the task that the first refusal began.
        assert!(
            began.elapsed() <= 2 * (ROUND_TIME_MAX + NOTE_TIME_MAX),
            "{:?}",
            began.elapsed()
        );
        assert_eq!(noter.lock().refusals.clone().take().count(), RESOURCES);
    }
}
