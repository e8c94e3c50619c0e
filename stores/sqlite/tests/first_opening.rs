//! A new file that many open at once: whoever comes first makes the tables, the others find them.
use std::sync::Barrier;
use tenure_sqlite::SqliteStore;

#[test]
fn many_that_open_a_new_file_at_once_all_find_it_theirs() {
    const OPENERS: usize = 6;
    let folder = tempfile::tempdir().unwrap();
    for round in 0..150 {
        let file = folder.path().join(format!("{round}.db"));
        let start = Barrier::new(OPENERS);
        std::thread::scope(|threads| {
            let open = || {
                start.wait();
                SqliteStore::open(&file).map(drop)
            };
            let openers: Vec<_> = (0..OPENERS).map(|_| threads.spawn(open)).collect();
            for opener in openers {
                opener.join().unwrap().unwrap();
            }
        });
    }
}
