//! For whoever writes a store or a fence, or reads what happened: the words of both contracts, and of events.
//!
//! A store implements [`LeaseStore`], or [`CompareAndSwap`] where its system can compare a record and replace
//! it, and nothing else: [`ObservedStore`] makes a store of that. `tenure-conformance` in Tenure's repository
//! has the cases that every store passes.

pub use tenure_core::{
    Acquire, Acquired, Ages, Answer, Ask, Asked, Attempt, Authority, Bump, Candidate, CandidateId, Cause,
    Certainty, Change, Claimed, Clock, CompareAndSwap, Cursor, Departure, Durability, End, Entry, Event,
    Fault, Fence, FenceError, FencingToken, Finding, Floor, Glance, Glances, Grant, Horizon, Incarnation,
    Interest, Lease, LeaseName, LeasePage, LeasePurge, LeaseStore, Leases, Listed, ListedMark, ListedRecord,
    MARKS_MAX, Mark, MarkPage, Moment, NameError, NameFault, Note, NoteTooLong, ObservedStore, Occupancy,
    PURGE_TTLS_MIN, Page, Predecessor, Priority, PriorityError, Purge, Purged, Purging, REFUSALS_METRIC,
    REMOVE_MARK, Reading, RecordEvent, RecordPage, RecordWatch, RefusalLine, Refusals, Refused, Release,
    Released, Renew, Renewed, ResourceName, Revision, Ruling, Scope, Selection, StoreError, StoreTraits,
    Term, Timekeeper, TokenError, TokenSource, Ttl, TtlError, UntoldRefusals, Verdict, Version, Watch,
    WatchEvent, WatchSource, Wish, Work, Written, bump_clock_ms, bumped, changes_between, check_owner,
    decide_claim, decide_entry, horizon, is_counted,
};
