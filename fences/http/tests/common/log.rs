//! What this thread logs.

use std::cell::RefCell;
use std::fmt::{Debug, Write as _};
use std::sync::Once;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

thread_local! {
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// What this does logs on this thread as warnings: a line each, with who says it and its fields.
///
/// One listener for all threads: of one for this thread alone, another could decide that nobody listens to a place.
pub async fn warnings(doing: impl Future<Output = ()>) -> Vec<String> {
    static LISTENS: Once = Once::new();
    LISTENS.call_once(|| {
        tracing::subscriber::set_global_default(Listener).unwrap();
        tracing::callsite::rebuild_interest_cache();
    });
    LINES.take();
    doing.await;
    LINES.take()
}

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{}: ", event.metadata().target()));
        event.record(&mut line);
        LINES.with_borrow_mut(|lines| lines.push(line.0));
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
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}
