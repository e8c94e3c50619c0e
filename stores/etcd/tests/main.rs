//! The tests of this crate: one program, whose files wait side by side and are linked once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod abandoned;
mod certainty;
mod certificates;
mod changed_since;
mod clean_up;
mod common;
mod conformance;
mod conformance_of_three;
mod connect;
mod denied_status;
mod dial;
mod exchanged;
mod faults;
mod fence;
mod fence_bumps;
mod fence_marks;
mod fence_refusals;
mod full;
mod http_proxy;
mod late_requests;
mod login;
mod members;
mod moved;
mod put_back;
mod resumed_watch;
mod sessions;
mod side_by_side;
mod succession;
mod tokens;
mod without_record;
