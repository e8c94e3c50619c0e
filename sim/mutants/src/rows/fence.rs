//! The fence of the data path, broken in the simulator's register.

use crate::{Checker, Edit, Row};

const REGISTER: &str = "sim/src/register/mod.rs";

const CLAIMS: &str = "access.token >= self.mark || !kept";
const RAISES: &str = "self.mark = self.mark.max(access.token);";
const WRITES: &str = "access.token == self.mark || !kept";

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "fence is not asked by writes",
        catalogue: &[1, 59],
        guarantee: "G6",
        why: "a paused leader writes over its successor's work (etcd 3.4.3 and every lock without a fence)",
        first: Checker::Simulator,
        edits: &[Edit::expression(REGISTER, WRITES, "true")],
    },
    Row {
        name: "lower token claims",
        catalogue: &[75],
        guarantee: "G6",
        why: "a zombie that claims fences the rightful leader out (PostHog PR#76100)",
        first: Checker::Simulator,
        edits: &[
            Edit::expression(REGISTER, CLAIMS, "true"),
            Edit::statement(REGISTER, RAISES, "self.mark = access.token;"),
        ],
    },
    Row {
        name: "first write claims, not the first read",
        catalogue: &[58, 74],
        guarantee: "G7",
        why: "what the new leader has read is changed once more by the old one: an accepted write is lost",
        first: Checker::Simulator,
        edits: &[
            Edit::statement(REGISTER, RAISES, ""),
            Edit::expression(
                REGISTER,
                WRITES,
                "access.token >= self.mark && { self.mark = access.token; true }",
            ),
        ],
    },
    Row {
        name: "write is checked against the value alone",
        catalogue: &[58],
        guarantee: "G6",
        why: "as long as the new leader has not written, the old one gets in (Yuzu#4015: a predicate over an old snapshot)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            REGISTER,
            WRITES,
            "matches!(access.verb, Verb::Write { from } if from == self.value)",
        )],
    },
    Row {
        name: "fence forgets its mark at a restart",
        catalogue: &[59],
        guarantee: "G6",
        why: "the mark is not kept with the data: after a restart any token claims (oxia PR#87)",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            REGISTER,
            "self.value = self.writes;",
            "self.value = self.writes; if self.writes % 8 == 0 { self.mark = 0; }",
        )],
    },
];
