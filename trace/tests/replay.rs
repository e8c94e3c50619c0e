//! A trace replays exactly, and whatever was done to it afterwards is found.

use crate::common::{joined, lines, reader, steps, take_over};
use tenure_trace::{
    Difference, LINE_BYTES_MAX, Part, Reader, TraceError, TraceFault, Verdict, Writer, check, merge, narrate,
    replay,
};

#[test]
fn a_trace_replays_to_its_last_line() {
    let traces = take_over();
    for trace in [&traces.first, &traces.second] {
        let replayed = replay(&mut reader(trace)).unwrap();
        assert_eq!(replayed.verdict, Verdict::Same);
        assert_eq!(replayed.steps, lines(trace).len() as u64 - 1);
        assert_eq!(replayed.truncated, None);
        let checked = check(&mut reader(trace)).unwrap();
        assert_eq!((checked.breach, checked.steps), (None, replayed.steps));
    }
    let merged = merge([reader(&traces.first), reader(&traces.second)]).unwrap();
    assert_eq!((merged.breach, merged.terms, merged.passed_on), (None, 3, 1));
}

#[test]
fn what_is_read_is_written_byte_for_byte() {
    let traces = take_over();
    for trace in [traces.first, traces.second] {
        let mut read = reader(&trace);
        let mut writer = Writer::new(Vec::new(), read.header()).unwrap();
        for step in &mut read {
            let step = step.unwrap();
            writer.step(step.at, &step.input, &step.actions).unwrap();
        }
        assert_eq!(writer.into_inner(), trace);
    }
}

/// What replaying comes to, in one line.
fn outcome(trace: &[u8]) -> Result<Verdict, TraceError> {
    replay(&mut Reader::new(trace)?).map(|replayed| replayed.verdict)
}

fn difference(trace: &[u8]) -> Difference {
    match outcome(trace).unwrap() {
        Verdict::Different(difference) => *difference,
        Verdict::Same => panic!("nothing was found"),
    }
}

fn error(trace: &[u8]) -> TraceError {
    outcome(trace).unwrap_err()
}

/// The first line that contains this, counted from 1, and the lines.
fn find(trace: &[u8], what: &str) -> (usize, Vec<String>) {
    let lines = lines(trace);
    let index = lines.iter().position(|line| line.contains(what)).unwrap();
    (index + 1, lines)
}

#[test]
fn an_edited_line_differs_where_it_was_edited() {
    let trace = take_over().first;
    let (line, _) = find(&trace, "{\"renewed\":{\"name\"");
    let until = steps(&trace)[line - 2].actions.events[0].clone();
    let tenure_core::Event::Renewed { until, .. } = until else {
        panic!("{until:?}")
    };
    let (old, later) = (until.as_nanos(), until.as_nanos() + 1);
    for (what, from, to, part) in [
        (
            "a deadline",
            format!("\"until\":{old}"),
            format!("\"until\":{later}"),
            Part::Events,
        ),
        (
            "a wake",
            "\"why\":\"renewal\"".to_owned(),
            "\"why\":\"doubt\"".to_owned(),
            Part::Wake,
        ),
        (
            "a token",
            "\"token\":1,".to_owned(),
            "\"token\":2,".to_owned(),
            Part::Events,
        ),
    ] {
        let (_, mut edited) = find(&trace, "{\"renewed\":{\"name\"");
        assert!(edited[line - 1].contains(&from), "{what}: {}", edited[line - 1]);
        edited[line - 1] = edited[line - 1].replace(&from, &to);
        let found = difference(&joined(&edited));
        assert_eq!((found.line, found.part), (line as u64, part), "{what}");
        assert_ne!(found.expected, found.got, "{what}");
    }
}

#[test]
fn an_edited_token_in_an_answer_differs_in_what_it_led_to() {
    let trace = take_over().first;
    let (line, mut edited) = find(&trace, "\"granted\"");
    edited[line - 1] = edited[line - 1].replacen("\"token\":1,", "\"token\":9,", 1);
    let found = difference(&joined(&edited));
    assert_eq!((found.line, found.part), (line as u64, Part::Events));
    assert!(found.expected.contains("\"token\":1,") && found.got.contains("\"token\":9,"));
}

#[test]
fn a_missing_line_differs_in_a_later_one() {
    let trace = take_over().first;
    let (line, mut edited) = find(&trace, "{\"renewed\":{\"name\"");
    edited.remove(line - 1);
    assert!(difference(&joined(&edited)).line >= line as u64);
}

#[test]
fn swapped_lines_are_refused() {
    let trace = take_over().first;
    let (line, mut edited) = find(&trace, "{\"renewed\":{\"name\"");
    edited.swap(line - 1, line);
    let swapped = joined(&edited);
    let error = reader(&swapped).find_map(Result::err).unwrap();
    assert_eq!(error.line, line as u64 + 1);
    assert!(matches!(error.fault, TraceFault::TimeWentBack { .. }), "{error}");
    // The engine that replays them does not even come so far.
    assert_eq!(difference(&swapped).line, line as u64);
}

