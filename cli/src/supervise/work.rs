//! The work of a term, as its supervisor sees it: through a warden, or below this process if the warden is
//! gone.

use super::leftovers::Leftovers;
use super::signals::Signals;
use super::spared::{reap_adopted, spared_children};
use crate::exit::{Code, Failure};
use crate::warden::tree::{Meant, children_of, is_stopped, signal_below, stat};
use crate::warden::{Begin, Limit, Order, Word};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, set_child_subreaper, waitid,
    waitpid,
};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;
use tenure::contract::Moment;
use tenure::sleep_until;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// How long a warden may take to start the command.
const START_TIME_MAX: Duration = Duration::from_secs(10);

/// How long one may take to say that the command runs, when a signal has asked for the end.
const SIGNALLED_TIME_MAX: Duration = Duration::from_secs(1);

/// How long one that was dismissed is waited for.
const DISMISSED_TIME_MAX: Duration = Duration::from_secs(1);

/// How far the work has come to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Remains {
    /// How the command itself has ended.
    pub(crate) leader: Option<ExitStatus>,
    /// Whether nothing of the work is left.
    pub(crate) empty: bool,
    /// The signal that has stopped the command since the last look.
    pub(crate) stopped: Option<Signal>,
}

/// Makes every orphan below this process a child of it: should a warden die, its work is found here.
///
/// Where the kernel refuses, whatever a killed warden leaves behind is the first process's.
pub(crate) fn adopt_orphans() {
    let _ = set_child_subreaper(Some(getpid()));
}

/// What may be said to a warden, from any thread, without waiting.
pub(super) struct Orders {
    warden: Pid,
    writer: OwnedWriteHalf,
    killed: AtomicBool,
}

impl Orders {
    /// Gives an order. A warden that takes none is frozen or dead: then its deadline, or its death, ends the
    /// work.
    pub(super) fn give(&self, order: Order) {
        if order == Order::Kill {
            self.killed.store(true, Ordering::SeqCst);
        }
        let _ = self.writer.try_write(order.to_line().as_bytes());
    }

    /// Kills all of the work from here, past a warden that does not do it.
    pub(super) fn kill_past_warden(&self) {
        self.killed.store(true, Ordering::SeqCst);
        let spared = spared_children();
        signal_below(getpid(), Signal::KILL, |pid| match pid {
            pid if pid == self.warden => Meant::Below,
            pid if spared.contains(&pid) => Meant::None,
            _ => Meant::All,
        });
    }

    fn was_killed(&self) -> bool {
        self.killed.load(Ordering::SeqCst)
    }
}

/// The command of a term and all that it started.
pub(crate) struct Work {
    leader: Pid,
    orders: Arc<Orders>,
    words: Lines<BufReader<OwnedReadHalf>>,
    leader_status: Option<ExitStatus>,
    empty: bool,
    stopped: Option<Signal>,
    /// The warden was stopped, and was told to go on.
    woken: bool,
    /// The warden is dead, and everything is killed from here.
    orphaned: bool,
}

/// Why the command was not started, as far as is known.
pub(super) enum NotStarted {
    /// The system refused it.
    Refused(io::Error),
    /// This signal to this process has asked for the end.
    Signalled(Signal),
    /// It would have been started when it was to be killed.
    Late,
    /// The warden did not answer in time: it may be starting the command.
    Unanswered,
    /// The warden did not answer, and has ended by itself.
    NoWarden(String),
    /// Somebody has killed the warden, which had not answered yet.
    WardenKilled,
}

impl Work {
    /// Begins the work that this warden waits to start. Where it is not started the warden is killed, and
    /// what is left of both is to be waited for as for all work: a program on a dead network file system
    /// cannot be killed, for one.
    pub(super) async fn begin(
        warden: Pid,
        stream: UnixStream,
        begin: &Begin,
        signals: &mut Signals,
    ) -> (Self, Result<(), NotStarted>) {
        let (reader, writer) = stream.into_split();
        let mut work = Self {
            leader: warden,
            orders: Arc::new(Orders {
                warden,
                writer,
                killed: AtomicBool::new(false),
            }),
            words: BufReader::new(reader).lines(),
            leader_status: None,
            empty: false,
            stopped: None,
            woken: false,
            orphaned: false,
        };
        let started = tokio::select! {
            biased;
            started = work.start(begin) => started,
            signal = signalled_in_vain(signals) => Err(NotStarted::Signalled(signal)),
            () = tokio::time::sleep(START_TIME_MAX) => Err(NotStarted::Unanswered),
            // Nobody else watches the end of the term yet.
            () = sleep_until(begin.limit.kill_at) => Err(NotStarted::Unanswered),
        };
        let started = match started {
            Ok(leader) => {
                work.leader = leader;
                Ok(())
            }
            Err(NotStarted::NoWarden(_)) if was_killed(warden, begin.limit.kill_at).await => {
                Err(NotStarted::WardenKilled)
            }
            Err(why) => Err(why),
        };
        if started.is_err() {
            work.kill_warden();
        }
        (work, started)
    }

