//! Messages as they arrive: at the store, and back at the process that asked.

use super::World;
use super::driver::Extensions;
use super::happening::Happening;
use super::network::{Absence, Asked, Copied, Fate, Load};
use super::process::{NEVER, Reach};
use crate::faults::FaultKind;
use crate::invariants::{Extension, Truth, loss_ends_the_term, wish_is_told};
use crate::plan::{Grants, NAMES_MAX, nanoseconds};
use crate::sometimes::Sometimes;
use tenure_core::{Acquired, Fault, Input, LeaseName, Operation, Renewed, Reply, StoreError, Wish};

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
            Load::Contract {
                asked,
                reply,
                applied,
            } => {
                self.applications += 1;
                *applied = self.applications;
                let answer = match error {
                    Some(error) => refused(&asked.operation, &error),
                    None => self.apply(&mut asked.operation, message.instance, late),
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
        if message.fate == Fate::AppliedThenError {
            self.struck(FaultKind::AppliedThenError);
            self.saw(Sometimes::UnknownOutcome);
            self.tell(|| format!("the connection of c{slot} dies before the answer"));
            message.load.fail();
        }
        let at = self.now + message.reply_delay;
        let place = self.network.keep(message);
        self.queue.plan(at, Happening::Replies { message: place });
    }

    /// The error with which a message is refused, if it is; counted.
    fn error_of(&mut self, fate: Fate) -> Option<StoreError> {
        let (kind, error) = match fate {
            Fate::Applied | Fate::ReplyLost | Fate::AppliedThenError => return None,
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
                let after = self.truths();
                for (view, (before, after)) in self.leases.iter_mut().zip(before.iter().zip(after)) {
                    if *before != after {
                        // Nobody who was answered before can know of it.
                        view.granted_at = NEVER;
                    }
                }
            }
            if self.plan.store.grants != Grants::Alike {
                let after = self.truths();
                for (view, (before, after)) in self.leases.iter_mut().zip(before.iter().zip(after)) {
                    if *before != after {
                        view.last_applied = self.applications;
                    }
                }
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
                asked,
                reply: Some(reply),
                applied,
            } => {
                self.hear_of(slot, &asked, &reply, applied);
                self.answer(slot, &asked, reply);
            }
            Load::Contract { reply: None, .. } => {}
            Load::Round(round) => self.hear(slot, round),
        }
    }

    /// An answer reaches the engine that asked.
    pub(super) fn answer(&mut self, slot: u8, asked: &Asked, reply: Reply) {
        let extensions = self.extensions(&asked.operation, &reply, asked.sent_local);
        let lost = self.terms_lost(slot, asked, &reply);
        let wishes = self.wishes(slot, asked, &reply);
        self.note_answered_acquire(slot, asked, &reply);
        self.note_failure(slot, asked, &reply);
        let request = asked.request;
        self.processes[usize::from(slot)].note_answer(request);
        self.step(slot, Input::Answer { request, reply }, &extensions);
        for (index, token) in lost.into_iter().enumerate().filter(|(_, token)| *token != 0) {
            // In a store that has forgotten what it counted, the next term of the process may have the same
            // token.
            if !self.leases[index].tokens.promised() {
                continue;
            }
            let believed = self.processes[usize::from(slot)].seats[index].believed.token;
            self.judge(loss_ends_the_term(token, believed));
        }
        for (index, token) in wishes.into_iter().enumerate().filter(|(_, token)| *token != 0) {
            self.judge_wish(slot, index, token, Sometimes::WishToldByRenewal);
        }
    }

    /// The tokens of the terms that a renewal's answer says are wished to end, 0 for none: as for those that
    /// are lost. Nor is one told of what it knows already.
    fn wishes(&mut self, slot: u8, asked: &Asked, reply: &Reply) -> [u64; NAMES_MAX] {
        let mut wishes = [0; NAMES_MAX];
        let (Operation::Renew(renewals), Reply::Renewed(results)) = (&asked.operation, reply) else {
            return wishes;
        };
        for (renew, result) in renewals.iter().zip(results) {
            let index = self.name_index(&renew.name);
            let token = renew.token.number();
            let wish = matches!(
                result,
                Ok(Renewed::Extended {
                    wish: Wish::StepDown,
                    ..
                })
            );
            let is_news = self.processes[usize::from(slot)].seats[index].ending != token;
            if wish && is_news && self.is_taken_in(slot, asked) {
                wishes[index] = token;
            }
        }
        wishes
    }

    /// The process was stepped with a wish that it did not know of.
    pub(super) fn judge_wish(&mut self, slot: u8, index: usize, token: u64, how: Sometimes) {
        let seat = &self.processes[usize::from(slot)].seats[index];
        let (believed, ending) = (seat.believed.token, seat.ending);
        if ending == token {
            self.saw(how);
        }
        self.judge(wish_is_told(token, believed, ending));
    }

    /// Whether what was asked to take, to find or to give back a lease has failed.
    fn note_failure(&mut self, slot: u8, asked: &Asked, reply: &Reply) {
        if !self.is_taken_in(slot, asked) {
            return;
        }
        let request = asked.request.number();
        match (&asked.operation, reply) {
            // An error that only a person can mend ends the campaign.
            (Operation::Acquire(acquire), Reply::Acquired(result)) => {
                let failed = result.as_ref().is_err_and(|error| !error.fault.is_final());
                self.note_outcome(slot, &acquire.name, request, failed);
            }
            (Operation::Release(releases), Reply::Released(results)) => {
                for (release, result) in releases.iter().zip(results) {
                    self.note_outcome(slot, &release.name, request, result.is_err());
                }
            }
            (Operation::Look(name), Reply::Looked(result)) => {
                self.note_outcome(slot, name, request, result.is_err());
            }
            _ => {}
        }
    }

    fn note_outcome(&mut self, slot: u8, name: &LeaseName, request: u64, failed: bool) {
        let index = self.name_index(name);
        let process = &mut self.processes[usize::from(slot)];
        let local = process.clock.shown(self.now);
        let retries = &mut process.seats[index].retries;
        if failed {
            retries.failed(request, local);
        } else {
            retries.answered(request);
        }
    }

    /// The tokens of the terms of which a renewal's answer says that they are over, 0 for none: if it is the
    /// first answer, and comes in time.
    fn terms_lost(&self, slot: u8, asked: &Asked, reply: &Reply) -> [u64; NAMES_MAX] {
        let mut lost = [0; NAMES_MAX];
        let (Operation::Renew(renewals), Reply::Renewed(results)) = (&asked.operation, reply) else {
            return lost;
        };
        if self.is_taken_in(slot, asked) {
            for (renew, result) in renewals.iter().zip(results) {
                if matches!(result, Ok(Renewed::Lost(_))) {
                    lost[self.name_index(&renew.name)] = renew.token.number();
                }
            }
        }
        lost
    }

    /// Whether an answer is the first one, and its request was not given up: what only is overdue, as after a
    /// pause, is given up by the next step, which takes in the answer before.
    fn is_taken_in(&self, slot: u8, asked: &Asked) -> bool {
        let process = &self.processes[usize::from(slot)];
        process.stepped_local < asked.give_up_at && !process.was_answered(asked.request)
    }

    /// What the answer to a request for the lease means to those who watch over campaigns.
    fn note_answered_acquire(&mut self, slot: u8, asked: &Asked, reply: &Reply) {
        let (Operation::Acquire(acquire), Reply::Acquired(result)) = (&asked.operation, reply) else {
            return;
        };
        if !self.is_taken_in(slot, asked) {
            return;
        }
        let index = self.name_index(&acquire.name);
        let process = &mut self.processes[usize::from(slot)];
        let (local, spread) = (process.clock.shown(self.now), process.timing.explain().hand_over);
        let seat = &mut process.seats[index];
        seat.asking_until = 0;
        let request = asked.request.number();
        match result {
            Ok(Acquired::Held(lease)) => {
                seat.hints
                    .stands_by(request, lease.token.number(), local, nanoseconds(spread));
            }
            Ok(Acquired::Superseded) => {
                seat.hints.ends();
                if seat.rotates.latest() == acquire.attempt.number() {
                    seat.rotates.superseded();
                }
            }
            Ok(Acquired::Granted(_)) | Err(_) => seat.hints.ends(),
        }
    }

    /// The process learns what the store has granted: from now on it is held to that.
    fn hear_of(&mut self, slot: u8, asked: &Asked, reply: &Reply, applied: u64) {
        if !self.is_taken_in(slot, asked) {
            return;
        }
        let told = self.extensions(&asked.operation, reply, asked.sent_local);
        let seats = &mut self.processes[usize::from(slot)].seats;
        for (seat, _) in seats.iter_mut().zip(told).filter(|(_, told)| told.is_some()) {
            seat.heard = applied;
        }
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

impl Load {
    /// In place of the answer comes an error, which cannot say whether the request was applied.
    fn fail(&mut self) {
        let error = StoreError::unknown(Fault::Unreachable, "the connection died");
        match self {
            Self::Contract { asked, reply, .. } => *reply = Some(refused(&asked.operation, &error)),
            Self::Round(round) => round.fail(error),
        }
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
