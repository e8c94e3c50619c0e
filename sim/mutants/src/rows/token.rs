//! The number of the next term.

use crate::{Checker, Edit, Row};

const TOKEN: &str = "core/src/words/token.rs";

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "token never rises",
        catalogue: &[46],
        guarantee: "G4",
        why: "the specification says that it rises and no code does it (quill-router PR#584)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            TOKEN,
            "Self::new(counted.max(store_clock_ms)).ok()",
            "previous.or_else(|| Self::new(counted.max(store_clock_ms)).ok())",
        )],
    },
    Row {
        name: "token is the store's clock alone",
        catalogue: &[9, 42],
        guarantee: "G4",
        why: "a clock that is set back, or two terms in one millisecond, give a number again",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            TOKEN,
            "Self::new(counted.max(store_clock_ms)).ok()",
            "Self::new(store_clock_ms.max(1)).ok()",
        )],
    },
    Row {
        name: "token only counts",
        catalogue: &[42, 43, 44],
        guarantee: "G4",
        why: "after a wipe or a clean-up it begins with 1 again, below what fences have seen (mongoid-locker#91, patroni#3274)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            TOKEN,
            "Self::new(counted.max(store_clock_ms)).ok()",
            "Self::new(counted).ok()",
        )],
    },
    Row {
        name: "token begins with 1 in every term",
        catalogue: &[44, 46],
        guarantee: "G4",
        why: "the record of a term is a new one, with a new counter (symfony PR#27648)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            TOKEN,
            "Self::new(counted.max(store_clock_ms)).ok()",
            "Self::new(1).ok()",
        )],
    },
];
