//! Who takes a lock twice.

use super::acquire::Shared;
use super::guard::Hold;
use super::{Lock, LockError};
use crate::driver::Queueing;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tenure_core::{Authority, LeaseName};

/// What happens when an owner takes a lock that it has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Reentrancy {
    /// [`LockError::WaitsForItself`], at once.
    #[default]
    Refused,
    /// One more handle, with the same token; the lock is extended for it at once, unless it was extended
    /// within the last eighth of a beat, and is released when the last handle goes. The handle does not wait
    /// for the extension. One that is bound to a task goes with it, and no other handle does.
    Counted,
}

/// Somebody who takes locks and can be told from others: a request, a job, a session.
///
/// Locks that are taken by the manager itself have no owner: each waits for every other. An owner that takes
/// a name which it holds, or is about to take, is answered at once as [`Reentrancy`] says, so that it never
/// waits for itself. Clones are the same owner.
#[derive(Clone)]
pub struct LockOwner {
    shared: Arc<Shared>,
    claims: Arc<Claims>,
}

/// How often in a beat one more handle extends the lock: the engine would not do it oftener.
const EXTENSIONS_A_BEAT_MAX: u32 = 8;

/// What an owner has. Only its own tasks contend for it, and none waits while it is locked.
#[derive(Default)]
struct Claims(Mutex<Claimed>);

#[derive(Default)]
struct Claimed {
    next: u64,
    claims: BTreeMap<LeaseName, (u64, Stage)>,
}

/// How far an owner has come with a name.
enum Stage {
    Waiting,
    Taken(Weak<Hold>),
}

/// That an owner has a name, or is about to; it ends with it.
pub(super) struct Claim {
    claims: Arc<Claims>,
    name: LeaseName,
    number: u64,
}

/// What an owner finds.
enum Found {
    Nothing(Claim),
    Handle(Lock),
    Itself,
}

impl Claims {
    fn lock(&self) -> MutexGuard<'_, Claimed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LockOwner {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            claims: Arc::default(),
        }
    }

    /// As [`LockManager::lock`](super::LockManager::lock), for this owner.
    ///
    /// # Errors
    /// [`LockError`].
    pub async fn lock(&self, name: impl AsRef<str>) -> Result<Lock, LockError> {
        self.take(name.as_ref(), Queueing::Line, None).await
    }

    /// As [`LockManager::try_lock`](super::LockManager::try_lock), for this owner.
    ///
    /// # Errors
    /// [`LockError`].
    pub async fn try_lock(&self, name: impl AsRef<str>) -> Result<Lock, LockError> {
        self.take(name.as_ref(), Queueing::OneLook, None).await
    }

    /// As [`LockManager::try_lock_for`](super::LockManager::try_lock_for), for this owner.
    ///
    /// # Errors
    /// [`LockError`].
    pub async fn try_lock_for(&self, name: impl AsRef<str>, patience: Duration) -> Result<Lock, LockError> {
        self.take(name.as_ref(), Queueing::Line, Some(patience)).await
    }

    async fn take(
        &self,
        name: &str,
        queueing: Queueing,
        patience: Option<Duration>,
    ) -> Result<Lock, LockError> {
        let name = LeaseName::new(name).map_err(LockError::Name)?;
        match self.find(&name) {
            Found::Handle(lock) => Ok(lock),
            Found::Itself => Err(LockError::WaitsForItself(name)),
            Found::Nothing(claim) => {
                let held = self.shared.acquire(&name, queueing, patience).await?;
                let (claims, number) = (claim.claims.clone(), claim.number);
                let hold = Arc::new(Hold::new(held, Some(claim)));
                let lock = Lock::first(hold.clone());
                let mut claimed = claims.lock();
                if let Some(entry) = claimed.claims.get_mut(&name).filter(|entry| entry.0 == number) {
                    entry.1 = Stage::Taken(Arc::downgrade(&hold));
                }
                Ok(lock)
            }
        }
    }

    fn find(&self, name: &LeaseName) -> Found {
        loop {
            // The last handle may go while it is looked at, and takes its claim back: not while that is
            // locked.
            let (seen, taken) = match self.claims.lock().claims.get(name) {
                Some((_, Stage::Waiting)) => return Found::Itself,
                Some((number, Stage::Taken(hold))) => (Some(*number), hold.upgrade()),
                None => (None, None),
            };
            if let Some(hold) = taken
                && hold.authority() != Authority::None
            {
                match self.shared.reentrancy {
                    Reentrancy::Refused => return Found::Itself,
                    Reentrancy::Counted => {
                        let pause = self.shared.timing.lease().renew_every() / EXTENSIONS_A_BEAT_MAX;
                        if let Some(lock) = Lock::another(hold, pause) {
                            return Found::Handle(lock);
                        }
                    }
                }
            }
            if let Some(found) = self.claims.claim(name, seen) {
                return found;
            }
        }
    }
}

impl Claims {
    /// Nothing is had of the name but perhaps a term that is over, the `seen` one, whose guard waits for
    /// nobody. `None` if another task has taken it since it was looked at: that may be a term that goes on.
    fn claim(self: &Arc<Self>, name: &LeaseName, seen: Option<u64>) -> Option<Found> {
        let mut claimed = self.lock();
        match claimed.claims.get(name) {
            Some((_, Stage::Waiting)) => return Some(Found::Itself),
            Some((number, Stage::Taken(_))) if Some(*number) != seen => return None,
            Some((_, Stage::Taken(_))) | None => {}
        }
        let number = claimed.next;
        claimed.next += 1;
        claimed.claims.insert(name.clone(), (number, Stage::Waiting));
        Some(Found::Nothing(Claim {
            claims: self.clone(),
            name: name.clone(),
            number,
        }))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claimed = self.claims.lock();
        if claimed
            .claims
            .get(&self.name)
            .is_some_and(|entry| entry.0 == self.number)
        {
            claimed.claims.remove(&self.name);
        }
    }
}

impl fmt::Debug for LockOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<LeaseName> = self.claims.lock().claims.keys().cloned().collect();
        f.debug_struct("LockOwner")
            .field("has", &names)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Claims, Found, LeaseName, Stage};
    use std::sync::{Arc, Weak};

    #[test]
    fn what_another_task_has_taken_meanwhile_is_looked_at_before_it_is_claimed() {
        let claims = Arc::<Claims>::default();
        let name = LeaseName::new("a").expect("a name");
        let Some(Found::Nothing(first)) = claims.claim(&name, None) else {
            panic!("nobody has it")
        };
        assert!(matches!(claims.claim(&name, None), Some(Found::Itself)));
        let taken = |stage: &mut (u64, Stage)| stage.1 = Stage::Taken(Weak::new());
        claims.lock().claims.get_mut(&name).map(taken).expect("it waits");
        assert!(claims.claim(&name, None).is_none(), "it was taken after the look");
        // Whoever has seen that its term is over may take it anew.
        let again = claims.claim(&name, Some(first.number));
        assert!(matches!(again, Some(Found::Nothing(_))));
    }
}
