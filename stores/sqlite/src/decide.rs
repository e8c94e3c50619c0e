//! What an acquisition gets, from the record and the clock alone: the contract's five cases in order.

use crate::clock::Reading;
use crate::record::{Era, Record};
use std::time::Duration;
use tenure_core::{Acquire, End, Moment, Predecessor};

/// What to do with an acquisition.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// A new term, after this one.
    Grant(Option<Predecessor>),
    /// The same term again, extended.
    Again,
    /// Nothing: somebody else holds it.
    Held,
    /// Nothing: the request came too late.
    Superseded,
}

/// Decides by the record as it is and a clock that was read after it.
///
/// A record of another boot never counts as our own term, whoever its incarnation is: its expiry cannot be
/// compared with our clock, so it can be neither extended nor replaced before it was observed long enough.
pub(crate) fn decide(
    record: Option<&Record>,
    request: &Acquire,
    clock: Reading<'_>,
    first_seen: Option<Moment>,
) -> Decision {
    let Some(record) = record else {
        return Decision::Grant(None);
    };
    let same_process = record.holder.incarnation == request.candidate.incarnation;
    if record.released {
        return if same_process && record.attempt >= request.attempt {
            Decision::Superseded
        } else {
            Decision::Grant(Some(predecessor(record, clock, End::Released)))
        };
    }
    if same_process && record.attempt > request.attempt {
        return Decision::Superseded;
    }
    if record.remaining(clock, first_seen).is_zero() {
        return Decision::Grant(Some(predecessor(record, clock, End::Expired)));
    }
    match record.era(clock) {
        Era::Foreign => Decision::Held,
        Era::Ours if !same_process => Decision::Held,
        Era::Ours if record.attempt == request.attempt => Decision::Again,
        // The process gave up an attempt whose outcome it never learnt; nobody else ever held it since.
        Era::Ours => Decision::Grant(Some(predecessor(record, clock, End::Released))),
    }
}

fn predecessor(record: &Record, clock: Reading<'_>, end: End) -> Predecessor {
    Predecessor {
        candidate: record.holder.id.clone(),
        token: record.token,
        end,
        vacant_for: match record.era(clock) {
            Era::Ours => clock.now.since(record.expires),
            // Nobody's clock spans two boots.
            Era::Foreign => Duration::ZERO,
        },
    }
}