#[test]
fn what_is_no_trace_is_refused_with_its_line() {
    let trace = take_over().first;
    let sound = lines(&trace);
    let third = |line: &str| {
        let mut edited = sound.clone();
        edited[2] = line.to_owned();
        joined(&edited)
    };
    let unknown = sound[2].replacen("{\"at\"", "{\"more\":1,\"at\"", 1);
    let spaced = sound[2].replacen("{\"at\"", "{ \"at\"", 1);
    let twice = sound[2].replacen("{\"at\":", "{\"at\":1,\"at\":", 1);
    let mistyped = sound[2].replacen("\"at\":", "\"at\":-", 1);
    let huge = "x".repeat(LINE_BYTES_MAX);
    for (what, line, part) in [
        (
            "an unknown field",
            unknown.as_str(),
            "the field \"more\" is unknown",
        ),
        ("a space", &spaced, "not as Tenure writes it"),
        ("a field twice", &twice, "not as Tenure writes it"),
        ("a negative moment", &mistyped, "at: -"),
        ("nothing", "", "no JSON"),
        ("half a line", &sound[2][..30], "no JSON"),
        ("deep nesting", &"[".repeat(10_000), "no JSON"),
        ("another value", "[]", "is no object"),
        ("a huge line", &huge, "longer than 1048576 bytes"),
    ] {
        let error = error(&third(line));
        assert_eq!(error.line, 3, "{what}: {error}");
        assert!(error.to_string().contains(part), "{what}: {error}");
        assert_eq!(error.to_string().lines().count(), 1, "{what}: {error}");
    }
    let mut binary = joined(&sound[..2]);
    binary.extend([0, 255, 254, b'\n', 128]);
    assert_eq!(error(&binary).line, 3);
}

#[test]
fn a_header_that_does_not_suit_is_refused() {
    let trace = take_over().first;
    let sound = lines(&trace);
    for (from, to, part) in [
        ("{\"tenure_trace\":1", "{\"tenure_trace\":2", "format 2"),
        ("{\"tenure_trace\":1,", "{", "no header"),
        (
            "\"batch_max\":10",
            "\"batch_max\":0",
            "batch_max: 0 is out of range",
        ),
        (
            "\"ttl_ms\":3000",
            "\"ttl_ms\":99",
            "timing.ttl_ms: 99 is out of range",
        ),
        ("\"grace\":500000000", "\"grace\":5000000000", "do not fit into"),
        ("\"seed\":\"f", "\"seed\":\"x", "is no seed"),
        ("\"store\":\"toy\"", "\"store\":\"toy\\u0007\"", "store: over"),
    ] {
        let mut edited = sound.clone();
        edited[0] = edited[0].replacen(from, to, 1);
        assert_ne!(edited[0], sound[0], "{from}");
        let error = error(&joined(&edited));
        assert_eq!(error.line, 1, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    for nothing in ["", "{\"tenure_trace\":1", "\n"] {
        assert_eq!(error(nothing.as_bytes()).line, 1);
    }
    assert_eq!(error(b"").fault, TraceFault::Empty);
}

#[test]
fn a_last_line_that_was_cut_off_is_reported_and_the_rest_is_used() {
    let trace = take_over().first;
    let whole = lines(&trace).len() as u64;
    for cut in 1..100 {
        let replayed = replay(&mut reader(&trace[..trace.len() - cut])).unwrap();
        assert_eq!((replayed.steps, replayed.truncated), (whole - 2, Some(whole)));
    }
    let told: Vec<String> = narrate(reader(&trace[..trace.len() - 5]))
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(
        told.last().unwrap(),
        &format!("line {whole} was cut off: the process ended while it wrote")
    );
}

#[test]
fn any_damaged_byte_is_found_or_harmless_and_never_a_panic() {
    let trace = take_over().first;
    let original = steps(&trace);
    let mut found = 0;
    for at in 0..trace.len() {
        let mut damaged = trace.clone();
        damaged[at] ^= 1 << (at % 8);
        match outcome(&damaged) {
            Err(_) | Ok(Verdict::Different(_)) => found += 1,
            // What is only told to people, such as a holder's note, may change without an effect.
            Ok(Verdict::Same) => {
                let read = Reader::new(damaged.as_slice()).unwrap();
                assert!(
                    read.header() != reader(&trace).header() || read.map(Result::unwrap).ne(original.clone())
                );
            }
        }
        let read = Reader::new(damaged.as_slice()).map(|mut read| (check(&mut read), read));
        if let Ok((_, read)) = read {
            let _ = narrate(read).collect::<Vec<_>>();
        }
    }
    assert!(found > trace.len() / 2, "{found} of {}", trace.len());
}

#[test]
fn a_narration_tells_who_leads() {
    let trace = take_over().second;
    let told: Vec<String> = narrate(reader(&trace)).collect::<Result<_, _>>().unwrap();
    assert!(
        told[0].starts_with("candidate candidate-2#00000000, tenure 0.1.0, store toy"),
        "{}",
        told[0]
    );
    for part in [
        "0.000 ms  command: campaign for \"job\" => request 0: acquire \"job\", by 300.000 ms",
        "held by candidate-1#00000000 in term 1",
        "STANDBY behind candidate-1#00000000",
        "ACQUIRED \"job\", term 2",
        "[leads \"job\" in term 2 until ",
        "ENDED \"job\", term 2: given back; request",
        "[does not lead]",
    ] {
        assert!(
            told.iter().any(|line| line.contains(part)),
            "{part}:\n{}",
            told.join("\n")
        );
    }
}
