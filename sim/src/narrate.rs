//! A readable account of a run: one short line for each thing that matters.

use std::time::Duration;

/// Tells a run as it goes.
pub struct Narrator<'out> {
    line: &'out mut dyn FnMut(&str),
}

impl<'out> Narrator<'out> {
    /// A narrator that hands each line, without its line break, to `line`.
    pub fn new(line: &'out mut dyn FnMut(&str)) -> Self {
        Self { line }
    }

    /// The same narrator for a shorter time.
    pub(crate) fn for_now(&mut self) -> Narrator<'_> {
        Narrator {
            line: &mut *self.line,
        }
    }

    pub(crate) fn tell(&mut self, real: u64, what: &str) {
        let at = Duration::from_nanos(real);
        let stamp = format!("{:>5}.{:06}s", at.as_secs(), at.subsec_micros());
        (self.line)(&format!("{stamp}  {what}"));
    }
}
