//! Signals to this process.

use crate::exit::{Code, Failure};
use rustix::process::Signal;
use std::fs;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use tokio::signal::unix::{self, SignalKind};

/// Signals that are passed on to the command, and what else they mean.
const FORWARDED: [(Signal, Meaning); 7] = [
    (Signal::TERM, Meaning::End),
    (Signal::INT, Meaning::End),
    (Signal::QUIT, Meaning::End),
    (Signal::HUP, Meaning::HangUp),
    (Signal::USR1, Meaning::Nothing),
    (Signal::USR2, Meaning::Nothing),
    (Signal::WINCH, Meaning::Nothing),
];

/// What a signal to this process means, beside that the command gets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    /// The command is to end: after the grace it is killed. Without a command, the waiting ends.
    End,
    /// Without a command, the waiting ends. A command decides for itself: many reload on it.
    HangUp,
    /// Nothing else.
    Nothing,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Notice {
    /// A child of this process has ended or stopped.
    Child,
    /// A signal that is to be passed on.
    Signal(Signal, Meaning),
}

/// The signals that this process takes in.
pub(crate) struct Signals {
    child: unix::Signal,
    forwarded: Vec<(Signal, Meaning, unix::Signal)>,
    /// The first that asked for the end: nothing takes that back, whoever has taken the signal in.
    end: Option<Signal>,
}

impl Signals {
    /// Takes in the signals, but for those that were ignored when this process was started, as by `nohup`:
    /// they stay ignored, for the command, too.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn take_in() -> Result<Self, Failure> {
        let failed = |error| Failure::new(Code::Internal, format!("cannot take in signals: {error}"));
        let ignored = ignored_at_start();
        let mut forwarded = Vec::new();
        for (signal, meaning) in FORWARDED {
            let number = signal.as_raw();
            if ignored & (1 << (number - 1)) == 0 {
                let kind = SignalKind::from_raw(number);
                forwarded.push((signal, meaning, unix::signal(kind).map_err(failed)?));
            }
        }
        Ok(Self {
            child: unix::signal(SignalKind::child()).map_err(failed)?,
            forwarded,
            end: None,
        })
    }

    /// The signal that has asked for the end so far, if one has, one that nobody has taken in yet too.
    pub(crate) fn end(&mut self) -> Option<Signal> {
        let mut context = Context::from_waker(Waker::noop());
        for (signal, meaning, source) in &mut self.forwarded {
            if *meaning == Meaning::End && source.poll_recv(&mut context).is_ready() {
                self.end.get_or_insert(*signal);
            }
        }
        self.end
    }

    /// The next one. May be dropped and called again without losing one.
    pub(crate) async fn next(&mut self) -> Notice {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Notice> {
        if self.child.poll_recv(context).is_ready() {
            return Poll::Ready(Notice::Child);
        }
        for (signal, meaning, source) in &mut self.forwarded {
            if source.poll_recv(context).is_ready() {
                if *meaning == Meaning::End {
                    self.end.get_or_insert(*signal);
                }
                return Poll::Ready(Notice::Signal(*signal, *meaning));
            }
        }
        Poll::Pending
    }
}

/// The signals that are ignored, bit n − 1 for signal n; none where the kernel does not tell.
fn ignored_at_start() -> u64 {
    fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        })
        .unwrap_or(0)
}
