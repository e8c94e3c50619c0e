//! A store that judges expiry by a clock of its own. The conformance suite's model decides; this adds the
//! clock, the habits of real stores, and what befalls them.

use super::{Memory, instance_of};
use crate::invariants::Truth;
use crate::plan::{Flaw, Grants, StoreHabits};
use std::collections::{BTreeMap, VecDeque};
use tenure_conformance::model::{Record, Records, Slot};
use tenure_core::{
    Acquire, Acquired, Ask, Asked, FencingToken, LeaseName, Operation, Release, Released, Renew, Renewed,
    Reply, Ttl, WatchEvent,
};

/// How many earlier states are kept for a fail-over that loses the tail.
const TAIL_MAX: usize = 4;

/// What a store of varying grants grants in turn, in hundredths.
const VARYING: [u64; 7] = [100, 100, 60, 100, 80, 100, 50];

/// What an erratic one does.
const ERRATIC: [u64; 4] = [100, 10, 100, 3];

pub(crate) struct ServerStore {
    records: Records,
    habits: StoreHabits,
    /// Whose turn it is of what varies.
    turn: usize,
    /// The terms before the present ones, where reads may lag.
    past: Option<BTreeMap<LeaseName, FencingToken>>,
    /// Earlier states, the latest last; kept only where the store may lose its tail.
    tail: Option<VecDeque<Records>>,
    backup: Records,
}

impl ServerStore {
    pub(crate) fn new(habits: StoreHabits, memory: Memory) -> Self {
        Self {
            records: Records::default(),
            habits,
            turn: 0,
            past: habits.reads_lag.then(BTreeMap::default),
            tail: (memory == Memory::Keeps).then(VecDeque::new),
            backup: Records::default(),
        }
    }

    pub(crate) fn truth(&self, name: &LeaseName) -> Option<Truth> {
        let record = self.records.read(name).ok().flatten()?;
        Some(Truth {
            holder: instance_of(&record.holder),
            token: record.token.number(),
            attempt: record.attempt.number(),
            expires_ms: record.expires_ms,
            released: record.released_ms.is_some(),
        })
    }

    /// Does what was asked. `reply` is what a store says.
    pub(crate) fn apply(&mut self, operation: &mut Operation, now_ms: u64) -> Reply {
        if !matches!(operation, Operation::Look(_)) {
            self.remember();
        }
        match operation {
            Operation::Acquire(request) => {
                request.ttl = self.granted(request.ttl);
                Reply::Acquired(self.acquire(request, now_ms))
            }
            Operation::Renew(requests) => {
                let renew = |request: &mut Renew| {
                    request.ttl = self.granted(request.ttl);
                    self.renew(request, now_ms)
                };
                Reply::Renewed(requests.iter_mut().map(renew).collect())
            }
            Operation::Release(requests) => Reply::Released(
                requests
                    .iter_mut()
                    .map(|request| self.release(request, now_ms))
                    .collect(),
            ),
            Operation::Look(name) => Reply::Looked(self.records.get(name, now_ms)),
        }
    }

    /// The token of the term before the present one.
    pub(crate) fn past_token(&self, name: &LeaseName) -> Option<u64> {
        self.past.as_ref()?.get(name).map(|token| token.number())
    }

    /// Leaves a wish for the term with this token. Whether it is there.
    pub(crate) fn ask_for(&mut self, name: &LeaseName, token: u64, now_ms: u64) -> bool {
        let Ok(token) = FencingToken::new(token) else {
            return false;
        };
        let ask = Ask {
            name: name.clone(),
            token,
        };
        self.records.ask(&ask, now_ms) == Ok(Asked::Noted)
    }

    pub(crate) fn ask(&mut self, name: &LeaseName, now_ms: u64) -> bool {
        let Ok(Some(record)) = self.records.read(name) else {
            return false;
        };
        let token = record.token.number();
        self.ask_for(name, token, now_ms)
    }

    /// What an operator's forced release does: the record's own term is released. The token of that term.
    pub(crate) fn force_release(&mut self, name: &LeaseName, now_ms: u64) -> Option<u64> {
        let record = self.records.read(name).ok().flatten()?;
        if !record.is_held(now_ms) {
            return None;
        }
        let release = Release {
            name: name.clone(),
            incarnation: record.holder.incarnation,
            token: record.token,
            attempt: record.attempt,
        };
        match self.records.release(&release, now_ms) {
            Ok(Released::Vacated) => Some(release.token.number()),
            Ok(Released::NotYours(_)) | Err(_) => None,
        }
    }

    /// Removes the record, if nobody holds the lease. Whether it did.
    pub(crate) fn clean_up(&mut self, name: &LeaseName, now_ms: u64) -> bool {
        let unused = matches!(self.records.read(name), Ok(Some(record)) if !record.is_held(now_ms));
        if unused {
            self.records.purge(name);
        }
        unused
    }

    pub(crate) fn take_events(&mut self) -> Vec<WatchEvent> {
        self.records.take_events()
    }

    /// Extends every held lease by its ttl, as a store of sessions does when a new node takes over.
    pub(crate) fn refresh(&mut self, now_ms: u64) -> bool {
        let mut any = false;
        for slot in self.records.slots.values_mut() {
            if let Slot::Own(record) = slot
                && record.is_held(now_ms)
            {
                record.expires_ms = record.expires_ms.max(now_ms + record.ttl.as_millis());
                any = true;
            }
        }
        any
    }

