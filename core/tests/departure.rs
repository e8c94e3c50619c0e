//! Giving a lease back, and leaving nothing behind.

use crate::harness::*;
use std::time::Duration;
use tenure_core::*;

#[test]
fn the_release_is_sent_only_after_the_work_has_ended() {
    let mut harness = Harness::leading();
    let requests = harness.command(Command::StepDown {
        name: job(),
        token: token(5),
    });
    assert!(requests.is_empty(), "the work still runs: {requests:?}");
    assert!(matches!(harness.authority(), Authority::Ending { .. }));
    assert!(
        is_renew(&harness.run_to_request()),
        "and the lease must not run out under it"
    );
    assert!(is_release(&only(harness.work_ended(5))));
}

#[test]
fn authority_is_none_before_the_release_is_sent() {
    let mut harness = Harness::leading();
    let actions = harness.engine.step(
        harness.now,
        Input::Command(Command::WorkEnded {
            name: job(),
            token: token(5),
        }),
    );
    assert!(matches!(
        actions.events[0],
        Event::Ended {
            cause: Cause::GivenBack,
            ..
        }
    ));
    assert_eq!(actions.requests.len(), 1);
    assert_eq!(harness.authority(), Authority::None);
}

#[test]
fn a_release_without_answer_is_repeated_until_the_lease_has_surely_expired() {
    let mut harness = Harness::leading();
    let started = harness.now;
    only(harness.work_ended(5));
    let mut releases = 1;
    while !harness.engine.is_idle() {
        releases += harness
            .run_to_wake()
            .iter()
            .filter(|request| is_release(request))
            .count();
    }
    assert!(releases > 3, "{releases}");
    let lasted = harness.now.since(started);
    assert!(lasted >= seconds(30.0) && lasted < seconds(40.0), "{lasted:?}");
    assert!(matches!(
        harness.events.last(),
        Some(Event::Departed {
            departure: Departure::Unconfirmed { .. },
            ..
        })
    ));
}

#[test]
fn a_release_is_repeated_for_as_long_as_the_last_renewal_may_have_made_it_last() {
    let mut harness = Harness::leading();
    let renewal = harness.run_to_request();
    let longer = Renewed::Extended {
        ttl: Ttl::from_secs(60).unwrap(),
        wish: Wish::Nothing,
    };
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(longer)]));
    let ended_at = harness.now;
    only(harness.work_ended(5));
    while !harness.engine.is_idle() {
        harness.run_to_wake();
    }
    let lasted = harness.now.since(ended_at);
    assert!(lasted >= seconds(60.0) && lasted < seconds(70.0), "{lasted:?}");
}

#[test]
fn a_command_for_another_term_does_nothing() {
    let mut harness = Harness::leading();
    assert!(harness.work_ended(4).is_empty());
    harness.command(Command::StepDown {
        name: job(),
        token: token(6),
    });
    assert!(matches!(harness.authority(), Authority::Held { .. }));
}

#[test]
fn a_late_renewal_answer_does_not_revive_a_released_term() {
    let mut harness = Harness::leading();
    let renewal = harness.run_to_request();
    let release = only(harness.work_ended(5));
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(extended())]));
    assert!(!harness.leads());
    harness.answer(release.id, Reply::Released(vec![Ok(Released::Vacated)]));
    assert!(harness.engine.is_idle());
}

#[test]
fn a_campaign_that_is_withdrawn_before_any_doubt_leaves_at_once() {
    let mut harness = Harness::new();
    let request = harness.campaign_once();
    let theirs = lease_of(other(), 6, seconds(20.0));
    harness.answer(request.id, Reply::Acquired(Ok(Acquired::Held(theirs))));
    harness.command(Command::Withdraw { name: job() });
    assert!(harness.engine.is_idle());
    assert!(matches!(harness.events.last(), Some(Event::Withdrawn { .. })));
}

