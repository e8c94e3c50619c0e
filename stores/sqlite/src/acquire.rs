//! Taking a lease.

use crate::clock::{Reading, wall_clock_ms};
use crate::database::Database;
use crate::decide::{Decision, decide};
use crate::insistence::insistently;
use crate::log::Log;
use crate::look::{self, Seen};
use crate::record::{Era, Record, WISH_NOTHING, stored};
use crate::sighting;
use crate::transaction;
use crate::trouble::Trouble;
use rusqlite::{Connection, params};
use std::sync::Arc;
use tenure_core::{Acquire, Acquired, FencingToken, Grant, Predecessor, StoreError};

/// Takes the lease, and has a new term on the disk before its holder hears of it.
pub(crate) async fn acquire(
    database: &Arc<Database>,
    subject: impl Fn() -> String + Send + Sync,
    request: &Acquire,
) -> Result<Acquired, StoreError> {
    let (its, asked) = (Arc::clone(database), request.clone());
    let (log, step) = (|| database.log(), move || attempt(&its, &asked));
    let trying = insistently(&database.patience, &subject, &database.shown, log, step);
    let (acquired, log) = trying.await?;
    if let (Acquired::Granted(grant), Some(log)) = (&acquired, log) {
        database.held.begin(&request.name, grant.token);
        if !grant.again {
            // It is there for everybody to see. Who has given up by the time that the disk answers would tell
            // nobody: asked for again, it is no new term.
            database.wake.tell_of_a_term();
        }
        let settled = settle(database, request, log).await;
        settled.map_err(|trouble| trouble.into_error(&subject(), &database.shown))?;
    }
    Ok(acquired)
}

/// One try. A candidate that gets nothing takes no lock, but once after a term of its own: a thousand
/// standbys may ask without slowing the holder's renewals.
///
/// With a term, the log that has to be on the disk before it is used: see [`settle`].
fn attempt(database: &Database, request: &Acquire) -> Result<(Acquired, Option<Arc<Log>>), Trouble> {
    let session = database.session()?;
    let connection = &session.connection;
    // What this handle gave back last is most likely still free, and what it was granted last is asked for
    // again when it is handed on: then the look under the lock is enough.
    if !database.forget_own(&request.name) {
        let mut seen = look::at(connection, &database.clock, &request.name)?;
        if seen.is_unnoted() {
            seen = transaction::write(connection, |connection| {
                sighting::note_at(connection, &database.clock, &request.name)
            })?;
        }
        match verdict(&seen, request) {
            Decision::Superseded => return Ok((Acquired::Superseded, None)),
            Decision::Held => return Ok((held(seen)?, None)),
            Decision::Grant(_) | Decision::Again => {}
        }
    }
    session.log.mend(connection)?;
    let acquired = transaction::write(connection, |connection| take(database, connection, request))?;
    let log = matches!(acquired, Acquired::Granted(_)).then(|| Arc::clone(&session.log));
    Ok((acquired, log))
}

/// Has a term on the disk before its holder hears of it. Nothing of the file is locked meanwhile: others go
/// on in it, and a disk that stalls keeps only new terms waiting.
///
/// A thread costs more than a disk that is quick. So the one that asks waits for it itself where it cannot
/// have anything to renew: there, nobody is kept from anything that has to be in time.
async fn settle(database: &Database, request: &Acquire, log: Arc<Log>) -> Result<(), Trouble> {
    let synced_here = match database.held.are_several() {
        true => None,
        false => log.sync_here(),
    };
    match synced_here {
        Some(synced) => synced?,
        None => log.sync_elsewhere().await?,
    }
    database.note_own(&request.name);
    Ok(())
}

fn verdict(seen: &Seen<'_>, request: &Acquire) -> Decision {
    decide(seen.record.as_ref(), request, seen.clock, seen.first_seen)
}

/// Decides again, now that nobody else can write, by a clock that was read after the lock.
fn take(database: &Database, connection: &Connection, request: &Acquire) -> Result<Acquired, Trouble> {
    let seen = sighting::note_at(connection, &database.clock, &request.name)?;
    match verdict(&seen, request) {
        Decision::Superseded => Ok(Acquired::Superseded),
        Decision::Held => held(seen),
        Decision::Again => {
            let record = seen.record.ok_or_else(no_record)?;
            extend(connection, &record, request, seen.clock)?;
            let grant = Grant {
                token: record.token,
                ttl: request.ttl,
                terms: record.terms,
                again: true,
                predecessor: None,
            };
            Ok(Acquired::Granted(grant))
        }
        Decision::Grant(predecessor) => grant(connection, seen, request, predecessor).map(Acquired::Granted),
    }
}

