//! What a process believes, and until when.

use crate::{Checker, Edit, Row};

const AUTHORITY: &str = "core/src/authority.rs";
const CAMPAIGN: &str = "core/src/engine/campaign.rs";
const DUE: &str = "core/src/engine/due.rs";
const ENGINE: &str = "core/src/engine/mod.rs";
const SEAT: &str = "core/src/engine/seat.rs";
const TERM: &str = "core/src/engine/term.rs";

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "belief outlasts the deadline",
        catalogue: &[1, 15],
        guarantee: "G3",
        why: "belief then ends when a timer fires, and a paused process wakes up believing (kubernetes origin#7845)",
        first: Checker::Simulator,
        edits: &[Edit::expression(AUTHORITY, "now >= until", "false")],
    },
    Row {
        name: "reply after the deadline extends",
        catalogue: &[1, 25],
        guarantee: "G3",
        why: "a term that was over begins again, though the work was told to end",
        first: Checker::Simulator,
        edits: &[
            Edit::statement(ENGINE, "self.end_overdue_terms(now, &mut actions);", ""),
            Edit::statement(
                ENGINE,
                "self.give_up_overdue_requests(now, &mut actions);",
                "self.end_overdue_terms(now, &mut actions); self.give_up_overdue_requests(now, &mut actions);",
            ),
        ],
    },
    Row {
        name: "terms are not ended at the deadline",
        catalogue: &[65],
        guarantee: "G12",
        why: "nobody tells the work that its term is over (OnStoppedLeading not called, kubernetes#23731)",
        first: Checker::Simulator,
        edits: &[
            Edit::expression(
                TERM,
                "term.until > now",
                "term.until.after(term.granted.duration()) > now",
            ),
            Edit::expression(
                DUE,
                "Some(term.until)",
                "Some(term.until.after(term.granted.duration()))",
            ),
        ],
    },
    Row {
        name: "late grant is believed",
        catalogue: &[24],
        guarantee: "G3",
        why: "a grant whose time is over is reported as a term (etcd#11456: the lease expired while waiting)",
        first: Checker::Simulator,
        edits: &[Edit::expression(CAMPAIGN, "now >= trusted", "false")],
    },
    Row {
        name: "authority kept while giving the lease back",
        catalogue: &[66],
        guarantee: "G10",
        why: "the store gives the lease to another while this process still believes (cilium PR#42920)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            ENGINE,
            "self.seats.get(name)",
            "if let Some(Seat::Departure(leaving)) = self.seats.get(name) {
                 return Some(Belief {
                     token: leaving.token,
                     doubt_from: Moment::ZERO,
                     ending_from: None,
                     until: leaving.give_up_at,
                 });
             }
             self.seats.get(name)",
        )],
    },
    Row {
        name: "stopped twice",
        catalogue: &[73],
        guarantee: "G12",
        why: "the end of one term is told twice, and the work is stopped twice (ray PR#63773)",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            TERM,
            "self.seats.remove(name);",
            "let told = actions.events.last().cloned();
             actions.events.extend(told);
             self.seats.remove(name);",
        )],
    },
    Row {
        name: "lost renewal ignored",
        catalogue: &[26],
        guarantee: "G11",
        why: "the store has said that the term is over, and the process leads on (etcd#6922: the session's end never came through)",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            TERM,
            "self.end(name, cause, actions);",
            "drop(cause); term.renew_at = now.after(self.timing.retry_every);",
        )],
    },
    Row {
        name: "doubt comes when hardly any time is left",
        catalogue: &[66],
        guarantee: "G15",
        why: "the work that was to end within the grace has an eighth of it: it is cut off in the middle",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            SEAT,
            "self.until.before(grace)",
            "self.until.before(grace / 8)",
        )],
    },
];
