//! Those who only look on.

use crate::clock::Pace;
use crate::site::{Site, any_pace, any_weather, check_events, pause, some_time, timing};
use crate::sync::broadcast;
use shuttle::future::block_on;
use shuttle::thread;
use tokio::sync::broadcast::error::RecvError;

/// A subscriber that does not keep up is told so, holds nobody up, and hears the end.
pub(super) fn subscriber_lags() {
    let site = Site::begin(any_pace(), any_weather());
    broadcast::keep(2);
    let election = site.election("a");
    let mut events = election.events();
    let subscriber = thread::spawn(move || {
        let (mut heard, mut missed) = (0, 0);
        loop {
            match block_on(events.recv()) {
                Ok(_) => heard += 1,
                Err(RecvError::Lagged(count)) => missed += count,
                Err(RecvError::Closed) => return heard + missed,
            }
            pause(some_time(timing().ttl().duration()));
        }
    });
    for _ in 0..2 {
        let leadership = site.lead(&election);
        pause(some_time(timing().ttl().duration()));
        site.end_work(&leadership);
        block_on(leadership.step_down());
    }
    block_on(election.close());
    drop(election);
    let events = subscriber.join().expect("the subscriber heard the end");
    assert!(events >= 4, "two terms make four events at least, not {events}");
    site.wait_until_nothing_runs();
}

/// An observer is dropped: its watch ends with it, though nothing happens to the lease any more.
pub(super) fn observer_is_dropped() {
    let site = Site::begin(Pace::Patient, any_weather());
    let election = site.election("a");
    let mut events = election.events();
    let mut observer = election.observe();
    block_on(observer.next());
    let leadership = site.lead(&election);
    block_on(observer.next());
    site.end_work(&leadership);
    block_on(leadership.step_down());
    drop(observer);
    block_on(election.close());
    site.wait_until_nothing_runs();
    check_events(&mut events);
}
