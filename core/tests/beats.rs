//! Which renewals are sent together, and what happens where there are more requests than may be under way at
//! once.

use crate::harness::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use tenure_core::*;

/// Renewal requests under way at once.
const PLACES: usize = 12;

/// A harness that leads so many leases, taken a millisecond after each other; one request renews `batch_max`.
fn leading(leases: usize, batch_max: usize) -> Harness {
    leading_apart(leases, batch_max, seconds(0.001))
}

/// The same, taken so long after each other.
fn leading_apart(leases: usize, batch_max: usize, pause: Duration) -> Harness {
    let mut harness = Harness::with(timing(), batch_max);
    for lease in 0..leases {
        harness.pass(pause);
        harness.lead(nth(lease));
    }
    harness
}

/// Leases in an order that is not that of their names.
fn nth(lease: usize) -> LeaseName {
    name(&format!("{}", 9_999 - lease))
}

/// Steps when every lease is due.
fn begin_a_beat(harness: &mut Harness) -> Vec<Request> {
    harness.now = harness
        .wake
        .expect("a renewal will be due")
        .at
        .after(seconds(1.0));
    harness.input(Input::Tick)
}

fn renewed(request: &Request) -> Vec<LeaseName> {
    match &request.operation {
        Operation::Renew(renewals) => renewals.iter().map(|renew| renew.name.clone()).collect(),
        other => panic!("only renewals are due: {other:?}"),
    }
}

fn extend(harness: &mut Harness, request: &Request) -> Vec<Request> {
    let all = renewed(request).iter().map(|_| Ok(extended())).collect();
    harness.answer(request.id, Reply::Renewed(all))
}

#[test]
fn the_rest_of_a_beat_follows_as_answers_come_and_no_lease_twice() {
    let mut harness = leading(100, 2);
    let mut under_way: VecDeque<Request> = begin_a_beat(&mut harness).into();
    assert_eq!(under_way.len(), PLACES);
    let mut seen = BTreeSet::new();
    while let Some(request) = under_way.pop_front() {
        for name in renewed(&request) {
            assert!(seen.insert(name.clone()), "{name} is renewed twice");
        }
        let next = extend(&mut harness, &request);
        assert!(next.len() <= 1, "one answer frees one place: {next:?}");
        under_way.extend(next);
    }
    assert_eq!(seen.len(), 100);
}

#[test]
fn the_longest_due_go_first() {
    let mut harness = leading(40, 1);
    let first = begin_a_beat(&mut harness);
    let names: BTreeSet<LeaseName> = first.iter().flat_map(renewed).collect();
    assert_eq!(names, (0..PLACES).map(nth).collect());
    let next = only(extend(&mut harness, &first[3]));
    assert_eq!(renewed(&next), vec![nth(PLACES)]);
}

#[test]
fn what_is_sent_together_is_in_the_order_of_the_names() {
    let mut harness = leading(10, 4);
    let requests = begin_a_beat(&mut harness);
    let sizes: Vec<usize> = requests.iter().map(|request| renewed(request).len()).collect();
    assert_eq!(sizes, vec![4, 4, 2]);
    let names: Vec<LeaseName> = requests.iter().flat_map(renewed).collect();
    assert!(names.is_sorted(), "{names:?}");
}

#[test]
fn renewals_that_wait_for_a_place_do_not_wake_the_engine() {
    let mut harness = leading(40, 1);
    begin_a_beat(&mut harness);
    let wake = harness.wake.expect("requests are under way");
    assert_eq!(wake.why, WakeReason::RequestTimeout);
    assert_eq!(wake.at, harness.now.after(timing().request_timeout()));
}

#[test]
fn a_request_of_the_rest_counts_from_when_it_was_sent() {
    let mut harness = leading(PLACES + 1, 1);
    let first = begin_a_beat(&mut harness);
    harness.pass(seconds(2.0));
    let last = only(extend(&mut harness, &first[0]));
    assert_eq!(last.give_up_at, harness.now.after(timing().request_timeout()));
    let sent_at = harness.now;
    harness.pass(seconds(2.0));
    extend(&mut harness, &last);
    let belief = harness.engine.belief(&nth(PLACES)).expect("it is held");
    assert_eq!(belief.until, sent_at.after(timing().trust(timing().ttl())));
}

#[test]
fn half_of_a_hundred_requests_may_hang_and_no_neighbour_comes_into_doubt() {
    let mut harness = leading(100, 1);
    let healthy = |name: &LeaseName| name.as_str().ends_with(['0', '2', '4', '6', '8']);
    let end = harness.now.after(seconds(60.0));
    while harness.wake.is_some_and(|wake| wake.at < end) {
        let mut under_way = harness.run_to_wake();
        while let Some(request) = under_way.pop() {
            if renewed(&request).iter().all(healthy) {
                under_way.extend(extend(&mut harness, &request));
            }
        }
    }
    let mut disturbed = BTreeMap::new();
    let mut lost = 0;
    for event in harness.take_events() {
        match event {
            Event::Doubted { name, .. } | Event::RenewalFailed { name, .. } | Event::Ended { name, .. }
                if healthy(&name) =>
            {
                *disturbed.entry(name).or_insert(0) += 1;
            }
            Event::Ended { .. } => lost += 1,
            _ => {}
        }
    }
    assert_eq!(disturbed, BTreeMap::new());
    assert_eq!(lost, 50, "those that hang end at their deadline");
}

