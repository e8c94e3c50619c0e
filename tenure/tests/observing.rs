//! Who only looks, and what an observer makes of a store that shows what it knew before.
use crate::harness::{Site, long_timing, pass_on, soon, timing};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure::contract::Page;
use tenure::{
    Answer, Election, Lease, LeaseName, LeaseStore, Observation, Observer, SharedStore, StoreError,
};
use tenure_testkit::eventually_async;

/// A real store, until it shows an old record, or none.
struct Lagging {
    inner: SharedStore,
    old: Mutex<Option<Option<Lease>>>,
    shown: AtomicU32,
}

impl Lagging {
    fn over(inner: SharedStore) -> Arc<Self> {
        Arc::new(Self {
            inner,
            old: Mutex::new(None),
            shown: AtomicU32::new(0),
        })
    }

    fn show(&self, old: Option<Lease>) {
        *self.old.lock().unwrap() = Some(old);
    }

    fn show_what_is_there(&self) {
        *self.old.lock().unwrap() = None;
    }

    async fn has_shown(&self) {
        let has_shown = async || self.shown.load(Ordering::SeqCst) > 0;
        eventually_async(Duration::from_secs(20), "an old record", has_shown).await;
    }
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
        Box::pin(std::future::ready(Ok(old)))
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
    let store = Lagging::over(site.store());
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
    store.show(Some(old));
    leadership.step_down().await;
    store.has_shown().await;
    store.show_what_is_there();
    let seen = soon("long before the lease would have ended", observing)
        .await
        .unwrap();
    assert!(
        matches!(&seen, Observation::Free(Some(lease)) if lease.token == token),
        "{seen:?}"
    );
}

/// As after a clean-up in a store whose replica, asked next, does not know of it yet.
#[tokio::test]
async fn an_observer_passes_over_an_old_record_also_after_none_was_there() {
    let site = Site::new();
    soon("the first term", site.election("first").campaign())
        .await
        .unwrap()
        .step_down()
        .await;
    let old = site.record("job").await.unwrap();
    let last = soon("the second term", site.election("second").campaign())
        .await
        .unwrap();
    let token = last.token();
    last.step_down().await;
    let store = Lagging::over(site.store());
    // Where nobody leads, it looks again after one of its ttls.
    let mut observer = Site::election_of(store.clone(), "third", timing()).observe();
    let seen = soon("the last term", observer.next()).await;
    assert!(
        matches!(&seen, Observation::Free(Some(lease)) if lease.token == token),
        "{seen:?}"
    );
    store.show(None);
    let seen = soon("that it was removed", observer.next()).await;
    assert!(matches!(seen, Observation::Free(None)), "{seen:?}");
    store.shown.store(0, Ordering::SeqCst);
    store.show(Some(old));
    let observing = tokio::spawn(async move { observer.next().await });
    store.has_shown().await;
    store.show_what_is_there();
    let seen = soon("what is there", observing).await.unwrap();
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
