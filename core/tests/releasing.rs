//! Which releases are sent together, and what happens where there are more than may be under way at once.

use crate::harness::*;
use std::collections::BTreeSet;
use tenure_core::*;

/// Requests under way at once that release.
const PLACES: usize = 12;

/// Leases at once that those release.
const ROOM: usize = 250;

fn nth(lease: usize) -> LeaseName {
    name(&format!("lock/{lease:04}"))
}

/// A harness that leads so many leases; one request releases `batch_max`.
fn leading(leases: usize, batch_max: usize) -> Harness {
    let mut harness = Harness::with(timing(), batch_max);
    for lease in 0..leases {
        harness.lead(nth(lease));
    }
    harness
}

/// The work of each ends, one by one, as guards that are dropped together tell it.
fn give_back(harness: &mut Harness, leases: std::ops::Range<usize>) -> Vec<Request> {
    let end = |lease| {
        harness.command(Command::WorkEnded {
            name: nth(lease),
            token: token(5),
        })
    };
    leases.flat_map(end).collect()
}

fn released(request: &Request) -> Vec<LeaseName> {
    match &request.operation {
        Operation::Release(releases) => releases.iter().map(|release| release.name.clone()).collect(),
        other => panic!("only releases are due: {other:?}"),
    }
}

fn vacate(harness: &mut Harness, request: &Request) -> Vec<Request> {
    let all = released(request).iter().map(|_| Ok(Released::Vacated)).collect();
    harness.answer(request.id, Reply::Released(all))
}

fn sizes(requests: &[Request]) -> Vec<usize> {
    requests.iter().map(|request| released(request).len()).collect()
}

fn departures(harness: &Harness) -> Vec<&Departure> {
    fn departed(event: &Event) -> Option<&Departure> {
        match event {
            Event::Departed { departure, .. } => Some(departure),
            _ => None,
        }
    }
    harness.events.iter().filter_map(departed).collect()
}

#[test]
fn of_many_given_back_at_once_few_requests_are_under_way_and_what_waits_goes_together() {
    let mut harness = leading(1_000, 200);
    let mut under_way = give_back(&mut harness, 0..1_000);
    assert_eq!(sizes(&under_way), vec![1; PLACES]);
    let (mut requests, mut told) = (0, BTreeSet::new());
    while !under_way.is_empty() {
        assert!(under_way.len() <= PLACES);
        assert!(sizes(&under_way).iter().sum::<usize>() <= ROOM);
        let request = under_way.remove(0);
        requests += 1;
        told.extend(released(&request));
        under_way.extend(vacate(&mut harness, &request));
    }
    assert_eq!(told.len(), 1_000);
    assert!(harness.engine.is_idle());
    assert!(requests < 100, "{requests} requests");
}

/// A store may take as long for each, and a request is answered as a whole.
#[test]
fn releases_that_took_too_long_together_go_in_smaller_requests_until_they_are_answered() {
    const TOGETHER: usize = 200;
    let mut harness = leading(PLACES + TOGETHER, TOGETHER);
    for _round in 0..2 {
        let first = give_back(&mut harness, 0..PLACES + TOGETHER);
        let mut late = only(vacate(&mut harness, &first[0]));
        for request in &first[1..] {
            assert_eq!(vacate(&mut harness, request), []);
        }
        for size in [TOGETHER, TOGETHER / 2, TOGETHER / 4] {
            assert_eq!(released(&late).len(), size);
            let mut smaller = Vec::new();
            while smaller.is_empty() {
                smaller = harness.run_to_wake();
            }
            assert!(sizes(&smaller).iter().all(|smaller| *smaller <= size / 2));
            late = smaller.remove(0);
            // The others are answered, which lets the next be larger again.
            let larger = smaller.iter().flat_map(|request| vacate(&mut harness, request));
            assert_eq!(larger.collect::<Vec<_>>(), []);
        }
        vacate(&mut harness, &late);
        assert!(harness.engine.is_idle());
        for lease in 0..PLACES + TOGETHER {
            harness.lead(nth(lease));
        }
    }
}