/// Unreachable: only a record can be held or taken again.
fn no_record() -> Trouble {
    Trouble::Statement(rusqlite::Error::QueryReturnedNoRows)
}

fn grant(
    connection: &Connection,
    seen: Seen<'_>,
    request: &Acquire,
    predecessor: Option<Predecessor>,
) -> Result<Grant, Trouble> {
    let previous = seen.record.as_ref();
    let token = FencingToken::successor(previous.map(|record| record.token), wall_clock_ms())
        .ok_or(Trouble::TokensUsedUp)?;
    let terms = previous.map_or(1, |record| record.terms.saturating_add(1));
    let now = seen.clock.now;
    connection
        .prepare_cached(
            "INSERT INTO lease (name, owner, incarnation, token, attempt, terms, ttl_ms, boot_id, acquired_ns, \
             renewed_ns, expires_ns, released, wish, note, version, created_at, acquired_at, last_renewed_at) \
             SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, 0, ?11, ?12, ?13, wall, wall, wall \
             FROM (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AS wall) WHERE true \
             ON CONFLICT (name) DO UPDATE SET owner = ?2, incarnation = ?3, token = ?4, attempt = ?5, \
             terms = ?6, ttl_ms = ?7, boot_id = ?8, acquired_ns = ?9, renewed_ns = ?9, expires_ns = ?10, \
             released = 0, wish = ?11, note = ?12, version = ?13, acquired_at = excluded.acquired_at, \
             last_renewed_at = excluded.last_renewed_at",
        )?
        .execute(params![
            request.name.as_str(),
            request.candidate.id.as_str(),
            request.candidate.incarnation.to_string(),
            token.signed(),
            signed(request.attempt.number()),
            signed(terms),
            signed(request.ttl.as_millis()),
            seen.clock.boot_id,
            stored(now),
            stored(now.after(request.ttl.duration())),
            WISH_NOTHING,
            request.note.as_str(),
            previous.map_or(1, |record| record.version + 1),
        ])?;
    if previous.is_some_and(|record| record.era(seen.clock) == Era::Foreign) {
        sighting::forget(connection, request.name.as_str())?;
    }
    Ok(Grant {
        token,
        ttl: request.ttl,
        terms,
        again: false,
        predecessor,
    })
}

fn extend(
    connection: &Connection,
    record: &Record,
    request: &Acquire,
    clock: Reading<'_>,
) -> Result<(), Trouble> {
    connection
        .prepare_cached(
            "UPDATE lease SET ttl_ms = ?2, renewed_ns = ?3, expires_ns = ?4, note = ?5, version = ?6, \
             last_renewed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE name = ?1",
        )?
        .execute(params![
            record.name.as_str(),
            signed(request.ttl.as_millis()),
            stored(clock.now),
            stored(clock.now.after(request.ttl.duration())),
            request.note.as_str(),
            record.version + 1,
        ])?;
    Ok(())
}

fn held(seen: Seen<'_>) -> Result<Acquired, Trouble> {
    seen.into_lease().map(Acquired::Held).ok_or_else(no_record)
}

/// A number as the table keeps it; the words it comes from end below 2^63.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::acquire;
    use crate::database::Database;
    use crate::ear::Heard;
    use crate::notifier;
    use crate::options::SqliteOptions;
    use std::sync::Arc;
    use std::time::Duration;
    use tenure_conformance::asking::{request, seconds};
    use tenure_core::Interest;

    /// Whoever asked may have given it up before the disk answers, and asked for again it is no new term.
    #[tokio::test]
    async fn a_term_is_told_of_while_it_waits_for_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteOptions::new(directory.path().join("leases.db"));
        let database = Arc::new(Database::open(&options).unwrap());
        let log = Arc::clone(&database.session().ok().unwrap().log);
        let listening = notifier::open(&database, Interest::Everything).unwrap();
        let heard = || notifier::drain(&listening, &database, Interest::Everything).unwrap();
        let _its_making = heard();
        let _stalled = log.stall();
        let asked = request("job", "a", seconds(300));
        let taking = acquire(&database, || "a lease".to_owned(), &asked);
        let answer = tokio::time::timeout(Duration::from_millis(200), taking).await;
        assert!(answer.is_err(), "the disk was not waited for: {answer:?}");
        assert!(heard() == Some(Heard::Begin), "nobody was told");
    }
}
