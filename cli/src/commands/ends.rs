//! How terms end, in the words of their history, and what a program reads of those.

use crate::exit::{Code, of_signal};
use crate::output::short;
use crate::supervise::{Ending, Why, processes_in_words};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

/// Before what its status is.
const COMMAND_ENDED: &str = "the command ended with ";

/// How a term ended, and of its command what that ended with, and how many processes it left; of one that
/// could not be started nothing is known.
pub(super) fn told(ending: Option<&Ending>) -> (String, Option<u8>, Option<usize>) {
    ending.map_or_else(
        || ("the command could not be started".to_owned(), None, None),
        |ending| (in_words(ending), code_at(ending), left_at(ending)),
    )
}

fn in_words(ending: &Ending) -> String {
    match ending {
        Ending::ByItself(status, left) => format!("given back: {}", by_itself(*status, *left)),
        Ending::OnSignal(status) => format!("given back on a signal: {}", by_itself(*status, 0)),
        Ending::NotBegun(_) => "given back on a signal: the command was not started".to_owned(),
        Ending::Ended(Why::Asked) => "handed over: asked to step down".to_owned(),
        Ending::Ended(Why::Unwell(why)) => format!("given back: {why}"),
        Ending::Ended(Why::Lost(why)) => format!("lost: {why}"),
        Ending::Unkillable => "not given back: a part of the command cannot be killed".to_owned(),
    }
}

/// How a command ended whose lease is to be kept for a while: the linger may be cut short.
pub(super) fn kept_in_words(status: ExitStatus, left: usize, linger: Duration) -> String {
    format!("to be kept for {}: {}", short(linger), by_itself(status, left))
}

fn by_itself(status: ExitStatus, left: usize) -> String {
    match left {
        0 => format!("{COMMAND_ENDED}{status}"),
        left => format!(
            "{COMMAND_ENDED}{status}, and {} with it",
            processes_in_words(left)
        ),
    }
}

/// What the command ended with: none where it was ended, or was not started.
fn code_at(ending: &Ending) -> Option<u8> {
    match ending {
        Ending::ByItself(status, _) | Ending::OnSignal(status) => Some(code_of(*status)),
        Ending::NotBegun(_) | Ending::Ended(_) | Ending::Unkillable => None,
    }
}

/// How many processes the command left: none is said of one that was told to end.
fn left_at(ending: &Ending) -> Option<usize> {
    match ending {
        Ending::ByItself(_, left) => Some(*left),
        Ending::OnSignal(_) | Ending::NotBegun(_) | Ending::Ended(_) | Ending::Unkillable => None,
    }
}

/// The code that these words tell of, in a record of a version that noted it in no other way.
pub(super) fn code_in(words: &str) -> Option<u8> {
    let (_, status) = words.split_once(COMMAND_ENDED)?;
    let number = |rest: &str| {
        let digits = rest.split(|character: char| !character.is_ascii_digit()).next();
        digits?.parse::<i32>().ok()
    };
    match (
        status.strip_prefix("exit status: "),
        status.strip_prefix("signal: "),
    ) {
        (Some(code), _) => u8::try_from(number(code)?).ok(),
        (None, Some(signal)) => Some(of_signal(number(signal)?)),
        (None, None) => None,
    }
}

/// The code of a command that ended: its own, or 128 and the number of the signal that ended it.
pub(super) fn code_of(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, Some(signal)) => of_signal(signal),
        (None, None) => Code::Internal.number(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_command_is_read_from_the_words_about_its_end() {
        // As wait(2) has them: codes, signals, a signal with a core dump.
        for raw in [0, 3 << 8, 255 << 8, 9, 15, 11 | 0x80] {
            let status = ExitStatus::from_raw(raw);
            for words in [
                in_words(&Ending::ByItself(status, 0)),
                in_words(&Ending::ByItself(status, 2)),
                in_words(&Ending::OnSignal(status)),
                kept_in_words(status, 1, Duration::from_secs(300)),
            ] {
                assert_eq!(code_in(&words), Some(code_of(status)), "{words}");
            }
        }
        for ending in [
            Ending::Ended(Why::Asked),
            Ending::Ended(Why::Lost("its deadline passed".to_owned())),
            Ending::Unkillable,
        ] {
            assert_eq!(code_in(&in_words(&ending)), None);
        }
    }
}
