//! A store that only compares and swaps, and judges nothing: every process observes by its own clock.

use crate::invariants::Truth;
use std::collections::VecDeque;
use tenure_core::{Change, Entry, FencingToken, LeaseName, Reading, Revision, Version, WatchEvent, Written};

/// How many earlier states are kept for a fail-over that loses the tail.
const TAIL_MAX: usize = 4;

/// What stands under one name.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Kept {
    version: Version,
    /// When the holder gave its last sign of life, in milliseconds of true time.
    alive_ms: u64,
}

type State = Vec<Option<Kept>>;

pub(crate) struct SwapStore {
    names: Vec<LeaseName>,
    state: State,
    /// The last number given to a write: none is ever given twice.
    revision: u64,
    past: State,
    /// The terms before the present ones.
    past_terms: Vec<Option<u64>>,
    tail: Option<VecDeque<State>>,
    backup: State,
    events: Vec<WatchEvent>,
}

impl SwapStore {
    pub(crate) fn new(names: &[LeaseName], memory: super::Memory) -> Self {
        let state: State = vec![None; names.len()];
        Self {
            names: names.to_vec(),
            past: state.clone(),
            past_terms: vec![None; names.len()],
            tail: (memory == super::Memory::Keeps).then(VecDeque::new),
            backup: state.clone(),
            state,
            revision: 0,
            events: Vec::new(),
        }
    }

    pub(crate) fn truth(&self, index: usize) -> Option<Truth> {
        let Kept { version, alive_ms } = self.state[index].as_ref()?;
        let entry = &version.entry;
        Some(Truth {
            holder: super::instance_of(&entry.holder),
            token: entry.token.number(),
            attempt: entry.attempt.number(),
            expires_ms: alive_ms + entry.ttl.as_millis(),
            released: entry.released,
        })
    }

    pub(crate) fn read(&self, index: usize, token_floor: u64) -> Reading {
        let found = self.state[index].as_ref().map(|kept| kept.version.clone());
        Reading { found, token_floor }
    }

    /// What a read that lags shows: the record before its last change.
    pub(crate) fn read_the_past(&self, index: usize, token_floor: u64) -> Reading {
        let found = self.past[index].as_ref().map(|kept| kept.version.clone());
        Reading { found, token_floor }
    }

    /// Writes, if the record still is what `over` says: that revision, or none.
    pub(crate) fn write(
        &mut self,
        index: usize,
        over: Option<&Revision>,
        entry: &Entry,
        now_ms: u64,
    ) -> Written {
        let now = self.state[index].as_ref().map(|kept| &kept.version.revision);
        if now != over {
            return Written::Conflict;
        }
        Written::As(self.put(index, entry.clone(), now_ms))
    }

    fn put(&mut self, index: usize, entry: Entry, now_ms: u64) -> Revision {
        self.revision += 1;
        let revision = Revision::from(self.revision);
        let before = self.state[index].take();
        let last = before.as_ref().map(|kept| (&kept.version.entry, kept.alive_ms));
        let same_term =
            last.is_some_and(|(last, _)| last.token == entry.token && last.holder == entry.holder);
        let alive_ms = match last {
            Some((last, alive_ms)) if same_term && last.renewals == entry.renewals => alive_ms,
            Some(_) | None => now_ms,
        };
        let change = match last {
            Some((last, _)) if same_term && entry.released && !last.released => Some(Change::Vacated),
            Some((last, _)) if same_term && entry.asked_to_step_down && !last.asked_to_step_down => {
                Some(Change::Asked)
            }
            Some(_) if same_term => None,
            Some(_) | None => Some(Change::Taken),
        };
        if let Some(change) = change {
            self.tell(index, change, Some(entry.token));
        }
        if let Some(tail) = &mut self.tail {
            let mut state = self.state.clone();
            state[index].clone_from(&before);
            if tail.len() == TAIL_MAX {
                tail.pop_front();
            }
            tail.push_back(state);
        }
        if let Some(earlier) = before.as_ref().map(|kept| kept.version.entry.token)
            && earlier != entry.token
        {
            self.past_terms[index] = Some(earlier.number());
        }
        self.past[index] = before;
        let version = Version {
            revision: revision.clone(),
            entry,
            ages: None,
        };
        self.state[index] = Some(Kept { version, alive_ms });
        revision
    }

    fn tell(&mut self, index: usize, change: Change, token: Option<FencingToken>) {
        let name = self.names[index].clone();
        self.events.push(WatchEvent::Changed { name, change, token });
    }

    /// Leaves a wish, if `token` is that of the record's term and it was not given back. Whether it is there.
    pub(crate) fn ask(&mut self, index: usize, token: Option<u64>, now_ms: u64) -> bool {
        let Some(kept) = self.state[index].clone() else {
            return false;
        };
        let entry = kept.version.entry;
        if entry.released || token.is_some_and(|token| token != entry.token.number()) {
            return false;
        }
        if !entry.asked_to_step_down {
            let asked = Entry {
                asked_to_step_down: true,
                ..entry
            };
            self.put(index, asked, now_ms);
        }
        true
    }

    /// The token of the term before the present one.
    pub(crate) fn past_token(&self, index: usize) -> Option<u64> {
        self.past_terms[index]
    }

    pub(crate) fn force_release(&mut self, index: usize, now_ms: u64) -> Option<u64> {
        let held = self.truth(index)?.is_held(now_ms);
        let entry = self.state[index].as_ref()?.version.entry.clone();
        if !held {
            return None;
        }
        let token = entry.token.number();
        self.put(
            index,
            Entry {
                released: true,
                ..entry
            },
            now_ms,
        );
        Some(token)
    }

    pub(crate) fn clean_up(&mut self, index: usize, now_ms: u64) -> bool {
        let unused = self.truth(index).is_some_and(|truth| !truth.is_held(now_ms));
        if unused {
            self.state[index] = None;
            self.tell(index, Change::Vacated, None);
        }
        unused
    }

    pub(crate) fn take_events(&mut self) -> Vec<WatchEvent> {
        std::mem::take(&mut self.events)
    }

    pub(crate) fn lose_tail(&mut self, writes: u32) -> bool {
        let Some(tail) = &mut self.tail else { return false };
        let mut lost = false;
        for _ in 0..writes {
            if let Some(earlier) = tail.pop_back() {
                lost |= earlier != self.state;
                self.state = earlier;
            }
        }
        lost
    }

    pub(crate) fn wipe(&mut self) -> bool {
        let any = self.state.iter().any(Option::is_some);
        self.state.fill(None);
        any
    }

    pub(crate) fn back_up(&mut self) {
        self.backup.clone_from(&self.state);
    }

    pub(crate) fn restore(&mut self) -> bool {
        let any = self.backup != self.state;
        self.state.clone_from(&self.backup);
        any
    }
}
