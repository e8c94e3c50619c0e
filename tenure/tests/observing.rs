//! Who only looks, and what an observer makes of a store that shows what it knew before.
use crate::harness::{Site, long_timing, pass_on, soon};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure::contract::Page;
use tenure::{
    Answer, Election, Lease, LeaseName, LeaseStore, Observation, Observer, SharedStore, StoreError,
};
use tenure_testkit::eventually_async;

/// A real store, until it shows an old record.
struct Lagging {
    inner: SharedStore,
    old: Mutex<Option<Lease>>,
    shown: AtomicU32,
}

impl LeaseStore for Lagging {
    pass_on!(
        traits, acquire, renew, release, ask, list, watch, examine, run_beside
    );

    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        let Some(old) = self.old.lock().unwrap().clone() else {
            return self.inner.get(name);
        };
        self.shown.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(Some(old))))
    }
}

/// Neither is it taken for news, nor is what follows it waited for as long as a lease lasts.
#[tokio::test]
async fn an_observer_passes_over_an_old_record_and_looks_again_soon() {
    let site = Site::new();
    let first = site.election("first");
    let leadership = soon("the first term", first.campaign()).await.unwrap();
    let old = site.record("job").await.unwrap();
    leadership.step_down().await;
    let second = site.election("second");
    let leadership = soon("the second term", second.campaign()).await.unwrap();
    let store = Arc::new(Lagging {
        inner: site.store(),
        old: Mutex::new(None),
        shown: AtomicU32::new(0),
    });
    let election = Election::builder("job", store.clone()).timing(long_timing());
    let mut observer = election.build().unwrap().observe();
    let seen = soon("the second term", observer.next()).await;
    assert!(
        matches!(&seen, Observation::Held(lease) if lease.token == leadership.token()),
        "{seen:?}"
    );
    let token = leadership.token();
    let observing = tokio::spawn(async move { observer.next().await });
    // Its first look after that begins with its watch, and shows nothing new.
    tokio::time::sleep(Duration::from_millis(500)).await;
    *store.old.lock().unwrap() = Some(old);
    leadership.step_down().await;
    let has_shown = async || store.shown.load(Ordering::SeqCst) > 0;
    eventually_async(Duration::from_secs(20), "an old record", has_shown).await;
    *store.old.lock().unwrap() = None;
    let seen = soon("long before the lease would have ended", observing)
        .await
        .unwrap();
    assert!(
        matches!(&seen, Observation::Free(Some(lease)) if lease.token == token),
        "{seen:?}"
    );
}

#[tokio::test]
async fn who_leads_is_seen_without_a_candidacy_and_leaves_no_record() {
    let site = Site::new();
    let store = site.store();
    let mut observer = Observer::of("job", store.clone()).unwrap();
    let seen = soon("the first look", observer.next()).await;
    assert!(matches!(seen, Observation::Free(None)), "{seen:?}");
    let all = Page::first("", 10);
    assert!(store.list(&all).await.unwrap().leases.is_empty(), "it took part");
    let leadership = soon("the term", site.election("first").campaign()).await.unwrap();
    let seen = soon("who leads", observer.next()).await;
    assert!(
        matches!(&seen, Observation::Held(lease) if lease.token == leadership.token()),
        "{seen:?}"
    );
    leadership.step_down().await;
    let seen = soon("that nobody does", observer.next()).await;
    assert!(matches!(&seen, Observation::Free(Some(_))), "{seen:?}");
    assert!(Observer::of("", store).is_err());
}
