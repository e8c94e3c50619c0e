//! Holding an instance at the one point where a freeze does harm, so that a drill can freeze it there.

use crate::report::Report;
use std::collections::BTreeSet;
use std::io::BufRead as _;

/// Where an instance stops, each time until a line comes from standard input.
#[derive(Debug)]
pub struct Pause {
    at: BTreeSet<u64>,
}

impl Pause {
    /// Stops once for each of these payments.
    pub fn new(at: impl IntoIterator<Item = u64>) -> Self {
        Self {
            at: at.into_iter().collect(),
        }
    }

    /// Stops if it is time to, with `settled` payments behind us. It blocks this thread, as a long
    /// computation would: the lease is renewed all the same, until the whole process is frozen.
    pub fn hold(&mut self, settled: u64, say: impl Fn(Report)) {
        while let Some(at) = self.at.first().copied().filter(|at| *at <= settled) {
            self.at.remove(&at);
            say(Report::Holds { at, settled });
            let mut line = String::new();
            if std::io::stdin()
                .lock()
                .read_line(&mut line)
                .is_ok_and(|bytes| bytes == 0)
            {
                // Nobody is there any more who could tell us to go on.
                self.at.clear();
            }
        }
    }
}
