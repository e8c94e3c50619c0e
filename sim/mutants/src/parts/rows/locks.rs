//! Locks: their guards and owners, the line within a process, and the queue of all.

use super::{Wrong, row};

const LOCKS: &[&str] = &["locks::"];
const OWNERS: &[&str] = &["lock_owners::"];
const FAIRNESS: &[&str] = &["lock_fairness::", "lock_priority::"];

pub(super) const ROWS: &[Wrong] = &[
    row(
        "a guard that is dropped keeps its lock",
        "L2",
        "src/lock/guard.rs",
        &[[
            "if matches!(self.state, State::Held) && self.go() { self.hold.let_one_go(); }",
            "if matches!(self.state, State::Held) && self.go() { std::mem::forget(self.hold.clone()); }",
        ]],
        LOCKS,
    ),
    row(
        "a guard whose task has ended keeps its lock",
        "L2",
        "src/driver/messages.rs",
        &[["&& !(bound.has_ended)()", "&& true"]],
        LOCKS,
    ),
    row(
        "one handle of an owner that goes releases for all",
        "L6",
        "src/lock/guard.rs",
        &[[
            "if self.count_one_less() == 0 &&",
            "if self.count_one_less() < u64::MAX &&",
        ]],
        OWNERS,
    ),
    row(
        "one handle of an owner that is released releases for all",
        "L6",
        "src/lock/guard.rs",
        &[["if others > 0 {", "if others > u64::MAX - 1 {"]],
        OWNERS,
    ),
    row(
        "the last handle of an owner does not release",
        "L6",
        "src/lock/guard.rs",
        &[["if others > 0 {", "if others < u64::MAX {"]],
        &["lock_owners::", "locks::"],
    ),
    row(
        "an owner waits for itself",
        "L6",
        "src/lock/owner.rs",
        &[[
            "Reentrancy::Refused => return Found::Itself,",
            "Reentrancy::Refused => {}",
        ]],
        OWNERS,
    ),
    row(
        "one more handle extends nothing",
        "L6",
        "src/lock/guard.rs",
        &[["hold.extend(pause);", "let _ = pause;"]],
        OWNERS,
    ),
    row(
        "a lock is extended past its longest hold",
        "L5",
        "src/lock/acquire.rs",
        &[[
            "max_hold: self.max_hold, permit,",
            "max_hold: self.max_hold.and(None), permit,",
        ]],
        LOCKS,
    ),
    row(
        "as many locks are held as are wanted",
        "L10",
        "src/driver/permit.rs",
        &[["(used < self.max).then_some(used + 1)", "Some(used + 1)"]],
        LOCKS,
    ),
    row(
        "the name of another application is taken after a look",
        "L10",
        "src/driver/ownership.rs",
        &[[
            "Some(Reply::Looked(Ok(Some(lease)))) if self.is_foreign(&lease.holder.id) => {",
            "Some(Reply::Looked(Ok(Some(lease)))) if self.is_foreign(&lease.holder.id) && false => {",
        ]],
        &["lock_tags::"],
    ),
    row(
        "whoever comes last here is the first",
        "L7",
        "src/driver/place.rs",
        &[[
            "crowd.waiting.push_back(waiting);",
            "crowd.waiting.push_front(waiting);",
        ]],
        LOCKS,
    ),
    row(
        "the queue does not go by who came first",
        "L11",
        "src/lock/standby.rs",
        &[[
            "self.place.token, &self.place.name, ) }",
            "self.place.token.min(FencingToken::new(1).expect(\"a token\")), &self.place.name, ) }",
        ]],
        FAIRNESS,
    ),
];
