use super::{
    ALL_LOCKS, About, CAUSES, Event, Fault, LEADER_STATUS, LeaseName, Meter, Operation, StoreError,
    UNREACHABLE_SINCE, VALID_UNTIL,
};
use crate::clock;
use metrics_exporter_prometheus::PrometheusBuilder;
use std::time::Duration;
use tenure_core::{FencingToken, Grant, Ttl};

fn acquired(name: &LeaseName) -> Event {
    let grant = Grant {
        token: FencingToken::new(1).expect("a token"),
        ttl: Ttl::MIN,
        again: false,
        terms: 1,
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
fn exported(meter: fn() -> Meter, events: &[Event]) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    ::metrics::with_local_recorder(&recorder, || {
        let mut meter = meter();
        events.iter().for_each(|event| meter.event(event));
        recorder.handle().render()
    })
}

/// Prometheus takes a series that begins at 1 for one that has not risen.
#[test]
fn the_first_loss_of_each_cause_is_a_rise() {
    let name = LeaseName::new("job").expect("a name");
    for (meter, label) in [
        (Meter::of_leases as fn() -> Meter, "job"),
        (Meter::of_locks, ALL_LOCKS),
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
    let failed = Event::AttemptFailed {
        name: LeaseName::new("job").expect("a name"),
        error: StoreError::not_applied(Fault::ReadOnly, "a replica"),
        retry_in: Duration::from_secs(1),
    };
    let text = exported(Meter::of_leases, std::slice::from_ref(&failed));
    assert!(text.contains("leader_status{lease=\"job\"} 0\n"), "{text}");
    let text = exported(Meter::of_locks, &[failed]);
    assert!(!text.contains("leader_status"), "{text}");
}

/// What was asked an hour ago, and was not answered, was not reached then.
#[test]
fn an_outage_began_when_what_was_not_answered_was_asked() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let took = Duration::from_secs(3600);
    let name = LeaseName::new("job").expect("a name");
    let before = super::unix_time(Duration::ZERO);
    let text = ::metrics::with_local_recorder(&recorder, || {
        let mut meter = Meter::of_leases();
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
fn before_and_after(meter: fn() -> Meter, label: &str) -> [[Option<f64>; 3]; 2] {
    let recorder = PrometheusBuilder::new().build_recorder();
    let values = || {
        let text = recorder.handle().render();
        [LEADER_STATUS, VALID_UNTIL, UNREACHABLE_SINCE].map(|gauge| {
            let begin = format!("{gauge}{{lease=\"{label}\"}} ");
            let value = text.lines().find_map(|line| line.strip_prefix(&begin));
            value.map(|value| value.parse().expect("a number"))
        })
    };
    ::metrics::with_local_recorder(&recorder, || {
        let mut meter = meter();
        let name = LeaseName::new("job").expect("a name");
        meter.event(&acquired(&name));
        meter.answered(&About::of(&Operation::Look(name)), None, Duration::ZERO);
        let before = values();
        drop(meter);
        [before, values()]
    })
}

#[test]
fn no_gauge_tells_of_a_driver_that_is_gone() {
    let [before, after] = before_and_after(Meter::of_leases, "job");
    assert!(
        before.iter().all(|value| value.is_some_and(|value| value > 0.0)),
        "{before:?}"
    );
    assert_eq!(after, [Some(0.0); 3]);
    let [before, after] = before_and_after(Meter::of_locks, ALL_LOCKS);
    assert!(before[0] == Some(1.0) && before[2] > Some(0.0), "{before:?}");
    assert_eq!(after, [Some(0.0), None, Some(0.0)]);
}
