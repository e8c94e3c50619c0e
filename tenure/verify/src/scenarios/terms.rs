//! Terms: begun, read, extended, ended.

use crate::ReleaseOutcome;
use crate::clock::{self, Pace};
use crate::election::Leadership;
use crate::site::{Site, any_pace, any_weather, check_events, pause, some_time, timing};
use crate::store::Weather;
use crate::sync::point;
use shuttle::future::block_on;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tenure_core::{Ask, Authority, Cause, Event, LeaseStore};

/// From an answer to what is told of it, at most, as others take turns.
const STEPS_OF_AN_ANSWER: u32 = 24;

/// Once a term is being ended it is never held again, whatever renewals come; and it is released.
pub(super) fn step_down_against_renewal() {
    let site = Site::begin(any_pace(), any_weather());
    let election = site.election("a");
    let mut events = election.events();
    let leadership = site.lead(&election);
    pause(some_time(timing().renew_every()));
    leadership.begin_to_step_down();
    for _ in 0..3 {
        let authority = site.look(&leadership);
        assert!(
            !matches!(authority, Authority::Held { .. }),
            "held while it is being ended"
        );
        pause(some_time(timing().renew_every()));
    }
    site.end_work(&leadership);
    let outcome = block_on(leadership.step_down());
    // Nobody else wants it: what was lost had come to its deadline.
    let is_anothers = |cause: &Cause| matches!(cause, Cause::Succeeded { .. } | Cause::Vanished);
    assert!(
        !matches!(&outcome, ReleaseOutcome::LostBefore(loss) if is_anothers(&loss.cause)),
        "{outcome:?}"
    );
    if outcome == ReleaseOutcome::Released {
        assert!(!site.store.is_held(&site.name), "held after it was given back");
    }
    block_on(election.close());
    site.wait_until_nothing_runs();
    site.check_given_back();
    check_events(&mut events);
}

/// A term is dropped about when it is lost: it ends once, and the next campaign goes on.
pub(super) fn drop_against_loss() {
    let site = Site::begin(any_pace(), Weather::Fair);
    let election = site.election("a");
    let mut events = election.events();
    let leadership = Arc::new(site.lead(&election));
    let token = leadership.token();
    site.store.turn(Weather::Failing);
    let witness = {
        let (site, leadership) = (site.clone(), leadership.clone());
        thread::spawn(move || {
            let loss = block_on(leadership.lost());
            assert_eq!(loss.token, leadership.token());
            assert_eq!(site.look(&leadership), Authority::None, "lost, and believed in");
            // The term is over for its store, too, or nobody's yet: then its release is on its way.
            let outcome = Arc::into_inner(leadership);
            outcome.inspect(|leadership| site.end_work(leadership))
        })
    };
    pause(some_time(2 * timing().renew_every()));
    if some_time(Duration::from_secs(1)) > Duration::from_millis(500) {
        pause(
            timing()
                .trust(timing().ttl())
                .saturating_sub(timing().renew_every()),
        );
    }
    site.look(&leadership);
    site.store.turn(Weather::Fair);
    // Renewed in time, or lost: either way it is ended here, unless the witness holds it longest.
    leadership.begin_to_step_down();
    if leadership.remaining().is_zero() {
        site.store.end_work(token);
        drop(leadership);
        drop(witness.join().expect("the witness found nothing"));
    } else {
        // The witness waits for a loss that does not come while it is renewed: end the weather for good.
        site.store.turn(Weather::Failing);
        drop(witness.join().expect("the witness found nothing"));
        site.store.end_work(token);
        drop(leadership);
        site.store.turn(Weather::Fair);
    }
    let next = site.lead(&election);
    assert!(next.token() > token);
    site.end_work(&next);
    block_on(next.step_down());
    block_on(election.close());
    site.wait_until_nothing_runs();
    check_events(&mut events);
}

/// Other threads read the authority while it is extended, doubted and ended.
pub(super) fn authority_is_read_elsewhere() {
    let site = Site::begin(any_pace(), Weather::Slow(Duration::from_millis(150)));
    let election = site.election("a");
    let mut events = election.events();
    let leadership = Arc::new(site.lead(&election));
    let token = leadership.token();
    let reader = {
        let (site, leadership) = (site.clone(), leadership.clone());
        move || {
            for _ in 0..6 {
                site.look(&leadership);
                pause(some_time(timing().renew_every()));
            }
        }
    };
    let readers = [thread::spawn(reader.clone()), thread::spawn(reader)];
    pause(some_time(timing().ttl().duration()));
    if some_time(Duration::from_secs(1)).is_zero() {
        site.store.turn(Weather::Failing);
    }
    let lost = {
        let (site, leadership) = (site.clone(), leadership.clone());
        thread::spawn(move || {
            let loss = block_on(clock::timeout(timing().ttl().duration(), leadership.lost()));
            if loss.is_ok() {
                assert_eq!(site.look(&leadership), Authority::None, "lost, and believed in");
            }
        })
    };
    for reader in readers {
        reader.join().expect("the reader found nothing");
    }
    lost.join().expect("nobody believed after the loss");
    site.store.end_work(token);
    drop(leadership);
    block_on(election.close());
    site.wait_until_nothing_runs();
    check_events(&mut events);
}

