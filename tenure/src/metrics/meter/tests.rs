use super::{
    ALL_LOCKS, About, CANDIDATES, CAUSES, Cause, Event, Fault, LEADER_STATUS, LeaseName, Meter, Operation,
    StoreError, TERMS, UNREACHABLE_SINCE, VALID_UNTIL,
};
use crate::clock;
use crate::metrics::candidacy::Candidacy;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use std::time::Duration;
use tenure_core::{FencingToken, Grant, Ttl};

fn job() -> LeaseName {
    LeaseName::new("job").expect("a name")
}

fn acquired(name: &LeaseName) -> Event {
    let grant = Grant {
        token: FencingToken::new(1).expect("a token"),
        ttl: Ttl::MIN,
        again: false,
        terms: 7,
        predecessor: None,
    };
    Event::Acquired {
        name: name.clone(),
        grant,
        until: clock::now().after(Ttl::MIN.duration()),
        round_trip: Duration::ZERO,
    }
}

/// What is exported after these.
fn exported(meter: fn(&LeaseName) -> Meter, events: &[Event]) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    ::metrics::with_local_recorder(&recorder, || {
        let mut meter = meter(&job());
        events.iter().for_each(|event| meter.event(event));
        recorder.handle().render()
    })
}

/// Prometheus takes a series that begins at 1 for one that has not risen.
#[test]
fn the_first_loss_of_each_cause_is_a_rise() {
    let name = job();
    for (meter, label) in [
        (Meter::of_election as fn(&LeaseName) -> Meter, "job"),
        (|_| Meter::of_locks(), ALL_LOCKS),
    ] {
        let text = exported(meter, &[acquired(&name)]);
        for cause in CAUSES {
            let none = format!("lease_terms_ended{{lease=\"{label}\",cause=\"{cause}\"}} 0\n");
            assert!(text.contains(&none), "{none}{text}");
        }
    }
}

#[test]
fn a_candidate_that_the_store_has_never_served_is_seen_not_to_lead() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let text = ::metrics::with_local_recorder(&recorder, || {
        let mut meter = Meter::of_election(&job());
        meter.wanted(&job(), true);
        recorder.handle().render()
    });
    assert!(text.contains("leader_status{lease=\"job\"} 0\n"), "{text}");
    let text = exported(|_| Meter::of_locks(), &[]);
    assert!(!text.contains("leader_status"), "{text}");
}

/// What was asked an hour ago, and was not answered, was not reached then.
#[test]
fn an_outage_began_when_what_was_not_answered_was_asked() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let took = Duration::from_secs(3600);
    let name = job();
    let before = super::unix_time(Duration::ZERO);
    let text = ::metrics::with_local_recorder(&recorder, || {
        let mut meter = Meter::of_election(&job());
        meter.answered(&About::of(&Operation::Look(name)), None, took);
        recorder.handle().render()
    });
    let begin = format!("{UNREACHABLE_SINCE}{{lease=\"job\"}} ");
    let since = text.lines().find_map(|line| line.strip_prefix(&begin));
    let since: f64 = since.expect("it is told").parse().expect("a number");
    let asked = super::unix_time(Duration::ZERO) - took.as_secs_f64();
    assert!(before - took.as_secs_f64() <= since && since <= asked, "{since}");
}

/// What the gauges say while the meter is there, and when it has gone.
fn before_and_after(meter: fn(&LeaseName) -> Meter, label: &str) -> [[Option<f64>; 4]; 2] {
    let recorder = PrometheusBuilder::new().build_recorder();
    let values = || {
        let text = recorder.handle().render();
        [LEADER_STATUS, VALID_UNTIL, UNREACHABLE_SINCE, CANDIDATES].map(|gauge| {
            let begin = format!("{gauge}{{lease=\"{label}\"}} ");
            let value = text.lines().find_map(|line| line.strip_prefix(&begin));
            value.map(|value| value.parse().expect("a number"))
        })
    };
    ::metrics::with_local_recorder(&recorder, || {
        let name = job();
        let mut meter = meter(&name);
        meter.wanted(&name, true);
        meter.event(&acquired(&name));
        meter.answered(&About::of(&Operation::Look(name)), None, Duration::ZERO);
        let before = values();
        drop(meter);
        [before, values()]
    })
}

