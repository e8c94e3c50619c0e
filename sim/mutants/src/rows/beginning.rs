//! Attempts: which one a request carries, and what becomes of one whose answer was lost.

use crate::{Checker, Edit, Row};

const CAMPAIGN: &str = "core/src/engine/campaign.rs";
const DEPARTURE: &str = "core/src/engine/departure.rs";
const ENGINE: &str = "core/src/engine/mod.rs";
const SEARCH: &str = "core/src/engine/search.rs";

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "attempt never rotates",
        catalogue: &[19],
        guarantee: "G13",
        why: "after a release the store must take the old attempt for a late duplicate, for ever",
        first: Checker::Simulator,
        edits: &[Edit::statement(ENGINE, "self.next_attempt = attempt.next();", "")],
    },
    Row {
        name: "attempt rotates after a release only",
        catalogue: &[18, 69],
        guarantee: "G12",
        why: "a term that was over is granted again with its token: two terms, one number",
        first: Checker::Simulator,
        edits: &[
            Edit::statement(ENGINE, "self.next_attempt = attempt.next();", ""),
            Edit::statement(
                DEPARTURE,
                "self.seats.insert(name.clone(), Seat::Departure(leaving));",
                "self.next_attempt = self.next_attempt.next();
                 self.seats.insert(name.clone(), Seat::Departure(leaving));",
            ),
        ],
    },
    Row {
        name: "every try is a new attempt",
        catalogue: &[16],
        guarantee: "G13",
        why: "a lost reply costs a second term (quartz-mongodb PR#185: the lock was saved and counted as failed)",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            CAMPAIGN,
            "let retry_in = self.back_off(failures);
             if let Some(Seat::Campaign(campaign)) = self.seats.get_mut(name) {
                 campaign.next_at = now.after(retry_in);
             }
             actions.events.push(Event::AttemptFailed { name: name.clone(), error, retry_in, });",
            "let retry_in = self.back_off(failures);
             let attempt = self.new_attempt();
             if let Some(Seat::Campaign(campaign)) = self.seats.get_mut(name) {
                 campaign.next_at = now.after(retry_in);
                 campaign.attempt = attempt;
             }
             actions.events.push(Event::AttemptFailed { name: name.clone(), error, retry_in });",
        )],
    },
    Row {
        name: "superseded attempt is tried again",
        catalogue: &[21],
        guarantee: "G11",
        why: "an attempt that the record has overtaken can never win: the campaign asks for ever",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            CAMPAIGN,
            "campaign.attempt = attempt;",
            "drop(attempt);",
        )],
    },
    Row {
        name: "withdrawn campaign forgets its open attempt",
        catalogue: &[16, 21],
        guarantee: "G13",
        why: "what the lost request took is held by nobody who knows (GreptimeDB#7670)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            CAMPAIGN,
            "unresolved || under_way.is_some()",
            "false",
        )],
    },
    Row {
        name: "withdrawn campaign looks only for a request under way",
        catalogue: &[16],
        guarantee: "G13",
        why: "a request that timed out may have been applied as well",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            CAMPAIGN,
            "unresolved || under_way.is_some()",
            "under_way.is_some()",
        )],
    },
    Row {
        name: "withdrawn campaign looks before its try is answered",
        catalogue: &[16],
        guarantee: "G13",
        why: "the look can overtake the request (two round trips, another connection), which then takes the lease unseen",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            CAMPAIGN,
            "(campaign.request, campaign.unresolved)",
            "(None, campaign.unresolved || campaign.request.is_some())",
        )],
    },
    Row {
        name: "unknown error after a withdrawal means that nothing was taken",
        catalogue: &[16],
        guarantee: "G13",
        why: "a connection that dies after the commit tells of an error: the lease is held by nobody who knows",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            SEARCH,
            "error.certainty == Certainty::NotApplied && !search.unresolved",
            "!search.unresolved",
        )],
    },
    Row {
        name: "search gives up at the first error",
        catalogue: &[16],
        guarantee: "G13",
        why: "one lost reply leaves the lease with nobody until it expires",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            SEARCH,
            "now.after(retry_every) < search.give_up_at && !error.fault.ends_a_release()",
            "false",
        )],
    },
    Row {
        name: "found lease is not released",
        catalogue: &[16],
        guarantee: "G13",
        why: "the lease that a withdrawn campaign has left is seen, and left",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            SEARCH,
            "held.filter(ours)",
            "held.filter(ours).filter(|_| false)",
        )],
    },
    Row {
        name: "requests wait without end",
        catalogue: &[28],
        guarantee: "G17",
        why: "one reply that never comes ends the campaign (half-open connections: pg-boss#850)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            ENGINE,
            "now.after(self.timing.request_timeout)",
            "now.after(Duration::from_secs(1_000_000))",
        )],
    },
    Row {
        name: "withdrawal is forgotten while an earlier term is given back",
        catalogue: &[21, 27],
        guarantee: "G13",
        why: "whoever was to wait for the end of its release is called off, and begins all the same: a lease that nobody wants",
        first: Checker::Simulator,
        edits: &[Edit::expression(CAMPAIGN, "leaving.then = None", "()")],
    },
    Row {
        name: "withdrawal is forgotten while an earlier try is looked for",
        catalogue: &[21, 27],
        guarantee: "G13",
        why: "wanted again and called off again before the look has ended: a lease that nobody wants",
        first: Checker::Simulator,
        edits: &[Edit::expression(CAMPAIGN, "search.then = None", "()")],
    },
];
