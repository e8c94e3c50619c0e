//! Files that somebody names: they may be anything.

use std::fs::File;
use std::io::{Error, Read as _, Result};
use std::path::Path;

/// A plain file, up to so many bytes of it. Nothing else is even opened: the end of a pipe that nobody writes
/// into any more, as a shell's `<(…)` leaves it, would be waited for without end, and so would everything
/// else on the store's thread.
///
/// # Errors
/// What the system says, or that it is no plain file.
pub fn begin_of_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    if !path.metadata()?.is_file() {
        return Err(Error::other("it is no plain file"));
    }
    let mut begin = Vec::new();
    File::open(path)?.take(bytes_max).read_to_end(&mut begin)?;
    Ok(begin)
}
