//! The store contract's requests, answers and hints.

use super::{choice, record};
use tenure_core::{
    Acquire, Acquired, Certainty, Change, End, Fault, Grant, Lease, Predecessor, Release, Released, Renew,
    Renewed, StoreError, WatchEvent, Wish,
};

choice!(Fault {
    "unreachable" => Unreachable,
    "timed_out" => TimedOut,
    "busy" => Busy,
    "full" => Full,
    "another_store" => AnotherStore,
    "unauthenticated" => Unauthenticated,
    "forbidden" => Forbidden,
    "read_only" => ReadOnly,
    "unreadable" => Unreadable,
    "unsupported" => Unsupported,
    "invalid" => Invalid,
    "internal" => Internal,
});
choice!(Certainty {
    "not_applied" => NotApplied,
    "unknown" => Unknown,
});
record!(StoreError {
    fault,
    certainty,
    message
});

record!(Acquire {
    name,
    candidate,
    attempt,
    ttl,
    note
});
record!(Renew {
    name,
    incarnation,
    token,
    attempt,
    ttl
});
record!(Release {
    name,
    incarnation,
    token,
    attempt
});

record!(Lease {
    name,
    holder,
    token,
    attempt,
    terms,
    ttl,
    remaining,
    released,
    held_for,
    renewed_ago,
    asked_to_step_down,
    note
});
choice!(End {
    "released" => Released,
    "expired" => Expired,
});
record!(Predecessor {
    candidate,
    token,
    end,
    vacant_for
});
record!(Grant {
    token,
    ttl,
    terms,
    again,
    predecessor
});
choice!(Acquired {
    "granted" => Granted(grant),
    "held" => Held(lease),
    "superseded" => Superseded,
});
choice!(Wish {
    "nothing" => Nothing,
    "step_down" => StepDown,
});
choice!(Renewed {
    "extended" => Extended { ttl, wish },
    "lost" => Lost(lease),
});
choice!(Released {
    "vacated" => Vacated,
    "not_yours" => NotYours(lease),
});

choice!(Change {
    "vacated" => Vacated,
    "taken" => Taken,
    "asked" => Asked,
});
choice!(WatchEvent {
    "changed" => Changed { name, change, token },
    "gap" => Gap,
});
