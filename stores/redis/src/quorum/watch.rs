//! Watching a quorum: a change is told when a majority has told it, or may have without being heard.

use super::{Effect, Quorum};
use crate::watch;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Answer, Change, Fault, FencingToken, LeaseName, Scope, StoreError, Watch, WatchEvent};
use tenure_remote::{OwnThread, ReadWatch, Running, Told};
use tokio::sync::mpsc;

/// How long the other members are waited for where a majority is listened to.
const OTHERS_TIME: Duration = Duration::from_secs(1);

/// Events that may wait for a slow reader.
const EVENTS_WAITING_MAX: usize = 256;

/// Leases whose changes are counted at once. Beyond it, the count begins anew, and the reader looks for
/// itself.
const COUNTED_MAX: usize = 4_096;

/// The watches of the members, and what a majority of them told.
pub(super) struct QuorumWatch {
    told: mpsc::Receiver<(usize, Told)>,
    counts: BTreeMap<LeaseName, Counts>,
    majority: usize,
    /// Members that are still listened to.
    listening: usize,
    /// Members that are not: they were silent when the watch was opened, or their watch is over.
    unheard: usize,
    place: String,
    _readers: Vec<Running<()>>,
}

/// The last changes of one lease, each with the members that told it.
#[derive(Default)]
struct Counts {
    changes: Vec<(Change, Option<FencingToken>, u64)>,
    /// The highest token of which a majority has told: what is told of a lower one is over.
    told: Option<FencingToken>,
    /// The highest token of a wish that fewer have told, and the reader was told of.
    wished: Option<FencingToken>,
}

impl Counts {
    /// How many members have told this change, now that this one has.
    fn add(&mut self, member: usize, change: Change, token: Option<FencingToken>) -> usize {
        let is_this =
            |known: &&mut (Change, Option<FencingToken>, u64)| (known.0, known.1) == (change, token);
        let tellers = match self.changes.iter_mut().find(is_this) {
            Some((.., members)) => {
                *members |= 1 << member;
                *members
            }
            None => {
                let members = 1 << member;
                self.changes.push((change, token, members));
                members
            }
        };
        tellers.count_ones() as usize
    }

    /// Makes room: the change of the oldest term goes, as a member that lags behind comes to the latest ones
    /// in the end. How many had told it, if it was not over.
    fn forget_oldest(&mut self) -> Option<usize> {
        if self.changes.len() <= CHANGES_MAX {
            return None;
        }
        let age = |place: &usize| {
            let token = self.changes[*place].1;
            (token.is_none(), token)
        };
        let oldest = (0..self.changes.len()).min_by_key(age)?;
        let (_, token, members) = self.changes.remove(oldest);
        (token >= self.told).then_some(members.count_ones() as usize)
    }
}

/// Changes of one lease that are counted at once.
const CHANGES_MAX: usize = 8;

impl QuorumWatch {
    /// Watches every member that answers in time; a majority must.
    pub(super) async fn open(quorum: &Quorum, thread: &OwnThread, scope: &Scope) -> Result<Self, StoreError> {
        let (sender, told) = mpsc::channel(EVENTS_WAITING_MAX);
        let (mut readers, mut errors) = (Vec::new(), Vec::new());
        // At once; and one that is frozen keeps nobody from hearing the others meanwhile.
        let opening = quorum
            .members
            .iter()
            .enumerate()
            .map(|(place, member)| async move {
                let opened = watch::open(Arc::clone(&member.site), thread, scope.clone()).await;
                (place, opened)
            });
        let mut opening: FuturesUnordered<_> = opening.collect();
        let mut patience = None;
        loop {
            let next = opening.next();
            let opened = match &mut patience {
                None => next.await,
                Some(patience) => match select(next, patience).await {
                    Either::Left((opened, _)) => opened,
                    Either::Right(_late) => None,
                },
            };
            let Some((place, opened)) = opened else { break };
            match opened {
                Ok(watch) => readers.push(thread.run(read(place, watch, sender.clone()))),
                Err(error) => errors.push(error),
            }
            if patience.is_none() && readers.len() >= quorum.majority() {
                // On the store's thread: whoever waits here may have no timers.
                patience = Some(thread.run(async { tokio::time::sleep(OTHERS_TIME).await }));
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
            unheard: quorum.members.len() - readers.len(),
            place: quorum.place.clone(),
            _readers: readers,
        })
    }

    /// Counts what a member told; the event, if a majority has told it now, or may have, as some are not
    /// heard.
    ///
    /// What fewer than a majority have told is told without its token, and anew with each of them, until a
    /// majority has: who looks too early sees the change half made, and waits for the rest.
    fn count(&mut self, member: usize, event: WatchEvent) -> Option<WatchEvent> {
        let WatchEvent::Changed { name, change, token } = event else {
            return Some(WatchEvent::Gap);
        };
        if self.counts.len() >= COUNTED_MAX && !self.counts.contains_key(&name) {
            self.counts.clear();
            return Some(WatchEvent::Gap);
        }
        let counts = self.counts.entry(name.clone()).or_default();
        // What a slower majority tells of an earlier term is over.
        if token.is_some() && token < counts.told {
            return None;
        }
        let tellers = counts.add(member, change, token);
        let forgotten = counts.forget_oldest();
        if tellers > self.majority || tellers + self.unheard < self.majority {
            // Members tell with many terms between them: who else tells of that change is not counted with
            // these.
            let is_untold = |tellers| tellers + self.unheard < self.majority;
            return forgotten.is_some_and(is_untold).then_some(WatchEvent::Gap);
        }
        let token = if tellers < self.majority {
            // A token that a minority has confirmed may be nobody's, for which no holder must end; and what
            // this member has told may be ahead of what the others will. A wish is a term's own, and is of no
            // use without.
            let wished = token.filter(|_| change == Change::Asked);
            counts.wished = counts.wished.max(wished);
            wished
        } else {
            counts.told = token.or(counts.told);
            if token.is_none() {
                counts.changes.clear();
            }
            token.filter(|token| Some(*token) >= counts.wished)
        };
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
                        self.unheard += 1;
                        if self.listening < self.majority {
                            return Err(error);
                        }
                        // Fewer are listened to than before: what that one alone has told until now is looked
                        // for.
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
