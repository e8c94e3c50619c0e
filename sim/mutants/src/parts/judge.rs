//! What a run of tests says of a planted bug.

use super::run::PartOutcome;
use super::trial::{FAILED_EXIT_CODE, Ran};

/// What a store tells when its server is away, is late, or does not take a statement. In a test that fails so
/// nothing wrong was answered: it would fail of a statement that is no statement, too.
const FAULTS_OF_A_SERVER: [&str; 5] = ["Unreachable", "TimedOut", "Internal", "Unsupported", "Forbidden"];

/// How a case of the conformance suite ends that takes too long.
const TOO_LONG: &str = "did not end within";

/// Judges a run with a bug planted.
pub(super) fn judge(ran: &Ran) -> PartOutcome {
    let failed = |why: String| PartOutcome::Failed { why };
    let Some(code) = ran.code else {
        return PartOutcome::TimeUp;
    };
    let (passed, failures) = (named(&ran.said, "ok"), named(&ran.said, "FAILED"));
    match code {
        Some(0) if failures.is_empty() && !passed.is_empty() => return PartOutcome::Survived,
        Some(FAILED_EXIT_CODE) if !failures.is_empty() => {}
        code => {
            let ended = code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
            return failed(format!("{ended}: {}", ran.complained));
        }
    }
    if passed.is_empty() {
        return failed("no test passes: with this the crate does not work at all".to_owned());
    }
    let (noticed, others): (Vec<&str>, Vec<&str>) = failures
        .into_iter()
        .partition(|test| !is_of_the_server(message(&ran.said, test)));
    match (noticed.is_empty(), others.first()) {
        (false, _) => PartOutcome::Caught {
            by: noticed.into_iter().map(str::to_owned).collect(),
            seconds: ran.took,
        },
        (true, Some(test)) => {
            let message = message(&ran.said, test).split_whitespace();
            let words: Vec<&str> = message.collect();
            failed(format!("{test} fails by its server: {}", words.join(" ")))
        }
        (true, None) => failed("no test has failed".to_owned()),
    }
}

/// What a copy without a bug says that should pass; `None` if it does.
pub(super) fn complaint(ran: &Ran) -> Option<String> {
    match judge(ran) {
        PartOutcome::Survived => None,
        PartOutcome::Caught { by, .. } => {
            let said: Vec<String> = by
                .iter()
                .map(|test| format!("{test} fails: {}", message(&ran.said, test).trim()))
                .collect();
            Some(said.join("\n"))
        }
        PartOutcome::DoesNotCompile { words } => Some(words),
        PartOutcome::TimeUp => Some("the tests take too long".to_owned()),
        PartOutcome::Failed { why } => Some(why),
    }
}

/// The tests of which libtest says so.
fn named<'a>(said: &'a str, how: &str) -> Vec<&'a str> {
    let line = |line: &'a str| line.strip_prefix("test ")?.split_once(" ... ");
    let lines = said.lines().filter_map(line);
    let ended = lines.filter(|(_, ended)| *ended == how);
    let mut names: Vec<&str> = ended
        .map(|(name, _)| name.trim_end_matches(" - should panic"))
        .collect();
    // They end in any order.
    names.sort_unstable();
    names
}

/// What a test has left to read.
fn message<'a>(said: &'a str, test: &str) -> &'a str {
    let begin = format!("---- {test} stdout ----");
    let Some((_, after)) = said.split_once(&begin) else {
        return "";
    };
    let end = after.find("\n---- ").or_else(|| after.find("\nfailures:\n"));
    &after[..end.unwrap_or(after.len())]
}

fn is_of_the_server(message: &str) -> bool {
    let told = |fault: &&str| {
        [format!("failed: {fault}, "), format!("fault: {fault}, ")]
            .iter()
            .any(|told| message.contains(told.as_str()))
    };
    message.contains(TOO_LONG) || FAULTS_OF_A_SERVER.iter().any(told)
}

#[cfg(test)]
mod tests {
    use super::judge;
    use crate::parts::run::PartOutcome;
    use crate::parts::trial::Ran;
    use std::time::Duration;

    const SAID: &str = "\nrunning 3 tests\ntest a::rises ... FAILED\ntest a::stays ... ok\ntest a::waits ... FAILED\n\nfailures:\n\n\
        ---- a::rises stdout ----\n\nthread 'a::rises' panicked at src/a.rs:1:1:\nthe token fell\n\n\
        ---- a::waits stdout ----\n\nthread 'a::waits' panicked at src/a.rs:2:2:\n\
        renew \"job\" through the first client failed: Internal, Unknown: syntax error\n\n\
        failures:\n    a::rises\n    a::waits\n\ntest result: FAILED. 1 passed; 2 failed\n";

    fn ran(code: Option<Option<i32>>, said: &str) -> Ran {
        Ran {
            code,
            said: said.to_owned(),
            complained: "killed".to_owned(),
            took: Duration::from_secs(1),
        }
    }

    fn is_failed(outcome: &PartOutcome) -> bool {
        matches!(outcome, PartOutcome::Failed { .. })
    }

    #[test]
    fn catch_is_a_test_that_fails_by_what_was_answered() {
        let caught = PartOutcome::Caught {
            by: vec!["a::rises".to_owned()],
            seconds: Duration::from_secs(1),
        };
        assert_eq!(judge(&ran(Some(Some(101)), SAID)), caught);
    }

    #[test]
    fn server_that_fails_is_no_catch() {
        let only = SAID.replace("test a::rises ... FAILED", "test a::rises ... ok");
        assert!(is_failed(&judge(&ran(Some(Some(101)), &only))));
        let late = only.replace(
            "failed: Internal, Unknown: syntax error",
            "did not end within 180s",
        );
        assert!(is_failed(&judge(&ran(Some(Some(101)), &late))));
    }

    #[test]
    fn run_in_which_nothing_passes_is_no_catch() {
        let none = SAID.replace("test a::stays ... ok", "");
        assert!(is_failed(&judge(&ran(Some(Some(101)), &none))));
    }

    #[test]
    fn run_that_crashes_or_takes_too_long_is_no_catch() {
        assert!(is_failed(&judge(&ran(Some(None), SAID))));
        assert!(is_failed(&judge(&ran(Some(Some(134)), SAID))));
        assert!(is_failed(&judge(&ran(Some(Some(0)), "running 0 tests"))));
        assert_eq!(judge(&ran(None, SAID)), PartOutcome::TimeUp);
    }
}
