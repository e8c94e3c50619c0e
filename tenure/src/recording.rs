//! Records what an election's engine is told and what it wants, as a trace that replays.
//!
//! The file is written by a thread of its own, and the driver never waits for it: a disk that is full, slow or
//! gone ends the recording, never a term. (Not one of the files that run over `crate::sync`: nothing waits
//! for this thread but the end of a recording.)

use crate::driver::{Plan, Recorder};
use crate::election::ElectionBuilder;
use std::fmt::Write as _;
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
    /// For a file use [`trace::create`](crate::trace::create): only its owner may read it, since a trace holds
    /// names, ids and notes; it never holds the store's URL nor a secret. Each line is one write and a flush.
    ///
    /// Effect on authority: none, ever. If `out` fails, cannot keep up, or has reached
    /// [`trace::TRACE_BYTES_MAX`](crate::trace::TRACE_BYTES_MAX), recording stops with one warning (target
    /// `tenure_trace`). A killed process leaves a trace that ends at most a few steps before it did. Unless nothing
    /// was wanted just then, both leave it [open at the end](crate::trace::Checked::open).
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

/// Which boot of which machine this is: its moments mean nothing beside those of another.
fn boot() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty())
}
