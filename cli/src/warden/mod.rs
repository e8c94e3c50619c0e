//! The warden: a process between `tenure run` and its command, which outlives the first and ends with the
//! second.
//!
//! It starts the command, adopts every orphan below it, and kills all of it when it is told to, at the
//! deadline that it was told last, and when its supervisor dies; then it gives the lease back, and only then,
//! when nothing of the work is left. It waits for nobody, not for a reader of its log either, says nothing
//! but short lines to its supervisor, and speaks to the store only after the supervisor's death.

mod cgroup;
mod message;
mod release;
mod start;
pub(crate) mod tree;
mod work;

pub(crate) use message::{Begin, Limit, Order, Word};

use crate::arguments::Form;
use crate::exit::{Code, Failure};
use crate::output;
use crate::supervise::{Signals, adopt_orphans, system};
use rustix::process::{Pid, PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tenure::contract::Moment;
use tenure::{clock_now, sleep_until};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use work::{News, Work};

/// Pauses between looks at what is left of the work: most are woken by a child's end, but who was born to an
/// orphan's orphan tells nobody.
const LOOK_PAUSE_MIN: Duration = Duration::from_millis(1);
const LOOK_PAUSE_MAX: Duration = Duration::from_millis(20);

/// How long after the end of the lease a supervisor that is not stopped may take to say that it has seen it;
/// and no less after it was told, as both may have been frozen for longer than the lease, as with the
/// machine.
const SILENT_MAX: Duration = Duration::from_secs(10);

/// A stopped one gets as long as a wake-up may take.
const STOPPED_MAX: Duration = Duration::from_millis(200);

/// Guards the command `words` for the supervisor at the other end of the socket with this number.
///
/// # Errors
/// The socket is none, or the system refuses signals. Then nothing was started.
pub(crate) async fn guard(socket: i32, words: &[OsString]) -> Result<u8, Failure> {
    let failed = |error: std::io::Error| Failure::new(Code::Internal, format!("the warden: {error}"));
    let stream = system::inherited_socket(socket).map_err(failed)?;
    stream.set_nonblocking(true).map_err(failed)?;
    let (reader, writer) = UnixStream::from_std(stream).map_err(failed)?.into_split();
    let supervisor = getppid();
    // They are taken in so that none ends this process, and the command starts with them as they were.
    let signals = Signals::take_in()?;
    output::write_aside(Form::Text)?;
    adopt_orphans();
    let mut lines = BufReader::new(reader).lines();
    let begin = match lines.next_line().await {
        Ok(Some(line)) => Begin::from_line(&line),
        Ok(None) | Err(_) => return Ok(0),
    };
    let begin = begin.ok_or_else(|| Failure::new(Code::Usage, "the warden is for `tenure run` alone"))?;
    let kill_at = begin.limit.kill_at;
    let (work, ungrouped) = match Work::start(words, kill_at) {
        Ok(started) => started,
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(libc::EIO);
            let is_late = clock_now() >= kill_at;
            let _ = say(
                &writer,
                if is_late {
                    Word::Late
                } else {
                    Word::Refused(number)
                },
            );
            return Ok(0);
        }
    };
    let _ = say(&writer, Word::Started(work.leader().as_raw_pid(), ungrouped));
    let warden = Warden {
        limit: begin.limit,
        supervisor: supervisor.and_then(|pid| Some((pid, handle_of(pid)?))),
        writer,
        lines,
        signals,
        work,
        killing: false,
        empty: false,
        is_seen: false,
        is_alone: false,
        telling_since: None,
    };
    if warden.until_dismissed_or_alone().await == End::Alone {
        release::give_back(&begin).await;
    }
    Ok(0)
}

/// How guarding ended.
#[derive(PartialEq, Eq)]
enum End {
    /// The supervisor sees to the lease.
    Dismissed,
    /// The supervisor is dead, and the work is gone.
    Alone,
}

struct Warden {
    limit: Limit,
    /// The supervisor, by a handle that is never another's.
    supervisor: Option<(Pid, AsyncFd<OwnedFd>)>,
    writer: OwnedWriteHalf,
    lines: Lines<BufReader<OwnedReadHalf>>,
    signals: Signals,
    work: Work,
    killing: bool,
    empty: bool,
    /// The supervisor has seen that nothing is left.
    is_seen: bool,
    /// The supervisor is dead.
    is_alone: bool,
    /// Since when the supervisor has an end to hear of: that everything is killed, or that nothing is left.
    telling_since: Option<Moment>,
}

