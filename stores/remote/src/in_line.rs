//! What those who stand in line learn of who was before them.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was tried in vain while others stood in line for it. Who has waited for that has had the answer: were
/// each to try anew when its turn comes, the last would wait for as many tries as there are callers.
#[derive(Debug)]
pub struct TriedInVain<E>(Mutex<State<E>>);

#[derive(Debug)]
struct State<E> {
    count: u64,
    last: Option<E>,
}

impl<E> Default for TriedInVain<E> {
    fn default() -> Self {
        Self(Mutex::new(State { count: 0, last: None }))
    }
}

impl<E: Clone> TriedInVain<E> {
    /// How often so far: to be asked before standing in line.
    pub fn count(&self) -> u64 {
        self.state().count
    }

    /// Once more, and why in vain.
    pub fn note(&self, why: &E) {
        let mut state = self.state();
        state.count += 1;
        state.last = Some(why.clone());
    }

    /// To be asked when one's turn has come, with the count from before.
    ///
    /// # Errors
    /// Why it was in vain the last time, if it was since then.
    pub fn since(&self, count: u64) -> Result<(), E> {
        let state = self.state();
        match &state.last {
            Some(why) if state.count > count => Err(why.clone()),
            Some(_) | None => Ok(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<E>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