    async fn start(&mut self, begin: &Begin) -> Result<Pid, NotStarted> {
        let lost = |error: &io::Error| NotStarted::NoWarden(error.to_string());
        let line = begin.to_line();
        let mut said = 0;
        while said < line.len() {
            let writer = &self.orders.writer;
            writer.writable().await.map_err(|error| lost(&error))?;
            match writer.try_write(&line.as_bytes()[said..]) {
                Ok(more) => said += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(lost(&error)),
            }
        }
        let word = self.words.next_line().await.map_err(|error| lost(&error))?;
        match word.as_deref().and_then(Word::from_line) {
            Some(Word::Started(pid, ungrouped)) => {
                if ungrouped != 0 {
                    say_ungrouped(&io::Error::from_raw_os_error(ungrouped));
                }
                Pid::from_raw(pid).ok_or_else(|| NotStarted::NoWarden("no number".to_owned()))
            }
            Some(Word::Refused(error)) => Err(NotStarted::Refused(io::Error::from_raw_os_error(error))),
            Some(Word::Late) => Err(NotStarted::Late),
            _ => Err(NotStarted::NoWarden("it ended at its start".to_owned())),
        }
    }

    /// Reaps what was left to this process beside the work: how the command has ended is taken in as the work
    /// is ended.
    pub(super) fn reap_others(&self) {
        reap_adopted(&[self.orders.warden, self.leader]);
    }

    /// What the command has left that lives.
    pub(super) fn left(&self) -> Leftovers {
        Leftovers::below(self.orders.warden, self.leader)
    }

    /// What gives orders from any thread.
    pub(super) fn orders(&self) -> Arc<Orders> {
        Arc::clone(&self.orders)
    }

    /// The number of the command's group.
    pub(super) fn number(&self) -> Pid {
        self.leader
    }

    /// Whether the command itself is stopped now.
    pub(super) fn is_stopped(&self) -> bool {
        is_stopped(self.leader)
    }

    /// Sends `signal` to the command's group, and to the command where it has left that.
    pub(super) fn signal(&self, signal: Signal) {
        self.orders.give(Order::Signal(signal));
    }

    /// Asks everything to end, the stopped too.
    pub(super) fn terminate(&self) {
        self.orders.give(Order::Terminate);
    }

    /// Kills everything.
    pub(super) fn kill(&self) {
        self.orders.give(Order::Kill);
    }

    /// Ends the warden, which has become useless: what it guarded is killed from here.
    pub(super) fn kill_warden(&mut self) {
        // Its number is its own: nobody but this process reaps it, and only once it is taken for dead.
        if !self.orphaned {
            let _ = kill_process(self.orders.warden, Signal::KILL);
            self.orphaned = true;
        }
    }

    /// Has a stopped warden go on when the command has ended: it would never say so, and the lease would be
    /// kept for ever. One that is stopped again is ended.
    pub(super) fn wake_warden(&mut self) {
        let state_of = |pid| stat(pid).map(|stat| stat.state);
        let has_ended = matches!(state_of(self.leader), None | Some('Z' | 'X'));
        if self.orphaned || self.empty || !has_ended || state_of(self.orders.warden) != Some('T') {
            return;
        }
        if std::mem::replace(&mut self.woken, true) {
            self.kill_warden();
        } else {
            // As it is stopped it has not ended, and the number is its own.
            let _ = kill_process(self.orders.warden, Signal::CONT);
        }
    }

    /// Whether everything was killed.
    pub(super) fn was_killed(&self) -> bool {
        self.orders.was_killed()
    }

    /// Whether the warden is dead.
    pub(super) fn is_orphaned(&self) -> bool {
        self.orphaned
    }

