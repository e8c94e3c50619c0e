//! Who waits in order goes by priority, unless somebody is called; and one who may not lead never goes.
use crate::harness::counting::Counting;
use crate::harness::{LONG_BEFORE, Site, enduring_lock_timing, long_lock_timing, pass_on, soon};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure::contract::{Answer, Event, Fault, LeasePage, Listed, Page, Release, Released};
use tenure::tooling::Standby;
use tenure::{Fairness, LeaseName, LeaseStore, LockError, LockManager, Priority, SharedStore, StoreError};
use tenure_testkit::eventually_async;

const SOON: Duration = Duration::from_secs(30);

fn manager(site: &Site, candidate: &str, priority: u16) -> LockManager {
    // A place that is lost is taken anew, behind those that came later.
    let builder = site.manager_builder(candidate).timing(long_lock_timing());
    builder
        .priority(Priority::new(priority).unwrap())
        .build()
        .unwrap()
}

fn job() -> LeaseName {
    LeaseName::new("job").unwrap()
}

/// Who waits, in order.
async fn waiting(site: &Site) -> Vec<String> {
    let standbys = Standby::list(&site.store(), &job()).await.unwrap();
    standbys
        .iter()
        .map(|standby| standby.candidate().to_string())
        .collect()
}

async fn until_waiting(site: &Site, expected: &[&str]) {
    eventually_async(SOON, "who waits", || async { waiting(site).await == expected }).await;
}

async fn call(site: &Site, candidate: &str) {
    let standbys = Standby::list(&site.store(), &job()).await.unwrap();
    let called = standbys
        .iter()
        .find(|standby| standby.candidate().as_str() == candidate);
    assert!(called.unwrap().call(&site.store()).await.unwrap());
}

#[tokio::test]
async fn turns_go_by_priority_then_arrival() {
    let site = Site::new();
    let blocker = manager(&site, "blocker", 1000);
    let first = soon("the first turn", blocker.turn("job")).await.unwrap();
    let story = Arc::new(Mutex::new(Vec::new()));
    let (mut tasks, mut expected) = (Vec::new(), vec!["blocker".to_owned()]);
    for (candidate, priority) in [("low", 1), ("high-b", 7), ("middle", 3), ("high-a", 7)] {
        let (manager, story) = (manager(&site, candidate, priority), story.clone());
        tasks.push(tokio::spawn(async move {
            let turn = manager.turn("job").await.unwrap();
            story.lock().unwrap().push(manager.candidate().id.to_string());
            drop(turn);
            manager.close().await;
        }));
        expected.push(candidate.to_owned());
        eventually_async(SOON, "its arrival", || async {
            let mut waiting = waiting(&site).await;
            waiting.sort();
            let mut expected = expected.clone();
            expected.sort();
            waiting == expected
        })
        .await;
    }
    assert_eq!(
        waiting(&site).await,
        ["blocker", "high-b", "high-a", "middle", "low"]
    );
    drop(first);
    for task in tasks {
        soon("its turn", task).await.unwrap();
    }
    assert_eq!(*story.lock().unwrap(), ["high-b", "high-a", "middle", "low"]);
}

#[tokio::test]
async fn whoever_may_never_lead_waits_and_holds_nobody_up() {
    let site = Site::new();
    let never = Arc::new(manager(&site, "never", 0));
    let waits = tokio::spawn({
        let never = never.clone();
        async move { never.turn("job").await.map(drop) }
    });
    until_waiting(&site, &["never"]).await;
    call(&site, "never").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waits.is_finished(), "its turn came");
    let other = manager(&site, "other", 1);
    drop(soon("the other's turn", other.turn("job")).await.unwrap());
    assert!(!waits.is_finished(), "its turn came");
    waits.abort();
}

/// That it was called is no news after the first time.
#[tokio::test]
async fn one_who_is_called_and_may_not_lead_does_not_look_without_a_pause() {
    let site = Site::new();
    let store = Arc::new(Counting::new(site.store()));
    let builder = LockManager::builder(store.clone()).candidate("never");
    let builder = builder.priority(Priority::new(0).unwrap());
    let never = builder.timing(enduring_lock_timing()).build().unwrap();
    let mut events = never.events();
    let waits = tokio::spawn(async move { never.turn("job").await.map(drop) });
    until_waiting(&site, &["never"]).await;
    call(&site, "never").await;
    let is_heard = |event| matches!(event, Event::AskedToStepDown { .. });
    while !is_heard(soon("the call", events.recv()).await.unwrap()) {}
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(store.pages() < 20, "{} looks", store.pages());
    waits.abort();
}

#[tokio::test]
async fn one_who_may_not_lead_keeps_nobody_from_a_free_lock() {
    let site = Site::new();
    let never = manager(&site, "never", 0);
    let waits = tokio::spawn(async move { never.turn("job").await.map(drop) });
    until_waiting(&site, &["never"]).await;
    let builder = site.manager_builder("other").fairness(Fairness::Fair);
    let other = builder.timing(long_lock_timing()).build().unwrap();
    drop(soon("the lock", other.try_lock("job")).await.unwrap());
    waits.abort();
}

/// As if it had waited: for however short a time somebody is patient.
#[tokio::test]
async fn one_who_may_not_lead_takes_no_free_lock_by_one_look_either() {
    let site = Site::new();
    let builder = site.manager_builder("never").fairness(Fairness::Fair);
    let builder = builder.priority(Priority::NEVER).timing(long_lock_timing());
    let never = builder.build().unwrap();
    let look = soon("one look", never.try_lock("job")).await;
    assert!(matches!(look, Err(LockError::OthersWait(_))), "{look:?}");
    let wait = soon(
        "a short wait",
        never.try_lock_for("job", Duration::from_millis(100)),
    )
    .await;
    assert!(matches!(wait, Err(LockError::TimedOut { .. })), "{wait:?}");
    assert!(site.record("job").await.is_none(), "it was taken");
}

