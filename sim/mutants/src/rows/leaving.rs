//! Giving a lease back.

use crate::{Checker, Edit, Row};

const CAMPAIGN: &str = "core/src/engine/campaign.rs";
const DEPARTURE: &str = "core/src/engine/departure.rs";
const ENGINE: &str = "core/src/engine/mod.rs";
const HEIR: &str = "core/src/engine/heir.rs";
const HINT: &str = "core/src/engine/hint.rs";
const TERM: &str = "core/src/engine/term.rs";

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
            "let leaving = Leaving { next_at: leaving.give_up_at, ..leaving };
             self.seats.insert(name.clone(), Seat::Departure(leaving));",
        )],
    },
    Row {
        name: "handed-on term is not told to be over",
        catalogue: &[65],
        guarantee: "G12",
        why: "two in one process take the lease for theirs: the one before was never told that it went on",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            HEIR,
            "self.end(name, Cause::GivenBack, actions);",
            "",
        )],
    },
    Row {
        name: "heir takes the lease by the attempt before",
        catalogue: &[20],
        guarantee: "G5",
        why: "the store takes it for a lost reply and grants the token before once more: two works, one token",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            HEIR,
            "campaign.heir_of = Some(left);",
            "campaign.heir_of = Some(left); campaign.attempt = attempt;",
        )],
    },
    Row {
        name: "heir that withdraws forgets the term before",
        catalogue: &[27],
        guarantee: "G17",
        why: "whoever was to go on with the lease leaves, and nobody releases it: all wait for a ttl",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            CAMPAIGN,
            "campaign.heir_of.take()",
            "campaign.heir_of.take().filter(|_| false)",
        )],
    },
    Row {
        name: "release that failed is not tried again",
        catalogue: &[27],
        guarantee: "G17",
        why: "one lost answer, and all wait for the ttl",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            DEPARTURE,
            "now.after(retry_every) < leaving.give_up_at",
            "false",
        )],
    },
    Row {
        name: "release that failed is tried again when it no longer matters",
        catalogue: &[27],
        guarantee: "G17",
        why: "the second try is made when the lease is over: all wait for the ttl",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            DEPARTURE,
            "leaving.next_at = now.after(retry_every);",
            "leaving.next_at = leaving.give_up_at;",
        )],
    },
    Row {
        name: "wish is not heard from a renewal",
        catalogue: &[51],
        guarantee: "G10",
        why: "a holder whose watch is away is never told that it is to leave",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            TERM,
            "wish == Wish::StepDown && term.ending_since.is_none()",
            "false",
        )],
    },
    Row {
        name: "wish is not heard from the watch",
        catalogue: &[53],
        guarantee: "G10",
        why: "the holder leaves only at its next renewal",
        first: Checker::Simulator,
        edits: &[Edit::expression(HINT, "term.ending_since.is_none()", "false")],
    },
];