/// The earlier try, whose answer was lost, has taken nothing: the same attempt is told that another holds the
/// lease.
#[test]
fn a_campaign_whose_doubt_was_resolved_before_it_is_withdrawn_leaves_at_once() {
    let mut harness = Harness::new();
    let lost = harness.campaign_once();
    harness.answer(lost.id, Reply::Acquired(Err(unreachable())));
    let again = harness.run_to_request();
    let theirs = lease_of(other(), 6, seconds(20.0));
    harness.answer(again.id, Reply::Acquired(Ok(Acquired::Held(theirs))));
    assert_eq!(harness.command(Command::Withdraw { name: job() }), []);
    assert!(harness.engine.is_idle());
}

#[test]
fn a_withdrawn_attempt_that_the_store_applied_is_found_and_released() {
    let mut harness = Harness::new();
    let acquire = harness.campaign_once();
    harness.answer(acquire.id, Reply::Acquired(Err(unreachable())));
    let look = only(harness.command(Command::Withdraw { name: job() }));
    assert!(matches!(look.operation, Operation::Look(_)));
    let left = Lease {
        attempt: attempt_of(&acquire),
        ..lease_of(me(), 5, seconds(29.0))
    };
    let release = only(harness.answer(look.id, Reply::Looked(Ok(Some(left)))));
    let Operation::Release(releases) = &release.operation else {
        panic!("{release:?}")
    };
    assert_eq!(
        (releases[0].token, releases[0].attempt),
        (token(5), attempt_of(&acquire))
    );
    harness.answer(release.id, Reply::Released(vec![Ok(Released::Vacated)]));
    assert!(harness.engine.is_idle());
}

#[test]
fn a_withdrawn_attempt_that_was_not_applied_releases_nothing() {
    let mut harness = Harness::new();
    let acquire = harness.campaign_once();
    harness.answer(acquire.id, Reply::Acquired(Err(unreachable())));
    let look = only(harness.command(Command::Withdraw { name: job() }));
    let theirs = lease_of(other(), 6, seconds(29.0));
    assert!(
        harness
            .answer(look.id, Reply::Looked(Ok(Some(theirs))))
            .is_empty()
    );
    assert!(harness.engine.is_idle());
}

/// Found by the simulator: seed 68446, of a process with three leases.
#[test]
fn a_stuck_term_is_not_kept_by_the_beats_of_its_neighbours() {
    let mut harness = Harness::new();
    let within = Some(seconds(15.0));
    let lead = |harness: &mut Harness, lease: &str, progress_within| {
        let campaign = Command::Campaign {
            name: name(lease),
            note: Note::default(),
            progress_within,
            max_hold: None,
        };
        let request = only(harness.command(campaign));
        harness.answer(request.id, Reply::Acquired(Ok(grant(5))));
    };
    // Every neighbour is due half a second before the stuck term, which each of them would take along.
    lead(&mut harness, "neighbour-0", None);
    harness.pass(seconds(0.5));
    lead(&mut harness, "stuck", within);
    let began = harness.now;
    for neighbour in 1..12 {
        harness.pass(seconds(9.0));
        for request in harness.input(Input::Tick) {
            renew_all(&mut harness, &request);
        }
        lead(&mut harness, &format!("neighbour-{neighbour}"), None);
        while harness.now < began.after(seconds(9.5 * f64::from(neighbour))) {
            for request in harness.run_to_wake() {
                renew_all(&mut harness, &request);
            }
        }
    }
    let ended = |event: &Event| matches!(event, Event::Ended { name: lease, .. } if *lease == name("stuck"));
    assert!(
        harness.events.iter().any(ended),
        "{:?} after its beginning",
        harness.now.since(began)
    );
}

fn renew_all(harness: &mut Harness, request: &Request) {
    let Operation::Renew(renewals) = &request.operation else {
        return;
    };
    let all = renewals.iter().map(|_| Ok(extended())).collect();
    harness.answer(request.id, Reply::Renewed(all));
}

