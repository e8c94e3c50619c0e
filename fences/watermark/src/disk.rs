//! What a power cut cannot take.

use std::fs::File;
use std::io;

/// Where the file of a watermark is: a trait, so that a test may have each sync fail by itself.
pub(crate) trait Disk: Send + Sync {
    /// Has a file, or the names in a directory, on the disk when it returns.
    fn sync(&self, file: &File) -> io::Result<()>;
}

pub(crate) struct RealDisk;

impl Disk for RealDisk {
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::{Disk, RealDisk};
    use crate::{FileSystemTrust, Watermark};
    use std::fs::{self, File};
    use std::io;
    use std::os::fd::AsRawFd as _;
    use std::path::{Path, PathBuf};
    use std::pin::pin;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tenure_core::{Fault, Fence as _, FenceError, FencingToken, LeaseName, ResourceName, Term};
    use tokio::sync::oneshot;
    use tokio::time::timeout;

    /// A disk that notes what is synced, of which one sync fails or has something happen after it.
    #[derive(Clone, Default)]
    struct Watched(Arc<Mutex<Seen>>);

    #[derive(Default)]
    struct Seen {
        synced: Vec<PathBuf>,
        fails_at: Option<usize>,
        meanwhile: Option<Box<dyn FnOnce() + Send>>,
    }

    impl Watched {
        /// From here on: this sync fails, counted from one.
        fn fail_at(&self, nth: Option<usize>) {
            *self.0.lock().unwrap() = Seen {
                fails_at: nth,
                ..Seen::default()
            };
        }

        fn synced(&self) -> Vec<PathBuf> {
            self.0.lock().unwrap().synced.clone()
        }

        fn open(&self, path: &Path) -> Result<Watermark, FenceError> {
            Watermark::open_within(
                path,
                FileSystemTrust::LocalOnly,
                Duration::ZERO,
                Box::new(self.clone()),
            )
        }
    }

    impl Disk for Watched {
        fn sync(&self, file: &File) -> io::Result<()> {
            let mut seen = self.0.lock().unwrap();
            let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
            seen.synced.push(path.unwrap());
            if seen.fails_at == Some(seen.synced.len()) {
                return Err(io::Error::other("a bad block"));
            }
            RealDisk.sync(file)?;
            seen.meanwhile.take().into_iter().for_each(|happens| happens());
            Ok(())
        }
    }

    fn ledger() -> ResourceName {
        ResourceName::new("ledger").unwrap()
    }

    fn term(number: u64) -> Term {
        let lease = LeaseName::new("nightly").unwrap();
        Term::new(lease, FencingToken::new(number).unwrap())
    }

    /// The folder of a watermark, and the paths of its file and of the new one that replaces it.
    fn scratch() -> (tempfile::TempDir, PathBuf, [PathBuf; 2]) {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().canonicalize().unwrap();
        let files = [folder.join("marks"), folder.join("marks.new")];
        (scratch, folder, files)
    }

