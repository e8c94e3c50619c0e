//! Who takes the steps of a manager's driver: whoever asks for a lock, or the manager's thread.
use crate::harness::{PATIENCE, Site, enduring_lock_timing, long_lock_timing, long_timing, pass_on, soon};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;
use tenure::contract::{Acquire, Acquired, Answer, Lease, Release, Released, Renew, Renewed};
use tenure::{
    Authority, Election, LeaseName, LeaseStore, LockError, LockManager, LockTiming, ReleaseOutcome,
    SharedStore, StoreError,
};
use tenure_testkit::eventually_async;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Call {
    Acquire,
    Renew,
    Release,
}

/// Passes every call on to a real store, and knows which thread it came from.
struct Told {
    inner: SharedStore,
    /// How long each call blocks its thread, as on a slow disk.
    blocks: Duration,
    panics: AtomicBool,
    calls: Mutex<Vec<(Call, ThreadId)>>,
}

impl Told {
    fn over(site: &Site, blocks: Duration) -> Arc<Self> {
        Arc::new(Self {
            inner: site.store(),
            blocks,
            panics: AtomicBool::new(false),
            calls: Mutex::default(),
        })
    }

    fn note(&self, call: Call) {
        self.calls.lock().unwrap().push((call, thread::current().id()));
        if !self.blocks.is_zero() {
            thread::sleep(self.blocks);
        }
    }

    /// How many of these came from this thread, and how many from others.
    fn threads_of(&self, call: Call) -> (usize, usize) {
        let calls = self.calls.lock().unwrap();
        let of_call = calls.iter().filter(|(other, _)| *other == call);
        let is_here = |(_, id): &&(Call, ThreadId)| *id == thread::current().id();
        let here = of_call.clone().filter(is_here).count();
        (here, of_call.count() - here)
    }
}

impl LeaseStore for Told {
    pass_on!(traits, ask, list, watch, examine, run_beside);

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        Box::pin(async move {
            self.note(Call::Acquire);
            assert!(!self.panics.swap(false, Ordering::SeqCst), "a store that panics");
            self.inner.acquire(request).await
        })
    }
    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        Box::pin(async move {
            self.note(Call::Renew);
            self.inner.renew(requests).await
        })
    }
    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        Box::pin(async move {
            assert!(!self.panics.swap(false, Ordering::SeqCst), "a store that panics");
            self.inner.get(name).await
        })
    }
    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>> {
        Box::pin(async move {
            self.note(Call::Release);
            self.inner.release(requests).await
        })
    }
}

fn manager(store: &Arc<Told>, timing: LockTiming) -> LockManager {
    let builder = LockManager::builder(store.clone()).timing(timing);
    builder.build().unwrap()
}

async fn lock_and_release(manager: &LockManager, times: usize) {
    for _time in 0..times {
        let mut lock = soon("the lock", manager.lock("orders/7")).await.unwrap();
        assert_eq!(
            soon("the release", lock.release()).await,
            ReleaseOutcome::Released
        );
    }
}

/// Until there was one that took a lock here and one that gave it back here. However slow the machine is: of
/// 200 that ask, some that lock and mostly some that release are to find out whether it still is.
async fn lock_and_release_until_both_were_here(store: &Arc<Told>) {
    let manager = manager(store, long_lock_timing());
    for hundreds in 1..=10 {
        lock_and_release(&manager, 100).await;
        let calls = [Call::Acquire, Call::Release].map(|call| store.threads_of(call));
        assert!(
            calls
                .iter()
                .all(|(here, elsewhere)| here + elsewhere == 100 * hundreds)
        );
        if calls.iter().all(|(here, _)| *here > 0) {
            return;
        }
    }
    panic!("none here");
}

/// Otherwise each lock would wake a thread, and wait for it to wake this one.
#[tokio::test]
async fn whoever_asks_for_a_lock_asks_the_store_where_they_are() {
    let site = Site::in_memory();
    lock_and_release_until_both_were_here(&Told::over(&site, Duration::ZERO)).await;
}

#[tokio::test]
async fn a_slow_store_keeps_the_thread_of_the_manager_busy_and_not_those_who_ask() {
    let site = Site::new();
    let store = Told::over(&site, Duration::from_millis(3));
    let manager = manager(&store, long_lock_timing());
    lock_and_release(&manager, 100).await;
    let (acquired, _) = store.threads_of(Call::Acquire);
    let (released, _) = store.threads_of(Call::Release);
    // The 1st, 3rd, 8th, 25th, 90th and 155th of 200 find out whether it is still slow.
    assert!(acquired + released <= 6, "{acquired} and {released} here");
}

