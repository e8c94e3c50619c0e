//! What is logged as a warning, or worse.

use std::fmt::{Debug, Write as _};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, ThreadId};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// All of the process, each with who logged it.
static LINES: Mutex<Vec<(ThreadId, String)>> = Mutex::new(Vec::new());

/// Listens to the log of this process: each warning is a line, with who says it and its fields.
///
/// One listener for all threads: of one for a single thread, another could decide that nobody listens to a
/// place.
pub struct Warnings(());

impl Warnings {
    /// From now on.
    ///
    /// # Panics
    /// If something else listens to the log of this process.
    #[must_use]
    pub fn listen() -> Self {
        static LISTENS: Once = Once::new();
        LISTENS.call_once(|| {
            tracing::subscriber::set_global_default(Listener).expect("nobody else listens");
            tracing::callsite::rebuild_interest_cache();
        });
        Self(())
    }

    /// What was logged with this text in it, whoever has logged it.
    #[must_use]
    pub fn about(&self, text: &str) -> Vec<String> {
        let lines = lines();
        let about = lines.iter().filter(|(_, line)| line.contains(text));
        about.map(|(_, line)| line.clone()).collect()
    }

    /// What `doing` logs on this thread.
    pub async fn of(&self, doing: impl Future<Output = ()>) -> Vec<String> {
        let before = lines().len();
        doing.await;
        let this = thread::current().id();
        let since = lines()[before..].to_vec();
        let of_this = since.into_iter().filter(|(thread, _)| *thread == this);
        of_this.map(|(_, line)| line).collect()
    }
}

fn lines() -> MutexGuard<'static, Vec<(ThreadId, String)>> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{}: ", event.metadata().target()));
        event.record(&mut line);
        lines().push((thread::current().id(), line.0));
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?} ", field.name()).expect("a text takes all");
    }
}