    /// Loses the latest writes that it had acknowledged: up to `writes` of them. Whether anything was lost.
    pub(crate) fn lose_tail(&mut self, writes: u32) -> bool {
        let Some(tail) = &mut self.tail else { return false };
        let mut lost = false;
        for _ in 0..writes {
            if let Some(earlier) = tail.pop_back() {
                lost |= earlier.slots != self.records.slots;
                self.records = earlier;
            }
        }
        lost
    }

    pub(crate) fn wipe(&mut self) -> bool {
        let any = !self.records.slots.is_empty();
        self.records = Records::default();
        any
    }

    pub(crate) fn back_up(&mut self) {
        self.backup = self.records.clone();
    }

    pub(crate) fn restore(&mut self) -> bool {
        let any = self.backup.slots != self.records.slots;
        self.records = self.backup.clone();
        any
    }

    fn remember(&mut self) {
        if let Some(tail) = &mut self.tail {
            if tail.len() == TAIL_MAX {
                tail.pop_front();
            }
            tail.push_back(self.records.clone());
        }
    }

    fn granted(&mut self, asked: Ttl) -> Ttl {
        let mut percent = self.habits.granted_percent;
        let in_turn: &[u64] = match self.habits.grants {
            Grants::Alike => &[100],
            Grants::Varying => &VARYING,
            Grants::Erratic => &ERRATIC,
        };
        percent = percent * in_turn[self.turn % in_turn.len()] / 100;
        self.turn = self.turn.wrapping_add(1);
        if percent == 100 {
            return asked;
        }
        Ttl::from_millis(asked.as_millis() * percent / 100).unwrap_or(asked)
    }

    fn acquire(&mut self, request: &Acquire, now_ms: u64) -> Result<Acquired, tenure_core::StoreError> {
        let flaw = self.habits.flaw;
        let before = self.records.read(&request.name)?.cloned();
        if let (Some(flaw), Some(before)) = (flaw, before.as_ref()) {
            self.prepare_flaw(flaw, request, before, now_ms);
        }
        let mut answer = self.records.acquire(request, now_ms)?;
        if let (Some(past), Some(before), Acquired::Granted(grant)) = (&mut self.past, &before, &answer)
            && grant.token != before.token
        {
            past.insert(request.name.clone(), before.token);
        }
        if let (Some(Flaw::TokenRepeats), Some(before), Acquired::Granted(grant)) =
            (flaw, before, &mut answer)
        {
            grant.token = before.token;
            self.edit(&request.name, |record| record.token = before.token);
        }
        Ok(answer)
    }

    fn prepare_flaw(&mut self, flaw: Flaw, request: &Acquire, before: &Record, now_ms: u64) {
        let mine = before.holder.incarnation == request.candidate.incarnation;
        match flaw {
            Flaw::GrantsHeldLease if !mine => self.edit(&request.name, |record| record.expires_ms = now_ms),
            Flaw::SameAttemptGetsNewToken if mine && before.attempt == request.attempt => {
                self.edit(&request.name, |record| record.expires_ms = now_ms);
            }
            Flaw::ExpiresEarly => {
                let early = before.expires_ms.saturating_sub(before.ttl.as_millis() / 5);
                if now_ms >= early {
                    self.edit(&request.name, |record| record.expires_ms = early);
                }
            }
            Flaw::NeverExpires if before.released_ms.is_none() && !before.is_held(now_ms) => {
                self.edit(&request.name, |record| {
                    record.expires_ms = now_ms + record.ttl.as_millis()
                });
            }
            _ => {}
        }
    }

    fn renew(&mut self, request: &Renew, now_ms: u64) -> Result<Renewed, tenure_core::StoreError> {
        let before = self.records.read(&request.name)?.cloned();
        if self.habits.flaw == Some(Flaw::RenewalRevives)
            && before
                .as_ref()
                .is_some_and(|record| record.token == request.token)
        {
            self.edit(&request.name, |record| {
                record.released_ms = None;
                record.expires_ms = record.expires_ms.max(now_ms + 1);
            });
        }
        let answer = self.records.renew(request, now_ms)?;
        if self.habits.flaw == Some(Flaw::RenewalDoesNotExtend)
            && let Some(before) = before
        {
            self.edit(&request.name, |record| record.expires_ms = before.expires_ms);
        }
        Ok(answer)
    }

    fn release(&mut self, request: &mut Release, now_ms: u64) -> Result<Released, tenure_core::StoreError> {
        if self.habits.flaw == Some(Flaw::ReleaseIgnoresTerm)
            && let Some(record) = self.records.read(&request.name)?
        {
            let asked = request.clone();
            let mut wide = request.clone();
            (wide.incarnation, wide.token, wide.attempt) =
                (record.holder.incarnation, record.token, record.attempt);
            let answer = self.records.release(&wide, now_ms);
            *request = asked;
            return answer;
        }
        self.records.release(request, now_ms)
    }

    fn edit(&mut self, name: &LeaseName, change: impl FnOnce(&mut Record)) {
        if let Some(Slot::Own(record)) = self.records.slots.get_mut(name) {
            change(record);
        }
    }
}