/// It must go on while this thread is blocked by code of the user's.
#[tokio::test]
async fn what_is_held_is_extended_by_the_thread_of_the_manager_alone() {
    let site = Site::new();
    let store = Told::over(&site, Duration::ZERO);
    let manager = manager(&store, enduring_lock_timing());
    let lock = soon("the lock", manager.lock("orders/7")).await.unwrap();
    let until = lock.until();
    while store.threads_of(Call::Renew).1 < 3 {
        thread::sleep(Duration::from_millis(10));
        assert!(lock.authority().token().is_some());
    }
    assert!(lock.until() > until);
    assert_eq!(store.threads_of(Call::Renew).0, 0);
}

#[tokio::test]
async fn a_store_that_panics_in_the_step_of_whoever_asks_is_asked_again() {
    let site = Site::new();
    let store = Told::over(&site, Duration::ZERO);
    let manager = manager(&store, long_lock_timing());
    store.panics.store(true, Ordering::SeqCst);
    let mut lock = soon("the lock", manager.lock("orders/7")).await.unwrap();
    assert_eq!(
        soon("the release", lock.release()).await,
        ReleaseOutcome::Released
    );
    assert!(!store.panics.load(Ordering::SeqCst), "it has panicked");
}

#[tokio::test]
async fn a_store_that_panics_in_the_look_at_whose_a_lock_is_is_asked_again() {
    let site = Site::new();
    let store = Told::over(&site, Duration::ZERO);
    let builder = LockManager::builder(store.clone()).owner_tag("billing");
    let manager = builder.timing(long_lock_timing()).build().unwrap();
    store.panics.store(true, Ordering::SeqCst);
    let mut lock = soon("the lock", manager.lock("orders/7")).await.unwrap();
    assert_eq!(
        soon("the release", lock.release()).await,
        ReleaseOutcome::Released
    );
    assert!(!store.panics.load(Ordering::SeqCst), "it has panicked");
}

/// A real store: while it lets somebody take a lock on one thread, another asks for one more.
struct Crowded {
    inner: SharedStore,
    asks: Mutex<mpsc::Sender<()>>,
    has_asked: Mutex<mpsc::Receiver<()>>,
    here: ThreadId,
    /// How many were taken there, of [`CROWD`].
    taken_here: AtomicUsize,
}

const CROWD: usize = 200;

impl LeaseStore for Crowded {
    pass_on!(traits, renew, release, ask, get, list, watch, examine, run_beside);

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        Box::pin(async move {
            if thread::current().id() == self.here && self.taken_here.fetch_add(1, Ordering::SeqCst) < CROWD {
                self.asks.lock().unwrap().send(()).unwrap();
                self.has_asked.lock().unwrap().recv().unwrap();
            }
            self.inner.acquire(request).await
        })
    }
}

/// It has no runtime, whose tasks have a budget that would end it: its thread would be kept for as long as
/// others ask.
#[test]
fn whoever_asks_leaves_to_the_thread_what_others_ask_for_meanwhile() {
    let site = Site::new();
    let ((asks, asked), (answers, has_asked)) = (mpsc::channel(), mpsc::channel());
    let store = Arc::new(Crowded {
        inner: site.store(),
        asks: Mutex::new(asks),
        has_asked: Mutex::new(has_asked),
        here: thread::current().id(),
        taken_here: AtomicUsize::new(0),
    });
    let builder = LockManager::builder(store.clone()).timing(long_lock_timing());
    let manager = &builder.build().unwrap();
    let mut context = Context::from_waker(Waker::noop());
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut context = Context::from_waker(Waker::noop());
            let mut waiting = Vec::new();
            while asked.recv_timeout(Duration::from_secs(30)).is_ok() {
                let mut lock = Box::pin(manager.lock(format!("crowd/{}", waiting.len())));
                let _ = lock.as_mut().poll(&mut context);
                waiting.push(lock);
                answers.send(()).unwrap();
            }
        });
        // The manager's thread may be at it when the first is asked for.
        for number in 0..1_000 {
            let mut lock = pin!(manager.lock(format!("orders/{number}")));
            while lock.as_mut().poll(&mut context).is_pending() {
                thread::sleep(Duration::from_millis(1));
            }
            if store.taken_here.load(Ordering::SeqCst) > 0 {
                break;
            }
        }
        drop(std::mem::replace(
            &mut *store.asks.lock().unwrap(),
            mpsc::channel().0,
        ));
    });
    let taken_here = store.taken_here.load(Ordering::SeqCst);
    assert!((1..=10).contains(&taken_here), "{taken_here} locks in one step");
}

