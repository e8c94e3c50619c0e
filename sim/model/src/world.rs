//! The whole state in 128 bits: so the set of visited states is exact, and nothing rests on a hash.

use crate::configuration::CANDIDATES_MAX;
use crate::local::Sender;
use crate::record::Record;

/// Number of a [`Local`](crate::local::Local) in the catalogue.
pub(crate) type LocalId = u32;

/// Where the holder is, if it can still matter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holder {
    /// A process of the candidate in this place.
    Place(u8, Sender),
    /// A process that died and of which no message is left.
    Gone,
}

/// Everything there is, at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct World {
    pub(crate) locals: [LocalId; CANDIDATES_MAX],
    pub(crate) record: Option<Record>,
    pub(crate) holder: Holder,
    /// The fence's mark; 0 if every work passes it.
    pub(crate) mark: u8,
    /// The token that an operator vacated while somebody may believe in it; 0 for none.
    pub(crate) forced: u8,
}

/// A [`World`] in 128 bits.
pub(crate) type Packed = u128;

const LOCAL_BITS: u32 = 26;
/// Most locals that the packing can tell apart.
pub(crate) const LOCALS_MAX: usize = 1 << LOCAL_BITS;

struct Bits {
    value: u128,
    at: u32,
}

impl Bits {
    fn put(&mut self, bits: u32, value: u32) {
        debug_assert!(value < (1 << bits), "{value} needs more than {bits} bits");
        self.value |= u128::from(value) << self.at;
        self.at += bits;
    }

    fn take(&mut self, bits: u32) -> u32 {
        let value = (self.value >> self.at) & ((1 << bits) - 1);
        self.at += bits;
        u32::try_from(value).expect("fewer than 32 bits were taken")
    }

    fn take_small(&mut self, bits: u32) -> u8 {
        u8::try_from(self.take(bits)).expect("at most 5 bits were taken")
    }
}

impl World {
    pub(crate) fn pack(&self) -> Packed {
        let mut bits = Bits { value: 0, at: 0 };
        for local in self.locals {
            bits.put(LOCAL_BITS, local);
        }
        let record = self.record.unwrap_or(Record {
            token: 0,
            attempt: 0,
            remaining: 0,
            released: false,
            asked: false,
        });
        bits.put(5, u32::from(record.token));
        bits.put(5, u32::from(record.attempt));
        bits.put(3, u32::from(record.remaining));
        bits.put(1, u32::from(record.released));
        bits.put(1, u32::from(record.asked));
        let holder = match self.holder {
            Holder::Place(place, Sender::Present) => place,
            Holder::Place(place, Sender::Former) => place + 4,
            Holder::Gone => 3,
        };
        bits.put(3, u32::from(holder));
        bits.put(5, u32::from(self.mark));
        bits.put(5, u32::from(self.forced));
        bits.value
    }

    pub(crate) fn unpack(packed: Packed) -> Self {
        let mut bits = Bits { value: packed, at: 0 };
        let locals = std::array::from_fn(|_| bits.take(LOCAL_BITS));
        let record = Record {
            token: bits.take_small(5),
            attempt: bits.take_small(5),
            remaining: bits.take_small(3),
            released: bits.take(1) == 1,
            asked: bits.take(1) == 1,
        };
        let holder = match bits.take_small(3) {
            3 => Holder::Gone,
            place if place >= 4 => Holder::Place(place - 4, Sender::Former),
            place => Holder::Place(place, Sender::Present),
        };
        Self {
            locals,
            record: (record.token != 0).then_some(record),
            holder,
            mark: bits.take_small(5),
            forced: bits.take_small(5),
        }
    }
}
