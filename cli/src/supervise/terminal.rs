//! The terminal, where there is one: a command in a group of its own is in the background of it, and would be
//! stopped as soon as it reads.

use super::system::ignoring_terminal_output_stop;
use super::work::Work;
use rustix::process::{Pid, Signal, getpgrp};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use std::io::stdin;

/// The terminal, lent to a group until this is dropped.
pub(super) struct LentTerminal {
    ours: Pid,
    theirs: Pid,
}

impl LentTerminal {
    /// Lends it, if standard input is a terminal and this process is in its foreground.
    pub(super) fn lend(work: &Work) -> Option<Self> {
        let ours = getpgrp();
        if tcgetpgrp(stdin()).ok()? != ours {
            return None;
        }
        let theirs = work.number();
        tcsetpgrp(stdin(), theirs).ok()?;
        // It may have been stopped for reading before it had the terminal.
        work.signal(Signal::CONT);
        Some(Self { ours, theirs })
    }
}

impl Drop for LentTerminal {
    fn drop(&mut self) {
        // Not from another group: a shell may have taken it back. A group that is gone is no group at all.
        if tcgetpgrp(stdin()).is_ok_and(|group| group != self.theirs) {
            return;
        }
        let _ = ignoring_terminal_output_stop(|| tcsetpgrp(stdin(), self.ours));
    }
}
