//! How long a holder trusts what the store granted.

use crate::{Checker, Edit, Row};

const CAMPAIGN: &str = "core/src/engine/campaign.rs";
const TERM: &str = "core/src/engine/term.rs";
const TIMING: &str = "core/src/timing/mod.rs";

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "term counted from the reply",
        catalogue: &[2],
        guarantee: "G2",
        why: "the store counts from before the reply, so a slow reply lengthens the belief (golem PR#3824, hashicorp/raft#108)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            CAMPAIGN,
            "sent_at.after(self.timing.trust(grant.ttl))",
            "now.after(self.timing.trust(grant.ttl))",
        )],
    },
    Row {
        name: "renewal counted from the reply",
        catalogue: &[2, 38],
        guarantee: "G2",
        why: "a renewal that answers slowly extends the belief beyond the lease (hashicorp/raft#108)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            TERM,
            "sent_at.after(self.timing.trust(ttl))",
            "now.after(self.timing.trust(ttl))",
        )],
    },
    Row {
        name: "asked ttl counted instead of the granted one",
        catalogue: &[40],
        guarantee: "G2",
        why: "a store that grants less than was asked expires the lease under its holder (etcd and Consul change ttls in silence)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            CAMPAIGN,
            "sent_at.after(self.timing.trust(grant.ttl))",
            "sent_at.after(self.timing.trust(self.timing.ttl))",
        )],
    },
    Row {
        name: "asked ttl counted at renewals",
        catalogue: &[40],
        guarantee: "G2",
        why: "the first term is right, and every renewal trusts more than the store granted",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            TERM,
            "sent_at.after(self.timing.trust(ttl))",
            "sent_at.after(self.timing.trust(self.timing.ttl))",
        )],
    },
    Row {
        name: "renewal that grants less is not believed",
        catalogue: &[40],
        guarantee: "G2",
        why: "a renewal for a shorter ttl ends the lease sooner than the one before promised (this engine, before it was simulated)",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            TERM,
            "term.until = Hold::cap(term.hold, trusted);",
            "term.until = term.until.max(Hold::cap(term.hold, trusted));",
        )],
    },
    Row {
        name: "clock rate margin of one error for two clocks",
        catalogue: &[3, 14],
        guarantee: "G2",
        why: "our clock may be slow while the store's is fast: both errors count (the ratio that client-go asks its users to keep)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            TIMING,
            "nanoseconds * 2 * u128::from(self.clock_rate_error_ppm)",
            "nanoseconds * u128::from(self.clock_rate_error_ppm)",
        )],
    },
    Row {
        name: "no allowance for a step of the store's clock",
        catalogue: &[7, 9],
        guarantee: "G2",
        why: "a store whose clock is set forward expires the lease before its holder knows (valkey#2651)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            TIMING,
            "granted .duration() .saturating_sub(self.drift(granted, MILLION)) .saturating_sub(self.step_allowance)",
            "granted.duration().saturating_sub(self.drift(granted, MILLION))",
        )],
    },
    Row {
        name: "half of the margin",
        catalogue: &[3, 7],
        guarantee: "G2",
        why: "a margin of D where 2D is needed looks right and fails at the edge",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            TIMING,
            "granted .duration() .saturating_sub(self.drift(granted, MILLION)) .saturating_sub(self.step_allowance)",
            "granted.duration().saturating_sub((self.drift(granted, MILLION) + self.step_allowance) / 2)",
        )],
    },
    Row {
        name: "no margin at all",
        catalogue: &[3, 7],
        guarantee: "G2",
        why: "the holder trusts the whole ttl, as most lock libraries do",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            TIMING,
            "granted .duration() .saturating_sub(self.drift(granted, MILLION)) .saturating_sub(self.step_allowance)",
            "granted.duration()",
        )],
    },
];
