//! Being told by the kernel that the wake file was read or opened.

use crate::database::Database;
use crate::ear::Heard;
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

/// Bytes read from inotify at once: some hundred events, and what is left is read next.
const NOTIFICATIONS_BYTES: usize = 4096;

/// What is listened to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listened {
    /// That something changed, but for terms that begin: those may be many, and wake nobody who waits for an end.
    Ends,
    Everything,
}

/// A descriptor that can be read when there is news.
pub(crate) fn open(database: &Database, listened: Listened) -> Result<OwnedFd, Errno> {
    let notifier = database.notifier()?;
    listen(&notifier, database, listened)?;
    Ok(notifier)
}

/// Listens to the wake file that is at the path now, and makes it if there is none. Called again, it changes what is listened to.
pub(crate) fn listen(notifier: &OwnedFd, database: &Database, listened: Listened) -> Result<(), Errno> {
    let path = database.wake.path();
    let news = match listened {
        Listened::Ends => WatchFlags::ACCESS,
        Listened::Everything => WatchFlags::ACCESS | WatchFlags::OPEN,
    };
    // Its removal is told of as a change of what it is (of its links) while anybody has it open, and as its end after that.
    let flags = news | WatchFlags::ATTRIB | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
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
pub(crate) fn drain(
    notifier: &OwnedFd,
    database: &Database,
    listened: Listened,
) -> Result<Option<Heard>, Errno> {
    let mut buffer = [MaybeUninit::uninit(); NOTIFICATIONS_BYTES];
    let mut reader = inotify::Reader::new(notifier, &mut buffer);
    let mut heard = None;
    let mut gone = false;
    loop {
        match reader.next() {
            Ok(event) => {
                let left =
                    ReadFlags::ATTRIB | ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED;
                gone |= event.events().intersects(left);
                let news = match event.events() {
                    events if events.intersects(left | ReadFlags::QUEUE_OVERFLOW) => Heard::Interruption,
                    // Who makes the file, and who reads it for the first time in a second, opens it, too: one look for nothing.
                    events if events == ReadFlags::OPEN => Heard::Begin,
                    _ => Heard::Change,
                };
                heard = heard.max(Some(news));
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(error) => return Err(error),
        }
    }
    if gone {
        listen(notifier, database, listened)?;
    }
    Ok(heard)
}
