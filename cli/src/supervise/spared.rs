//! Children of this process that are none of the work, and are not ended with it.

use super::shell::awaited_shells;
use crate::warden::tree::{children_of, stat};
use rustix::process::{Pid, WaitOptions, getpid, waitpid};
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Those that were there before this process became `tenure`, as of the shell of a container's entry point.
/// None is reaped but here, so no number is another's.
static BROUGHT: Mutex<Option<HashSet<Pid>>> = Mutex::new(None);

/// Spares the children that this process has now: before it starts any.
pub(crate) fn spare_children() {
    reap_adopted(&[]);
    brought().get_or_insert_default().extend(children_of(getpid()));
}

/// All that are spared: those, and the shells that are waited for now.
pub(super) fn spared_children() -> HashSet<Pid> {
    let mut spared = awaited_shells();
    spared.extend(brought().iter().flatten());
    spared
}

/// Reaps what has ended and was left to this process, which adopts orphans: all but the shells that are
/// waited for, and `others`. From the thread that starts them: there is none that is not known yet.
pub(super) fn reap_adopted(others: &[Pid]) {
    let shells = awaited_shells();
    for child in children_of(getpid()) {
        if !others.contains(&child)
            && !shells.contains(&child)
            && stat(child).is_some_and(|stat| stat.state == 'Z')
        {
            let mut brought = brought();
            // One whose first thread alone has ended looks the same, and lives.
            if !matches!(waitpid(Some(child), WaitOptions::NOHANG), Ok(None)) {
                brought.get_or_insert_default().remove(&child);
            }
        }
    }
}

fn brought() -> MutexGuard<'static, Option<HashSet<Pid>>> {
    BROUGHT.lock().unwrap_or_else(PoisonError::into_inner)
}
