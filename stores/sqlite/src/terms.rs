//! What is done to a term that is held: renewing, releasing, asking. Each only to the very term.

use crate::database::Database;
use crate::look::{self, Seen};
use crate::record::{Era, Record, WISH_NOTHING, WISH_STEP_DOWN, stored};
use crate::transaction;
use crate::trouble::Trouble;
use rusqlite::{Connection, params};
use std::num::NonZeroUsize;
use std::time::Duration;
use tenure_core::{
    Ask, Asked, Attempt, Fault, FencingToken, Incarnation, LeaseName, Release, Released, Renew, Renewed,
    StoreError, Wish,
};

/// Most leases of one call. They share a transaction, which keeps others waiting while it lasts: a few
/// milliseconds. Many more would not make a beat cheaper, and all of its answers would stand in memory at
/// once.
///
/// Not a round thousand: what falls due in a beat is seldom a whole number of batches, and ten calls shall do
/// for ten thousand.
pub(crate) const BATCH_MAX: NonZeroUsize = NonZeroUsize::new(1_250).expect("not zero");

/// One try at a batch: one transaction, one verdict each.
pub(crate) fn renew(
    database: &Database,
    requests: &[Renew],
) -> Result<Vec<Result<Renewed, StoreError>>, Trouble> {
    let session = database.session()?;
    let outcomes = transaction::write(&session.connection, |connection| {
        each(
            database,
            requests,
            |request| &request.name,
            |request| {
                let seen = look::at(connection, &database.clock, &request.name)?;
                renew_one(connection, seen, request)
            },
        )
    })?;
    for (request, outcome) in requests.iter().zip(&outcomes) {
        if matches!(outcome, Ok(Renewed::Lost(_))) {
            database.held.end(&request.name, request.token);
        }
    }
    Ok(outcomes)
}

fn renew_one(connection: &Connection, seen: Seen<'_>, request: &Renew) -> Result<Renewed, Trouble> {
    let term = (request.incarnation, request.token, request.attempt);
    let lives = |record: &Record| {
        // A record of another boot is never ours to extend, whatever it says: its clock is not ours.
        is_of_term(record, term)
            && !record.released
            && record.era(seen.clock) == Era::Ours
            && record.remaining(seen.clock, None) > Duration::ZERO
    };
    let Some(record) = seen.record.as_ref().filter(|record| lives(record)) else {
        return Ok(Renewed::Lost(seen.into_lease().map(Box::new)));
    };
    connection
        .prepare_cached(
            "UPDATE lease SET ttl_ms = ?2, renewed_ns = ?3, expires_ns = ?4, version = ?5, \
             last_renewed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE name = ?1",
        )?
        .execute(params![
            request.name.as_str(),
            i64::try_from(request.ttl.as_millis()).unwrap_or(i64::MAX),
            stored(seen.clock.now),
            stored(seen.clock.now.after(request.ttl.duration())),
            record.version + 1,
        ])?;
    Ok(Renewed::Extended {
        ttl: request.ttl,
        wish: record.wish,
    })
}

/// One try at a batch: one transaction, one verdict each.
pub(crate) fn release(
    database: &Database,
    requests: &[Release],
) -> Result<Vec<Result<Released, StoreError>>, Trouble> {
    let session = database.session()?;
    let mut vacated = 0;
    let outcomes = transaction::write(&session.connection, |connection| {
        each(
            database,
            requests,
            |request| &request.name,
            |request| {
                let seen = look::at(connection, &database.clock, &request.name)?;
                let was_vacant = seen.record.as_ref().is_some_and(|record| record.released);
                let released = release_one(connection, seen, request)?;
                vacated += usize::from(released == Released::Vacated && !was_vacant);
                Ok(released)
            },
        )
    })?;
    drop(session);
    for (request, outcome) in requests.iter().zip(&outcomes) {
        if outcome.is_ok() {
            database.held.end(&request.name, request.token);
        }
    }
    if vacated > 0 {
        if let [only] = requests {
            database.note_own(&only.name);
        }
        database.wake.knock();
    }
    Ok(outcomes)
}

