//! Records what an election's engine is told and what it wants, as a trace that replays.
//!
//! The file is written by a thread of its own, and the driver never waits for it: a disk that is full, slow
//! or gone ends the recording, never a term. (Not one of the files that run over `crate::sync`: nothing waits
//! for this thread but the end of a recording.)

use crate::driver::{Plan, Recorder};
use crate::election::ElectionBuilder;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::time::{Duration, SystemTime};
use tenure_core::{Actions, Input, Moment};
use tenure_trace::{Header, Writer, header_line, step_line};

/// Lines that may wait for the disk. One lease writes a few for each renewal: a disk that is so far behind
/// hangs.
const LINES_WAITING: usize = 256;

/// Longest wait at the end of an election for what still waits to be written.
const PATIENCE_AT_END: Duration = Duration::from_secs(1);

impl ElectionBuilder {
    /// Records a trace of every step of the election into `out`, to be replayed by
    /// [`tenure::trace`](crate::trace). Default: none.
    ///
    /// For a file use [`trace::create`](crate::trace::create): only its owner may read it, since a trace
    /// holds names, ids and notes; it never holds the store's URL nor a secret. Each line is one write and a
    /// flush.
    ///
    /// Effect on authority: none, ever. If `out` fails, cannot keep up, or has reached
    /// [`trace::TRACE_BYTES_MAX`](crate::trace::TRACE_BYTES_MAX), recording stops with one warning (target
    /// `tenure_trace`). A killed process leaves a trace that ends at most a few steps before it did. Unless
    /// nothing was wanted just then, both leave it [open at the end](crate::trace::Checked::open).
    pub fn trace(mut self, out: impl Write + Send + 'static) -> Self {
        self.recorder = Some(Box::new(move |plan| {
            Recording::begin(plan, out).map(|recording| -> Box<dyn Recorder> { Box::new(recording) })
        }));
        self
    }
}

/// A trace that is being written.
struct Recording {
    /// `None` once recording has stopped.
    lines: Option<SyncSender<String>>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
    lease: String,
}

impl Recording {
    fn begin(plan: &Plan, out: impl Write + Send + 'static) -> io::Result<Self> {
        let header = header_line(&header(plan));
        let lease = plan.label.clone();
        let (lines, waiting) = sync_channel(LINES_WAITING);
        let (ending, ended) = channel();
        let recording = Self {
            lines: Some(lines),
            ended,
            lease: lease.clone(),
        };
        std::thread::Builder::new()
            .name("tenure trace".to_owned())
            .spawn(move || write(out, &header, &waiting, ending, &lease))?;
        Ok(recording)
    }
}

impl Recorder for Recording {
    fn record(&mut self, at: Moment, input: &Input, actions: &Actions) {
        let Some(lines) = &self.lines else { return };
        match lines.try_send(step_line(at, input, actions)) {
            Ok(()) => return,
            Err(TrySendError::Full(_)) => {
                warn(
                    &self.lease,
                    &format!("{LINES_WAITING} lines wait for it; does the disk hang?"),
                );
            }
            // The thread has said why.
            Err(TrySendError::Disconnected(_)) => {}
        }
        // A line after one that is missing would make the trace false.
        self.lines = None;
    }
}

impl Drop for Recording {
    /// Waits a little for what still waits: the process may be about to end.
    fn drop(&mut self) {
        self.lines = None;
        let _ = self.ended.recv_timeout(PATIENCE_AT_END);
    }
}

/// Writes until there is nothing more to come, or the first error. Dropping `ending` says that it is over.
fn write(out: impl Write, header: &str, lines: &Receiver<String>, ending: Sender<()>, lease: &str) {
    let written = Writer::with_line(out, header)
        .and_then(|mut writer| lines.iter().try_for_each(|line| writer.write_line(&line)));
    if let Err(error) = written {
        warn(lease, &format!("{error}; is there room, and is it still there?"));
    }
    drop(ending);
}

fn warn(lease: &str, why: &str) {
    tracing::warn!(target: "tenure_trace", lease, "Recording of the trace stopped, the election goes on: {why}");
}

fn header(plan: &Plan) -> Header {
    let traits = plan.store.traits();
    let mut started = String::new();
    let now = SystemTime::now().max(SystemTime::UNIX_EPOCH);
    if write!(started, "{}", humantime::format_rfc3339_seconds(now)).is_err() {
        // A year that has no four digits; it is for people only.
        started.clear();
    }
    Header {
        tenure: env!("CARGO_PKG_VERSION").to_owned(),
        candidate: plan.candidate.clone(),
        timing: plan.timing,
        batch_max: traits.batch_max,
        seed: plan.seed,
        store: traits.kind.to_owned(),
        boot: boot(),
        started,
    }
}

/// Which boot of which machine this is, and how a time namespace shifts its clock, if one does: moments mean
/// nothing beside those of another.
fn boot() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let id = Some(id.trim()).filter(|id| !id.is_empty())?;
    Some(format!("{id}{}", shift()?))
}

/// What this process's time namespace adds to the clock; nothing where it has none, and `None` where that is
/// not known.
fn shift() -> Option<String> {
    let offsets = match fs::read_to_string("/proc/self/timens_offsets") {
        // A kernel without them.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(String::new()),
        offsets => offsets.ok()?,
    };
    // They are those of the namespace that children get.
    let namespace = |file| fs::read_link(format!("/proc/self/ns/{file}")).ok();
    if namespace("time") != namespace("time_for_children") {
        return None;
    }
    shift_of(&offsets)
}

fn shift_of(offsets: &str) -> Option<String> {
    let mut lines = offsets
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let boottime = lines.find(|fields| matches!(fields.first(), Some(&"boottime" | &"7")))?;
    match boottime.get(1..3)? {
        ["0", "0"] => Some(String::new()),
        [seconds, nanoseconds] => Some(format!(" shifted by {seconds}s {nanoseconds}ns")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shift_of_a_time_namespace_is_told_and_none_is_not() {
        let plain = "monotonic           0         0\nboottime            0         0\n";
        assert_eq!(shift_of(plain).as_deref(), Some(""));
        let shifted = "monotonic      -86400         0\nboottime         604800 500000000\n";
        assert_eq!(
            shift_of(shifted).as_deref(),
            Some(" shifted by 604800s 500000000ns")
        );
        for unclear in ["", "monotonic 0 0", "boottime 0"] {
            assert_eq!(shift_of(unclear), None, "{unclear}");
        }
    }
}