#[test]
fn without_progress_renewals_stop_and_progress_resumes_them() {
    let mut harness = Harness::new();
    let within = Some(seconds(15.0));
    let request = only(harness.command(Command::Campaign {
        name: job(),
        note: Note::default(),
        progress_within: within,
        max_hold: None,
    }));
    harness.answer(request.id, Reply::Acquired(Ok(grant(5))));
    let renewal = harness.run_to_request();
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(extended())]));
    // The second renewal is due at 20 s, and the last progress was at 0 s.
    while !harness
        .events
        .iter()
        .any(|event| matches!(event, Event::Stuck { .. }))
    {
        assert!(harness.run_to_wake().is_empty());
    }
    let progress = Command::Progress {
        name: job(),
        token: token(5),
        at: harness.now,
    };
    let resumed = only(harness.command(progress));
    assert!(is_renew(&resumed));
    harness.answer(resumed.id, Reply::Renewed(vec![Ok(extended())]));
    // And without any further progress the term ends at its deadline.
    while harness.leads() {
        for request in harness.run_to_wake() {
            harness.answer(request.id, Reply::Renewed(vec![Ok(extended())]));
        }
    }
    assert!(matches!(
        harness.events.last(),
        Some(Event::Ended {
            cause: Cause::NoProgress(_),
            ..
        })
    ));
}

#[test]
fn an_answer_about_an_earlier_term_does_not_touch_the_next_one() {
    let mut harness = Harness::leading();
    let renewal = harness.run_to_request();
    let release = only(harness.work_ended(5));
    harness.answer(release.id, Reply::Released(vec![Ok(Released::Vacated)]));
    let acquire = harness.campaign_once();
    harness.answer(acquire.id, Reply::Acquired(Ok(grant(6))));
    let until = harness.until();
    let theirs = lease_of(me(), 6, seconds(30.0));
    harness.answer(
        renewal.id,
        Reply::Renewed(vec![Ok(Renewed::Lost(Some(Box::new(theirs))))]),
    );
    assert_eq!(harness.until(), until);
}

#[test]
fn a_release_that_only_a_person_can_mend_is_not_repeated() {
    let mut harness = Harness::leading();
    let release = only(harness.work_ended(5));
    harness.answer(release.id, Reply::Released(vec![Err(forbidden())]));
    assert!(harness.engine.is_idle());
    assert!(matches!(
        harness.events.last(),
        Some(Event::Departed {
            departure: Departure::Unconfirmed { .. },
            ..
        })
    ));
}

/// The lease would last out its ttl, though the directory behind the store is back in a moment.
#[test]
fn a_release_whose_login_is_refused_is_repeated() {
    let mut harness = Harness::leading();
    let release = only(harness.work_ended(5));
    harness.answer(release.id, Reply::Released(vec![Err(refused_login())]));
    let again = harness.run_to_request();
    harness.answer(again.id, Reply::Released(vec![Ok(Released::Vacated)]));
    assert!(harness.engine.is_idle());
    assert!(matches!(
        harness.events.last(),
        Some(Event::Departed {
            departure: Departure::Answered(Released::Vacated),
            ..
        })
    ));
}

/// What was told of releases that failed, in this order.
fn failures(harness: &Harness) -> Vec<(StoreError, Duration)> {
    let told = harness.events.iter().filter_map(|event| match event {
        Event::ReleaseFailed {
            name,
            token: of,
            error,
            remaining,
        } => {
            assert_eq!((name, *of), (&job(), token(5)));
            Some((error.clone(), *remaining))
        }
        _ => None,
    });
    told.collect()
}

#[test]
fn each_release_that_fails_is_told_with_its_reason_and_for_how_long_the_lease_may_be_held() {
    let mut harness = Harness::leading();
    let full = StoreError::not_applied(Fault::Full, "lease \"job\": the disk is full; free some");
    let release = only(harness.work_ended(5));
    harness.answer(release.id, Reply::Released(vec![Err(full.clone())]));
    let [(error, first)] = failures(&harness).try_into().expect("one failure");
    assert_eq!(error, full);
    assert!(first >= seconds(30.0) && first < seconds(40.0), "{first:?}");
    let failed_at = harness.now;
    let again = harness.run_to_request();
    harness.answer(again.id, Reply::Released(vec![Err(unreachable())]));
    let passed = harness.now.since(failed_at);
    assert_eq!(failures(&harness)[1..], [(unreachable(), first - passed)]);
    // It succeeds, and nothing is left to be told but that.
    let last = harness.run_to_request();
    harness.answer(last.id, Reply::Released(vec![Ok(Released::Vacated)]));
    assert_eq!(failures(&harness).len(), 2);
    assert!(matches!(
        harness.events.last(),
        Some(Event::Departed {
            departure: Departure::Answered(Released::Vacated),
            ..
        })
    ));
}

