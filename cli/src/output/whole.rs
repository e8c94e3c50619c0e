//! Writing to a file that may refuse what does not fit in now.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;

/// Writes all of it. Somebody else who has the file open may have set it to refuse what does not fit in now:
/// it is waited for all the same, as a part of a line is none, and one that is lost would be missing unsaid.
///
/// # Errors
/// It cannot be written.
pub(super) fn write_whole(output: &mut (impl Write + AsFd), bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match output.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => until_writable(output)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    loop {
        match output.flush() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => until_writable(output)?,
            flushed => return flushed,
        }
    }
}

fn until_writable(output: &impl AsFd) -> io::Result<()> {
    match poll(&mut [PollFd::new(output, PollFlags::OUT)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