#[test]
fn a_release_of_a_quiet_process_is_sent_at_once_though_others_were_before() {
    let mut harness = leading(PLACES + 1, 200);
    for lease in 0..=PLACES {
        let request = only(give_back(&mut harness, lease..lease + 1));
        vacate(&mut harness, &request);
    }
    assert!(harness.engine.is_idle());
}

#[test]
fn while_no_place_is_free_the_engine_sleeps_until_an_answer_or_a_time_out() {
    let mut harness = leading(PLACES + 1, 200);
    give_back(&mut harness, 0..PLACES + 1);
    let wake = harness.wake.expect("a request will be given up");
    assert_eq!(wake.at, harness.now.after(timing().request_timeout()));
    let next = only(harness.run_to_wake());
    assert_eq!(
        released(&next),
        [nth(PLACES)],
        "not beside those that have failed"
    );
}

/// The longest due of the two kinds goes first, so that a steady stream of others keeps no failed one out.
#[test]
fn releases_that_have_failed_go_apart_from_others_and_before_later_ones() {
    let mut harness = leading(2 * PLACES + 2, 200);
    let hanging = give_back(&mut harness, 0..PLACES);
    for request in &hanging {
        let error = Reply::Released(vec![Err(unreachable())]);
        assert_eq!(harness.answer(request.id, error), []);
    }
    let others = give_back(&mut harness, PLACES..2 * PLACES);
    assert_eq!(sizes(&others), vec![1; PLACES]);
    harness.pass(timing().retry_every());
    assert_eq!(give_back(&mut harness, 2 * PLACES..2 * PLACES + 1), []);
    harness.pass(seconds(0.001));
    assert_eq!(give_back(&mut harness, 2 * PLACES + 1..2 * PLACES + 2), []);
    // What has just ended is due for as long as what is tried again.
    let first = vacate(&mut harness, &others[0]);
    assert_eq!(first.len(), 1);
    let second = vacate(&mut harness, &others[1]);
    let together: BTreeSet<usize> = sizes(&[first, second].concat()).into_iter().collect();
    assert_eq!(together, BTreeSet::from([PLACES, 2]));
}

#[test]
fn what_waits_for_a_place_at_a_silent_store_ends_when_its_lease_has_surely_expired() {
    const LEASES: usize = 6_000;
    let mut harness = leading(LEASES, 1_000);
    let began = harness.now;
    let mut requests = give_back(&mut harness, 0..LEASES);
    while !harness.engine.is_idle() {
        requests.extend(harness.run_to_wake());
    }
    let lasted = harness.now.since(began);
    assert!(lasted >= seconds(30.0) && lasted < seconds(40.0), "{lasted:?}");
    let tried: BTreeSet<LeaseName> = requests.iter().flat_map(released).collect();
    assert!(tried.len() < LEASES, "some had no place until the end");
    let unconfirmed = |departure: &&Departure| matches!(departure, Departure::Unconfirmed { .. });
    assert_eq!(
        departures(&harness).into_iter().filter(unconfirmed).count(),
        LEASES
    );
}

#[test]
fn a_campaign_for_what_waits_for_its_release_begins_after_it() {
    let mut harness = leading(PLACES + 1, 200);
    let under_way = give_back(&mut harness, 0..PLACES + 1);
    let campaign = Command::Campaign {
        name: nth(PLACES),
        note: Note::default(),
        progress_within: None,
        max_hold: None,
    };
    assert_eq!(harness.command(campaign), []);
    assert_eq!(harness.engine.belief(&nth(PLACES)), None);
    let release = only(vacate(&mut harness, &under_way[0]));
    assert_eq!(released(&release), [nth(PLACES)]);
    assert!(is_acquire(&only(vacate(&mut harness, &release))));
}

/// What its own holder cannot read, only a person mends.
#[test]
fn a_release_that_finds_a_record_that_cannot_be_read_is_not_repeated() {
    let mut harness = Harness::leading();
    let release = only(harness.work_ended(5));
    assert_eq!(
        harness.answer(release.id, Reply::Released(vec![Err(unreadable())])),
        []
    );
    assert!(harness.engine.is_idle());
    assert!(matches!(
        departures(&harness)[..],
        [Departure::Unconfirmed { error, .. }] if error.fault == Fault::Unreadable
    ));
}