#[tokio::test]
async fn a_turn_is_over_when_another_is_called_and_its_place_is_kept() {
    let site = Site::new();
    let (one, two) = (manager(&site, "one", 5), manager(&site, "two", 1));
    let turn = soon("the turn", one.turn("job")).await.unwrap();
    assert!(!turn.is_overtaken().await.unwrap());
    let two = tokio::spawn(async move { (two.turn("job").await.unwrap(), two) });
    until_waiting(&site, &["one", "two"]).await;
    let late = manager(&site, "late", 5);
    let late = tokio::spawn(async move { (late.turn("job").await.unwrap(), late) });
    until_waiting(&site, &["one", "late", "two"]).await;
    call(&site, "two").await;
    soon("the end of the turn", turn.over()).await;
    assert!(turn.is_overtaken().await.unwrap());
    let (second, two) = soon("the turn of the one who was called", two).await.unwrap();
    assert_eq!(waiting(&site).await, ["two", "one", "late"]);
    drop(second);
    two.close().await;
    assert!(soon("the turn again", turn.regain()).await.unwrap());
    assert!(!late.is_finished(), "it kept its place");
    drop(turn);
    drop(soon("the last turn", late).await.unwrap());
}

/// As by an operator, or by an outage of the store: others may have come before it meanwhile.
#[tokio::test]
async fn a_turn_whose_place_was_lost_is_over_and_is_not_regained() {
    let site = Site::new();
    let manager = manager(&site, "one", 1);
    let turn = soon("the turn", manager.turn("job")).await.unwrap();
    let standbys = Standby::list(&site.store(), &job()).await.unwrap();
    let [Standby { place, .. }] = standbys.as_slice() else {
        panic!("{standbys:?}")
    };
    let force = Release {
        name: place.name.clone(),
        incarnation: place.holder.incarnation,
        token: place.token,
        attempt: place.attempt,
    };
    let released = site.store().release(&[force]).await;
    assert!(
        matches!(released.as_slice(), [Ok(Released::Vacated)]),
        "{released:?}"
    );
    soon("the end of the turn", turn.over()).await;
    assert!(!soon("the turn again", turn.regain()).await.unwrap());
}

/// However few of them a store lists at once.
#[tokio::test]
async fn all_pages_of_a_queue_are_read() {
    let site = Site::new();
    let managers = ["one", "two", "three"].map(|id| Arc::new(manager(&site, id, 1)));
    let mut waits = Vec::new();
    for (number, manager) in managers.iter().enumerate() {
        let manager = manager.clone();
        waits.push(tokio::spawn(async move { manager.turn("job").await }));
        until_waiting(&site, &["one", "two", "three"][..=number]).await;
    }
    let store: SharedStore = Arc::new(Leafing { inner: site.store() });
    assert_eq!(Standby::list(&store, &job()).await.unwrap().len(), 3);
}

/// A real store that lists one record at a time.
struct Leafing {
    inner: SharedStore,
}

impl LeaseStore for Leafing {
    pass_on!(
        traits, acquire, renew, release, ask, get, watch, examine, run_beside
    );

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        let page = Page {
            limit: 1,
            ..page.clone()
        };
        Box::pin(async move { self.inner.list(&page).await })
    }
}

/// A real store that cannot tell of one place who has it, or cannot understand its record.
struct Doubting {
    inner: SharedStore,
    fault: Fault,
}

impl LeaseStore for Doubting {
    pass_on!(
        traits, acquire, renew, release, ask, get, watch, examine, run_beside
    );

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        Box::pin(async move {
            let mut read = self.inner.list(page).await?;
            let doubtful = Listed::Unreadable {
                key: format!("{}1/another", page.prefix),
                error: StoreError::not_applied(self.fault, "its members do not agree who holds it"),
            };
            read.leases.insert(0, doubtful);
            Ok(read)
        })
    }
}

/// Somebody may wait there, who is not overtaken; nobody does by a record that cannot be understood.
#[tokio::test]
async fn queue_is_read_past_no_place_of_which_the_store_cannot_tell_who_has_it() {
    let site = Site::new();
    let waits = manager(&site, "one", 1);
    let _turn = soon("the turn", waits.turn("job")).await.unwrap();
    until_waiting(&site, &["one"]).await;
    let listed = async |fault| {
        let inner = site.store();
        let store: SharedStore = Arc::new(Doubting { inner, fault });
        Standby::list(&store, &job()).await.map(|standbys| standbys.len())
    };
    assert_eq!(listed(Fault::Unreadable).await, Ok(1));
    let error = listed(Fault::Unreachable).await.unwrap_err();
    assert_eq!(error.fault, Fault::Unreachable);
}

#[tokio::test]
async fn a_manager_that_closes_ends_the_wait_behind_a_turn_that_somebody_keeps() {
    let site = Site::new();
    let builder = site.manager_builder("a").fairness(Fairness::Fair);
    let manager = builder.timing(long_lock_timing()).build().unwrap();
    let turn = soon("the turn", manager.turn("a")).await.unwrap();
    let owner = manager.owner();
    let waiting = tokio::spawn(async move { owner.lock("a").await.map(drop) });
    while manager.locks() < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let closing = tokio::spawn(async move { manager.close().await });
    // Not only when the turn would be passed over, after a ttl.
    let ended = tokio::time::timeout(LONG_BEFORE, waiting).await;
    let ended = ended.expect("it still waits").unwrap();
    assert!(matches!(ended, Err(LockError::Stopped(_))), "{ended:?}");
    drop(turn);
    soon("closed", closing).await.unwrap();
}
