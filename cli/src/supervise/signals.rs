//! Signals to this process.

use super::spared::reap_adopted;
use super::system::{hear_stops, next_stop, suspend};
use super::terminal::{Terminal, is_in_foreground};
use crate::exit::{Code, End, Failure, of_signal};
use rustix::process::{Signal, kill_current_process_group};
use std::fs;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
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

/// What is left of the patience with a store that does not answer, when a signal has asked for the end: who
/// has sent it would rather kill than wait for long, and others would wait for a ttl if a release that is
/// under way did not come through.
const HURRIED_PATIENCE: Duration = Duration::from_secs(5);

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
    /// A signal that would have stopped this process, and has stopped the others of its group.
    Stop(Signal),
}

/// The signals that this process takes in.
pub(crate) struct Signals {
    child: unix::Signal,
    stops: AsyncFd<OwnedFd>,
    forwarded: Vec<(Signal, Meaning, unix::Signal)>,
    /// The first that asked for the end: nothing takes that back, whoever has taken the signal in.
    end: Option<Signal>,
    /// One that was taken in before there was anybody to be told of it.
    untold: Option<Signal>,
    /// It came from a key of the terminal that has signalled the command alone: this process's group has not
    /// heard of it.
    is_unheard: bool,
}

impl Signals {
    /// Takes in the signals, but for those that were ignored when this process was started, as by `nohup`:
    /// they stay ignored, for the command, too. Those that were blocked are heard here, and stay blocked
    /// there. Those with which a terminal stops its groups stop this process no more. Before there is any
    /// other thread.
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
        let child = unix::signal(SignalKind::child()).map_err(failed)?;
        let mut heard: Vec<Signal> = forwarded.iter().map(|(signal, ..)| *signal).collect();
        heard.push(Signal::CHILD);
        Ok(Self {
            child,
            stops: hear_stops(&heard).map_err(failed)?,
            forwarded,
            end: None,
            untold: None,
            is_unheard: false,
        })
    }

    /// The signal that has asked for the end so far, if one has, one that nobody has taken in yet too.
    pub(crate) fn end(&mut self) -> Option<Signal> {
        let _ = self.poll_end(&mut Context::from_waker(Waker::noop()));
        self.end
    }

    /// Returns when a signal has asked for the end, which is told again as the next notice: what is not there
    /// yet gets it later. Takes in no other. May be dropped and called again without losing one.
    pub(super) async fn asked_to_end(&mut self) -> Signal {
        let signal = poll_fn(|context| self.poll_end(context)).await;
        self.untold = Some(signal);
        signal
    }

    /// Takes in that a key of the terminal has ended the command by this signal: as it would have come here,
    /// too, if the command were not in a group of its own.
    pub(super) fn interrupt(&mut self, signal: Signal) {
        let is_taken_in = self.forwarded.iter().any(|(forwarded, ..)| *forwarded == signal);
        if is_taken_in && self.end().is_none() {
            self.end = Some(signal);
            self.is_unheard = true;
        }
    }

    /// How to end with this code. Where a key of the terminal has ended the work or the waiting, by its
    /// signal: a shell or `make` that waits for this process stops only if it has heard of the signal, and
    /// its child has died of it.
    pub(crate) fn ending(&mut self, code: u8) -> End {
        let end = self.end();
        match end.filter(|signal| matches!(*signal, Signal::INT | Signal::QUIT)) {
            Some(signal) if code == of_signal(signal.as_raw()) && (self.is_unheard || is_in_foreground()) => {
                if self.is_unheard {
                    let _ = kill_current_process_group(signal);
                }
                End::Signal(signal)
            }
            Some(_) | None => End::Code(code),
        }
    }

    /// The next one. May be dropped and called again without losing one.
    pub(crate) async fn next(&mut self) -> Notice {
        poll_fn(|context| self.poll(context)).await
    }

    /// The next one that asks for the end of waiting. While nothing is held, Ctrl-Z suspends this process.
    /// May be dropped and called again without losing one.
    pub(crate) async fn end_of_waiting(&mut self) -> Signal {
        loop {
            match self.next().await {
                Notice::Signal(signal, Meaning::End | Meaning::HangUp) => return signal,
                Notice::Stop(Signal::TSTP) => suspend(),
                // As the first process of a container it may wait for months.
                Notice::Child => reap_adopted(&[]),
                Notice::Signal(_, Meaning::Nothing) | Notice::Stop(_) => {}
            }
        }
    }

    /// Returns when a signal has asked for the end of keeping what nothing works under. Ctrl-Z suspends
    /// nobody meanwhile, as while a command works: the lease would be lost before long. May be dropped and
    /// called again without losing one.
    pub(crate) async fn end_of_keeping(&mut self) {
        let mut terminal = Terminal::of_nobody();
        while self.end().is_none() {
            tokio::select! {
                biased;
                () = terminal.wake_again() => {}
                notice = self.next() => match notice {
                    Notice::Child => reap_adopted(&[]),
                    Notice::Stop(signal) => terminal.group_stopped(signal),
                    Notice::Signal(..) => {}
                },
            }
        }
    }

    /// Does `work`, unless a signal asks for the end first.
    pub(crate) async fn unless_ended<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Signal> {
        tokio::select! {
            biased;
            outcome = work => Ok(outcome),
            signal = self.end_of_waiting() => Err(signal),
        }
    }

    /// Waits for what is the last that the store is asked for, as long as there is patience; but not for
    /// long, once a signal has asked for the end, before or meanwhile.
    pub(crate) async fn wait_at_the_end<T>(
        &mut self,
        patience: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let hurried = async {
            while self.end().is_none() {
                self.next().await;
            }
            tokio::time::sleep(HURRIED_PATIENCE).await;
        };
        tokio::select! {
            biased;
            outcome = work => Some(outcome),
            () = tokio::time::sleep(patience) => None,
            () = hurried => None,
        }
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Signal> {
        for (signal, meaning, source) in &mut self.forwarded {
            if *meaning == Meaning::End && source.poll_recv(context).is_ready() {
                self.end.get_or_insert(*signal);
            }
        }
        self.end.map_or(Poll::Pending, Poll::Ready)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Notice> {
        if let Some(signal) = self.untold.take() {
            return Poll::Ready(Notice::Signal(signal, Meaning::End));
        }
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
        while let Poll::Ready(Ok(mut ready)) = self.stops.poll_read_ready(context) {
            match ready.try_io(|stops| next_stop(stops.get_ref())) {
                Ok(Ok(signal)) => return Poll::Ready(Notice::Stop(signal)),
                // Nobody can mend it, and nothing worse comes of it than that the others stay stopped.
                Ok(Err(_)) => break,
                Err(_would_block) => {}
            }
        }
        Poll::Pending
    }
}

/// The signals that are ignored, bit n − 1 for signal n; none where the kernel does not tell.
pub(crate) fn ignored_at_start() -> u64 {
    fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        })
        .unwrap_or(0)
}
