//! Being told by the kernel that the wake file was read or opened.

use crate::database::Database;
use crate::ear::Heard;
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use tenure_core::Interest;

/// Bytes read from inotify at once: some hundred events, and what is left is read next.
const NOTIFICATIONS_BYTES: usize = 4096;

/// A descriptor that can be read when there is news.
pub(crate) fn open(database: &Database, interest: Interest) -> Result<OwnedFd, Errno> {
    let notifier = database.notifier()?;
    listen(&notifier, database, interest)?;
    Ok(notifier)
}

/// Listens to the wake file that is at the path now, and makes it if there is none. Called again, it changes
/// what is listened to.
pub(crate) fn listen(notifier: &OwnedFd, database: &Database, interest: Interest) -> Result<(), Errno> {
    let path = database.wake.path();
    let news = match interest {
        // Terms that begin may be many, and wake nobody who waits for an end. One that was given back is told
        // of by a knock, and what follows it has another token: whoever waits for every end misses neither.
        Interest::Ends | Interest::EveryEnd => WatchFlags::ACCESS,
        Interest::Everything => WatchFlags::ACCESS | WatchFlags::OPEN,
    };
    // Its removal is told of as a change of what it is (of its links) while anybody has it open, and as its
    // end after that.
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
    interest: Interest,
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
                    // Who makes the file, and who reads it for the first time in a second, opens it, too: one
                    // look for nothing.
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
        listen(notifier, database, interest)?;
    }
    Ok(heard)
}
