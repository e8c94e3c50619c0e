//! Traces as files.

use crate::{
    Checked, MergeError, Merged, Narration, Reader, Replayed, TraceError, TraceFault, check, merge, narrate,
    replay,
};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates the file of a new trace, readable by its owner alone: it holds names, ids and notes.
///
/// # Errors
/// What the system says; [`io::ErrorKind::AlreadyExists`] for a file that is there: a trace is evidence, and
/// neither overwritten nor mixed with another.
pub fn create(path: impl AsRef<Path>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens a trace.
///
/// # Errors
/// [`TraceError`] in line 0 if the file cannot be opened, in line 1 if it is no trace.
pub fn open(path: impl AsRef<Path>) -> Result<Reader<File>, TraceError> {
    let file = File::open(path).map_err(|error| TraceError {
        line: 0,
        fault: TraceFault::Unreadable(error.to_string()),
    })?;
    Reader::new(file)
}

/// [`replay`] of a file.
///
/// # Errors
/// As [`open`] and [`replay`].
pub fn replay_file(path: impl AsRef<Path>) -> Result<Replayed, TraceError> {
    replay(&mut open(path)?)
}

/// [`check`] of a file.
///
/// # Errors
/// As [`open`] and [`check`].
pub fn check_file(path: impl AsRef<Path>) -> Result<Checked, TraceError> {
    check(&mut open(path)?)
}

/// [`merge`] of files.
///
/// # Errors
/// As [`open`] and [`merge`].
pub fn merge_files(paths: &[impl AsRef<Path>]) -> Result<Merged, MergeError> {
    let opened = |(trace, path)| open(path).map_err(|error| MergeError::Trace { trace, error });
    let readers: Vec<_> = paths.iter().enumerate().map(opened).collect::<Result<_, _>>()?;
    merge(readers)
}

/// [`narrate`] of a file.
///
/// # Errors
/// As [`open`].
pub fn narrate_file(path: impl AsRef<Path>) -> Result<Narration<File>, TraceError> {
    Ok(narrate(open(path)?))
}
