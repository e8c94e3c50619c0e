//! A file that the command touches as a sign of life.

use crate::exit::{Code, Failure};
use crate::output::{clean, short, unless_url};
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::watch;

/// Where the command finds the file's path.
const VARIABLE: &str = "TENURE_HEARTBEAT";

/// How often the file is looked at within the time in which it must be touched, and the bounds of that.
const LOOKS: u32 = 10;
const LOOK_EVERY_MIN: Duration = Duration::from_millis(10);
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);

/// A file, and how often it must be touched.
#[derive(Clone, Debug)]
pub(crate) struct Heartbeat {
    pub(crate) file: PathBuf,
    pub(crate) within: Duration,
}

/// What changes when the file is touched, written or replaced. Not compared with any clock: only that it
/// changes counts.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Trace {
    inode: u64,
    length: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl Heartbeat {
    /// Makes the file if it is not there, and answers what the command is told.
    ///
    /// # Errors
    /// [`Code::Configuration`]: it cannot be made or written. Nobody has campaigned yet.
    pub(crate) fn hand_over(&mut self) -> Result<(&'static str, OsString), Failure> {
        let made = std::path::absolute(&self.file).and_then(|file| {
            OpenOptions::new().create(true).append(true).open(&file)?;
            Ok(file)
        });
        self.file = made.map_err(|error| {
            let shown = unless_url(&self.file.to_string_lossy());
            let text =
                format!("--heartbeat-file \"{shown}\": {error}; name a file that the command may write to");
            Failure::new(Code::Configuration, text)
        })?;
        // Any bytes, as paths are: another one would be a file that nobody looks at.
        Ok((VARIABLE, self.file.clone().into_os_string()))
    }

    /// Returns when it was not touched for so long, and says so. Counts from now.
    pub(super) async fn missed(&self) -> String {
        let shown = clean(&self.file.to_string_lossy());
        let mut touches = match self.touches() {
            Ok(touches) => touches,
            Err(error) => return format!("{shown} cannot be looked at: {error}"),
        };
        while let Ok(Ok(())) = tokio::time::timeout(self.within, touches.changed()).await {}
        format!("{shown} was not touched for {}", short(self.within))
    }

    /// Tells when the file has changed. Looks from a thread that nobody waits for: a file system may hang,
    /// and neither the end of the term nor of this process may hang with it.
    fn touches(&self) -> std::io::Result<watch::Receiver<Option<Trace>>> {
        let every = (self.within / LOOKS).clamp(LOOK_EVERY_MIN, LOOK_EVERY_MAX);
        let (touched, touches) = watch::channel(None);
        let file = self.file.clone();
        let thread = std::thread::Builder::new().name("tenure heartbeat".to_owned());
        thread.spawn(move || {
            while !touched.is_closed() {
                let now = trace(&file);
                touched.send_if_modified(|last| {
                    let is_touched = now.is_some() && now != *last;
                    if is_touched {
                        *last = now;
                    }
                    is_touched
                });
                std::thread::sleep(every);
            }
        })?;
        Ok(touches)
    }
}

/// Nothing where it is not there.
fn trace(file: &Path) -> Option<Trace> {
    let found = fs::metadata(file).ok()?;
    Some(Trace {
        inode: found.ino(),
        length: found.size(),
        seconds: found.mtime(),
        nanoseconds: found.mtime_nsec(),
    })
}