    /// Takes in the next word of the warden. May be dropped and called again without losing one.
    pub(super) async fn heard(&mut self) {
        if self.orphaned {
            return std::future::pending().await;
        }
        let line = self.words.next_line().await;
        match line.ok().flatten().as_deref().and_then(Word::from_line) {
            Some(Word::LimitPassed) => self.orders.killed.store(true, Ordering::SeqCst),
            Some(Word::Stopped(signal)) => self.stopped = Signal::from_named_raw(signal),
            Some(Word::Ended(status)) => self.leader_status = Some(ExitStatus::from_raw(status)),
            Some(Word::Empty) => {
                self.empty = true;
                self.orders.give(Order::Seen);
            }
            Some(Word::Started(..) | Word::Refused(_) | Word::Late) | None => self.kill_warden(),
        }
    }

    /// What is left, as far as is known.
    pub(super) fn remains(&mut self) -> Remains {
        if self.orphaned && !self.empty {
            self.end_orphans();
        }
        Remains {
            leader: self.leader_status,
            empty: self.empty,
            stopped: self.stopped.take(),
        }
    }

    /// Kills and reaps what the dead warden has left: all but the children that are none of the work.
    fn end_orphans(&mut self) {
        let spared = spared_children();
        signal_below(getpid(), Signal::KILL, |pid| match spared.contains(&pid) {
            true => Meant::None,
            false => Meant::All,
        });
        self.orders.killed.store(true, Ordering::SeqCst);
        loop {
            let children = children_of(getpid());
            let mut orphans = children.iter().filter(|child| !spared.contains(child)).peekable();
            if orphans.peek().is_none() {
                // Exact: who is left would be a child, or below one. A list that could not be read lacks the
                // spared, too.
                let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
                self.empty = match spared.is_empty() {
                    true => waitid(WaitId::All, look).err() == Some(Errno::CHILD),
                    false => spared.iter().all(|child| children.contains(child)),
                };
                return;
            }
            let mut is_any_alive = false;
            for orphan in orphans {
                match waitpid(Some(*orphan), WaitOptions::NOHANG) {
                    Ok(Some((pid, status))) if pid == self.leader && self.leader != self.orders.warden => {
                        self.leader_status = Some(ExitStatus::from_raw(status.as_raw()));
                    }
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => is_any_alive = true,
                }
            }
            if is_any_alive {
                return;
            }
            // Whoever was left to this process meanwhile is its child now.
        }
    }

    /// Lets the warden end: the lease is given back, or is seen to. Waits for that a moment: whose work this
    /// process is shall find nothing that it has left behind.
    pub(crate) async fn dismiss(self) {
        self.orders.give(Order::Dismiss);
        let ended = async {
            while matches!(waitpid(Some(self.orders.warden), WaitOptions::NOHANG), Ok(None)) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let _ = tokio::time::timeout(DISMISSED_TIME_MAX, ended).await;
    }
}

/// Returns when a signal has asked for the end, and the command, which may run already, was not said to be
/// started within a moment: as one that runs it gets the signal, and time to end.
async fn signalled_in_vain(signals: &mut Signals) -> Signal {
    let signal = signals.asked_to_end().await;
    tokio::time::sleep(SIGNALLED_TIME_MAX).await;
    signal
}

/// Whether a signal has ended a warden that says no more. One that ends by itself gets a moment for its last
/// words.
async fn was_killed(warden: Pid, kill_at: Moment) -> bool {
    let how = async {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::Pid(warden), look) {
                Ok(Some(status)) => return status.terminating_signal().is_some(),
                Ok(None) => tokio::time::sleep(Duration::from_millis(1)).await,
                Err(_) => return false,
            }
        }
    };
    tokio::select! {
        biased;
        is_so = how => is_so,
        () = tokio::time::sleep(DISMISSED_TIME_MAX) => false,
        () = sleep_until(kill_at) => false,
    }
}

/// What to say of a term that begins.
pub(super) fn limit_of(until: Moment, margin: Duration) -> Limit {
    Limit {
        kill_at: until.before(margin),
        until,
    }
}

/// Of a warden that did not start.
pub(super) fn no_warden(lease: &str, why: &str) -> Failure {
    Failure::new(
        Code::Internal,
        format!("lease \"{lease}\": the command cannot be guarded: {why}; raise the limits of this user"),
    )
}

/// Once in a process: it is the same for every term.
fn say_ungrouped(why: &io::Error) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        tracing::info!(
            target: "tenure",
            %why,
            "No control group for the command; what it starts is followed process by process"
        );
    });
}
