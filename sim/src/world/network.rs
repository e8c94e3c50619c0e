//! Messages between processes and the store: what is lost, late, doubled, overtaken, or refused.

use super::World;
use super::driver::Extensions;
use super::happening::Happening;
use super::process::Reach;
use crate::faults::FaultKind;
use crate::invariants::{Extension, Truth, no_request_outlasts};
use crate::plan::{NAMES_MAX, nanoseconds};
use crate::sometimes::Sometimes;
use tenure_core::{Acquired, Fault, Input, Operation, Renewed, Reply, Request, RequestId, StoreError};

/// A request on its way to the store, and its reply on the way back.
pub(super) struct Message {
    slot: u8,
    instance: u32,
    connection: u32,
    epoch: u32,
    request: RequestId,
    operation: Operation,
    sent_local: u64,
    fate: Fate,
    copy: Copied,
    /// What is added to the way back.
    reply_delay: u64,
    reply: Option<Reply>,
}

/// What becomes of a request that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// It is applied and answered.
    Applied,
    /// It is applied, and the answer is lost.
    ReplyLost,
    /// The store is busy.
    Busy,
    /// The store refuses, for a person to mend.
    Misconfigured,
    /// It cannot be reached, and says so.
    Unreachable,
}

/// Whether a message is the one that was sent, or a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Copied {
    Original,
    AtOnce,
    Late,
}

/// How the store is absent while it is down.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Absence {
    /// Requests vanish.
    #[default]
    Silent,
    /// Connections are refused.
    Refusing,
}

/// The network, and whether the store is behind it.
#[derive(Default)]
pub(super) struct Network {
    messages: Vec<Option<Message>>,
    free: Vec<u32>,
    pub(super) down_until: u64,
    pub(super) absence: Absence,
    pub(super) slow_until: u64,
    /// What was sent in an earlier epoch is lost.
    pub(super) epoch: u32,
}

impl Network {
    pub(super) fn is_down(&self, now: u64) -> bool {
        now < self.down_until
    }

    fn keep(&mut self, message: Message) -> u32 {
        if let Some(place) = self.free.pop() {
            self.messages[place as usize] = Some(message);
            return place;
        }
        self.messages.push(Some(message));
        u32::try_from(self.messages.len() - 1).expect("few messages are under way")
    }

    fn take(&mut self, place: u32) -> Option<Message> {
        let message = self.messages.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(message)
    }
}