#[test]
fn a_release_that_nobody_answers_is_told_as_one_that_failed_when_it_is_given_up() {
    let mut harness = Harness::leading();
    only(harness.work_ended(5));
    while failures(&harness).is_empty() {
        harness.run_to_wake();
    }
    let [(error, remaining)] = failures(&harness).try_into().expect("one failure");
    assert_eq!(error.fault, Fault::TimedOut);
    assert!(remaining > timing().request_timeout(), "{remaining:?}");
    assert!(!harness.engine.is_idle(), "and it is sent again");
}

#[test]
fn a_release_that_is_given_up_tells_the_last_failure_and_what_remains() {
    let mut harness = Harness::leading();
    let release = only(harness.work_ended(5));
    harness.answer(release.id, Reply::Released(vec![Err(forbidden())]));
    let [(error, remaining)] = failures(&harness).try_into().expect("one failure");
    assert!(remaining >= seconds(30.0), "{remaining:?}");
    let departed = Event::Departed {
        name: job(),
        token: token(5),
        departure: Departure::Unconfirmed { error, remaining },
    };
    assert_eq!(harness.events.last(), Some(&departed));
}

#[test]
fn a_campaign_that_waits_for_a_release_can_be_withdrawn() {
    let mut harness = Harness::leading();
    let release = only(harness.work_ended(5));
    harness.campaign();
    harness.command(Command::Withdraw { name: job() });
    assert!(
        harness
            .answer(release.id, Reply::Released(vec![Ok(Released::Vacated)]))
            .is_empty()
    );
    assert!(harness.engine.is_idle());
}

/// A harness that leads with a gate of 15 s, renewed at 10 s, at 15 s.
fn renewed() -> Harness {
    let mut harness = Harness::gated();
    let renewal = harness.run_to_request();
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(extended())]));
    harness.pass(seconds(5.0));
    harness
}

fn tell_progress(harness: &mut Harness, at: Moment) {
    let (name, token) = (job(), token(5));
    assert_eq!(harness.command(Command::Progress { name, token, at }), vec![]);
}

#[test]
fn progress_that_is_told_late_takes_nothing_back() {
    let mut harness = renewed();
    let now = harness.now;
    tell_progress(&mut harness, now);
    tell_progress(&mut harness, now.before(seconds(14.0)));
    assert!(
        is_renew(&harness.run_to_request()),
        "there was progress 5 s before"
    );
}

#[test]
fn progress_of_the_future_counts_as_of_now() {
    let mut harness = renewed();
    let later = harness.now.after(seconds(3600.0));
    tell_progress(&mut harness, later);
    while harness.leads() {
        for renewal in harness.run_to_wake() {
            harness.answer(renewal.id, Reply::Renewed(vec![Ok(extended())]));
        }
        assert!(harness.now < later, "nothing ends it");
    }
}

#[test]
fn progress_counts_from_when_it_was_made_and_not_from_when_it_was_told() {
    let mut harness = Harness::gated();
    let won_at = harness.now;
    let renewal = harness.run_to_request();
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(extended())]));
    harness.pass(seconds(9.0));
    // Told at 19 s, made at 1 s: at 20 s, when the next renewal is due, that is too long ago.
    let at = won_at.after(seconds(1.0));
    harness.command(Command::Progress {
        name: job(),
        token: token(5),
        at,
    });
    assert!(harness.run_to_wake().is_empty(), "the renewal is not sent");
    assert!(
        harness
            .events
            .iter()
            .any(|event| matches!(event, Event::Stuck { .. }))
    );
}
