//! When an engine wakes and asks: never blindly.
use crate::harness::*;
use std::time::Duration;
use tenure_core::*;

/// A standby that was told that `remaining` is left.
fn standby(remaining: f64) -> Harness {
    let mut harness = Harness::new();
    let request = harness.campaign_once();
    let theirs = lease_of(other(), 6, seconds(remaining));
    harness.answer(request.id, Reply::Acquired(Ok(Acquired::Held(theirs))));
    harness
}

#[test]
fn a_standby_sleeps_until_the_stores_own_remaining_plus_a_spread() {
    let mut harness = standby(17.0);
    let told_at = harness.now;
    assert!(is_acquire(&harness.run_to_request()));
    let slept = harness.now.since(told_at);
    assert!(slept >= seconds(17.0) + timing().spread() / 2, "{slept:?}");
    assert!(slept <= seconds(17.0) + timing().spread(), "{slept:?}");
}

#[test]
fn a_standby_of_a_renewing_leader_asks_at_most_once_per_ttl() {
    let mut harness = Harness::new();
    let start = harness.now;
    let mut request = harness.campaign_once();
    let mut asked = 0;
    while harness.now.since(start) < seconds(3000.0) {
        asked += 1;
        // The leader renews on a grid of 10 s that is late by 2 ms each time.
        let age = harness.now.since(start).as_nanos() % 10_002_000_000;
        let age = Duration::from_nanos(u64::try_from(age).unwrap());
        let theirs = lease_of(other(), 6, seconds(30.0) - age);
        harness.answer(request.id, Reply::Acquired(Ok(Acquired::Held(theirs))));
        request = harness.run_to_request();
    }
    assert!(asked <= 101, "{asked} requests in 100 ttls");
}

#[test]
fn a_standby_that_times_the_lease_itself_looks_once_also_where_the_rate_error_is_seconds() {
    let mut harness = Harness::new();
    let request = harness.campaign_once();
    let hour = Ttl::from_secs(3600).unwrap();
    // What an observer waits: the ttl, and the rate error of it.
    let remaining = seconds(3600.0 * 1.0005);
    let lease = Lease {
        ttl: hour,
        ..lease_of(other(), 5, remaining)
    };
    let told_at = harness.now;
    harness.answer(request.id, Reply::Acquired(Ok(Acquired::Held(lease))));
    harness.run_to_request();
    assert!(
        harness.now.since(told_at) >= remaining,
        "it would have to look again"
    );
}

#[test]
fn a_store_clock_that_stepped_back_does_not_put_a_standby_to_sleep_for_ever() {
    let mut harness = standby(86_400.0);
    let told_at = harness.now;
    harness.run_to_request();
    assert!(
        harness.now.since(told_at) <= seconds(31.0),
        "never longer than the ttl of the record"
    );
}

/// How long a standby with this timing waits once it was told that the lease is vacant.
fn answers_after(timing: Timing) -> Duration {
    let mut harness = Harness::with(timing, 1);
    let request = harness.campaign_once();
    let theirs = lease_of(other(), 6, seconds(25.0));
    harness.answer(request.id, Reply::Acquired(Ok(Acquired::Held(theirs))));
    let woken_at = harness.now;
    if harness.watch(Change::Vacated, 6).is_empty() {
        harness.run_to_request();
    }
    harness.now.since(woken_at)
}

#[test]
fn a_standby_that_nobody_is_woken_with_answers_a_release_at_once() {
    assert!(answers_after(timing()) > Duration::ZERO);
    assert_eq!(answers_after(timing().without_spread()), Duration::ZERO);
    assert_eq!(timing().wake_spread(), Duration::from_millis(8));
    let short = TimingOptions {
        spread: Some(Duration::from_millis(2)),
        ..TimingOptions::new(Duration::from_secs(30))
    };
    assert!(answers_after(short.check().unwrap()) <= Duration::from_millis(2));
}

#[test]
fn a_vacated_lease_wakes_a_standby_within_milliseconds() {
    let mut harness = standby(25.0);
    let woken_at = harness.now;
    assert_eq!(
        harness.watch(Change::Vacated, 6).len() + usize::from(is_acquire(&harness.run_to_request())),
        1
    );
    assert!(harness.now.since(woken_at) <= Duration::from_millis(8));
}

#[test]
fn a_hint_that_overtakes_the_answer_is_not_forgotten() {
    let mut harness = Harness::new();
    let request = harness.campaign_once();
    harness.watch(Change::Vacated, 6);
    let theirs = lease_of(other(), 6, seconds(25.0));
    harness.answer(request.id, Reply::Acquired(Ok(Acquired::Held(theirs))));
    let told_at = harness.now;
    harness.run_to_request();
    assert!(harness.now.since(told_at) <= Duration::from_millis(8));
}

#[test]
fn a_hint_about_an_earlier_term_does_not_make_a_standby_ask() {
    let mut harness = Harness::new();
    let request = harness.campaign_once();
    harness.watch(Change::Vacated, 5);
    let theirs = lease_of(other(), 6, seconds(25.0));
    harness.answer(request.id, Reply::Acquired(Ok(Acquired::Held(theirs))));
    let told_at = harness.now;
    harness.run_to_request();
    assert!(harness.now.since(told_at) >= seconds(25.0));
}

#[test]
fn a_gap_in_the_watch_makes_a_standby_look_within_the_spread() {
    let mut harness = standby(25.0);
    let woken_at = harness.now;
    harness.input(Input::Watch(WatchEvent::Gap));
    harness.run_to_request();
    assert!(harness.now.since(woken_at) <= timing().spread());
}

