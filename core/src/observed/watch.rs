use super::entry::{Entry, Version};
use super::store::Observer;
use super::swap::{Clock, RecordEvent, RecordWatch};
use crate::{Answer, Change, FencingToken, LeaseName, StoreError, Watch, WatchEvent};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Most records whose state a watch remembers. When it is full it forgets all, and may then tell a change
/// twice.
const KNOWN_MAX: usize = 131_072;

/// Tells changes of leases from writes of records, and lets the observer see each of them.
pub(super) struct ObservedWatch<C> {
    records: Box<dyn RecordWatch>,
    observer: Arc<Observer<C>>,
    known: Known,
    to_tell: VecDeque<WatchEvent>,
}

impl<C: Clock> ObservedWatch<C> {
    pub(super) fn new(records: Box<dyn RecordWatch>, observer: Arc<Observer<C>>) -> Self {
        Self {
            records,
            observer,
            known: Known::default(),
            to_tell: VecDeque::new(),
        }
    }

    fn take_in(&mut self, event: RecordEvent) {
        match event {
            RecordEvent::Written { name, version } => {
                let Some(changes) = self.known.written(&name, &version.entry) else {
                    return;
                };
                self.observe(&name, &version);
                let token = Some(version.entry.token);
                self.to_tell
                    .extend(changes.into_iter().map(|change| WatchEvent::Changed {
                        name: name.clone(),
                        change,
                        token,
                    }));
            }
            RecordEvent::Removed { name } => {
                let token = self.known.removed(&name);
                self.observer
                    .observe(|now, sightings| sightings.see(now, &name, None));
                self.to_tell.push_back(WatchEvent::Changed {
                    name,
                    change: Change::Vacated,
                    token,
                });
            }
            RecordEvent::Gap => self.to_tell.push_back(WatchEvent::Gap),
        }
    }

    fn observe(&self, name: &LeaseName, version: &Version) {
        self.observer
            .observe(|now, sightings| sightings.glance(now, name, version));
    }
}

impl<C: Clock> Watch for ObservedWatch<C> {
    fn next(&mut self) -> Answer<'_, Result<WatchEvent, StoreError>> {
        Box::pin(async {
            loop {
                if let Some(event) = self.to_tell.pop_front() {
                    return Ok(event);
                }
                let event = self.records.next().await?;
                self.take_in(event);
            }
        })
    }
}

/// What a watch has told of each record.
#[derive(Default)]
struct Known(BTreeMap<LeaseName, State>);

/// How far a record has come. It only grows while the record lives: in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    token: FencingToken,
    released: bool,
    renewals: u64,
    asked: bool,
}

impl Known {
    /// What has changed, oldest first; `None` if this was written before what is known.
    fn written(&mut self, name: &LeaseName, entry: &Entry) -> Option<Vec<Change>> {
        let state = State {
            token: entry.token,
            released: entry.released,
            renewals: entry.renewals,
            asked: entry.asked_to_step_down,
        };
        let before = self.0.get(name).copied();
        if before.is_some_and(|before| before > state) {
            return None;
        }
        if before.is_none() && self.0.len() >= KNOWN_MAX {
            self.0.clear();
        }
        self.0.insert(name.clone(), state);
        let of_this_term = before.filter(|before| before.token == state.token);
        // A record that was not seen before says by itself whether its last write was an acquisition.
        let is_taken = match before {
            Some(_) => of_this_term.is_none(),
            None => state.renewals == 0 && !state.asked && !state.released,
        };
        let is_asked = state.asked && !state.released && of_this_term.is_none_or(|before| !before.asked);
        let is_vacated = state.released && of_this_term.is_none_or(|before| !before.released);
        let changes = [
            (is_taken, Change::Taken),
            (is_asked, Change::Asked),
            (is_vacated, Change::Vacated),
        ];
        Some(
            changes
                .into_iter()
                .filter(|(is_so, _)| *is_so)
                .map(|(_, change)| change)
                .collect(),
        )
    }

    fn removed(&mut self, name: &LeaseName) -> Option<FencingToken> {
        self.0.remove(name).map(|state| state.token)
    }
}
