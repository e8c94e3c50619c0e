//! Several traces are held against each other as far as they tell, and what they do not tell is said.

use crate::common::{given_back, header, lines, name, reader, steps, take_over};
use std::path::Path;
use std::time::Duration;
use tenure_core::{Event, Moment};
use tenure_trace::{MergeError, Merged, Rule, TermSpan, Writer, check, merge, merge_files};

const NANOSECOND: Duration = Duration::from_nanos(1);

/// The same trace by another candidate, so much earlier.
fn moved(trace: &[u8], candidate: u8, earlier: Duration) -> Vec<u8> {
    let mut read = reader(trace);
    let mut header = read.header().clone();
    header.candidate = crate::common::header(candidate).candidate;
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    for step in &mut read {
        let mut step = step.unwrap();
        step.at = step.at.before(earlier);
        for request in &mut step.actions.requests {
            request.give_up_at = request.give_up_at.before(earlier);
        }
        for event in &mut step.actions.events {
            if let Event::Acquired { until, .. } | Event::Renewed { until, .. } = event {
                *until = until.before(earlier);
            }
        }
        if let Some(wake) = &mut step.actions.wake {
            wake.at = wake.at.before(earlier);
        }
        writer.step(step.at, &step.input, &step.actions).unwrap();
    }
    writer.into_inner()
}

/// The term that a candidate leaves to the next, and both merged with the next moved to begin at any moment.
fn next_begins(first: &[u8]) -> (TermSpan, impl Fn(Moment) -> Merged) {
    let second = take_over().second;
    let left = check(&mut reader(first)).unwrap().terms[0].clone();
    let begins = check(&mut reader(&second)).unwrap().terms[0].from;
    let merged = move |moment: Moment| {
        let second = moved(&second, 2, begins.since(moment));
        merge([reader(first), reader(&second)]).unwrap()
    };
    (left, merged)
}

#[track_caller]
fn believe_at_once(merged: &Merged) -> &str {
    let (trace, breach) = merged.breach.as_ref().expect("both believe for a nanosecond");
    assert_eq!((*trace, breach.rule), (1, Rule::OneBeliever), "{breach}");
    &breach.what
}

#[test]
fn two_believers_are_found() {
    let first = given_back(&take_over().first);
    let (left, next_begins) = next_begins(&first);
    assert!(left.ended && left.recorded_until == left.until, "{left:?}");
    let in_turn = next_begins(left.until);
    assert_eq!(in_turn.breach, None, "the end of a belief is not part of it");
    assert_eq!(in_turn.undecided, [], "the end was recorded");
    let at_once = next_begins(left.until.before(NANOSECOND));
    let what = believe_at_once(&at_once);
    assert!(
        what.contains("candidate-1#") && what.contains("candidate-2#"),
        "{what}"
    );
}

#[test]
fn a_term_whose_end_was_not_recorded_is_held_against_others_until_its_traces_last_moment() {
    let first = take_over().first;
    let (left, next_begins) = next_begins(&first);
    assert!(!left.ended && left.recorded_until < left.until, "{left:?}");
    assert_eq!(left.recorded_until, steps(&first).last().unwrap().at);
    for (begins, undecided) in [
        (left.until, vec![]),
        (left.until.before(NANOSECOND), vec![(0, left.clone())]),
        (left.recorded_until, vec![(0, left.clone())]),
    ] {
        let merged = next_begins(begins);
        assert_eq!(merged.breach, None, "{begins:?}");
        assert_eq!((merged.undecided, merged.passed_on), (undecided, 1), "{begins:?}");
    }
    let at_once = next_begins(left.recorded_until.before(NANOSECOND));
    let what = believe_at_once(&at_once);
    let at_least = format!("to at least {:?}, then", left.recorded_until);
    assert!(what.contains(&at_least), "{what}");
}

/// Real ones: `tenure run --ttl 30s --trace killed.jsonl` was killed with SIGKILL while it led, and its
/// warden gave the lease back at once (C2) to another that waited. A later engine would beat at other
/// moments: what counts is what the lines say.
#[test]
fn a_leader_that_was_killed_and_whose_warden_gave_the_lease_back_is_no_violation() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let mut paths = ["killed.jsonl", "successor.jsonl"].map(|file| recorded.join(file));
    for killed in 0..2 {
        let merged = merge_files(&paths).unwrap();
        assert_eq!((merged.breach, merged.terms, merged.passed_on), (None, 2, 1));
        assert_eq!((merged.open, merged.truncated), (vec![killed], vec![]));
        let [(trace, term)] = merged.undecided.as_slice() else {
            panic!("{:?}", merged.undecided)
        };
        assert_eq!((*trace, &term.name, term.ended), (killed, &name(), false));
        paths.reverse();
    }
}

#[test]
fn a_trace_that_stops_while_its_engine_wants_or_holds_something_is_open_at_the_end() {
    let whole = given_back(&take_over().first);
    assert!(!check(&mut reader(&whole)).unwrap().open);
    let header_alone = lines(&whole)[0].len() + 1;
    assert!(
        check(&mut reader(&whole[..header_alone])).unwrap().open,
        "nothing is told"
    );
    let mut engine = header(1).engine();
    let mut stopped = header_alone;
    for (step, line) in steps(&whole).into_iter().zip(&lines(&whole)[1..]) {
        let _ = engine.step(step.at, step.input);
        stopped += line.len() + 1;
        let checked = check(&mut reader(&whole[..stopped])).unwrap();
        assert_eq!(checked.open, !engine.is_idle(), "{line}");
        let cut_off = check(&mut reader(&whole[..stopped - 1])).unwrap();
        assert!(cut_off.open && cut_off.truncated.is_some(), "{line}");
    }
    assert_eq!(stopped, whole.len());
    let went_on = [whole.as_slice(), b"{"].concat();
    assert!(check(&mut reader(&went_on)).unwrap().open, "more was to be told");
    let merged = merge([reader(&whole), reader(&take_over().second)]).unwrap();
    assert_eq!(merged.open, [1], "the second still leads");
}

#[test]
fn a_token_that_does_not_rise_from_process_to_process_is_found() {
    let trace = take_over().first;
    let again = moved(&trace, 3, Duration::ZERO);
    let earlier = moved(&trace, 4, Duration::from_secs(100));
    let merged = merge([reader(&again), reader(&earlier)]).unwrap();
    assert_eq!(merged.breach.unwrap().1.rule, Rule::TokensRise);
}

#[test]
fn traces_that_cannot_be_compared_are_refused() {
    let traces = take_over();
    let twice = merge([reader(&traces.first), reader(&traces.first)]);
    assert!(
        matches!(twice, Err(MergeError::Twice { trace: 1, .. })),
        "{twice:?}"
    );
    for (from, to) in [("\"a-boot\"", "\"another\""), ("\"a-boot\"", "null")] {
        let elsewhere = String::from_utf8(traces.second.clone())
            .unwrap()
            .replacen(from, to, 1);
        let outcome = merge([reader(&traces.first), reader(elsewhere.as_bytes())]);
        assert_eq!(outcome, Err(MergeError::AnotherBoot { trace: 1 }));
    }
    let mut damaged = traces.second.clone();
    damaged.extend(b"rubbish\n");
    let outcome = merge([reader(&traces.first), reader(&damaged)]);
    assert!(
        matches!(outcome, Err(MergeError::Trace { trace: 1, .. })),
        "{outcome:?}"
    );
}
