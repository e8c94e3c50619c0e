//! Giving a lease back.

use crate::{Checker, Edit, Row};

const DEPARTURE: &str = "core/src/engine/departure.rs";
const ENGINE: &str = "core/src/engine/mod.rs";

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "release sent before the work has ended",
        catalogue: &[66, 67],
        guarantee: "G10",
        why: "the next leader begins while the old work still runs (cilium PR#42920: duplicate addresses)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            ENGINE,
            "self.begin_to_end(now, &name, token)",
            "self.work_ended(now, &name, token, actions)",
        )],
    },
    Row {
        name: "end of the work is not told",
        catalogue: &[65],
        guarantee: "G12",
        why: "a term that was given back never ends for those who listen",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            DEPARTURE,
            "self.end(name, Cause::GivenBack, actions);",
            "",
        )],
    },
    Row {
        name: "release is sent when it no longer matters",
        catalogue: &[27],
        guarantee: "G17",
        why: "every hand-over takes as long as a crash (etcd#17470: the lease outlives its user)",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            DEPARTURE,
            "self.seats.insert(name.clone(), Seat::Departure(leaving));",
            "let leaving = Leaving { next_at: give_up_at, ..leaving };
             self.seats.insert(name.clone(), Seat::Departure(leaving));",
        )],
    },
];
