//! The history of this process's terms, written beside the work: nothing waits for it for long.

use std::sync::Arc;
use std::time::Duration;
use tenure::tooling::{History, NotedTerm, TermEnd};
use tenure::{Election, FencingToken, SharedStore};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longest wait for a note at the end of a term, beside the timing's own bound for a request.
const NOTE_TIME_MAX: Duration = Duration::from_secs(1);

pub(super) struct Chronicle {
    history: Arc<History>,
    time_max: Duration,
}

/// A term whose beginning is being noted.
pub(super) struct Entry(JoinHandle<Option<NotedTerm>>);

impl Chronicle {
    pub(super) fn new(store: SharedStore, election: &Election) -> Self {
        Self {
            history: Arc::new(History::new(election.name().clone(), store)),
            time_max: election.timing().request_timeout().min(NOTE_TIME_MAX),
        }
    }

    /// Notes that a term has begun, while the work begins.
    pub(super) fn begin(&self, election: &Election, token: FencingToken) -> Entry {
        let (history, holder) = (Arc::clone(&self.history), election.candidate().id.clone());
        Entry(tokio::spawn(async move {
            history.begin(&holder, token).await.unwrap_or_default()
        }))
    }

    /// Notes how a term has ended, when its lease was given back. What the store does not take in time is
    /// left out.
    pub(super) async fn end(&self, entry: Entry, end: &TermEnd) {
        let noting = async {
            if let Ok(Some(noted)) = entry.0.await {
                let _left_out = self.history.end(noted, end).await;
            }
        };
        let _left_out = timeout(self.time_max, noting).await;
    }
}
