//! Every variant of every type that a trace holds is written and read back.
//!
//! A variant that is new in the core and not in a list does not compile; one that is in a list and in no
//! example fails here.

use super::{Form, tagged};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Attempt, Candidate, CandidateId, Cause, Certainty, Change, Command, Departure, End,
    Event, Fault, FencingToken, Grant, Incarnation, Input, Lease, LeaseName, Moment, Note, Operation,
    Predecessor, Release, Released, Renew, Renewed, Reply, Request, RequestId, StoreError, Ttl, Wake,
    WakeReason, WatchEvent, Wish,
};

/// The words of an enum's variants.
pub(crate) trait Words {
    const WORDS: &'static [&'static str];
}

/// Writes and reads each, and wants every word of the type among them.
#[track_caller]
fn survive<T: Form + Words + PartialEq + Debug>(examples: &[T]) {
    let mut words = BTreeSet::new();
    for example in examples {
        let value = survives(example);
        words.insert(tagged(&value).unwrap().0.to_owned());
    }
    let all: BTreeSet<String> = T::WORDS.iter().map(ToString::to_string).collect();
    assert_eq!(words, all, "an example of every variant");
    assert_eq!(T::WORDS.len(), all.len(), "two variants have one word");
}

#[track_caller]
fn survives<T: Form + PartialEq + Debug>(example: &T) -> Value {
    let mut text = String::new();
    example.write(&mut text);
    let value = serde_json::from_str(&text).unwrap();
    assert_eq!(T::read(&value).as_ref(), Ok(example), "{text}");
    value
}