/// Its last step is that of whoever gives back what was left.
#[tokio::test]
async fn the_thread_ends_when_its_driver_has_ended_in_somebodys_step() {
    // As long as the kernel keeps of it.
    const NAME: &str = "tenure steps-42";
    let threads = || {
        let threads = std::fs::read_dir("/proc/self/task").unwrap();
        let names =
            threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
        names.filter(|name| name.trim() == NAME).count()
    };
    let site = Site::new();
    let election = Election::builder("steps-42", site.store());
    let election = election.timing(long_timing()).build().unwrap();
    let leadership = soon("the campaign", election.campaign()).await.unwrap();
    assert_eq!(threads(), 1);
    let closing = tokio::spawn(async move { election.close().await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    soon("the departure", leadership.step_down()).await;
    soon("its end", closing).await.unwrap();
    eventually_async(Duration::from_secs(20), "the thread's end", async || {
        threads() == 0
    })
    .await;
}

/// A subscriber of the user's for `tracing`, which counts what somebody would be woken for.
#[derive(Clone, Default)]
struct Errors(Arc<AtomicUsize>);

impl tracing::Subscriber for Errors {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "tenure" && *metadata.level() == tracing::Level::ERROR
    }
    fn new_span(&self, _span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _span: &tracing::span::Id, _values: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _span: &tracing::span::Id, _follows: &tracing::span::Id) {}
    fn event(&self, _event: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
    fn enter(&self, _span: &tracing::span::Id) {}
    fn exit(&self, _span: &tracing::span::Id) {}
}

/// The steps that are taken here tell of it here.
#[tokio::test]
async fn a_lock_that_is_taken_and_released_is_no_error_in_the_log() {
    let errors = Errors::default();
    let _subscribed = tracing::subscriber::set_default(errors.clone());
    let site = Site::in_memory();
    lock_and_release_until_both_were_here(&Told::over(&site, Duration::ZERO)).await;
    assert_eq!(errors.0.load(Ordering::SeqCst), 0);
}

/// A subscriber of the user's for `tracing`, with a fault.
struct Panicking;

impl tracing::Subscriber for Panicking {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "tenure"
    }
    fn new_span(&self, _span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _span: &tracing::span::Id, _values: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _span: &tracing::span::Id, _follows: &tracing::span::Id) {}
    fn event(&self, _event: &tracing::Event<'_>) {
        panic!("a subscriber that panics");
    }
    fn enter(&self, _span: &tracing::span::Id) {}
    fn exit(&self, _span: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_panic_in_a_step_ends_the_driver_and_all_that_it_holds_but_not_whoever_asks() {
    let site = Site::new();
    let store = Told::over(&site, Duration::ZERO);
    let manager = manager(&store, long_lock_timing());
    let held = soon("a lock", manager.lock("orders/7")).await.unwrap();
    let subscribed = tracing::subscriber::set_default(Panicking);
    // One that was left to the thread after a slow step does not meet the subscriber, which is this thread's.
    let mut stopped = None;
    for number in 0..1_000 {
        // What another test's thread has met first, without a subscriber, counts as wanted by nobody.
        tracing::callsite::rebuild_interest_cache();
        match soon("an answer", manager.lock(format!("orders/{}", 8 + number))).await {
            Ok(lock) => drop(lock),
            Err(error) => {
                stopped = Some(error);
                break;
            }
        }
    }
    drop(subscribed);
    assert!(matches!(stopped, Some(LockError::Stopped(_))), "{stopped:?}");
    let gone = || async { held.authority() == Authority::None };
    eventually_async(PATIENCE, "nobody believes in the lock", gone).await;
    assert!(matches!(
        manager.lock("orders/9").await,
        Err(LockError::Stopped(_))
    ));
}

/// The step is taken by whoever gives back, with a subscriber that panics; one that the thread takes meets
/// none, and releases.
async fn until_its_driver_ends<Giving: Future<Output = ReleaseOutcome>>(
    give_back: impl AsyncFn(usize) -> Giving,
) {
    for number in 0..1_000 {
        let giving = give_back(number).await;
        let subscribed = tracing::subscriber::set_default(Panicking);
        tracing::callsite::rebuild_interest_cache();
        let outcome = soon("the release", giving).await;
        drop(subscribed);
        match outcome {
            ReleaseOutcome::Unconfirmed(error) => {
                assert!(error.message.contains(&format!("\"orders/{number}\"")), "{error}");
                return;
            }
            outcome => assert_eq!(outcome, ReleaseOutcome::Released),
        }
    }
    panic!("no step was taken here");
}

#[expect(
    clippy::async_yields_async,
    reason = "what is taken is to be given back in another step"
)]
#[tokio::test]
async fn a_release_under_which_the_driver_ends_is_unconfirmed() {
    let site = Site::new();
    until_its_driver_ends(async |number| {
        let manager = manager(&Told::over(&site, Duration::ZERO), long_lock_timing());
        let name = format!("orders/{number}");
        let mut lock = soon("the lock", manager.lock(name)).await.unwrap();
        async move { lock.release().await }
    })
    .await;
    until_its_driver_ends(async |number| {
        let election = Election::builder(format!("orders/{number}"), site.store());
        let election = election.timing(long_timing()).build().unwrap();
        let leadership = soon("the campaign", election.campaign()).await.unwrap();
        leadership.step_down()
    })
    .await;
}