/// The deadline is seen to pass while a renewal is taken in that was answered in time: then nothing is
/// renewed any more.
pub(super) fn deadline_is_seen_as_a_renewal_is_taken_in() {
    let site = Site::begin(Pace::Patient, Weather::Fair);
    let election = site.election("a");
    let mut events = election.events();
    let leadership = Arc::new(site.lead(&election));
    site.store.turn(Weather::Failing);
    let Authority::Held { until, .. } = site.look(&leadership) else {
        panic!("a term has begun that nobody is late for");
    };
    // Whoever tries again and again tries once within this time, and is answered just before the deadline.
    let answered_in = timing().retry_every();
    pause(until.since(clock::peek()) - answered_in - Duration::from_millis(1));
    site.store.turn(Weather::At(clock::peek().after(answered_in)));
    let reader = || {
        let (site, leadership) = (site.clone(), leadership.clone());
        thread::spawn(move || {
            pause(answered_in);
            let _seen = (0..STEPS_OF_AN_ANSWER).any(|_look| site.look(&leadership) == Authority::None);
        })
    };
    // Few steps lie between the answer and what is told of it: many look.
    let readers = [reader(), reader(), reader()];
    pause(answered_in);
    for _step in 0..thread_rng().gen_range(0..STEPS_OF_AN_ANSWER) {
        point();
    }
    clock::pass(until);
    for reader in readers {
        reader.join().expect("the reader found nothing");
    }
    site.store.turn(Weather::Fair);
    if site.look(&leadership) == Authority::None {
        // Its handle is still there: nobody but the engine can end it.
        site.check_nothing_is_renewed();
    }
    site.end_work(&leadership);
    drop(leadership);
    block_on(election.close());
    site.wait_until_nothing_runs();
    check_events(&mut events);
}

/// Progress is reported just as the gate closes: renewals go on, whichever was first.
pub(super) fn progress_against_stuck() {
    let site = Site::begin(Pace::Patient, Weather::Fair);
    let election = site.strict_election(Duration::from_millis(300));
    let mut events = election.events();
    let leadership = site.lead(&election);
    // When the first renewal is due, and nothing was reported for longer than the gate allows.
    pause(timing().renew_every());
    leadership.progress();
    pause(timing().renew_every());
    // Late again, and reported by two at once.
    let leadership = Arc::new(leadership);
    let other = {
        let leadership = leadership.clone();
        thread::spawn(move || leadership.progress())
    };
    leadership.progress();
    other.join().expect("reporting does not panic");
    let loss = block_on(leadership.lost());
    assert!(matches!(loss.cause, Cause::NoProgress(_)), "{loss}");
    site.end_work(&leadership);
    drop(leadership);
    block_on(election.close());
    site.wait_until_nothing_runs();
    let events = check_events(&mut events);
    let renewals = events
        .iter()
        .filter(|event| matches!(event, Event::Renewed { .. }))
        .count();
    assert!(
        renewals >= 2,
        "{renewals} renewals, though progress was reported at each"
    );
}

/// The work of a term has lent its leadership to another thread, which drops it late: `run` goes on.
pub(super) fn last_clone_is_dropped_late() {
    let site = Site::begin(any_pace(), Weather::Fair);
    let election = site.election("a");
    let mut events = election.events();
    let starts = Arc::new(AtomicU32::new(0));
    let helpers = Arc::new(std::sync::Mutex::new(Vec::new()));
    let asks = {
        let site = site.clone();
        let first = Arc::new(AtomicU64::new(0));
        move |leadership: &Leadership| {
            let (site, token) = (site.clone(), leadership.token());
            if first.swap(token.number(), Ordering::SeqCst) == 0 {
                drop(thread::spawn(move || {
                    let ask = Ask {
                        name: site.name.clone(),
                        token,
                    };
                    drop(block_on(site.store.ask(&ask)));
                }));
            }
        }
    };
    let work = {
        let (starts, site, helpers) = (starts.clone(), site.clone(), helpers.clone());
        move |leadership: Arc<Leadership>| {
            let start = starts.fetch_add(1, Ordering::SeqCst);
            asks(&leadership);
            let helper = thread::spawn({
                let (leadership, site) = (leadership.clone(), site.clone());
                move || {
                    site.look(&leadership);
                    pause(some_time(Duration::from_millis(80)));
                    drop(leadership);
                }
            });
            helpers.lock().expect("no panic before").push(helper);
            async move {
                if start == 0 {
                    leadership.interrupted().await;
                    std::future::pending::<()>().await;
                }
            }
        }
    };
    let outcome = block_on(election.run(work));
    assert_eq!(
        outcome,
        Ok(()),
        "a leader that was asked to step down campaigns again"
    );
    assert!(starts.load(Ordering::SeqCst) >= 2, "it did not lead again");
    for helper in helpers.lock().expect("no panic before").drain(..) {
        helper.join().expect("the helper found nothing");
    }
    block_on(election.close());
    site.wait_until_nothing_runs();
    check_events(&mut events);
}

/// A standby takes over as soon as the leader has left, however it learns of it.
pub(super) fn candidates_hand_over() {
    let site = Site::begin(Pace::Patient, Weather::Fair);
    let (first, second) = (site.election("a"), site.election("b"));
    let leadership = site.lead(&first);
    let standby = {
        let site = site.clone();
        thread::spawn(move || {
            let leadership = site.lead(&second);
            site.look(&leadership);
            site.end_work(&leadership);
            drop(leadership);
            (clock::peek(), second)
        })
    };
    pause(some_time(timing().renew_every()));
    let token = leadership.token();
    site.look(&leadership);
    site.end_work(&leadership);
    drop(leadership);
    let released_at = clock::peek();
    let (won_at, second) = standby.join().expect("the standby found nothing");
    // A watch may break once, and is in place again after one retry.
    let limit = timing().spread() + 2 * timing().retry_every();
    let took = won_at.since(released_at);
    assert!(
        took <= limit,
        "the standby of term {token} waited {took:?}, not {limit:?}"
    );
    block_on(first.close());
    block_on(second.close());
    site.wait_until_nothing_runs();
}
