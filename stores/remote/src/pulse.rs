//! A timer that is due soon, while requests are made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How soon: before any bound of a request.
const BEAT: Duration = Duration::from_millis(40);

/// Spares a request two calls of the system. Whoever waits with a bound sets a timer, and the runtime, which
/// would sleep past it, wakes itself to look again; not where it will wake before that anyway, for a timer
/// that is due sooner.
#[derive(Clone, Default, Debug)]
pub(crate) struct Pulse(Arc<State>);

#[derive(Default, Debug)]
struct State {
    beats: AtomicBool,
    /// Since the last beat.
    is_used: AtomicBool,
}

impl Pulse {
    /// A request is about to be made: beats until none was made between two beats.
    pub(crate) fn keep(&self) {
        self.0.is_used.store(true, Ordering::Relaxed);
        if self.0.beats.swap(true, Ordering::Relaxed) {
            return;
        }
        let beating = Beating(Arc::clone(&self.0));
        tokio::spawn(async move {
            while beating.0.is_used.swap(false, Ordering::Relaxed) {
                tokio::time::sleep(BEAT).await;
            }
        });
    }
}

/// Where it ends with its runtime, another may begin.
struct Beating(Arc<State>);

impl Drop for Beating {
    fn drop(&mut self) {
        self.0.beats.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{BEAT, Pulse};
    use std::sync::atomic::Ordering;

    fn beats(pulse: &Pulse) -> bool {
        pulse.0.beats.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn it_beats_while_requests_are_made_and_ends_when_none_is() {
        let pulse = Pulse::default();
        for _request in 0..10 {
            pulse.keep();
            tokio::time::sleep(BEAT).await;
            assert!(beats(&pulse));
        }
        tokio::time::sleep(3 * BEAT).await;
        assert!(!beats(&pulse));
        pulse.keep();
        assert!(beats(&pulse));
    }

    #[test]
    fn it_begins_anew_where_its_runtime_ended() {
        let pulse = Pulse::default();
        for _runtime in 0..2 {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .expect("a runtime");
            runtime.block_on(async { pulse.keep() });
            assert!(beats(&pulse));
            drop(runtime);
            assert!(!beats(&pulse));
        }
    }
}
