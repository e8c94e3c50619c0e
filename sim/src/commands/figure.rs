//! One line of the scoreboard.

use std::fmt;

/// Whether a figure keeps its target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Kept,
    Missed,
    /// Below a target of speed. A busy machine alone does that, so it is shown, and fails nothing: no promise
    /// is broken.
    Slow,
}

impl Verdict {
    pub(crate) fn of(kept: bool) -> Self {
        if kept { Self::Kept } else { Self::Missed }
    }

    /// Of a figure of speed: whether what ran kept every promise, and whether it was as fast as its target.
    pub(crate) fn of_speed(sound: bool, fast: bool) -> Self {
        if sound && !fast {
            Self::Slow
        } else {
            Self::of(sound)
        }
    }

    /// Whether a proof failed.
    pub(crate) fn fails(self) -> bool {
        self == Self::Missed
    }
}

/// What was measured, beside its target.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) what: String,
    pub(crate) target: String,
    pub(crate) measured: String,
    pub(crate) seconds: f64,
    pub(crate) verdict: Verdict,
}

impl fmt::Display for Figure {
    /// A row of a Markdown table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            target,
            measured,
            seconds,
            verdict,
        } = self;
        let kept = match verdict {
            Verdict::Kept => "kept",
            Verdict::Missed => "**missed**",
            Verdict::Slow => "**missed**, on this machine at this hour: speed alone fails no run",
        };
        write!(f, "| {what} | {target} | {measured} | {seconds:.0} s | {kept} |")
    }
}

/// A number with its thousands apart: 12,345,678.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Verdict, grouped};

    #[test]
    fn a_slow_machine_fails_no_run_and_a_broken_promise_does_at_any_speed() {
        assert!(!Verdict::of_speed(true, true).fails());
        assert!(!Verdict::of_speed(true, false).fails());
        assert!(Verdict::of_speed(false, true).fails());
        assert!(Verdict::of_speed(false, false).fails());
        assert_ne!(
            Verdict::of_speed(true, false),
            Verdict::Kept,
            "it is shown as missed"
        );
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(12_345_678), "12,345,678");
    }
}
