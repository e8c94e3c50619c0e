//! Model stores, with the habits of real ones.

mod server;
mod swap;

pub(crate) use server::ServerStore;
pub(crate) use swap::SwapStore;

use crate::invariants::Truth;
use crate::plan::{StoreHabits, StoreKind, TokenFloor};
use crate::world::clock::Clock;
use tenure_core::{Candidate, LeaseName, Operation, Reply, WatchEvent};

/// Nanoseconds of a millisecond, the unit of the store's clock.
pub(crate) const MILLISECOND: u64 = 1_000_000;

/// Whether a store keeps earlier states of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    Keeps,
    Forgets,
}

/// The store of a world.
pub(crate) struct Store {
    /// What it judges expiry by. Where it judges nothing, the true time: so long is a holder promised its
    /// lease.
    pub(crate) clock: Clock,
    habits: StoreHabits,
    names: Vec<LeaseName>,
    kind: Kind,
}

enum Kind {
    Server(ServerStore),
    Swap(SwapStore),
}

impl Store {
    pub(crate) fn new(mut clock: Clock, habits: StoreHabits, names: &[LeaseName], memory: Memory) -> Self {
        let kind = match habits.kind {
            StoreKind::ServerClock => Kind::Server(ServerStore::new(habits, memory)),
            StoreKind::Observed => {
                clock.set_rate(0, 0);
                Kind::Swap(SwapStore::new(names, memory))
            }
        };
        Self {
            clock,
            habits,
            names: names.to_vec(),
            kind,
        }
    }

    pub(crate) fn clock_ms(&self, real: u64) -> u64 {
        self.clock.shown(real) / MILLISECOND
    }

    /// What the next token is at least, beside one more than the last.
    pub(crate) fn token_floor(&self, real: u64) -> u64 {
        match (&self.kind, self.habits.token_floor) {
            (Kind::Server(_), _) | (Kind::Swap(_), TokenFloor::Clock) => self.clock_ms(real),
            (Kind::Swap(_), TokenFloor::Nothing) => 0,
        }
    }

    pub(crate) fn truth(&self, index: usize) -> Option<Truth> {
        match &self.kind {
            Kind::Server(store) => store.truth(&self.names[index]),
            Kind::Swap(store) => store.truth(index),
        }
    }

    /// Does what was asked, where the store itself decides.
    ///
    /// # Panics
    /// Where it does not: then it is asked through [`swap`](Self::swap).
    pub(crate) fn apply(&mut self, operation: &mut Operation, real: u64) -> Reply {
        let now_ms = self.clock_ms(real);
        match &mut self.kind {
            Kind::Server(store) => store.apply(operation, now_ms),
            Kind::Swap(_) => unreachable!("a store that only swaps is asked to read and to write"),
        }
    }

    /// The store itself, where it only compares and swaps.
    pub(crate) fn swap(&mut self) -> Option<&mut SwapStore> {
        match &mut self.kind {
            Kind::Server(_) => None,
            Kind::Swap(store) => Some(store),
        }
    }

    /// Leaves a wish for the holder. Whether it is there.
    pub(crate) fn ask(&mut self, index: usize, real: u64) -> bool {
        let now_ms = self.clock_ms(real);
        match &mut self.kind {
            Kind::Server(store) => store.ask(&self.names[index], now_ms),
            Kind::Swap(store) => store.ask(index, None, now_ms),
        }
    }

    /// What comes of a wish for the term before the present one, which a read from the past shows. Whether
    /// there was one.
    pub(crate) fn ask_from_the_past(&mut self, index: usize, real: u64) -> bool {
        let now_ms = self.clock_ms(real);
        let name = &self.names[index];
        let past = match &self.kind {
            Kind::Server(store) => store.past_token(name),
            Kind::Swap(store) => store.past_token(index),
        };
        // A store that was restored may be back in that term.
        let present = self.truth(index).map(|truth| truth.token);
        let Some(token) = past.filter(|token| present != Some(*token)) else {
            return false;
        };
        match &mut self.kind {
            Kind::Server(store) => store.ask_for(&self.names[index], token, now_ms),
            Kind::Swap(store) => store.ask(index, Some(token), now_ms),
        };
        true
    }

    /// What an operator's forced release does: the record's own term is released. The token of that term.
    pub(crate) fn force_release(&mut self, index: usize, real: u64) -> Option<u64> {
        let now_ms = self.clock_ms(real);
        match &mut self.kind {
            Kind::Server(store) => store.force_release(&self.names[index], now_ms),
            Kind::Swap(store) => store.force_release(index, now_ms),
        }
    }

    /// Removes the record, if nobody holds the lease. Whether it did.
    pub(crate) fn clean_up(&mut self, index: usize, real: u64) -> bool {
        let now_ms = self.clock_ms(real);
        match &mut self.kind {
            Kind::Server(store) => store.clean_up(&self.names[index], now_ms),
            Kind::Swap(store) => store.clean_up(index, now_ms),
        }
    }

    pub(crate) fn take_events(&mut self) -> Vec<WatchEvent> {
        match &mut self.kind {
            Kind::Server(store) => store.take_events(),
            Kind::Swap(store) => store.take_events(),
        }
    }

    /// Extends every held lease by its ttl, as a store of sessions does when a new node takes over.
    pub(crate) fn refresh(&mut self, real: u64) -> bool {
        let now_ms = self.clock_ms(real);
        match &mut self.kind {
            Kind::Server(store) => store.refresh(now_ms),
            Kind::Swap(_) => false,
        }
    }

    /// Loses the latest writes that it had acknowledged: up to `writes` of them. Whether anything was lost.
    pub(crate) fn lose_tail(&mut self, writes: u32) -> bool {
        match &mut self.kind {
            Kind::Server(store) => store.lose_tail(writes),
            Kind::Swap(store) => store.lose_tail(writes),
        }
    }

    /// Loses everything. Whether there was anything.
    pub(crate) fn wipe(&mut self) -> bool {
        match &mut self.kind {
            Kind::Server(store) => store.wipe(),
            Kind::Swap(store) => store.wipe(),
        }
    }

    /// Keeps what there is now for [`restore`](Self::restore).
    pub(crate) fn back_up(&mut self) {
        match &mut self.kind {
            Kind::Server(store) => store.back_up(),
            Kind::Swap(store) => store.back_up(),
        }
    }

    /// Goes back to the last back-up. Whether that changed anything.
    pub(crate) fn restore(&mut self) -> bool {
        match &mut self.kind {
            Kind::Server(store) => store.restore(),
            Kind::Swap(store) => store.restore(),
        }
    }
}

/// The process that a record names: its number stands in the low half of the incarnation.
fn instance_of(holder: &Candidate) -> u64 {
    u64::try_from(holder.incarnation.bits() & u128::from(u64::MAX)).unwrap_or(0)
}
