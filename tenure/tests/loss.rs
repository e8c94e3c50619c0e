//! Losing, for real reasons, and never believing longer than the lease lasts.

use crate::harness::{Site, enduring_timing, pass_on, soon, timing};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;
use tenure::contract::{Answer, Renew, Renewed};
use tenure::{
    Authority, Cause, Leadership, LeaseStore, LockManager, LockTimingOptions, ReleaseOutcome, SharedStore,
    StoreError, Timing, TimingOptions, Ttl, clock_now, sleep_until,
};
use tenure_testkit::in_one_of;

#[tokio::test]
async fn a_store_that_takes_no_writes_ends_the_term_at_its_deadline_and_not_before() {
    let site = Site::new();
    // The doubt lasts long enough for a test that hears of it seconds late to find it.
    let timing = TimingOptions {
        grace: Some(Duration::from_secs(4)),
        ..TimingOptions::new(Duration::from_secs(10))
    };
    let election = Site::election_of(site.store(), "first", timing.check().unwrap());
    let leadership = soon("the campaign", election.campaign()).await.unwrap();
    let lock = site.lock();
    let until = leadership.until();
    soon("doubt", leadership.doubted()).await;
    assert!(matches!(leadership.authority(), Authority::Doubtful { .. }));
    let loss = soon("the loss", leadership.lost()).await;
    assert!(
        clock_now() >= until && matches!(loss.cause, Cause::Deadline(_)),
        "{loss}"
    );
    assert_eq!(leadership.remaining(), Duration::ZERO);
    // Whoever then ends it by itself does not end what has ended.
    leadership.begin_to_step_down();
    let again = soon("the same loss", leadership.lost()).await;
    // A thread that is held up tells only later by which error the deadline passed.
    let is_told_later =
        loss.cause == Cause::Deadline(None) && matches!(again.cause, Cause::Deadline(Some(_)));
    assert!(again == loss || is_told_later, "{loss}; {again}");
    // And when the store works again, so does the election: errors never end it.
    drop(lock);
    drop(leadership);
    drop(soon("the next campaign", election.campaign()).await.unwrap());
}

#[tokio::test]
async fn a_loss_says_why_in_words_that_do_not_repeat_which_term_it_was() {
    let site = Site::new();
    let election = Site::election_of(site.store(), "first", enduring_timing());
    let leadership = soon("the campaign", election.campaign()).await.unwrap();
    // The next renewal finds nothing.
    site.lock().execute_batch("DELETE FROM lease; COMMIT").unwrap();
    let loss = soon("the loss", leadership.lost()).await;
    assert_eq!(loss.cause, Cause::Vanished);
    let why = loss.cause.to_string();
    assert_eq!(why, "it expired or was broken in the store");
    let term = format!("lease \"job\", token {}", leadership.token());
    assert_eq!(loss.to_string(), format!("{term}: lost: {why}"));
}

#[tokio::test]
async fn an_outage_shorter_than_promised_costs_nothing() {
    let site = Site::new();
    // The other half of what is promised, some three seconds, is the machine's.
    let timing = Timing::of(Ttl::from_secs(15).unwrap());
    let election = Site::election_of(site.store(), "first", timing);
    let leadership = soon("the campaign", election.campaign()).await.unwrap();
    let lock = site.lock();
    tokio::time::sleep(timing.explain().outage_unnoticed / 2).await;
    drop(lock);
    tokio::time::sleep(timing.ttl().duration()).await;
    assert!(matches!(leadership.authority(), Authority::Held { .. }));
}

#[tokio::test]
async fn a_guarded_future_is_dropped_at_the_loss() {
    struct Dropped(Arc<AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let site = Site::new();
    let election = Site::election_of(site.store(), "first", timing());
    let leadership = soon("the campaign", election.campaign()).await.unwrap();
    let _lock = site.lock();
    let dropped = Arc::new(AtomicBool::new(false));
    let witness = Dropped(dropped.clone());
    let work = async move {
        let _witness = witness;
        std::future::pending::<()>().await;
    };
    soon("the loss", leadership.guard(work)).await.unwrap_err();
    assert!(dropped.load(Ordering::SeqCst));
}

/// Far longer than the lease lasts, and than what a loss that is told by another thread may be late by.
const HANGS_FOR: Duration = Duration::from_secs(20);

/// What the machine may be late by in one of a few rounds. A loss is told 20 ms after the deadline if nobody
/// knows its cause.
const LATE_MAX: Duration = Duration::from_secs(1);

/// The real store, whose renewals can be made to block their thread as a hanging disk would.
struct HangingDisk {
    inner: SharedStore,
    hangs: Arc<AtomicBool>,
}

impl LeaseStore for HangingDisk {
    pass_on!(
        traits, acquire, release, ask, get, list, watch, examine, run_beside
    );

    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        Box::pin(async move {
            if self.hangs.load(Ordering::SeqCst) {
                std::thread::sleep(HANGS_FOR);
            }
            self.inner.renew(requests).await
        })
    }
}