#[test]
fn a_renewal_takes_along_what_is_due_within_half_an_interval() {
    // Taken every 2.4 s: the first is due at 10 s, the others 2.4, 4.8 and 7.2 s later.
    let mut harness = leading_apart(4, 10, seconds(2.4));
    let request = only(harness.run_to_wake());
    assert_eq!(
        renewed(&request).into_iter().collect::<BTreeSet<_>>(),
        (0..3).map(nth).collect()
    );
}

#[test]
fn leases_that_were_taken_all_the_time_come_to_beat_in_full_requests() {
    let mut harness = leading_apart(100, 25, seconds(0.099));
    let interval = timing().renew_every();
    // By then each has been renewed once or twice.
    let settled = harness.now.after(2 * interval);
    let end = settled.after(3 * interval);
    let mut sizes = Vec::new();
    while harness.wake.is_some_and(|wake| wake.at < end) {
        for request in harness.run_to_wake() {
            if harness.now >= settled {
                sizes.push(renewed(&request).len());
            }
            extend(&mut harness, &request);
        }
    }
    assert_eq!(sizes, [25; 12], "four requests in each of three intervals");
}

/// Whatever it failed of may befall all that are sent with it.
#[test]
fn what_has_failed_fills_no_request_of_others() {
    let mut harness = Harness::with(Timing::controller(), 10);
    harness.lead(nth(0));
    harness.pass(seconds(1.5));
    harness.lead(nth(1));
    for _ in 0..2 {
        let beat = harness.run_to_request();
        assert_eq!(renewed(&beat), [nth(0)]);
        harness.answer(beat.id, Reply::Renewed(vec![Err(unreachable())]));
    }
    // The next try of the first is half a second later: within what is filled in, and beyond what is taken
    // along.
    assert_eq!(renewed(&harness.run_to_request()), [nth(1)]);
}

#[test]
fn nothing_that_could_wait_is_sent_with_what_has_failed() {
    let mut harness = leading_apart(2, 10, seconds(4.0));
    let first = only(harness.run_to_wake());
    assert_eq!(renewed(&first).len(), 2);
    let nearly_due = harness.now.after(timing().renew_every() * 7 / 8);
    let results = renewed(&first).into_iter().map(|name| match name == nth(0) {
        true => Err(unreachable()),
        false => Ok(extended()),
    });
    harness.answer(first.id, Reply::Renewed(results.collect()));
    let mut tries = 0;
    while harness.wake.is_some_and(|wake| wake.at < nearly_due) {
        for again in harness.run_to_wake() {
            assert_eq!(renewed(&again), [nth(0)]);
            harness.answer(again.id, Reply::Renewed(vec![Err(unreachable())]));
            tries += 1;
        }
    }
    assert!(tries > 2, "{tries}");
}

/// One that fails until its deadline is due with a neighbour that has long to go: each has the time that
/// there is for it.
#[test]
fn a_request_outlasts_no_term_and_one_that_ends_cuts_none_of_its_neighbours() {
    let mut harness = leading_apart(2, 1000, seconds(9.3));
    let (failing, neighbour) = (nth(0), nth(1));
    let mut beside_it = 0;
    while harness.engine.belief(&failing).is_some() {
        for request in harness.run_to_wake() {
            let names = renewed(&request);
            for name in &names {
                let until = harness.engine.belief(name).expect("it is led").until;
                assert!(
                    request.give_up_at <= until,
                    "{name}: {request:?} outlasts {until:?}"
                );
            }
            let timeout = harness.now.after(timing().request_timeout());
            if names.contains(&neighbour) {
                assert_eq!(request.give_up_at, timeout, "{request:?}");
            }
            let ends = harness
                .engine
                .belief(&failing)
                .is_some_and(|belief| belief.until < timeout);
            beside_it += usize::from(ends && names == [neighbour.clone()]);
            let answer = |name: &LeaseName| {
                if *name == failing {
                    Err(unreachable())
                } else {
                    Ok(extended())
                }
            };
            harness.answer(request.id, Reply::Renewed(names.iter().map(answer).collect()));
        }
    }
    assert!(
        beside_it > 0,
        "the neighbour was never due beside a term that was nearly over"
    );
}

/// Neither takes a place of those that are due for longer, nor leaves one half empty.
#[test]
fn terms_that_are_nearly_over_go_apart_only_where_there_is_a_place_to_spare() {
    const ENDING: usize = 5;
    for (batch_max, sizes) in [
        // Thirteen requests' worth for twelve places: as many as there are, all full.
        (2, vec![2; PLACES]),
        // One place to spare.
        (3, [vec![3, 2], vec![3; 6], vec![2]].concat()),
    ] {
        let mut harness = leading_apart(25, batch_max, seconds(0.01));
        let ends = harness.engine.belief(&nth(ENDING)).expect("it is led").until;
        harness.now = ends.before(timing().request_timeout());
        let requests = harness.input(Input::Tick);
        let sent: Vec<usize> = requests.iter().map(|request| renewed(request).len()).collect();
        assert_eq!(sent, sizes, "at most {batch_max}");
    }
}

/// A request ends with the first of its terms: one that has far longer goes in another.
#[test]
fn terms_that_end_at_other_times_do_not_cut_each_others_requests_short() {
    let mut harness = leading_apart(3, 1000, seconds(0.1));
    let ends = [0, 1, 2].map(|lease| harness.engine.belief(&nth(lease)).expect("it is led").until);
    harness.now = ends[0].before(seconds(0.001));
    let requests = harness.input(Input::Tick);
    let sent: Vec<Vec<LeaseName>> = requests.iter().map(renewed).collect();
    assert_eq!(sent, [vec![nth(0)], vec![nth(1), nth(2)]]);
    assert_eq!(requests[0].give_up_at, ends[0]);
    assert_eq!(requests[1].give_up_at, ends[1]);
}
