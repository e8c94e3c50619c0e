//! Leaving: closed, dropped, outlived.

use crate::clock;
use crate::site::{Site, any_pace, any_weather, check_events, pause, some_time, timing};
use crate::store::Weather;
use crate::sync;
use shuttle::future::block_on;
use shuttle::thread;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Ask, LeaseStore};

/// An election is closed while its watch reports.
pub(super) fn close_against_watch() {
    let site = Site::begin(any_pace(), any_weather());
    let (first, second) = (site.election("a"), site.election("b"));
    let mut events = second.events();
    let leadership = site.lead(&first);
    let disturber = {
        let site = site.clone();
        thread::spawn(move || {
            let ask = Ask {
                name: site.name.clone(),
                token: leadership.token(),
            };
            drop(block_on(site.store.ask(&ask)));
            site.end_work(&leadership);
            drop(leadership);
            drop(first);
        })
    };
    drop(block_on(clock::timeout(
        some_time(Duration::from_millis(60)),
        second.campaign(),
    )));
    block_on(second.close());
    disturber.join().expect("the disturber found nothing");
    site.wait_until_nothing_runs();
    site.check_nothing_is_renewed();
    check_events(&mut events);
}

/// The store falls silent: closing waits within its limit, blocks no thread, and the thread ends by itself.
pub(super) fn close_while_a_request_hangs() {
    let site = Site::begin(any_pace(), Weather::Fair);
    let election = site.election("a");
    let mut events = election.events();
    if some_time(Duration::from_secs(1)).is_zero() {
        let leadership = site.lead(&election);
        site.store.turn(Weather::Silent);
        pause(some_time(timing().ttl().duration()));
        site.end_work(&leadership);
        drop(leadership);
    } else {
        site.store.turn(Weather::Silent);
        drop(block_on(clock::timeout(
            some_time(timing().ttl().duration()),
            election.campaign(),
        )));
    }
    let waits = sync::blocking_waits();
    block_on(election.close());
    assert_eq!(sync::blocking_waits(), waits, "closing blocked a thread");
    site.wait_until_nothing_runs();
    check_events(&mut events);
}

/// A leadership lives longer than its election: it goes on, and its thread ends with it.
pub(super) fn leadership_outlives_its_election() {
    let site = Site::begin(any_pace(), any_weather());
    let election = site.election("a");
    let mut events = election.events();
    let leadership = site.lead(&election);
    let worker = {
        let site = site.clone();
        thread::spawn(move || {
            site.look(&leadership);
            pause(some_time(2 * timing().ttl().duration()));
            site.look(&leadership);
            site.end_work(&leadership);
            drop(leadership);
        })
    };
    let waits = sync::blocking_waits();
    if some_time(Duration::from_secs(1)) > Duration::from_millis(500) {
        block_on(election.close());
        assert_eq!(sync::blocking_waits(), waits, "closing blocked a thread");
    } else {
        drop(election);
    }
    worker.join().expect("the worker found nothing");
    site.wait_until_nothing_runs();
    check_events(&mut events);
}

/// Two handles go at once, the leadership and its election: the lease is given back.
pub(super) fn drop_against_close() {
    let site = Site::begin(any_pace(), Weather::Fair);
    let election = site.election("a");
    let mut events = election.events();
    let leadership = Arc::new(site.lead(&election));
    let other = leadership.clone();
    let droppers = [leadership, other].map(|handle| {
        let site = site.clone();
        thread::spawn(move || {
            // Whoever holds it last ends its work.
            if let Some(last) = Arc::into_inner(handle) {
                site.end_work(&last);
            }
        })
    });
    if some_time(Duration::from_secs(1)).is_zero() {
        block_on(election.close());
    } else {
        drop(election);
    }
    for dropper in droppers {
        dropper.join().expect("nobody found anything");
    }
    site.wait_until_nothing_runs();
    site.check_given_back();
    check_events(&mut events);
}
