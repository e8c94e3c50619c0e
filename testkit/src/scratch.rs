//! Folders that are gone afterwards.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Error;
use crate::layout::servers_dir;

/// An empty folder under `target/servers/scratch`, or elsewhere where systems empty that, removed with its
/// contents on drop, also when a test panics.
///
/// A fixture in a `static` is never dropped, and a killed process drops nothing. So each process keeps its
/// folders in one folder of its own and holds a file lock in it; the next process that makes a scratch folder
/// removes those whose lock is free.
#[derive(Debug)]
pub struct ScratchDir {
    path: PathBuf,
}

impl ScratchDir {
    /// Makes a folder. `label` is part of its name, for whoever looks at a failed test.
    ///
    /// # Panics
    /// When the target folder cannot be written.
    #[must_use]
    pub fn new(label: &str) -> ScratchDir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{label}", NEXT.fetch_add(1, Ordering::Relaxed));
        let path = of_this_process().join(name);
        fs::create_dir(&path).expect("the scratch folder of this process is writable");
        ScratchDir { path }
    }

    /// Where the folder is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path inside the folder.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// Makes a pipe inside the folder. Nobody writes into it: whoever opens it to read waits without end.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn pipe(&self, name: impl AsRef<Path>) -> PathBuf {
        let path = self.join(name);
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo is there").success(), "{}", path.display());
        path
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("testkit: could not remove {}: {error}", self.path.display());
        }
    }
}

/// Copies a folder with all that is in it to a path where nothing is.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<(), Error> {
    let doing = || Error::system(format!("copying {}", from.display()));
    fs::create_dir(to).map_err(doing())?;
    for entry in fs::read_dir(from).map_err(doing())? {
        let path = entry.map_err(doing())?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        match path.is_dir() {
            true => copy_folder(&path, &target)?,
            false => drop(fs::copy(&path, &target).map_err(doing())?),
        }
    }
    Ok(())
}

fn of_this_process() -> &'static Path {
    static FOLDER: OnceLock<(PathBuf, File)> = OnceLock::new();
    let (path, _alive) = FOLDER.get_or_init(|| claim().expect("the target folder is writable"));
    path
}

/// Where the folders of all processes are. The tests want servers that are believed to keep what they write,
/// and Tenure believes none that writes below [`EMPTIED`]. A checkout may be there, and is fit for all else.
fn scratch_dir() -> PathBuf {
    let usual = servers_dir();
    let elsewhere = match EMPTIED.iter().any(|emptied| usual.starts_with(emptied)) {
        true if rustix::process::geteuid().is_root() => Some(PathBuf::from("/var/cache")),
        true => std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")),
        false => None,
    };
    let all = elsewhere.map_or(usual, |caches| caches.join("tenure-testkit"));
    all.join("scratch")
}

/// Where systems have memory, or remove files.
const EMPTIED: [&str; 2] = ["/tmp", "/var/tmp"];

/// Sweeps what dead processes left, then makes this process's folder and locks it.
fn claim() -> io::Result<(PathBuf, File)> {
    let all = scratch_dir();
    fs::create_dir_all(&all)?;
    // One process at a time: a folder that is made but not locked yet looks just like a dead one.
    let turn = File::create(all.with_extension("lock"))?;
    turn.lock()?;
    for entry in fs::read_dir(&all)? {
        let path = entry?.path();
        let abandoned = File::open(path.join(ALIVE)).map_or(true, |lock| lock.try_lock().is_ok());
        if abandoned {
            // A server that is just being killed may still write; the next process sweeps again.
            fs::remove_dir_all(&path).unwrap_or_default();
        }
    }
    // Process numbers come again, and another container may share the folder under the same number.
    let path = (0u32..)
        .map(|attempt| all.join(format!("{}-{attempt}", std::process::id())))
        .find(|path| !path.exists())
        .expect("there are more numbers than folders");
    fs::create_dir(&path)?;
    let alive = File::create(path.join(ALIVE))?;
    alive.lock()?;
    Ok((path, alive))
}

const ALIVE: &str = "alive";