    fn fault<T: std::fmt::Debug>(failed: Result<T, FenceError>) -> Fault {
        match failed {
            Err(FenceError::Store(error)) => error.fault,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_claim_syncs_its_file_and_then_its_name_and_no_term_is_admitted_where_one_of_them_fails() {
        let (_scratch, folder, [marks, new]) = scratch();
        let disk = Watched::default();
        let fence = disk.open(&marks).unwrap();
        for (nth, number) in [(1, 7), (2, 8)] {
            disk.fail_at(Some(nth));
            assert_eq!(
                fault(fence.claim(&ledger(), &term(number)).await),
                Fault::Internal,
                "{nth}"
            );
            assert_eq!(fault(fence.admit(&ledger(), &term(number))), Fault::Busy, "{nth}");
            disk.fail_at(None);
            fence.claim(&ledger(), &term(number)).await.unwrap();
            assert_eq!(disk.synced(), [new.clone(), folder.clone()]);
            drop(fence.admit(&ledger(), &term(number)).unwrap());
        }
    }

    /// Who wrote the file may have been killed before either.
    #[tokio::test]
    async fn an_opening_syncs_the_file_and_its_name_and_believes_no_mark_where_one_of_them_fails() {
        let (_scratch, folder, [marks, _new]) = scratch();
        let disk = Watched::default();
        let fence = disk.open(&marks).unwrap();
        fence.claim(&ledger(), &term(7)).await.unwrap();
        drop(fence);
        for nth in [1, 2] {
            disk.fail_at(Some(nth));
            assert_eq!(fault(disk.open(&marks)), Fault::Internal, "{nth}");
        }
        disk.fail_at(None);
        let fence = disk.open(&marks).unwrap();
        assert_eq!(disk.synced(), [marks, folder]);
        drop(fence.admit(&ledger(), &term(7)).unwrap());
    }

    /// It wakes while the mark of the later one is on its way to the disk.
    #[tokio::test]
    async fn a_claim_that_was_overtaken_while_it_waited_lets_nobody_in_before_the_later_mark_is_on_disk() {
        let (_scratch, _folder, [marks, _new]) = scratch();
        let disk = Watched::default();
        let fence = disk.open(&marks).unwrap();
        fence.claim(&ledger(), &term(5)).await.unwrap();
        let inside = fence.admit(&ledger(), &term(5)).unwrap();
        let ((syncs, syncing), (go_on, goes_on)) = (oneshot::channel(), std::sync::mpsc::channel());
        let (ledger, earlier, later) = (ledger(), term(9), term(11));
        disk.fail_at(None);
        let mut overtaken = pin!(fence.claim(&ledger, &earlier));
        // On disk, and waiting for the write.
        while fence.mark(&ledger).await.unwrap().unwrap().token != earlier.token || disk.synced().len() < 2 {
            let _waits = timeout(Duration::from_millis(1), &mut overtaken).await;
        }
        disk.0.lock().unwrap().meanwhile = Some(Box::new(move || {
            syncs.send(()).unwrap();
            // Also where the test has failed.
            let _told = goes_on.recv();
        }));
        let later_claim = tokio::spawn({
            let (fence, ledger, later) = (fence.clone(), ledger.clone(), later.clone());
            async move { fence.claim(&ledger, &later).await }
        });
        syncing.await.unwrap();
        drop(inside);
        let refused = overtaken.await.unwrap_err();
        assert!(matches!(refused, FenceError::Stale { .. }), "{refused}");
        assert_eq!(fault(fence.admit(&ledger, &later)), Fault::Busy);
        go_on.send(()).unwrap();
        later_claim.await.unwrap().unwrap();
        drop(fence.admit(&ledger, &later).unwrap());
    }

    /// What came after the look at the marks is in the next write, which may fail.
    #[tokio::test]
    async fn claims_that_come_during_a_write_share_the_next_one_and_hear_what_became_of_that() {
        let (_scratch, _folder, [marks, _new]) = scratch();
        let disk = Watched::default();
        let fence = disk.open(&marks).unwrap();
        let ((syncs, syncing), (go_on, goes_on)) = (oneshot::channel(), std::sync::mpsc::channel());
        // The first write syncs twice.
        disk.fail_at(Some(3));
        disk.0.lock().unwrap().meanwhile = Some(Box::new(move || {
            syncs.send(()).unwrap();
            // Also where the test has failed.
            let _told = goes_on.recv();
        }));
        let first = tokio::spawn({
            let fence = fence.clone();
            async move { fence.claim(&ledger(), &term(7)).await }
        });
        syncing.await.unwrap();
        let resources: Vec<ResourceName> = (0..50)
            .map(|number| ResourceName::new(format!("ledger {number}")).unwrap())
            .collect();
        let term = term(7);
        let mut later: Vec<_> = resources.iter().map(|name| fence.claim(name, &term)).collect();
        for claim in &mut later {
            assert!(timeout(Duration::ZERO, claim).await.is_err());
        }
        go_on.send(()).unwrap();
        first.await.unwrap().unwrap();
        for (claim, resource) in later.into_iter().zip(&resources) {
            assert_eq!(fault(claim.await), Fault::Internal);
            assert_eq!(fault(fence.admit(resource, &term)), Fault::Busy);
        }
        assert_eq!(disk.synced().len(), 3);
    }

    #[tokio::test]
    async fn a_claim_that_nobody_waits_for_any_more_is_written_before_the_file_is_free() {
        let (_scratch, _folder, [marks, _new]) = scratch();
        let disk = Watched::default();
        let fence = disk.open(&marks).unwrap();
        disk.fail_at(None);
        disk.0.lock().unwrap().meanwhile = Some(Box::new(|| std::thread::sleep(Duration::from_millis(100))));
        let given_up = timeout(Duration::from_millis(1), fence.claim(&ledger(), &term(7))).await;
        assert!(given_up.is_err());
        drop(fence);
        let fence = disk.open(&marks).unwrap();
        drop(fence.admit(&ledger(), &term(7)).unwrap());
    }

    /// Another process may have opened the file by then, and have raised a mark.
    #[tokio::test]
    async fn a_lock_that_is_removed_while_the_disk_is_waited_for_lets_no_file_be_replaced() {
        let (_scratch, folder, [marks, _new]) = scratch();
        let disk = Watched::default();
        let fence = disk.open(&marks).unwrap();
        fence.claim(&ledger(), &term(7)).await.unwrap();
        let kept = fs::read(&marks).unwrap();
        disk.0.lock().unwrap().meanwhile = Some(Box::new(move || {
            fs::remove_file(folder.join("marks.lock")).unwrap();
        }));
        assert_eq!(fault(fence.claim(&ledger(), &term(8)).await), Fault::Busy);
        assert_eq!(fs::read(&marks).unwrap(), kept);
    }
}
