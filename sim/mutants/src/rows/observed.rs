//! The adaptor for stores that only compare and swap: when a lease has surely expired by observed time.

use crate::{Checker, Edit, Row};

const ACQUIRE: &str = "core/src/observed/acquire.rs";
const ROUND: &str = "core/src/observed/round.rs";
const SIGHTINGS: &str = "core/src/observed/sightings.rs";
const TERM: &str = "core/src/observed/term.rs";

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "observer waits its own ttl",
        catalogue: &[47],
        guarantee: "G2",
        why: "an impatient observer takes the lease from a patient holder (kubernetes#47671: whose duration counts)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            ACQUIRE,
            "seen.lease.occupancy()",
            "if seen.lease.occupancy() == Occupancy::Held && seen.lease.renewed_ago >= self.ttl.duration() {
                 Occupancy::Expired
             } else {
                 seen.lease.occupancy()
             }",
        )],
    },
    Row {
        name: "observer does not begin anew with a new version",
        catalogue: &[5, 61],
        guarantee: "G2",
        why: "a renewal is read and taken for nothing: the wait of the version before counts",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            SIGHTINGS,
            "before.is_the_same_but_asked(entry)",
            "!entry.released",
        )],
    },
    Row {
        name: "adaptor takes another's record for its own last write",
        catalogue: &[61],
        guarantee: "G2",
        why: "what was written is remembered beyond what was seen since: the next renewal writes over somebody's term",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            SIGHTINGS,
            "written.filter(|written| *written == entry)",
            "written",
        )],
    },
    Row {
        name: "observer counts from the look before",
        catalogue: &[2, 61],
        guarantee: "G2",
        why: "the holder may have written since that look: its version is younger than it is taken for",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            SIGHTINGS,
            "if !self.seen.contains_key(name) { self.make_room(); } self.note(now, name, version);",
            "let before = self.seen.get(name).map_or(now, |seen| seen.looked_at);
             self.note(before, name, version);
             if let Some(seen) = self.seen.get_mut(name) { seen.looked_at = now; }",
        )],
    },
    Row {
        name: "observer takes a lease that it sees for the first time",
        catalogue: &[61],
        guarantee: "G2",
        why: "after a restart nothing is known of the record's age, and nothing is taken for everything",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            SIGHTINGS,
            "sighting.map_or(Duration::ZERO, |sighting| now.since(sighting.since))",
            "sighting.map_or(Duration::ZERO, |sighting| {
                 now.since(sighting.since) + if sighting.since == now { entry.ttl.duration() * 2 } else { Duration::ZERO }
             })",
        )],
    },
    Row {
        name: "observer waits for half of the ttl",
        catalogue: &[3],
        guarantee: "G2",
        why: "the wait is shorter than the holder's trust",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            SIGHTINGS,
            "ttl.duration() + Duration::from_nanos(u64::try_from(drift).unwrap_or(u64::MAX))",
            "ttl.duration() / 2",
        )],
    },
    Row {
        name: "adaptor releases whatever is there",
        catalogue: &[22],
        guarantee: "G8",
        why: "a late release frees the next holder's lease, revision or not: it was read just before (redis-py#415)",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            TERM,
            "if !is_term(entry, self.incarnation, self.token, self.attempt) {
                 return Decision::Answer(Released::NotYours(Some(Box::new(lease.clone()))));
             }",
            "",
        )],
    },
    Row {
        name: "conflict is taken for done",
        catalogue: &[17, 35],
        guarantee: "G1",
        why: "the swap lost against another's, and both believe to have won (nats-server#3375: two holders)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            ROUND,
            "std::mem::replace(&mut self.step, Step::Read)",
            "if let (Step::Write { then, .. }, Response::Written(Ok(Written::Conflict))) = (&self.step, &response) {
                 let then = then.clone();
                 self.step = Step::Done(Ok(then));
                 return;
             }
             std::mem::replace(&mut self.step, Step::Read)",
        )],
    },
];
