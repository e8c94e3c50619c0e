//! What a driver hears next. Of messages there may always be one more, where many ask for other leases of the
//! same manager, and of watches, where others do: what else is there has its turn after each.

use super::requests::{Asker, Sent};
use super::{Driver, Message};
use crate::clock;
use crate::sync::{mpsc, select};
use std::future::ready;
use tenure_core::{Input, LeaseName, Moment, Reply, WatchEvent};

pub(super) enum Happening {
    Message(Option<Message>),
    Reply(Input),
    Looked(LeaseName, Option<Reply>),
    Watch(WatchEvent),
    Tick,
}

/// Who is heard next. Answers always are: none comes without a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Messages first, as nothing else was passed over for one.
    Anybody,
    /// What is due, after a message or a watch.
    Due,
    /// A watch, after that.
    Watch,
}

impl Driver {
    pub(super) async fn hear(&mut self, messages: &mut mpsc::UnboundedReceiver<Message>) -> Happening {
        let wake = self.wakes_at();
        if self.turn != Turn::Anybody
            && let Some(happening) = self.hear_others(wake).await
        {
            return happening;
        }
        let timer = &self.timer;
        select! {
            biased;
            sent = self.requests.next(), if !self.requests.is_empty() => self.answered(sent),
            message = messages.recv(), if !self.abandoned => {
                self.turn = Turn::Due;
                Happening::Message(message)
            }
            Some(event) = self.watches.next() => {
                self.turn = Turn::Due;
                Happening::Watch(event)
            }
            () = async { timer.wait_until(wake.expect("checked")).await }, if wake.is_some() => Happening::Tick,
        }
    }

    /// What is there and is no message, without waiting for it.
    async fn hear_others(&mut self, wake: Option<Moment>) -> Option<Happening> {
        let is_due = self.turn == Turn::Due && wake.is_some_and(|at| at <= clock::now());
        select! {
            biased;
            sent = self.requests.next(), if !self.requests.is_empty() => Some(self.answered(sent)),
            () = ready(()), if is_due => {
                self.turn = Turn::Watch;
                Some(Happening::Tick)
            }
            Some(event) = self.watches.next() => {
                self.turn = Turn::Anybody;
                Some(Happening::Watch(event))
            }
            () = ready(()) => {
                self.turn = Turn::Anybody;
                None
            }
        }
    }

    /// When something is due that nobody tells of.
    fn wakes_at(&mut self) -> Option<Moment> {
        let late_look = self.late_looks.front().map(|look| look.due);
        let pause = self.pauses.first().map(|(until, _)| *until);
        let others = self.beat_at.into_iter().chain(late_look).chain(pause);
        let terms = self.terms_awaited_until;
        others
            .chain(self.offers.due())
            .chain(terms)
            .chain(self.wake)
            .min()
    }

    /// A request was answered, or given up, or is over without a word.
    fn answered(&mut self, sent: Option<Sent>) -> Happening {
        let Some(sent) = sent else {
            return Happening::Tick;
        };
        let (about, reply) = (&sent.about, sent.reply.as_ref());
        self.plan.meter.answered(about, reply, sent.took);
        self.watches.note(reply);
        if !about.name().is_some_and(|name| self.plan.is_place(name)) {
            self.plan.meter.counts_failure(about, reply);
        }
        if self.plan.meter.tells_of_an_outage() {
            self.beat_soon();
        }
        if self.is_attempt_answered(&sent) {
            self.answered_at = clock::now();
        }
        match (sent.asker, sent.reply) {
            (Asker::Engine(request), Some(reply)) => Happening::Reply(Input::Answer { request, reply }),
            // Given up: the engine knows by its own clock that no answer came.
            (Asker::Engine(_), None) => Happening::Tick,
            (Asker::Look(name), reply) => Happening::Looked(name, reply),
        }
    }
}