impl World<'_> {
    /// Sends a request, at the moment of the step that asked for it.
    pub(super) fn send(&mut self, slot: u8, local: u64, request: Request) {
        self.watch_over(slot, &request);
        let Request {
            id,
            give_up_at: _,
            operation,
        } = request;
        let process = &mut self.processes[usize::from(slot)];
        process.sent += 1;
        let mut message = Message {
            slot,
            instance: process.instance,
            connection: process.connection,
            epoch: self.network.epoch,
            request: id,
            operation,
            sent_local: local,
            fate: Fate::Applied,
            copy: Copied::Original,
            reply_delay: 0,
            reply: None,
        };
        if self.is_lost_on_the_way(slot) {
            return;
        }
        let on_the_way = self.decide_fate(slot, &mut message);
        self.copy(slot, &message, on_the_way);
        let place = self.network.keep(message);
        self.queue
            .plan(self.now + on_the_way, Happening::Arrives { message: place });
    }

    fn watch_over(&mut self, slot: u8, request: &Request) {
        let process = &mut self.processes[usize::from(slot)];
        match &request.operation {
            Operation::Acquire(acquire) => {
                let index = self.name_index(&acquire.name);
                let process = &mut self.processes[usize::from(slot)];
                let verdict = process.seats[index].rotates.asks(acquire.attempt.number());
                self.judge(verdict);
                self.withdraw_soon(slot, index);
            }
            Operation::Renew(renewals) => {
                let engine = process.engine.as_ref().expect("it sends");
                let untils = renewals.iter().filter_map(|renew| engine.belief(&renew.name));
                let until = untils.map(|belief| belief.until.as_nanos()).min().unwrap_or(0);
                self.judge(no_request_outlasts(request.give_up_at.as_nanos(), until));
            }
            Operation::Release(releases) => {
                for release in releases {
                    let index = self.name_index(&release.name);
                    let engine = self.processes[usize::from(slot)]
                        .engine
                        .as_ref()
                        .expect("it sends");
                    let believed = engine
                        .belief(&release.name)
                        .map_or(0, |belief| belief.token.number());
                    let seat = &mut self.processes[usize::from(slot)].seats[index];
                    seat.rotates.released(release.attempt.number());
                    let verdict = seat.release.released(release.token.number(), believed);
                    self.judge(verdict);
                }
            }
            Operation::Look(_) => {}
        }
    }

    fn is_lost_on_the_way(&mut self, slot: u8) -> bool {
        let process = &mut self.processes[usize::from(slot)];
        if process.arms.lose_request > 0 {
            process.arms.lose_request -= 1;
            self.struck(FaultKind::RequestLost);
            self.tell(|| format!("c{slot}'s request is lost"));
            return true;
        }
        process.cut_to == Reach::Cut
    }

    /// What will become of a request, and how long it is on its way.
    fn decide_fate(&mut self, slot: u8, message: &mut Message) -> u64 {
        let latency = self.plan.latency;
        let process = &mut self.processes[usize::from(slot)];
        let timeout = nanoseconds(process.timing.request_timeout());
        let retry = nanoseconds(process.timing.retry_every());
        let mut on_the_way = process.dice.between(latency.least, latency.most);
        message.reply_delay = process.dice.between(latency.least, latency.most);
        if self.now < self.network.slow_until {
            on_the_way += timeout * process.dice.between(300, 1_100) / 1_000;
        }
        let arms = &mut process.arms;
        let (delay, reorder) = (std::mem::take(&mut arms.delay), std::mem::take(&mut arms.reorder));
        message.fate = take_one(&mut arms.lose_reply, Fate::ReplyLost)
            .or_else(|| take_one(&mut arms.busy, Fate::Busy))
            .or_else(|| take_one(&mut arms.misconfigured, Fate::Misconfigured))
            .or_else(|| take_one(&mut arms.unreachable, Fate::Unreachable))
            .unwrap_or(Fate::Applied);
        if delay > 0 {
            let extra = timeout * (500 + u64::from(delay)) / 1_000;
            // An odd one is late on its way there, an even one on its way back.
            if delay % 2 == 1 {
                on_the_way += extra
            } else {
                message.reply_delay += extra
            }
            self.struck(FaultKind::Delay);
        }
        if reorder > 0 {
            on_the_way += timeout + retry * (1_000 + u64::from(reorder)) / 1_000;
            self.struck(FaultKind::Reordering);
        }
        on_the_way
    }

    fn copy(&mut self, slot: u8, message: &Message, on_the_way: u64) {
        let ttl = self.plan.ttl_longest;
        let arms = &mut self.processes[usize::from(slot)].arms;
        if arms.duplicate > 0 {
            arms.duplicate -= 1;
            let at = self.now + on_the_way + 1_000_000;
            self.send_copy(message, Copied::AtOnce, at);
            self.struck(FaultKind::Duplicate);
        }
        let late = std::mem::take(&mut self.processes[usize::from(slot)].arms.late_duplicate);
        if late > 0 {
            let at = self.now + on_the_way + ttl * (100 + 4 * u64::from(late)) / 1_000;
            self.send_copy(message, Copied::Late, at);
        }
    }

    fn send_copy(&mut self, message: &Message, copy: Copied, at: u64) {
        let copied = Message {
            operation: message.operation.clone(),
            reply: None,
            copy,
            ..*message
        };
        let place = self.network.keep(copied);
        self.queue.plan(at, Happening::Arrives { message: place });
    }

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
        let reply = match message.fate {
            Fate::Applied | Fate::ReplyLost => self.apply(&mut message),
            Fate::Busy => {
                self.struck(FaultKind::Busy);
                refused(&message.operation, &StoreError::not_applied(Fault::Busy, "busy"))
            }
            Fate::Misconfigured => {
                self.struck(FaultKind::Misconfiguration);
                refused(
                    &message.operation,
                    &StoreError::not_applied(Fault::Forbidden, "no privilege"),
                )
            }
            Fate::Unreachable => {
                self.struck(FaultKind::Unreachable);
                refused(
                    &message.operation,
                    &StoreError::unknown(Fault::Unreachable, "unreachable"),
                )
            }
        };
        let slot = message.slot;
        self.tell(|| {
            format!(
                "the store answers c{slot}: {}",
                crate::world::operator::short(&reply)
            )
        });
        let cut = self.processes[usize::from(slot)].cut_from == Reach::Cut;
        if message.fate == Fate::ReplyLost || cut {
            if message.fate == Fate::ReplyLost {
                self.struck(FaultKind::ReplyLost);
            }
            self.saw(Sometimes::UnknownOutcome);
            return;
        }
        let at = self.now + message.reply_delay;
        message.reply = Some(reply);
        let place = self.network.keep(message);
        self.queue.plan(at, Happening::Replies { message: place });
    }

    fn apply(&mut self, message: &mut Message) -> Reply {
        let mut before: [Option<Truth>; NAMES_MAX] = [None; NAMES_MAX];
        for (index, view) in self.leases.iter().enumerate().take(self.names.len()) {
            before[index] = view.truth;
        }
        let reply = self.store.apply(&mut message.operation, self.now);
        if !matches!(message.operation, Operation::Look(_)) {
            self.judge_applied(&message.operation, &reply, &before, u64::from(message.instance));
            if message.copy == Copied::Late
                && self
                    .leases
                    .iter()
                    .zip(before)
                    .any(|(view, before)| view.truth != before)
            {
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
        let (Some(reply), false) = (message.reply, lost) else {
            return;
        };
        let extensions = self.extensions(&message.operation, &reply, message.sent_local);
        let request = message.request;
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

    /// Everything that is under way is lost, as if every connection were new.
    pub(super) fn lose_everything(&mut self) {
        self.network.epoch += 1;
        self.network.down_until = 0;
        self.network.slow_until = 0;
    }
}

fn take_one(count: &mut u8, fate: Fate) -> Option<Fate> {
    (*count > 0).then(|| {
        *count -= 1;
        fate
    })
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
