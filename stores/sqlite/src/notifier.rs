//! Being told by the kernel that the wake file was read.

use crate::database::Database;
use crate::ear::Heard;
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

/// Bytes read from inotify at once: some hundred events, and what is left is read next.
const NOTIFICATIONS_BYTES: usize = 4096;

/// A descriptor that can be read when the wake file was.
pub(crate) fn open(database: &Database) -> Result<OwnedFd, Errno> {
    let notifier = database.notifier()?;
    listen(&notifier, database)?;
    Ok(notifier)
}

/// Listens to the wake file that is at the path now, and makes it if there is none.
pub(crate) fn listen(notifier: &OwnedFd, database: &Database) -> Result<(), Errno> {
    let path = database.wake.path();
    // Not every opening: who makes the file opens it, too, and that is no news.
    let flags = WatchFlags::ACCESS | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
    let listening = match inotify::add_watch(notifier, path, flags) {
        Err(Errno::NOENT) => {
            database.wake.create()?;
            inotify::add_watch(notifier, path, flags)
        }
        listening => listening,
    };
    listening.map(drop)
}

/// Reads what is there; `None` if nothing is. A wake file that was deleted or moved is made anew and
/// listened to again.
pub(crate) fn drain(notifier: &OwnedFd, database: &Database) -> Result<Option<Heard>, Errno> {
    let mut buffer = [MaybeUninit::uninit(); NOTIFICATIONS_BYTES];
    let mut reader = inotify::Reader::new(notifier, &mut buffer);
    let mut heard = None;
    let mut gone = false;
    loop {
        match reader.next() {
            Ok(event) => {
                let left = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED;
                gone |= event.events().intersects(left);
                heard = heard.or(Some(Heard::Change));
                if event.events().intersects(left | ReadFlags::QUEUE_OVERFLOW) {
                    heard = Some(Heard::Interruption);
                }
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(error) => return Err(error),
        }
    }
    if gone {
        listen(notifier, database)?;
    }
    Ok(heard)
}
