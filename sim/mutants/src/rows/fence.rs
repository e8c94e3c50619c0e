//! The fence of the data path, broken in the rules that all fences share, and where the simulator's register
//! keeps the mark.

use crate::{Checker, Edit, Row};

const MARK: &str = "core/src/fence/mark.rs";
const REGISTER: &str = "sim/src/register/mod.rs";

const RAISES: &str = "self.mark = access.token;";
const WRITES: &str = "decide_entry(resource, term, owner, mark).is_ok()";

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "fence is not asked by writes",
        catalogue: &[1, 59],
        guarantee: "G6",
        why: "a paused leader writes over its successor's work (etcd 3.4.3 and every lock without a fence)",
        first: Checker::Simulator,
        edits: &[
            Edit::expression(MARK, "mark > term.token", "false"),
            Edit::expression(
                MARK,
                "Err(FenceError::Unclaimed { resource: resource.clone(), token: term.token, })",
                "Ok(())",
            ),
        ],
    },
    Row {
        name: "lower token claims",
        catalogue: &[75],
        guarantee: "G6",
        why: "a zombie that claims fences the rightful leader out (PostHog PR#76100)",
        first: Checker::Simulator,
        edits: &[Edit::expression(MARK, "later > term.token", "false")],
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
                "{ self.mark = self.mark.max(access.token); access.token == self.mark }",
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
