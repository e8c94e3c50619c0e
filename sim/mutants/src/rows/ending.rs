//! What ends a term, and what does not.

use crate::{Checker, Edit, Row};

const CAMPAIGN: &str = "core/src/engine/campaign.rs";
const ENGINE: &str = "core/src/engine/mod.rs";
const DUE: &str = "core/src/engine/due.rs";
const HEART: &str = "core/src/engine/heart.rs";
const HINT: &str = "core/src/engine/hint.rs";
const TERM: &str = "core/src/engine/term.rs";

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "no answer ends the term at once",
        catalogue: &[17, 29],
        guarantee: "G11",
        why: "one lost reply costs the leadership (kubernetes#65966: leaders change with every slow answer)",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            TERM,
            "term.last_error = Some(error.clone());",
            "self.end(name, Cause::Deadline(Some(error)), actions); return;",
        )],
    },
    Row {
        name: "store error ends the campaign",
        catalogue: &[65],
        guarantee: "G11",
        why: "after an outage nobody campaigns any more (kyverno PR#14984: one election, then none)",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            CAMPAIGN,
            "campaign.unresolved |= error.certainty == Certainty::Unknown;",
            "campaign.unresolved |= error.certainty == Certainty::Unknown;
             self.withdraw(now, name, Some(error), actions); return;",
        )],
    },
    Row {
        name: "answer that was given up tells who leads",
        catalogue: &[25, 52],
        guarantee: "G21",
        why: "what it tells was true when it was made: since then a later one was told of (CURATOR-498)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            ENGINE,
            "self.answer(now, request, reply, &mut actions)",
            "if let Reply::Acquired(Ok(Acquired::Held(lease))) = &reply
                 && !self.in_flight.contains(request)
                 && let Some(Seat::Campaign(_)) = self.seats.get_mut(&lease.name)
             {
                 let (lease, twin) = (lease.clone(), lease.holder.id == self.candidate.id);
                 actions.events.push(Event::Standby { lease, twin });
             }
             self.answer(now, request, reply, &mut actions)",
        )],
    },
    Row {
        name: "old event of the watch ends a later term",
        catalogue: &[25, 48],
        guarantee: "G8",
        why: "a watch may lag and repeat: what it tells of an earlier term is history (CURATOR-498)",
        first: Checker::Simulator,
        edits: &[Edit::expression(HINT, "seen > term.token", "seen != term.token")],
    },
    Row {
        name: "own beginning ends the term",
        catalogue: &[25],
        guarantee: "G8",
        why: "the watch tells a holder that its own lease was taken: by itself",
        first: Checker::Simulator,
        edits: &[Edit::expression(HINT, "seen > term.token", "seen >= term.token")],
    },
    Row {
        name: "later term seen by the watch ignored",
        catalogue: &[26, 51],
        guarantee: "G11",
        why: "another holder was seen, and the process leads on until its deadline",
        first: Checker::Simulator,
        edits: &[Edit::expression(HINT, "seen > term.token", "false")],
    },
    Row {
        name: "vacancy told late ends a later term",
        catalogue: &[25, 48],
        guarantee: "G8",
        why: "the vacancy is that of the term before",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            HINT,
            "token.map_or(Hint::Anything, Hint::Vacated)",
            "self.end(&name, Cause::Vanished, actions); token.map_or(Hint::Anything, Hint::Vacated)",
        )],
    },
    Row {
        name: "answer about an earlier term counts",
        catalogue: &[25],
        guarantee: "G8",
        why: "the late answer to an old renewal ends the term that came after it (CURATOR-696)",
        first: Checker::Simulator,
        edits: &[Edit::expression(TERM, "term.request != Some(request)", "false")],
    },
    Row {
        name: "failed renewal is not tried again",
        catalogue: &[72],
        guarantee: "G15",
        why: "an outage of a moment costs the leadership",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            TERM,
            "term.renew_at = now.after(self.timing.retry_every);",
            "term.renew_at = term.until;",
        )],
    },
    Row {
        name: "renewals begin in the last moment",
        catalogue: &[72],
        guarantee: "G15",
        why: "the first lost renewal costs the leadership",
        first: Checker::Model,
        edits: &[Edit::statement(
            CAMPAIGN,
            "self.seats.insert(name.clone(), Seat::Term(term));",
            "let last_moment = term.until.before(self.timing.request_timeout / 2);
             self.seats.insert(name.clone(), Seat::Term(Term { renew_at: last_moment, ..term }));",
        )],
    },
    Row {
        name: "request outlasts its term",
        catalogue: &[72],
        guarantee: "G19",
        why: "a request waits on for a term that has ended (aegra PR#547: max(1.0, remaining))",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            HEART,
            "batch.iter().map(|due| due.until).min()",
            "None",
        )],
    },
    Row {
        name: "stuck work is renewed",
        catalogue: &[63],
        guarantee: "G22",
        why: "the renewals are healthy and the work hangs: a leader for ever (LavinMQ#2151)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            DUE,
            "term.is_let_go()",
            "term.last_hold().is_some()",
        )],
    },
    Row {
        name: "progress gate never closes",
        catalogue: &[63],
        guarantee: "G22",
        why: "the work reports nothing for hours, and is renewed (consul-alerts#40)",
        first: Checker::Simulator,
        edits: &[Edit::expression(HEART, "idle_for >= gate.within", "false")],
    },
];