/// How long a standby sleeps that was told this while its request was under way, and then that another holds
/// token 6.
fn sleeps_when_told_meanwhile(hints: impl FnOnce(&mut Harness)) -> Duration {
    let mut harness = Harness::new();
    let request = harness.campaign_once();
    hints(&mut harness);
    let theirs = lease_of(other(), 6, seconds(25.0));
    harness.answer(request.id, Reply::Acquired(Ok(Acquired::Held(theirs))));
    let told_at = harness.now;
    harness.run_to_request();
    harness.now.since(told_at)
}

fn gap(harness: &mut Harness) {
    harness.input(Input::Watch(WatchEvent::Gap));
}

#[test]
fn a_gap_while_a_request_is_under_way_makes_a_standby_look_again() {
    assert!(sleeps_when_told_meanwhile(gap) <= timing().spread());
}

/// A watch may repeat what it has told.
#[test]
fn an_old_hint_that_comes_again_hides_no_later_one() {
    let told_again = |harness: &mut Harness| drop(harness.watch(Change::Vacated, 5));
    let slept = sleeps_when_told_meanwhile(|harness| {
        gap(harness);
        told_again(harness);
    });
    assert!(slept <= timing().spread(), "{slept:?}");
    let slept = sleeps_when_told_meanwhile(|harness| {
        harness.watch(Change::Vacated, 6);
        told_again(harness);
    });
    assert!(slept <= timing().spread(), "{slept:?}");
    let slept = sleeps_when_told_meanwhile(|harness| {
        told_again(harness);
        harness.watch(Change::Vacated, 6);
    });
    assert!(slept <= timing().spread(), "{slept:?}");
}

#[test]
fn no_hint_shortens_the_pause_before_a_store_that_fails_is_asked_again() {
    let mut harness = Harness::new();
    let request = harness.campaign_once();
    harness.answer(request.id, Reply::Acquired(Err(unreachable())));
    let pause = harness.wake;
    gap(&mut harness);
    harness.watch(Change::Vacated, 6);
    assert_eq!(harness.wake, pause);
}

#[test]
fn the_first_renewal_counts_from_before_its_term_was_asked_for() {
    let mut harness = Harness::new();
    let sent_at = harness.now;
    let request = harness.campaign_once();
    harness.pass(seconds(2.0));
    harness.answer(request.id, Reply::Acquired(Ok(grant(5))));
    assert!(is_renew(&harness.run_to_request()));
    assert_eq!(harness.now, sent_at.after(timing().renew_every()));
}

#[test]
fn a_leader_sends_one_request_per_renewal_and_the_next_counts_from_the_last() {
    let mut harness = Harness::leading();
    let start = harness.now;
    for round in 1..=10_u32 {
        let renewal = harness.run_to_request();
        assert!(is_renew(&renewal));
        assert_eq!(
            harness.now,
            start.after(seconds(10.0) * round),
            "a slow answer shifts no renewal"
        );
        harness.pass(seconds(0.7));
        harness.answer(renewal.id, Reply::Renewed(vec![Ok(extended())]));
    }
}

#[test]
fn a_failed_renewal_is_tried_again_after_the_retry_interval() {
    let mut harness = Harness::leading();
    let renewal = harness.run_to_request();
    harness.answer(renewal.id, Reply::Renewed(vec![Err(unreachable())]));
    let failed_at = harness.now;
    assert!(is_renew(&harness.run_to_request()));
    assert_eq!(harness.now.since(failed_at), timing().retry_every());
}

#[test]
fn many_leases_are_renewed_in_as_few_requests_as_the_store_allows() {
    let mut harness = Harness::with(timing(), 100);
    for number in 0..250 {
        let name = name(&format!("lease-{number}"));
        let command = Command::Campaign {
            name,
            note: Note::default(),
            progress_within: None,
            max_hold: None,
        };
        let request = only(harness.command(command));
        harness.answer(request.id, Reply::Acquired(Ok(grant(5))));
        harness.pass(Duration::from_millis(2));
    }
    let sizes: Vec<usize> = harness
        .run_to_wake()
        .iter()
        .map(|request| match &request.operation {
            Operation::Renew(renewals) => renewals.len(),
            _ => panic!("only renewals are due: {request:?}"),
        })
        .collect();
    assert_eq!(sizes, vec![100, 100, 50]);
}

#[test]
fn different_seeds_spread_a_herd() {
    let held = || Ok(Acquired::Held(lease_of(other(), 6, seconds(10.0))));
    assert_spread(1, held);
    // And those for whom the store has failed, from the second time on.
    assert_spread(2, || Err(unreachable()));
}

/// Whether candidates that are answered this so many times at the same moments ask at different ones after
/// it.
fn assert_spread(times: usize, answer: impl Fn() -> Result<Acquired, StoreError>) {
    let mut moments = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let mut harness = Harness::new();
        harness.engine = Engine::new(me(), timing(), std::num::NonZeroUsize::MIN, seed);
        let mut request = harness.campaign_once();
        for _ in 1..times {
            harness.answer(request.id, Reply::Acquired(answer()));
            request = harness.run_to_request();
        }
        harness.answer(request.id, Reply::Acquired(answer()));
        moments.insert(harness.wake.unwrap().at);
    }
    assert!(moments.len() > 45, "{} different moments of 50", moments.len());
}