#[test]
fn no_gauge_tells_of_a_driver_that_is_gone() {
    let [before, after] = before_and_after(Meter::of_election, "job");
    assert!(
        before.iter().all(|value| value.is_some_and(|value| value > 0.0)),
        "{before:?}"
    );
    assert_eq!(after, [Some(0.0); 4]);
    let [before, after] = before_and_after(|_| Meter::of_locks(), ALL_LOCKS);
    assert!(before[0] == Some(1.0) && before[2] > Some(0.0), "{before:?}");
    assert_eq!(after, [Some(0.0), None, Some(0.0), None]);
}

/// A standby that takes over for the first time has had no term before: for Prometheus it must be a rise.
#[test]
fn the_first_term_of_a_candidate_is_a_rise() {
    let text = exported(Meter::of_election, &[]);
    for after in ["vacant", "expired"] {
        let none = format!("lease_terms_begun{{lease=\"job\",after=\"{after}\"}} 0\n");
        assert!(text.contains(&none), "{none}{text}");
    }
}

/// What the gauges of the election say.
fn told(recorder: &PrometheusRecorder, gauge: &str) -> Option<f64> {
    let text = recorder.handle().render();
    let begin = format!("{gauge}{{lease=\"job\"}} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&begin));
    value.map(|value| value.parse().expect("a number"))
}

/// Nobody leads what nobody wants to lead, and nobody has to be called for it.
#[test]
fn who_wants_to_lead_or_leads_is_a_candidate_and_nobody_else() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let candidates = || told(&recorder, CANDIDATES);
    ::metrics::with_local_recorder(&recorder, || {
        let mut meter = Meter::of_election(&job());
        assert_eq!(candidates(), Some(0.0));
        for _again in 0..2 {
            meter.wanted(&job(), true);
            assert_eq!(candidates(), Some(1.0));
            meter.wanted(&job(), false);
            assert_eq!(candidates(), Some(0.0));
        }
        meter.wanted(&job(), true);
        drop(meter);
        assert_eq!(candidates(), Some(0.0));
    });
}

/// A night's work that hangs while the next one begins, and a program that builds an election for each.
#[test]
fn elections_of_one_name_in_one_process_are_counted_and_hide_no_leader() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let both = || [CANDIDATES, LEADER_STATUS].map(|gauge| told(&recorder, gauge));
    ::metrics::with_local_recorder(&recorder, || {
        let [mut leads, mut waits] = [(); 2].map(|()| Meter::of_election(&job()));
        for meter in [&mut leads, &mut waits] {
            meter.wanted(&job(), true);
        }
        leads.event(&acquired(&job()));
        let failed = StoreError::not_applied(Fault::Unreachable, "nobody is there");
        waits.event(&Event::AttemptFailed {
            name: job(),
            error: failed,
            retry_in: Duration::ZERO,
        });
        assert_eq!(both(), [Some(2.0), Some(1.0)]);
        drop(waits);
        assert_eq!(both(), [Some(1.0), Some(1.0)]);
        leads.end(&job(), &Cause::Deadline(None));
        assert_eq!(both(), [Some(1.0), Some(0.0)]);
    });
}

/// Of terms whose holders have told nobody, too: each was killed before it was looked at.
#[test]
fn the_terms_of_a_lease_are_told_as_its_store_counts_them() {
    let recorder = PrometheusBuilder::new().build_recorder();
    ::metrics::with_local_recorder(&recorder, || {
        Meter::of_election(&job()).event(&acquired(&job()));
    });
    assert_eq!(told(&recorder, TERMS), Some(7.0));
}

/// Else nothing would tell of a store that was away when its candidates were started.
#[test]
fn a_store_that_cannot_be_opened_is_seen_to_be_unreachable_until_it_is_open() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let away = StoreError::not_applied(Fault::Unreachable, "nobody is there");
    ::metrics::with_local_recorder(&recorder, || {
        let mut candidacy = Candidacy::of_election(&job());
        candidacy.not_opened(&away);
        let gauges = || [CANDIDATES, LEADER_STATUS].map(|gauge| told(&recorder, gauge));
        assert_eq!(gauges(), [Some(1.0), Some(0.0)]);
        let unreachable = || told(&recorder, UNREACHABLE_SINCE);
        assert!(unreachable() > Some(0.0), "{:?}", unreachable());
        let text = recorder.handle().render();
        let failures = "lease_acquisition_failures{lease=\"job\",reason=\"unreachable\"} 1\n";
        assert!(text.contains(failures), "{text}");
        candidacy.opened();
        assert_eq!(unreachable(), Some(0.0));
        drop(candidacy);
        assert_eq!(gauges(), [Some(0.0); 2]);
    });
}
