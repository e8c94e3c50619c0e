//! The places for connections. Whoever asks has one until it is answered; of the others the one that has been
//! idle for longest makes room.

use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::{Duration, Instant, sleep};

/// How long a place is its own of whoever has just connected, or has just been answered: a request takes a
/// moment to come, an answer to be sent.
const OWN_TIME_MIN: Duration = Duration::from_millis(100);

/// Places of which each has one connection at a time.
pub(super) struct Places {
    free: Arc<Semaphore>,
    taken: Vec<(Arc<Idleness>, AbortHandle)>,
}

impl Places {
    pub(super) fn new(count: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(count)),
            taken: Vec::with_capacity(count),
        }
    }

    /// Serves a connection, as soon as there is a place for it: `serve` makes of its idleness what is to be
    /// done.
    pub(super) async fn serve<T: Future<Output = ()> + Send + 'static>(
        &mut self,
        serve: impl FnOnce(Arc<Idleness>) -> T,
    ) {
        let place = self.free_one().await;
        self.taken.retain(|(_, serving)| !serving.is_finished());
        let idleness = Arc::new(Idleness::default());
        let serving = serve(Arc::clone(&idleness));
        let serving = tokio::spawn(async move {
            let _place = place;
            serving.await;
        });
        self.taken.push((idleness, serving.abort_handle()));
    }

    async fn free_one(&mut self) -> OwnedSemaphorePermit {
        let free = Arc::clone(&self.free);
        let one = free.acquire_owned();
        tokio::pin!(one);
        tokio::select! {
            biased;
            place = &mut one => place,
            idle_longest = self.idle_too_long() => {
                idle_longest.abort();
                one.await
            }
        }
        .expect("the semaphore is never closed")
    }

    /// The connection that has been idle for longest, once it may be ended.
    async fn idle_too_long(&self) -> &AbortHandle {
        loop {
            let idle = self.taken.iter().filter(|(_, serving)| !serving.is_finished());
            let idle = idle.filter_map(|(idleness, serving)| Some((idleness.since()?.elapsed(), serving)));
            let pause = match idle.max_by_key(|(idle, _)| *idle) {
                Some((idle, serving)) if idle >= OWN_TIME_MIN => return serving,
                Some((idle, _)) => OWN_TIME_MIN - idle,
                None => OWN_TIME_MIN,
            };
            sleep(pause).await;
        }
    }
}

/// Since when nobody is at work on what a connection has asked.
pub(super) struct Idleness(Mutex<Option<Instant>>);

impl Default for Idleness {
    fn default() -> Self {
        Self(Mutex::new(Some(Instant::now())))
    }
}

impl Idleness {
    /// Does the work that was asked for.
    pub(super) async fn interrupted_by<T>(&self, work: impl Future<Output = T>) -> T {
        self.set(None);
        let done = work.await;
        self.set(Some(Instant::now()));
        done
    }

    fn since(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
}
