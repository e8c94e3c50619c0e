//! A new term claims everything that it will change in one moment.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure_core::{Fence as _, FencingToken, LeaseName, ListedMark, ResourceName, Term};
use tenure_watermark::Watermark;

/// How many of its threads there may be at once: those of the tests beside this one, too.
const THREADS_MAX: usize = 20;

/// Threads of this process that write watermarks. The kernel keeps 15 characters of a name.
fn writers() -> usize {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let names = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("tenure-waterma")).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_resources_are_claimed_at_once_by_one_thread() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("marks");
    let fence = Watermark::open(&path).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let watching = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let mut most = 0;
            while !is_over.load(Ordering::SeqCst) {
                most = most.max(writers());
                std::thread::sleep(Duration::from_millis(1));
            }
            most
        }
    });
    let term = Term::new(LeaseName::new("nightly").unwrap(), FencingToken::new(7).unwrap());
    let claims = (0..5_000).map(|number| {
        let (fence, term) = (fence.clone(), term.clone());
        let resource = ResourceName::new(format!("ledger {number:04}")).unwrap();
        tokio::spawn(async move { fence.claim(&resource, &term).await })
    });
    for claim in claims.collect::<Vec<_>>() {
        claim.await.unwrap().unwrap();
    }
    is_over.store(true, Ordering::SeqCst);
    let most = watching.join().unwrap();
    assert!(most < THREADS_MAX, "{most} threads wrote");
    drop(fence);
    let kept = Watermark::look(&path).unwrap().unwrap();
    let (mut count, mut after) = (0, None);
    loop {
        let page = kept.marks(after.as_ref()).await.unwrap();
        count += page.marks.iter().filter_map(ListedMark::understood).count();
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(count, 5_000);
}