fn name() -> LeaseName {
    LeaseName::new("billing/\"nightly\" \u{1F512}").unwrap()
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn ttl() -> Ttl {
    Ttl::from_millis(86_400_000).unwrap()
}

fn attempt() -> Attempt {
    Attempt::new(i64::MAX.unsigned_abs()).unwrap()
}

fn candidate() -> Candidate {
    Candidate {
        id: CandidateId::new("höst-1").unwrap(),
        incarnation: Incarnation::from_bits(7),
    }
}

fn error(fault: Fault) -> StoreError {
    StoreError::unknown(fault, "no \"answer\"\u{0}\n\u{7f}\u{2028} \u{10ffff}")
}

fn lease() -> Lease {
    Lease {
        name: name(),
        holder: candidate(),
        token: FencingToken::MAX,
        attempt: attempt(),
        terms: u64::MAX,
        ttl: ttl(),
        remaining: Duration::new(1, 1),
        released: true,
        held_for: Duration::MAX,
        renewed_ago: Duration::ZERO,
        asked_to_step_down: false,
        note: Note::new("a\tnote\r\n").unwrap(),
    }
}

fn grant(predecessor: Option<Predecessor>) -> Grant {
    Grant {
        token: token(1),
        ttl: ttl(),
        terms: 1,
        again: predecessor.is_none(),
        predecessor,
    }
}

fn predecessor(end: End) -> Predecessor {
    Predecessor {
        candidate: candidate().id,
        token: token(2),
        end,
        vacant_for: Duration::from_nanos(u64::MAX),
    }
}

#[test]
fn every_word_of_the_store_contract_survives() {
    survive(&Fault::ALL);
    survive(&[Certainty::NotApplied, Certainty::Unknown]);
    survive(&[End::Released, End::Expired]);
    survive(&[Change::Vacated, Change::Taken, Change::Asked]);
    survive(&[Wish::Nothing, Wish::StepDown]);
    let released = [
        Released::Vacated,
        Released::NotYours(None),
        Released::NotYours(Some(Box::new(lease()))),
    ];
    survive(&released);
    survive(&[
        Renewed::Extended {
            ttl: ttl(),
            wish: Wish::StepDown,
        },
        Renewed::Lost(None),
        Renewed::Lost(Some(Box::new(lease()))),
    ]);
    survive(&[
        Acquired::Granted(grant(None)),
        Acquired::Granted(grant(Some(predecessor(End::Released)))),
        Acquired::Granted(grant(Some(predecessor(End::Expired)))),
        Acquired::Held(lease()),
        Acquired::Superseded,
    ]);
    survive(&watch_events());
}

fn watch_events() -> Vec<WatchEvent> {
    let changed = |token| WatchEvent::Changed {
        name: name(),
        change: Change::Taken,
        token,
    };
    vec![changed(None), changed(Some(token(3))), WatchEvent::Gap]
}

fn replies() -> Vec<Reply> {
    vec![
        Reply::Acquired(Ok(Acquired::Superseded)),
        Reply::Acquired(Err(error(Fault::Busy))),
        Reply::Renewed(vec![]),
        Reply::Renewed(vec![Ok(Renewed::Lost(None)), Err(error(Fault::Full))]),
        Reply::Released(vec![Err(error(Fault::Internal)), Ok(Released::Vacated)]),
        Reply::Looked(Ok(None)),
        Reply::Looked(Ok(Some(lease()))),
        Reply::Looked(Err(error(Fault::ReadOnly))),
    ]
}

fn commands() -> Vec<Command> {
    let campaign = |progress_within, max_hold| Command::Campaign {
        name: name(),
        note: Note::default(),
        progress_within,
        max_hold,
    };
    let (name, token) = (name(), token(4));
    vec![
        campaign(None, None),
        campaign(Some(Duration::MAX), None),
        campaign(None, Some(Duration::MAX)),
        Command::Withdraw { name: name.clone() },
        Command::StepDown {
            name: name.clone(),
            token,
        },
        Command::WorkEnded {
            name: name.clone(),
            token,
        },
        Command::HandOn {
            name: name.clone(),
            token,
            note: Note::new("heir").unwrap(),
            progress_within: Some(Duration::MAX),
            max_hold: None,
        },
        Command::DeadlineSeen {
            name: name.clone(),
            token,
        },
        Command::Extend {
            name: name.clone(),
            token,
        },
        Command::Progress {
            name,
            token,
            at: Moment::from_nanos(u64::MAX),
        },
    ]
}

#[test]
fn every_input_survives() {
    survive(&replies());
    survive(&commands());
    let answer = |reply| Input::Answer {
        request: RequestId::from_number(u64::MAX),
        reply,
    };
    let mut inputs = vec![Input::Tick];
    inputs.extend(replies().into_iter().map(answer));
    inputs.extend(watch_events().into_iter().map(Input::Watch));
    inputs.extend(commands().into_iter().map(Input::Command));
    survive(&inputs);
}

fn operations() -> Vec<Operation> {
    let (name, token, attempt, ttl) = (name(), token(5), attempt(), ttl());
    let incarnation = candidate().incarnation;
    vec![
        Operation::Acquire(Acquire {
            name: name.clone(),
            candidate: candidate(),
            attempt,
            ttl,
            note: Note::default(),
        }),
        Operation::Renew(vec![Renew {
            name: name.clone(),
            incarnation,
            token,
            attempt,
            ttl,
        }]),
        Operation::Release(vec![Release {
            name: name.clone(),
            incarnation,
            token,
            attempt,
        }]),
        Operation::Look(name),
    ]
}

#[test]
fn every_request_and_wake_survives() {
    survive(&operations());
    for operation in operations() {
        survives(&Request {
            id: RequestId::from_number(0),
            give_up_at: Moment::ZERO,
            operation,
        });
    }
    let reasons = [
        WakeReason::Deadline,
        WakeReason::Doubt,
        WakeReason::Renewal,
        WakeReason::Attempt,
        WakeReason::Departure,
        WakeReason::RequestTimeout,
    ];
    survive(&reasons);
    let at = Moment::from_nanos(u64::MAX);
    survives(&reasons.map(|why| Some(Wake { at, why })).to_vec());
    survives(&vec![None::<Wake>]);
}

#[test]
fn every_cause_and_departure_survives() {
    survive(&[
        Cause::GivenBack,
        Cause::Succeeded {
            token: token(6),
            by: None,
        },
        Cause::Succeeded {
            token: token(6),
            by: Some(candidate()),
        },
        Cause::Vanished,
        Cause::Deadline(None),
        Cause::Deadline(Some(error(Fault::TimedOut))),
        Cause::NoProgress(Duration::MAX),
        Cause::MaxHold(Duration::MAX),
    ]);
    survive(&[
        Departure::Answered(Released::Vacated),
        Departure::Unconfirmed {
            error: error(Fault::TimedOut),
            remaining: Duration::MAX,
        },
    ]);
}

#[test]
fn every_event_survives() {
    let (name, token, remaining) = (name(), token(7), Duration::from_nanos(1));
    let (error, until) = (error(Fault::Unreachable), Moment::from_nanos(1));
    survive(&[
        Event::Standby {
            lease: lease(),
            twin: true,
        },
        Event::AttemptFailed {
            name: name.clone(),
            error: error.clone(),
            retry_in: remaining,
        },
        Event::CampaignEnded {
            name: name.clone(),
            error: error.clone(),
        },
        Event::Withdrawn { name: name.clone() },
        Event::Acquired {
            name: name.clone(),
            grant: grant(Some(predecessor(End::Expired))),
            until,
            round_trip: remaining,
        },
        Event::Renewed {
            name: name.clone(),
            token,
            until,
            round_trip: remaining,
            slack: remaining,
        },
        Event::RenewalFailed {
            name: name.clone(),
            token,
            error: error.clone(),
            remaining,
        },
        Event::Doubted {
            name: name.clone(),
            token,
            remaining,
        },
        Event::Reassured {
            name: name.clone(),
            token,
        },
        Event::Stuck {
            name: name.clone(),
            token,
            idle_for: remaining,
        },
        Event::AskedToStepDown {
            name: name.clone(),
            token,
        },
        Event::Ended {
            name: name.clone(),
            token,
            cause: Cause::Vanished,
        },
        Event::ReleaseFailed {
            name: name.clone(),
            token,
            error: error.clone(),
            remaining,
        },
        Event::Departed {
            name,
            token,
            departure: Departure::Unconfirmed { error, remaining },
        },
    ]);
}

#[test]
fn what_is_out_of_range_is_refused() {
    fn refused<T: Form>(text: &str) {
        let value = serde_json::from_str(text).unwrap();
        assert!(T::read(&value).is_err(), "{text}");
    }
    for text in ["0", "-1", "9223372036854775808", "1.5", "\"1\"", "null"] {
        refused::<FencingToken>(text);
        refused::<Attempt>(text);
        refused::<Ttl>(text);
    }
    refused::<Ttl>("99");
    refused::<Ttl>("86400001");
    refused::<u32>("4294967296");
    refused::<Moment>("18446744073709551616");
    refused::<Moment>("-1");
    for text in [
        "\"1s\"",
        "\"1.5s\"",
        "\"1.1000000000s\"",
        "\"x.000000000s\"",
        "\"\"",
    ] {
        refused::<Duration>(text);
    }
    refused::<LeaseName>("\"\"");
    refused::<LeaseName>("\"a/../b\"");
    refused::<Incarnation>("\"7\"");
    refused::<bool>("0");
    refused::<Input>("\"tock\"");
    refused::<Input>("{\"tick\":null}");
    refused::<Input>("\"watch\"");
    refused::<Input>("{\"watch\":\"gap\",\"tick\":1}");
    refused::<Reply>("{\"acquired\":{\"perhaps\":1}}");
}
