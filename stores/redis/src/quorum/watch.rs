//! Watching a quorum: a change is told when a majority has told it.

use super::{Effect, Quorum};
use crate::watch;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure_core::{Answer, Change, Fault, FencingToken, LeaseName, Scope, StoreError, Watch, WatchEvent};
use tenure_remote::{OwnThread, ReadWatch, Running, Told};
use tokio::sync::mpsc;

/// Events that may wait for a slow reader.
const EVENTS_WAITING_MAX: usize = 256;

/// Leases whose changes are counted at once. Beyond it, the count begins anew, and the reader looks for itself.
const COUNTED_MAX: usize = 4_096;

/// The watches of the members, and what a majority of them told.
pub(super) struct QuorumWatch {
    told: mpsc::Receiver<(usize, Told)>,
    counts: BTreeMap<LeaseName, Counts>,
    majority: usize,
    /// Members that are still listened to.
    listening: usize,
    place: String,
    _readers: Vec<Running<()>>,
}

/// The last changes of one lease, each with the members that told it.
#[derive(Default)]
struct Counts {
    changes: Vec<(Change, Option<FencingToken>, u64)>,
    /// The highest token that was told to the reader.
    told: Option<FencingToken>,
}

/// Changes of one lease that are counted at once.
const CHANGES_MAX: usize = 8;

impl QuorumWatch {
    /// Watches every member that answers; a majority must.
    pub(super) async fn open(quorum: &Quorum, thread: &OwnThread, scope: &Scope) -> Result<Self, StoreError> {
        let (sender, told) = mpsc::channel(EVENTS_WAITING_MAX);
        let (mut readers, mut errors) = (Vec::new(), Vec::new());
        // At once: one that is frozen is waited for only once.
        let opening = quorum
            .members
            .iter()
            .map(|member| watch::open(Arc::clone(&member.site), thread, scope.clone()));
        for (place, opened) in join_all(opening).await.into_iter().enumerate() {
            match opened {
                Ok(watch) => readers.push(thread.run(read(place, watch, sender.clone()))),
                Err(error) => errors.push(error),
            }
        }
        if readers.len() < quorum.majority() {
            return Err(quorum.undecided("the watch", readers.len(), &errors, Effect::Nothing));
        }
        Ok(Self {
            told,
            counts: BTreeMap::new(),
            majority: quorum.majority(),
            listening: readers.len(),
            place: quorum.place.clone(),
            _readers: readers,
        })
    }

    /// Counts what a member told; the event, if it is a majority now that told it.
    fn count(&mut self, member: usize, event: WatchEvent) -> Option<WatchEvent> {
        let WatchEvent::Changed { name, change, token } = event else {
            return Some(WatchEvent::Gap);
        };
        if self.counts.len() >= COUNTED_MAX && !self.counts.contains_key(&name) {
            self.counts.clear();
            return Some(WatchEvent::Gap);
        }
        let counts = self.counts.entry(name.clone()).or_default();
        let known = counts
            .changes
            .iter()
            .position(|known| (known.0, known.1) == (change, token));
        let place = known.unwrap_or_else(|| {
            if counts.changes.len() >= CHANGES_MAX {
                counts.changes.remove(0);
            }
            counts.changes.push((change, token, 0));
            counts.changes.len() - 1
        });
        let members = &mut counts.changes[place].2;
        *members |= 1 << member;
        if members.count_ones() as usize != self.majority {
            return None;
        }
        // What a slower majority tells of an earlier term is over.
        if token.is_some() && token < counts.told {
            return None;
        }
        counts.told = token.or(counts.told);
        if token.is_none() {
            counts.changes.clear();
        }
        Some(WatchEvent::Changed { name, change, token })
    }
}

impl Watch for QuorumWatch {
    fn next(&mut self) -> Answer<'_, Told> {
        Box::pin(async move {
            loop {
                match self.told.recv().await {
                    Some((member, Ok(event))) => {
                        if let Some(event) = self.count(member, event) {
                            return Ok(event);
                        }
                    }
                    Some((_, Err(error))) => {
                        self.listening -= 1;
                        if self.listening < self.majority {
                            return Err(error);
                        }
                        // Fewer listen than before: what they missed nobody tells.
                        return Ok(WatchEvent::Gap);
                    }
                    None => {
                        return Err(StoreError::not_applied(
                            Fault::Unreachable,
                            format!(
                                "the watch at the quorum {} is over; start a new one, then look again",
                                self.place
                            ),
                        ));
                    }
                }
            }
        })
    }
}

/// Hands on what one member tells, until it or the reader's interest ends.
async fn read(place: usize, mut watch: ReadWatch, told: mpsc::Sender<(usize, Told)>) {
    loop {
        let event = tokio::select! {
            () = told.closed() => return,
            event = watch.next() => event,
        };
        let ended = event.is_err();
        if told.send((place, event)).await.is_err() || ended {
            return;
        }
    }
}
