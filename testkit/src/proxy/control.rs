//! What is asked of the proxy, shared by all its connections.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::fault::{Counts, Fault, RequestFault};
use super::frame::{Message, Protocol};

/// An order for a limited number of requests.
struct Ticket {
    /// Nothing happens to them.
    fault: Option<RequestFault>,
    command: Option<String>,
    left: usize,
}

/// The part of the control that every connection watches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    pub(super) fault: Fault,
    /// Grows when all open connections are to be cut.
    pub(super) cuts: u64,
}

pub(super) struct Control {
    pub(super) protocol: Protocol,
    upstream: Mutex<String>,
    state: watch::Sender<State>,
    tickets: Mutex<Vec<Ticket>>,
    counts: Mutex<Counts>,
    /// How many requests of a command have met what was ordered for them.
    struck: Mutex<BTreeMap<String, u64>>,
}

impl Control {
    pub(super) fn new(protocol: Protocol, upstream: String) -> Control {
        Control {
            protocol,
            upstream: Mutex::new(upstream),
            state: watch::Sender::new(State {
                fault: Fault::Pass,
                cuts: 0,
            }),
            tickets: Mutex::default(),
            counts: Mutex::default(),
            struck: Mutex::default(),
        }
    }

    pub(super) fn upstream(&self) -> String {
        lock(&self.upstream).clone()
    }

    pub(super) fn lead_to(&self, upstream: String) {
        *lock(&self.upstream) = upstream;
    }

    pub(super) fn set(&self, fault: Fault) {
        self.state.send_modify(|state| state.fault = fault);
    }

    pub(super) fn cut_connections(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }

    pub(super) fn fault(&self) -> Fault {
        self.state.borrow().fault
    }

    pub(super) fn watch(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    pub(super) fn order(&self, fault: Option<RequestFault>, command: Option<&str>, left: usize) {
        let command = command.map(str::to_owned);
        lock(&self.tickets).push(Ticket { fault, command, left });
    }

    pub(super) fn cancel_orders(&self) {
        lock(&self.tickets).clear();
    }

    pub(super) fn orders_left(&self) -> usize {
        let tickets = lock(&self.tickets);
        let faulty = tickets.iter().filter(|ticket| ticket.fault.is_some());
        faulty.map(|ticket| ticket.left).sum()
    }

    /// What is to happen to this request; uses up an order for it.
    pub(super) fn judge(&self, request: &Message) -> Option<RequestFault> {
        // What has no reply cannot be known to be applied, so it counts for nothing.
        if !request.is_of_application() || request.unanswered {
            return None;
        }
        let mut tickets = lock(&self.tickets);
        tickets.retain(|ticket| ticket.left > 0);
        let matching = |ticket: &&mut Ticket| match &ticket.command {
            Some(command) => *command == request.command,
            None => true,
        };
        if let Some(ticket) = tickets.iter_mut().find(matching) {
            ticket.left -= 1;
            if let (Some(command), Some(_)) = (&ticket.command, ticket.fault) {
                *lock(&self.struck).entry(command.clone()).or_default() += 1;
            }
            return ticket.fault;
        }
        match self.fault() {
            Fault::EveryRequest(fault) => Some(fault),
            Fault::Pass
            | Fault::Delay { .. }
            | Fault::Hold
            | Fault::BlackHole
            | Fault::HalfOpen
            | Fault::Refuse => None,
        }
    }

    pub(super) fn count(&self, add: impl FnOnce(&mut Counts)) {
        add(&mut lock(&self.counts));
    }

    pub(super) fn counts(&self) -> Counts {
        *lock(&self.counts)
    }

    pub(super) fn struck(&self, command: &str) -> u64 {
        lock(&self.struck).get(command).copied().unwrap_or_default()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
