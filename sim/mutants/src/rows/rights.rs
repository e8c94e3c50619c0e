//! Who may do what to a record: the rules of the store contract, broken in the model store.

use crate::{Checker, Edit, Row};

const RECORDS: &str = "conformance/src/model/records.rs";
const RULES: &str = "conformance/src/model/rules.rs";

const MINE: &str = "record.holder.incarnation == request.candidate.incarnation";
const LATE: &str = "record.attempt > request.attempt || (released && record.attempt == request.attempt)";
const COMPARED: &str = "record.attempt.cmp(&request.attempt)";
const HELD: &str = "self.released_ms.is_none() && now_ms < self.expires_ms";
const RENEWABLE: &str = "term != asked || !record.is_held(now_ms)";
const RELEASABLE: &str = "term != (request.incarnation, request.token, request.attempt)";
const LAST_TOKEN: &str = "FencingToken::successor(last.map(|record| record.token), now_ms)";

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "release by anybody",
        catalogue: &[22],
        guarantee: "G8",
        why: "a release that comes late frees the next holder's lease (redis-py#415, ShedLock#74)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            RULES,
            RELEASABLE,
            "false && term.1 != request.token",
        )],
    },
    Row {
        name: "release by the right process whatever the term",
        catalogue: &[19, 22],
        guarantee: "G8",
        why: "a late duplicate of an old release ends the later term of the same process",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            RULES,
            RELEASABLE,
            "record.holder.incarnation != request.incarnation",
        )],
    },
    Row {
        name: "renewal revives an expired lease",
        catalogue: &[20],
        guarantee: "G9",
        why: "a late renewal gives the lease to a process that has stopped believing: nobody leads for a ttl",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            RULES,
            RENEWABLE,
            "term != asked || record.released_ms.is_some()",
        )],
    },
    Row {
        name: "renewal revives a released lease",
        catalogue: &[20],
        guarantee: "G9",
        why: "a renewal that was overtaken by the release makes a lease that nobody knows of",
        first: Checker::Simulator,
        edits: &[
            Edit::expression(
                RULES,
                RENEWABLE,
                "term != asked || (record.released_ms.is_none() && !record.is_held(now_ms))",
            ),
            Edit::expression(RULES, "record.asked", "record.released_ms = None; record.asked"),
        ],
    },
    Row {
        name: "late request takes a lease for nobody",
        catalogue: &[21],
        guarantee: "G13",
        why: "a duplicate of the request that took the released term takes another, and no process knows",
        first: Checker::Simulator,
        edits: &[Edit::expression(RULES, LATE, "record.attempt > request.attempt")],
    },
    Row {
        name: "earlier attempt takes the lease from a later one",
        catalogue: &[21, 25],
        guarantee: "G8",
        why: "a duplicate from the past ends the term that its own process holds now",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            RULES,
            COMPARED,
            "if record.attempt > request.attempt { return self.begin(request, Some(&record), now_ms); }
             record.attempt.cmp(&request.attempt)",
        )],
    },
    Row {
        name: "later attempt waits for the earlier one",
        catalogue: &[16],
        guarantee: "G13",
        why: "a process waits a whole ttl for its own lost reply",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            RULES,
            COMPARED,
            "if record.attempt < request.attempt {
                 return Ok(Acquired::Held(record.lease(&request.name, now_ms)));
             }
             record.attempt.cmp(&request.attempt)",
        )],
    },
    Row {
        name: "same attempt gets a second term",
        catalogue: &[16, 17],
        guarantee: "G13",
        why: "a repeated request whose first answer is still on its way ends the term that the answer grants",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            RULES,
            "Ok(self.extend_again(request, record, now_ms))",
            "self.begin(request, Some(&record), now_ms)",
        )],
    },
    Row {
        name: "same attempt is told yes and not extended",
        catalogue: &[18],
        guarantee: "G2",
        why: "the deadline counts from the repetition, the lease from the first request",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            RULES,
            "self.write(&request.name, record); Acquired::Granted(grant)",
            "drop(record); Acquired::Granted(grant)",
        )],
    },
    Row {
        name: "lease is granted while it is held",
        catalogue: &[31],
        guarantee: "G1",
        why: "the condition of the write is lost (mlflow PR#25199: a dialect that drops FOR UPDATE)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            RULES,
            MINE,
            "return self.begin(request, Some(&record), now_ms)",
        )],
    },
    Row {
        name: "label owns the lease",
        catalogue: &[68, 69],
        guarantee: "G14",
        why: "two processes of one name both lead (kubernetes#22775, metallb PR#140)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            RULES,
            MINE,
            "record.holder.id == request.candidate.id",
        )],
    },
    Row {
        name: "expiry is ignored",
        catalogue: &[54],
        guarantee: "G17",
        why: "the lease of a process that crashed is held for ever (authentik#23876: a lock leaked into a pool)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            RECORDS,
            HELD,
            "self.released_ms.is_none() && self.expires_ms > 0",
        )],
    },
    Row {
        name: "lease expires before its time",
        catalogue: &[5, 37],
        guarantee: "G2",
        why: "the store takes a tenth of the ttl off that its holder still counts on (etcd#15247)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            RECORDS,
            HELD,
            "self.released_ms.is_none() && now_ms + self.ttl.as_millis() / 10 < self.expires_ms",
        )],
    },
    Row {
        name: "lease expires by the asker's ttl",
        catalogue: &[47],
        guarantee: "G1",
        why: "an impatient candidate ends the lease of a patient holder (kubernetes#47671)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            RULES,
            MINE,
            "if record.renewed_ms + request.ttl.as_millis() <= now_ms {
                 return self.begin(request, Some(&record), now_ms);
             }
             record.holder.incarnation == request.candidate.incarnation",
        )],
    },
    Row {
        name: "clean-up of expired records sets the token back",
        catalogue: &[44],
        guarantee: "G4",
        why: "the record is deleted at its expiry and its counter with it (distributed-lock#5, mongoid-locker PR#92)",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            RULES,
            LAST_TOKEN,
            "FencingToken::successor(last.filter(|record| record.released_ms.is_some()).map(|record| record.token), 0)",
        )],
    },
    Row {
        name: "released token is given again",
        catalogue: &[19, 46],
        guarantee: "G4",
        why: "the token rises at an expiry only: what an earlier holder sent late is taken for the next one's",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            RULES,
            LAST_TOKEN,
            "match last {
                 Some(record) if record.released_ms.is_some() => Some(record.token),
                 _ => FencingToken::successor(last.map(|record| record.token), now_ms),
             }",
        )],
    },
    Row {
        name: "later attempt is given the earlier one's term",
        catalogue: &[17, 19],
        guarantee: "G4",
        why: "the record is found to be one's own, whatever the attempt: what was asked late by the earlier one is done to the later",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            RULES,
            COMPARED,
            "if record.attempt < request.attempt {
                 let mut record = record;
                 record.attempt = request.attempt;
                 return Ok(self.extend_again(request, record, now_ms));
             }
             record.attempt.cmp(&request.attempt)",
        )],
    },
    Row {
        name: "refused request overwrites the record",
        catalogue: &[31, 61],
        guarantee: "G8",
        why: "what was read before decides the answer, and the write has no condition (floci#566: If-Match is ignored)",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            RULES,
            "return Ok(Acquired::Held(record.lease(&request.name, now_ms)));",
            "let lease = record.lease(&request.name, now_ms);
             let mut record = record;
             record.holder = request.candidate.clone();
             self.write(&request.name, record);
             return Ok(Acquired::Held(lease));",
        )],
    },
    Row {
        name: "wish outlives the term that it was for",
        catalogue: &[27],
        guarantee: "G8",
        why: "it stays in the record, so that every holder after the one that was meant is asked to step down, without end",
        first: Checker::Simulator,
        edits: &[Edit::statement(
            RULES,
            "self.write(name, record); self.tell(name, Change::Taken, token);",
            "let mut record = record;
             record.asked = last.is_some_and(|last| last.asked);
             self.write(name, record);
             self.tell(name, Change::Taken, token);",
        )],
    },
    Row {
        name: "renewal raises the token",
        catalogue: &[46],
        guarantee: "G9",
        why: "the holder's own work is refused by the fence with the number that it was given",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            RULES,
            "record.asked",
            "if let Some(next) = FencingToken::successor(Some(record.token), 0) { record.token = next; }
             record.asked",
        )],
    },
    Row {
        name: "earlier attempt takes what is free",
        catalogue: &[21],
        guarantee: "G8",
        why: "a request that a later one has overtaken takes the lease when that was given back: it is nobody's for a ttl",
        first: Checker::Simulator,
        edits: &[Edit::expression(
            RULES,
            LATE,
            "released && record.attempt == request.attempt",
        )],
    },
];