fn release_one(connection: &Connection, seen: Seen<'_>, request: &Release) -> Result<Released, Trouble> {
    let term = (request.incarnation, request.token, request.attempt);
    let Some(record) = seen.record.as_ref().filter(|record| is_of_term(record, term)) else {
        return Ok(Released::NotYours(seen.into_lease().map(Box::new)));
    };
    if record.released {
        return Ok(Released::Vacated);
    }
    // What knows incarnation, token and attempt is the holder, on whatever boot; but only times of this boot
    // may be compared.
    let ended = match record.era(seen.clock) {
        Era::Ours => record.expires.min(seen.clock.now),
        Era::Foreign => record.expires,
    };
    connection
        .prepare_cached(
            "UPDATE lease SET released = 1, wish = ?2, expires_ns = ?3, version = ?4 WHERE name = ?1",
        )?
        .execute(params![
            request.name.as_str(),
            WISH_NOTHING,
            stored(ended),
            record.version + 1
        ])?;
    Ok(Released::Vacated)
}

/// One try.
pub(crate) fn ask(database: &Database, request: &Ask) -> Result<Asked, Trouble> {
    let session = database.session()?;
    let (asked, news) = transaction::write(&session.connection, |connection| {
        let seen = look::at(connection, &database.clock, &request.name)?;
        let held = |record: &&Record| {
            // The holder of a record of another boot reads nothing here; and writing the record would make
            // everyone wait for it anew.
            record.token == request.token
                && !record.released
                && record.era(seen.clock) == Era::Ours
                && record.remaining(seen.clock, None) > Duration::ZERO
        };
        let Some(record) = seen.record.as_ref().filter(held) else {
            return Ok((Asked::NotHeld, false));
        };
        if record.wish == Wish::StepDown {
            return Ok((Asked::Noted, false));
        }
        connection
            .prepare_cached("UPDATE lease SET wish = ?2, version = ?3 WHERE name = ?1")?
            .execute(params![request.name.as_str(), WISH_STEP_DOWN, record.version + 1])?;
        Ok((Asked::Noted, true))
    })?;
    drop(session);
    if news {
        database.wake.knock();
    }
    Ok(asked)
}

fn is_of_term(record: &Record, term: (Incarnation, FencingToken, Attempt)) -> bool {
    (record.holder.incarnation, record.token, record.attempt) == term
}

/// Answers every request of a batch. A record that cannot be read is that request's answer and disturbs no
/// other; a failure of the file ends the batch.
fn each<R, T>(
    database: &Database,
    requests: &[R],
    name: impl Fn(&R) -> &LeaseName,
    mut one: impl FnMut(&R) -> Result<T, Trouble>,
) -> Result<Vec<Result<T, StoreError>>, Trouble> {
    if requests.len() > BATCH_MAX.get() {
        return Err(Trouble::Told(StoreError::not_applied(
            Fault::Invalid,
            format!(
                "{} leases in one batch; at most {BATCH_MAX} are allowed",
                requests.len()
            ),
        )));
    }
    let mut outcomes = Vec::with_capacity(requests.len());
    for request in requests {
        outcomes.push(match one(request) {
            Ok(outcome) => Ok(outcome),
            Err(trouble @ (Trouble::Record(_) | Trouble::TokensUsedUp)) => {
                Err(trouble.into_error(&subject(name(request)), &database.shown))
            }
            Err(
                trouble @ (Trouble::Statement(_)
                | Trouble::Commit(_)
                | Trouble::Unsynced(_)
                | Trouble::StillUnsynced
                | Trouble::Parted
                | Trouble::Told(_)),
            ) => {
                return Err(trouble);
            }
        });
    }
    Ok(outcomes)
}

/// How an error names a lease.
pub(crate) fn subject(name: &LeaseName) -> String {
    format!("lease \"{name}\"")
}
