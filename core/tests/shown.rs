//! What people and records are shown: texts that say what, and numbers that come back as they went in.
use crate::harness::{job, name, token};
use std::time::Duration;
use tenure_core::*;

#[test]
fn a_refusal_by_the_fence_says_what_was_refused_and_what_to_do() {
    let resource = ResourceName::new("ledger").unwrap();
    let stale = FenceError::Stale {
        resource: resource.clone(),
        token: token(5),
        mark: token(7),
    };
    assert_eq!(
        stale.to_string(),
        "refused: token 5 is stale for \"ledger\", which admits none below 7; stop this work"
    );
    let unclaimed = FenceError::Unclaimed {
        resource,
        token: token(5),
    };
    assert_eq!(
        unclaimed.to_string(),
        "refused: token 5 has not claimed \"ledger\"; claim the fence before reading what will be changed"
    );
}

#[test]
fn an_error_of_the_store_is_its_message_also_through_the_fence() {
    let error = StoreError::unknown(Fault::Busy, "lease \"job\": the store is busy");
    assert_eq!(error.to_string(), "lease \"job\": the store is busy");
    assert_eq!(
        FenceError::from(error).to_string(),
        "lease \"job\": the store is busy"
    );
}

#[test]
fn numbers_are_shown_plainly_and_debugged_with_their_kind() {
    assert_eq!((token(5).number(), token(5).to_string().as_str()), (5, "5"));
    assert_eq!(format!("{:?}", token(5)), "FencingToken(5)");
    let attempt = Attempt::new(9).unwrap();
    assert_eq!((attempt.number(), attempt.to_string().as_str()), (9, "9"));
    assert_eq!(format!("{:?}", Ttl::from_millis(1_500).unwrap()), "Ttl(1.5s)");
    assert_eq!(Ttl::from_millis(1_500).unwrap().to_string(), "1.5s");
}

#[test]
fn a_moment_keeps_its_nanoseconds_and_is_debugged_in_milliseconds() {
    let moment = Moment::from_nanos(1_234_000_056);
    assert_eq!(moment.as_nanos(), 1_234_000_056);
    assert_eq!(format!("{moment:?}"), "1234.000056ms");
    assert_eq!(Moment::from_millis(7).as_nanos(), 7_000_000);
}

#[test]
fn a_candidate_is_shown_by_its_label_and_the_beginning_of_its_incarnation() {
    let incarnation = Incarnation::from_bits(0x0123_4567_89ab_cdef << 64 | 0xfedc);
    assert_eq!(incarnation.bits(), 0x0123_4567_89ab_cdef << 64 | 0xfedc);
    let candidate = Candidate {
        id: CandidateId::new("pod-3").unwrap(),
        incarnation,
    };
    assert_eq!(candidate.to_string(), "pod-3#01234567");
    assert_eq!(
        format!("{incarnation:?}"),
        "Incarnation(0123456789abcdef000000000000fedc)"
    );
}

#[test]
fn a_note_comes_back_as_it_was_and_a_long_one_is_refused_with_its_length() {
    let text = "host a, process 12";
    let note = Note::new(text).unwrap();
    assert_eq!((note.as_str(), note.to_string().as_str()), (text, text));
    let error = Note::new("x".repeat(1_025)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the note has 1025 bytes; at most 1024 are allowed"
    );
    assert_eq!(Note::new("x".repeat(1_024)).unwrap().as_str().len(), 1_024);
}

#[test]
fn an_impossible_token_is_told_with_its_range() {
    assert_eq!(
        FencingToken::new(0).unwrap_err().to_string(),
        "a fencing token is a whole number from 1 to 253402300799999"
    );
}

#[test]
fn the_promises_are_shown_with_the_numbers_of_the_timing() {
    let words = Timing::batch().explain().to_string();
    for shown in [
        "lasts 30s",
        "every 10s",
        "may take 3s",
        "29.92s",
        "15.92s",
        "10.92s",
        "33.23s",
        "8ms",
    ] {
        assert!(words.contains(shown), "{shown} is missing in: {words}");
    }
}

#[test]
fn a_watch_covers_its_own_name_or_everything_below_its_prefix() {
    let one = Scope::Name(job());
    assert!(one.covers(&job()) && !one.covers(&name("job/candidates/a")));
    let below = Scope::Prefix("job/".to_owned());
    assert!(below.covers(&name("job/candidates/a")) && !below.covers(&job()));
    assert!(Scope::Prefix(String::new()).covers(&job()));
}

#[test]
fn a_duration_between_two_moments_never_falls_below_zero() {
    let (earlier, later) = (Moment::from_millis(3), Moment::from_millis(5));
    assert_eq!(later.since(earlier), Duration::from_millis(2));
    assert_eq!(earlier.since(later), Duration::ZERO);
}

#[test]
fn a_request_comes_back_from_a_record_with_its_number() {
    for number in [0, 1, 7, u64::MAX] {
        assert_eq!(RequestId::from_number(number).number(), number);
    }
}
