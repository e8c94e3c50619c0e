//! A new file that many open at once: whoever comes first makes the tables, the others find them.
use crate::common::PATIENCE;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use tenure_core::{Fault, StoreError};
use tenure_sqlite::SqliteStore;

#[test]
fn many_that_open_a_new_file_at_once_all_find_it_theirs() {
    const OPENERS: usize = 6;
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    for round in 0..150 {
        let file = folder.path().join(format!("{round}.db"));
        let start = Barrier::new(OPENERS);
        std::thread::scope(|threads| {
            let open = || {
                start.wait();
                open_while_it_is_busy(&file)
            };
            let openers: Vec<_> = (0..OPENERS).map(|_| threads.spawn(open)).collect();
            for opener in openers {
                opener.join().unwrap().unwrap();
            }
        });
    }
}

/// Whoever finds the file locked for two seconds, as on a machine that stands still, may try again; nobody is
/// told so sooner.
fn open_while_it_is_busy(file: &Path) -> Result<(), StoreError> {
    let began = Instant::now();
    loop {
        let tried_at = Instant::now();
        let Err(error) = SqliteStore::open(file) else {
            return Ok(());
        };
        let was_locked = error.fault == Fault::Busy && tried_at.elapsed() >= Duration::from_secs(2);
        if !was_locked || began.elapsed() > PATIENCE {
            return Err(error);
        }
    }
}
