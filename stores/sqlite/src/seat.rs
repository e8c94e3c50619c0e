//! Connections that are used only while their files stand at the path, and left as soon as they do not.

use crate::files::{Files, Paths, abandon};
use crate::trouble::Trouble;
use rusqlite::Connection;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

/// Every seat of this process. Whoever finds that the files are others must have the rest of the process
/// leave the old ones, too, the idle ones before all: see [`refuse_removed`](crate::files::refuse_removed).
static SEATS: Mutex<Vec<Weak<dyn Leave>>> = Mutex::new(Vec::new());

/// What sits on a seat: a connection to one file, and what goes with it.
pub(crate) trait Connected: Send + 'static {
    /// Prepares it to be closed after its file is gone: see [`abandon`].
    fn leave(&self);
}

impl Connected for Connection {
    fn leave(&self) {
        abandon(self);
    }
}

/// What one handle has open, in a mutex for `Sync`; empty after its files were found to be others.
pub(crate) struct Seat<C: Connected> {
    paths: Paths,
    taken: Mutex<Option<(C, Files)>>,
}

/// The same, while it is used.
pub(crate) struct Seated<'a, C>(MutexGuard<'a, Option<(C, Files)>>);

impl<C> Deref for Seated<'_, C> {
    type Target = C;

    fn deref(&self) -> &C {
        let (connected, _) = self.0.as_ref().expect("connected before it was handed out");
        connected
    }
}

impl<C: Connected> Seat<C> {
    /// A seat for what was opened on these files.
    pub(crate) fn new(paths: Paths, opened: (C, Files)) -> Arc<Self> {
        let seat = Arc::new(Self {
            paths,
            taken: Mutex::new(Some(opened)),
        });
        let mut seats = SEATS.lock().unwrap_or_else(PoisonError::into_inner);
        seats.retain(|seat| seat.strong_count() > 0);
        let weak: Weak<Self> = Arc::downgrade(&seat);
        seats.push(weak);
        seat
    }

    /// What is open of the files that stand at the path *now*.
    ///
    /// Somebody who deletes or replaces the database, its log or the index of its log leaves every open
    /// connection with the old ones, where it would go on renewing while others elect in the new ones. Hence
    /// the look before each use.
    pub(crate) fn take(
        &self,
        reopen: impl FnOnce() -> Result<(C, Files), Trouble>,
    ) -> Result<Seated<'_, C>, Trouble> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        leave_if_others(&mut taken, &self.paths);
        if taken.is_none() {
            *taken = Some(reopen()?);
        }
        Ok(Seated(taken))
    }
}

/// The last one that closes a database writes the log that it has open into it, and removes the one that
/// stands at the path: if that is another by now, what others have written since would be gone.
impl<C: Connected> Drop for Seat<C> {
    fn drop(&mut self) {
        let taken = self.taken.get_mut().unwrap_or_else(PoisonError::into_inner);
        leave_if_others(taken, &self.paths);
    }
}

/// Closes the connections if their files no longer stand at the path.
fn leave_if_others<C: Connected>(taken: &mut Option<(C, Files)>, paths: &Paths) {
    if let Some((connected, _)) = taken.take_if(|(_, files)| *files != Files::at(paths)) {
        connected.leave();
    }
}

trait Leave: Send + Sync {
    fn leave_if_others(&self, database: &Path);
}

impl<C: Connected> Leave for Seat<C> {
    fn leave_if_others(&self, database: &Path) {
        if self.paths.database != database {
            return;
        }
        // One that is in use looks for itself at its next use; and waiting for each other must not end in a
        // circle.
        match self.taken.try_lock() {
            Ok(mut taken) => leave_if_others(&mut taken, &self.paths),
            Err(TryLockError::Poisoned(poisoned)) => leave_if_others(&mut poisoned.into_inner(), &self.paths),
            Err(TryLockError::WouldBlock) => {}
        }
    }
}

/// Has every idle seat of this process leave the files of this database that no longer stand at their paths.
pub(crate) fn all_leave_if_others(database: &Path) {
    let seats: Vec<_> = SEATS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
        .filter_map(Weak::upgrade)
        .collect();
    for seat in seats {
        seat.leave_if_others(database);
    }
}
