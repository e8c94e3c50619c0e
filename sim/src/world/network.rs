//! Messages between processes and the store: what is lost, late, doubled, overtaken, or refused.

use super::World;
use super::befall::part;
use super::happening::Happening;
use super::process::Reach;
use super::talk::RoundMessage;
use crate::faults::FaultKind;
use crate::invariants::{Pauses, no_request_outlasts};
use crate::plan::{StoreKind, nanoseconds};
use std::ops::RangeInclusive;
use std::time::Duration;
use tenure_core::{Operation, Reply, Request, RequestId};

/// Something on its way to the store, and its reply on the way back.
#[derive(Clone)]
pub(super) struct Message {
    pub(super) slot: u8,
    pub(super) instance: u32,
    pub(super) connection: u32,
    pub(super) epoch: u32,
    pub(super) fate: Fate,
    pub(super) copy: Copied,
    /// What is added to the way back.
    pub(super) reply_delay: u64,
    pub(super) load: Load,
}

/// A request as its engine sent it.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) request: RequestId,
    pub(super) operation: Operation,
    /// When, by its own clock.
    pub(super) sent_local: u64,
    /// When the engine gives it up, by its own clock.
    pub(super) give_up_at: u64,
}

/// What a message carries.
#[derive(Clone)]
pub(super) enum Load {
    /// A request of the contract, to a store that decides by itself.
    Contract {
        asked: Asked,
        reply: Option<Reply>,
        /// Which of the applications of requests this one was.
        applied: u64,
    },
    /// One read or write of a round, to a store that only compares and swaps.
    Round(RoundMessage),
}

impl Load {
    /// Whether it asks for a change, and not only for a look.
    fn may_change(&self) -> bool {
        match self {
            Self::Contract { asked, .. } => !matches!(asked.operation, Operation::Look(_)),
            Self::Round(round) => round.writes(),
        }
    }
}

/// What becomes of a request that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It is applied and answered.
    Applied,
    /// It is applied, and the answer is lost.
    ReplyLost,
    /// It is applied, and an error comes in place of the answer: whether it was applied is unknown.
    AppliedThenError,
    /// The store is busy.
    Busy,
    /// The store refuses, for a person to mend.
    Misconfigured,
    /// It cannot be reached, and says so.
    Unreachable,
}

/// Whether a message is the one that was sent, or a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Copied {
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
    pub(super) messages: Vec<Option<Box<Message>>>,
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

    pub(super) fn keep(&mut self, message: Box<Message>) -> u32 {
        if let Some(place) = self.free.pop() {
            self.messages[place as usize] = Some(message);
            return place;
        }
        self.messages.push(Some(message));
        u32::try_from(self.messages.len() - 1).expect("few messages are under way")
    }

    pub(super) fn take(&mut self, place: u32) -> Option<Box<Message>> {
        let message = self.messages.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(message)
    }
}

impl World<'_> {
    /// Sends a request, at the moment of the step that asked for it.
    pub(super) fn send(&mut self, slot: u8, local: u64, request: Request) {
        self.watch_over(slot, local, &request);
        self.processes[usize::from(slot)].sent += 1;
        let asked = Asked {
            request: request.id,
            operation: request.operation,
            sent_local: local,
            give_up_at: request.give_up_at.as_nanos(),
        };
        if self.plan.store.kind == StoreKind::Observed {
            self.begin_talk(slot, asked);
            return;
        }
        self.dispatch(
            slot,
            Load::Contract {
                asked,
                reply: None,
                applied: 0,
            },
        );
    }

    /// Sends something to the store, through whatever befalls it on its way.
    pub(super) fn dispatch(&mut self, slot: u8, load: Load) {
        let process = &self.processes[usize::from(slot)];
        let mut message = Box::new(Message {
            slot,
            instance: process.instance,
            connection: process.connection,
            epoch: self.network.epoch,
            fate: Fate::Applied,
            copy: Copied::Original,
            reply_delay: 0,
            load,
        });
        if self.is_lost_on_the_way(slot) {
            return;
        }
        let on_the_way = self.decide_fate(slot, &mut message);
        self.copy(slot, &message, on_the_way);
        let place = self.network.keep(message);
        self.queue
            .plan(self.now + on_the_way, Happening::Arrives { message: place });
    }

    fn watch_over(&mut self, slot: u8, local: u64, request: &Request) {
        let process = &mut self.processes[usize::from(slot)];
        match &request.operation {
            Operation::Acquire(acquire) => {
                let index = self.name_index(&acquire.name);
                let process = &mut self.processes[usize::from(slot)];
                let seat = &mut process.seats[index];
                seat.hints
                    .asks(request.id.number(), request.give_up_at.as_nanos());
                seat.asking_until = request.give_up_at.as_nanos();
                let verdict = seat.rotates.asks(acquire.attempt.number());
                let wanted = seat.wanted.asks(acquire.attempt.number());
                let pauses = process.timing.back_off(u32::MAX);
                self.judge(verdict);
                self.judge(wanted);
                self.watch_pace(slot, index, local, request, &pauses);
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
                    // Where a token may be given twice, it does not tell one term's work from another's.
                    if self.leases[index].tokens.promised() {
                        self.judge(verdict);
                    }
                    let pause = self.processes[usize::from(slot)].timing.retry_every();
                    self.watch_pace(slot, index, local, request, &(pause..=pause));
                }
            }
            Operation::Look(name) => {
                let pause = process.timing.retry_every();
                let index = self.name_index(name);
                // What a try has left is looked for at once when it has failed.
                self.processes[usize::from(slot)].seats[index].retries.ends();
                self.watch_pace(slot, index, local, request, &(pause..=pause));
            }
        }
    }

    /// Whether it does not ask again too soon after a failure; if this fails, too, such a pause is due.
    fn watch_pace(
        &mut self,
        slot: u8,
        index: usize,
        local: u64,
        request: &Request,
        pauses: &RangeInclusive<Duration>,
    ) {
        let pauses = Pauses {
            least: nanoseconds(*pauses.start()),
            most: nanoseconds(*pauses.end()),
        };
        let retries = &mut self.processes[usize::from(slot)].seats[index].retries;
        let (number, give_up_at) = (request.id.number(), request.give_up_at.as_nanos());
        let paced = retries.asks(number, give_up_at, pauses, local);
        self.judge(paced);
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
        let changes = message.load.may_change();
        let arms = &mut process.arms;
        let (delay, reorder) = (std::mem::take(&mut arms.delay), std::mem::take(&mut arms.reorder));
        let cut_after = if changes {
            std::mem::take(&mut arms.cut_after)
        } else {
            0
        };
        message.fate = take_one(&mut arms.lose_reply, Fate::ReplyLost)
            .or_else(|| take_one(&mut arms.busy, Fate::Busy))
            .or_else(|| take_one(&mut arms.misconfigured, Fate::Misconfigured))
            .or_else(|| take_one(&mut arms.unreachable, Fate::Unreachable))
            .unwrap_or(Fate::Applied);
        if message.fate == Fate::Applied && cut_after > 0 {
            message.fate = Fate::AppliedThenError;
            // A connection dies slowly at times, but it is told of before the request is given up.
            message.reply_delay += part(timeout, u32::from(cut_after), 0, 800);
        }
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
        let copied = Box::new(Message {
            copy,
            ..message.clone()
        });
        let place = self.network.keep(copied);
        self.queue.plan(at, Happening::Arrives { message: place });
    }

    /// Everything that is under way is lost, as if every connection were new.
    pub(super) fn lose_everything(&mut self) {
        self.drop_talks();
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