impl Warden {
    async fn until_dismissed_or_alone(mut self) -> End {
        let mut pause = LOOK_PAUSE_MIN;
        loop {
            self.look();
            if self.empty && self.is_alone {
                return End::Alone;
            }
            let searching = !self.empty && (self.killing || self.work.has_ended());
            let next = self.next_limit();
            tokio::select! {
                biased;
                // What was said comes before what is due: it may be that the limit has moved.
                line = self.lines.next_line(), if !self.is_alone => match line {
                    Ok(Some(line)) => if self.obey(&line) == Obeyed::Dismissed {
                        return End::Dismissed;
                    },
                    Ok(None) | Err(_) => self.is_left_alone(),
                },
                // The socket says so, too, but not while a child of the supervisor's that has become no other
                // program yet has it.
                () = end_of(self.supervisor.as_ref()), if !self.is_alone => self.is_left_alone(),
                () = sleep_until(next.unwrap_or_default()), if next.is_some() => self.limit_passed(),
                _any = self.signals.next() => {}
                () = tokio::time::sleep(pause), if searching => {
                    pause = (pause * 2).min(LOOK_PAUSE_MAX);
                }
            }
        }
    }

    /// Takes in what became of the work, and kills what is left of it if it is time.
    fn look(&mut self) {
        if self.empty {
            return;
        }
        if self.killing {
            self.work.kill();
        }
        for news in self.work.reap() {
            let word = match news {
                News::Stopped(signal) => Word::Stopped(signal),
                News::Ended(status) => Word::Ended(status),
                News::Empty => {
                    self.empty = true;
                    self.telling_since.get_or_insert_with(clock_now);
                    Word::Empty
                }
            };
            // Who does not read is dead, or is ended at the limit.
            let _ = say(&self.writer, word);
        }
    }

    fn obey(&mut self, line: &str) -> Obeyed {
        match Order::from_line(line) {
            Some(Order::Until(limit)) => self.limit = limit,
            Some(Order::Signal(signal)) => self.work.signal(signal),
            Some(Order::Terminate) => self.work.terminate(),
            Some(Order::Seen) => self.is_seen = self.empty,
            Some(Order::Dismiss) if self.empty => return Obeyed::Dismissed,
            // An order that is not understood is one more reason to end the work, as is leaving it behind.
            Some(Order::Kill | Order::Dismiss) | None => self.begin_to_kill(),
        }
        Obeyed::Done
    }

    fn is_left_alone(&mut self) {
        self.is_alone = true;
        self.begin_to_kill();
    }

    fn begin_to_kill(&mut self) {
        self.killing = true;
        self.telling_since.get_or_insert_with(clock_now);
    }

    /// The next moment at which something is due.
    fn next_limit(&self) -> Option<Moment> {
        if !self.killing && !self.empty {
            return Some(self.limit.kill_at);
        }
        if self.is_alone {
            return None;
        }
        let (now, from) = (clock_now(), self.patient_from());
        let silent = from.after(SILENT_MAX);
        // Never one that has passed: nothing else would be heard any more, the supervisor's death for one.
        let next = now.max(from).after(STOPPED_MAX);
        Some(if now < silent && !self.is_seen {
            next.min(silent)
        } else {
            next
        })
    }

    /// From when on the patience with the supervisor is counted.
    fn patient_from(&self) -> Moment {
        self.limit.until.max(self.telling_since.unwrap_or_default())
    }

    fn limit_passed(&mut self) {
        let now = clock_now();
        if now >= self.limit.kill_at && !self.killing {
            self.begin_to_kill();
            let _ = say(&self.writer, Word::LimitPassed);
        }
        let Some((pid, handle)) = &self.supervisor else {
            return;
        };
        let is_stopped = || tree::stat(*pid).is_some_and(|stat| matches!(stat.state, 'T' | 't'));
        let from = self.patient_from();
        let stays_frozen = now >= from.after(STOPPED_MAX) && is_stopped();
        // One that has seen it gives the lease back, and may wait for the store longer than that.
        let stays_silent = now >= from.after(SILENT_MAX) && !self.is_seen;
        if stays_frozen || stays_silent {
            // It believes in nothing any more that it could do in time, and may hold what others wait for.
            let _ = pidfd_send_signal(handle.get_ref(), Signal::KILL);
        }
    }
}

fn handle_of(process: Pid) -> Option<AsyncFd<OwnedFd>> {
    let handle = pidfd_open(process, PidfdFlags::empty()).ok()?;
    system::readable(handle).ok()
}

/// Returns when this process has ended; never, where there is no handle of it.
async fn end_of(process: Option<&(Pid, AsyncFd<OwnedFd>)>) {
    match process {
        Some((_, handle)) => drop(handle.readable().await),
        None => std::future::pending().await,
    }
}

#[derive(PartialEq, Eq)]
enum Obeyed {
    Done,
    Dismissed,
}

/// Says it if the socket takes it at once: a supervisor that reads nothing must not hold this process up.
fn say(writer: &OwnedWriteHalf, word: Word) -> std::io::Result<usize> {
    writer.try_write(word.to_line().as_bytes())
}
