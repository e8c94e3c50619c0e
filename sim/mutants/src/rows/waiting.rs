//! How a standby waits.

use crate::{Checker, Edit, Row};

const CAMPAIGN: &str = "core/src/engine/campaign.rs";
const ENGINE: &str = "core/src/engine/mod.rs";
const HINT: &str = "core/src/engine/hint.rs";
const SEATS: &str = "core/src/engine/seats.rs";

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "standby sleeps its own ttl",
        catalogue: &[39, 47],
        guarantee: "G17",
        why: "what remains is in the record: after a crash the lease stands empty for up to a ttl (kubernetes#47671)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            CAMPAIGN,
            "now.after(remaining + spread)",
            "now.after(self.timing.ttl.duration() + spread)",
        )],
    },
    Row {
        name: "standby polls blindly",
        catalogue: &[71],
        guarantee: "G18",
        why: "a thousand standbys ask a thousand times as often as they need (consul#9469)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            CAMPAIGN,
            "now.after(remaining + spread)",
            "now.after(remaining.min(self.timing.retry_every) + spread)",
        )],
    },
    Row {
        name: "agenda keeps what was due of a seat that has changed",
        catalogue: &[15, 71],
        guarantee: "G18",
        why: "what was done is due for ever, what is due is never done: a timer that was not set anew",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            SEATS,
            "self.touched.last().is_none_or(|(last, _)| last != name)",
            "false",
        )],
    },
    Row {
        name: "hint during a request is forgotten",
        catalogue: &[53],
        guarantee: "G17",
        why: "the answer was made before the release that the hint tells of: the standby sleeps through it (sovereign-sdk PR#2905)",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            HINT,
            "campaign.hint = campaign.hint.max(Some(hint));",
            "drop(hint);",
        )],
    },
    Row {
        name: "older hint hides a later one",
        catalogue: &[53],
        guarantee: "G17",
        why: "a watch repeats what it told before: the release that was told last is forgotten (this engine, before this row)",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            HINT,
            "campaign.hint = campaign.hint.max(Some(hint));",
            "campaign.hint = Some(hint);",
        )],
    },
    Row {
        name: "gap in the watch is forgotten",
        catalogue: &[51, 53],
        guarantee: "G17",
        why: "the release came while the watch was broken: nobody looks, and the lease stands empty for up to a ttl",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            HINT,
            "self.look_soon(&name, Hint::Anything, now.after(pause));",
            "drop((name, pause));",
        )],
    },
    Row {
        name: "release does not wake a standby",
        catalogue: &[51, 53],
        guarantee: "G17",
        why: "the watch tells, and nobody looks",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            HINT,
            "campaign.next_at = campaign.next_at.min(at);",
            "drop(at);",
        )],
    },
    Row {
        name: "campaign that failed asks again at once",
        catalogue: &[71],
        guarantee: "G18",
        why: "a store that refuses is asked without a pause by everybody (a herd that keeps it down)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            ENGINE,
            "self.dice.between(*pauses.start(), *pauses.end())",
            "self.dice.between(Duration::from_millis(1), *pauses.start() / 8)",
        )],
    },
];