#[tokio::test]
async fn loss_is_told_at_the_deadline_even_if_the_elections_thread_hangs() {
    let why = "a loss was told more than a second after its deadline";
    in_one_of(3, why, async || lateness_of_a_loss().await < LATE_MAX).await;
}

/// How long after the deadline a loss is told while the election's thread hangs.
async fn lateness_of_a_loss() -> Duration {
    let site = Site::new();
    let hangs = Arc::new(AtomicBool::new(false));
    let store = Arc::new(HangingDisk {
        inner: site.store(),
        hangs: hangs.clone(),
    });
    let election = Site::election_of(store, "first", timing());
    let leadership = soon("the campaign", election.campaign()).await.unwrap();
    hangs.store(true, Ordering::SeqCst);
    let told = soon("the loss", leadership.lost()).await;
    let late = clock_now().since(leadership.until());
    assert!(matches!(told.cause, Cause::Deadline(_)));
    assert_eq!(leadership.authority(), Authority::None);
    hangs.store(false, Ordering::SeqCst);
    late
}

/// A store in which nothing is renewed from now on, so that nobody but the deadline tells of a loss.
fn hanging(site: &Site) -> Arc<HangingDisk> {
    Arc::new(HangingDisk {
        inner: site.store(),
        hangs: Arc::new(AtomicBool::new(true)),
    })
}

#[tokio::test]
async fn guarded_work_makes_no_step_after_its_deadline_though_nobody_knows_the_cause_yet() {
    let site = Site::new();
    let election = Site::election_of(hanging(&site), "first", timing());
    let leadership = soon("the campaign", election.campaign()).await.unwrap();
    let steps_too_late = AtomicU32::new(0);
    let work = async {
        loop {
            if leadership.authority() == Authority::None {
                steps_too_late.fetch_add(1, Ordering::SeqCst);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let loss = soon("the loss", leadership.guard(work)).await.unwrap_err();
    assert!(matches!(loss.cause, Cause::Deadline(_)), "{loss}");
    // One that had begun may look at the clock a moment later.
    let steps = steps_too_late.load(Ordering::SeqCst);
    assert!(steps <= 1, "{steps} steps after the deadline");
}

/// It is always ready, and a task of a runtime's polls many of these before any timer is looked at.
#[tokio::test]
async fn work_that_an_election_runs_makes_no_step_after_its_deadline_either() {
    let site = Site::new();
    let election = Site::election_of(hanging(&site), "first", timing());
    let steps_too_late = Arc::new(AtomicU32::new(0));
    let (late, mut runs) = (steps_too_late.clone(), 0);
    let run = tokio::spawn(async move {
        let work = |leadership: Arc<Leadership>| {
            runs += 1;
            let (run, late) = (runs, late.clone());
            poll_fn(move |context| {
                if run > 1 {
                    return Poll::Ready(());
                }
                if leadership.authority() == Authority::None {
                    late.fetch_add(1, Ordering::SeqCst);
                }
                context.waker().wake_by_ref();
                Poll::Pending
            })
        };
        election.run(work).await
    });
    soon("the next term", run).await.unwrap().unwrap();
    let steps = steps_too_late.load(Ordering::SeqCst);
    assert!(steps <= 1, "{steps} steps after the deadline");
}

#[tokio::test]
async fn guarded_work_that_would_end_after_its_deadline_is_told_as_lost() {
    let site = Site::new();
    let timing = LockTimingOptions::new(Duration::from_secs(3)).check().unwrap();
    let manager = LockManager::builder(hanging(&site))
        .timing(timing)
        .build()
        .unwrap();
    let lock = soon("the lock", manager.lock("job")).await.unwrap();
    let work = async {
        // Before it is told, and after the deadline.
        let end = || lock.until().after(Duration::from_millis(5));
        while clock_now() < end() {
            sleep_until(end()).await;
        }
    };
    let outcome = soon("the loss", lock.guard(work)).await;
    assert!(matches!(outcome.unwrap_err().cause, Cause::Deadline(_)));
}

/// Its term has ended by itself, and this process leads again.
#[tokio::test]
async fn who_gives_back_a_lost_term_when_the_next_goes_on_is_answered() {
    let site = Site::new();
    let election = Site::election_of(site.store(), "first", enduring_timing());
    let lost = soon("the campaign", election.campaign()).await.unwrap();
    let lock = site.lock();
    soon("the loss", lost.lost()).await;
    drop(lock);
    let next = soon("the next campaign", election.campaign()).await.unwrap();
    let departure = soon("the answer", lost.step_down()).await;
    assert!(
        matches!(departure, ReleaseOutcome::LostBefore(_)),
        "{departure:?}"
    );
    assert!(matches!(next.authority(), Authority::Held { .. }));
}
