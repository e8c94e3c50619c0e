//! A clock that only one server has, and that a test may set.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use super::locate::faketime_library;
use crate::error::Error;
use crate::scratch::ScratchDir;

/// The wall clock of a server: right until it is [set](Self::set_ahead). Its monotonic clock is this
/// machine's.
///
/// It is libfaketime's work, which stands between the server and the system's calls. Clones are the same
/// clock.
#[derive(Clone, Debug)]
pub struct ServerClock {
    folder: Arc<ScratchDir>,
    library: PathBuf,
}

impl ServerClock {
    /// A clock that is right.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], with the command that installs the library.
    pub fn new() -> Result<Self, Error> {
        let clock = Self {
            folder: Arc::new(ScratchDir::new("clock")),
            library: faketime_library()?,
        };
        clock.set_ahead(0.0)?;
        Ok(clock)
    }

    /// From now on it is so many seconds ahead of this machine's, or behind, if that is negative.
    ///
    /// # Errors
    /// The file that the server reads it from cannot be written.
    pub fn set_ahead(&self, seconds: f64) -> Result<(), Error> {
        // Whole in one moment: the server reads it with every look at its clock.
        let (written, read) = (self.folder.join("next"), self.folder.join("ahead"));
        std::fs::write(&written, format!("{seconds:+.3}"))
            .and_then(|()| std::fs::rename(&written, &read))
            .map_err(Error::system("setting a server's clock"))
    }

    /// Has the server that is started by this have the clock.
    pub(super) fn give(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", self.folder.join("ahead"))
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("FAKETIME_DISABLE_SHM", "1");
    }
}
