//! The pure floor of Tenure: words, timing, the store contract, the election engine, the fence contract.
//!
//! Nothing here reads a clock, draws a random number, sleeps or talks to anything: time, chance and answers
//! are arguments. That makes one engine serve the real driver, a simulator and a model checker. Users take
//! the `tenure` crate; authors of stores depend on this one alone.

#![forbid(unsafe_code)]

mod authority;
mod engine;
mod fence;
mod observed;
mod store;
mod timing;
mod words;

pub use authority::{Authority, Belief};
pub use engine::{
    Actions, Cause, Command, Departure, Engine, Event, Input, Operation, Rename, Reply, Request, RequestId,
    Wake, WakeReason,
};

pub use fence::{
    Bump, Claimed, Fence, FenceError, Horizon, Leases, ListedMark, MARKS_MAX, Mark, MarkPage,
    REFUSALS_METRIC, REMOVE_MARK, RefusalLine, Refusals, Refused, Ruling, UntoldRefusals, bump_clock_ms,
    bumped, check_owner, decide_claim, decide_entry, horizon, is_counted,
};
pub use observed::{
    Ages, CONFLICTS_MAX, Clock, CompareAndSwap, Decide, Decision, Entry, Floor, ListedRecord, Need,
    ObservedStore, Reading, RecordEvent, RecordPage, RecordWatch, Response, Revision, Round, Seen, Sightings,
    Version, Written,
};
pub use store::{
    Acquire, Acquired, Answer, Ask, Asked, Certainty, Change, Cursor, Durability, End, Fault, Finding,
    Glance, Glances, Grant, Interest, Lease, LeasePage, LeasePurge, LeaseStore, Listed, Occupancy,
    PURGE_TTLS_MIN, Page, Predecessor, Purge, Purged, Purging, Release, Released, Renew, Renewed, Scope,
    Selection, StoreError, StoreTraits, Timekeeper, TokenSource, Verdict, Watch, WatchEvent, WatchSource,
    Wish, Work, changes_between,
};
pub use timing::{Promises, Timing, TimingError, TimingOptions, Violation};
pub use words::{
    Attempt, Candidate, CandidateId, FencingToken, Incarnation, LeaseName, Moment, NameError, NameFault,
    Note, NoteTooLong, Priority, PriorityError, ResourceName, Term, TokenError, Ttl, TtlError,
};
