//! Messages as they arrive: at the store, and back at the process that asked.

use super::World;
use super::driver::Extensions;
use super::happening::Happening;
use super::network::{Absence, Copied, Fate, Load};
use super::process::Reach;
use crate::faults::FaultKind;
use crate::invariants::{Extension, Truth};
use crate::plan::{NAMES_MAX, nanoseconds};
use crate::sometimes::Sometimes;
use tenure_core::{Acquired, Fault, Input, Operation, Renewed, Reply, RequestId, StoreError};

impl World<'_> {
    /// A request arrives at the store.
    pub(super) fn arrive(&mut self, place: u32) {
        let Some(mut message) = self.network.take(place) else {
            return;
        };
        if message.epoch != self.network.epoch {
            return;
        }
        if self.network.is_down(self.now) {
            match self.network.absence {
                Absence::Silent => return,
                Absence::Refusing => message.fate = Fate::Unreachable,
            }
        }
        if message.copy == Copied::Late {
            self.struck(FaultKind::LateDuplicate);
        }
        let slot = message.slot;
        let error = self.error_of(message.fate);
        let late = message.copy == Copied::Late;
        match &mut message.load {
            Load::Contract { operation, reply, .. } => {
                let answer = match error {
                    Some(error) => refused(operation, &error),
                    None => self.apply(operation, message.instance, late),
                };
                self.tell(|| {
                    format!(
                        "the store answers c{slot}: {}",
                        crate::world::operator::short(&answer)
                    )
                });
                *reply = Some(answer);
            }
            Load::Round(round) => self.serve(slot, message.instance, round, error, late),
        }
        let cut = self.processes[usize::from(slot)].cut_from == Reach::Cut;
        if message.fate == Fate::ReplyLost || cut {
            if message.fate == Fate::ReplyLost {
                self.struck(FaultKind::ReplyLost);
            }
            self.saw(Sometimes::UnknownOutcome);
            return;
        }
        let at = self.now + message.reply_delay;
        let place = self.network.keep(message);
        self.queue.plan(at, Happening::Replies { message: place });
    }

    /// The error with which a message is refused, if it is; counted.
    fn error_of(&mut self, fate: Fate) -> Option<StoreError> {
        let (kind, error) = match fate {
            Fate::Applied | Fate::ReplyLost => return None,
            Fate::Busy => (FaultKind::Busy, StoreError::not_applied(Fault::Busy, "busy")),
            Fate::Misconfigured => (
                FaultKind::Misconfiguration,
                StoreError::not_applied(Fault::Forbidden, "no privilege"),
            ),
            Fate::Unreachable => (
                FaultKind::Unreachable,
                StoreError::unknown(Fault::Unreachable, "unreachable"),
            ),
        };
        self.struck(kind);
        Some(error)
    }

    /// The truth of every lease, before something is done.
    fn truths(&self) -> [Option<Truth>; NAMES_MAX] {
        let mut truths = [None; NAMES_MAX];
        for (truth, view) in truths.iter_mut().zip(&self.leases) {
            *truth = view.truth;
        }
        truths
    }

    fn apply(&mut self, operation: &mut Operation, instance: u32, late: bool) -> Reply {
        let before = self.truths();
        let reply = self.store.apply(operation, self.now);
        if !matches!(operation, Operation::Look(_)) {
            self.judge_applied(operation, &reply, &before, u64::from(instance));
            if late && self.truths() != before {
                self.saw(Sometimes::LateDuplicateApplied);
            }
            self.tell_watches();
        }
        reply
    }

    /// A reply arrives at its process.
    pub(super) fn reply(&mut self, place: u32) {
        let Some(message) = self.network.messages.get(place as usize).and_then(Option::as_ref) else {
            return;
        };
        let (slot, instance, connection) = (message.slot, message.instance, message.connection);
        let lost =
            message.epoch != self.network.epoch || connection != self.processes[usize::from(slot)].connection;
        if !lost && self.absent(Happening::Replies { message: place }, slot, instance) {
            if !self.processes[usize::from(slot)].is(instance) {
                self.network.take(place);
            }
            return;
        }
        let Some(message) = self.network.take(place) else {
            return;
        };
        if lost {
            return;
        }
        match message.load {
            Load::Contract {
                request,
                operation,
                sent_local,
                reply: Some(reply),
            } => {
                self.answer(slot, request, &operation, reply, sent_local);
            }
            Load::Contract { reply: None, .. } => {}
            Load::Round(round) => self.hear(slot, round),
        }
    }

    /// An answer reaches the engine that asked.
    pub(super) fn answer(
        &mut self,
        slot: u8,
        request: RequestId,
        operation: &Operation,
        reply: Reply,
        sent_local: u64,
    ) {
        let extensions = self.extensions(operation, &reply, sent_local);
        self.step(slot, Input::Answer { request, reply }, &extensions);
    }

    /// What a reply grants, for each lease: for those who judge how long it may be believed in.
    fn extensions(&self, operation: &Operation, reply: &Reply, sent_local: u64) -> Extensions {
        let mut extensions = Extensions::default();
        let granted = |ttl: tenure_core::Ttl| {
            let ttl = nanoseconds(ttl.duration());
            Some(Extension { sent_local, ttl })
        };
        match (operation, reply) {
            (Operation::Acquire(acquire), Reply::Acquired(Ok(Acquired::Granted(grant)))) => {
                extensions[self.name_index(&acquire.name)] = granted(grant.ttl);
            }
            (Operation::Renew(renewals), Reply::Renewed(results)) => {
                for (renew, result) in renewals.iter().zip(results) {
                    if let Ok(Renewed::Extended { ttl, .. }) = result {
                        extensions[self.name_index(&renew.name)] = granted(*ttl);
                    }
                }
            }
            _ => {}
        }
        extensions
    }
}

/// The same error for everything that was asked.
fn refused(operation: &Operation, error: &StoreError) -> Reply {
    match operation {
        Operation::Acquire(_) => Reply::Acquired(Err(error.clone())),
        Operation::Renew(renewals) => Reply::Renewed(renewals.iter().map(|_| Err(error.clone())).collect()),
        Operation::Release(releases) => {
            Reply::Released(releases.iter().map(|_| Err(error.clone())).collect())
        }
        Operation::Look(_) => Reply::Looked(Err(error.clone())),
    }
}
