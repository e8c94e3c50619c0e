//! The rows of the marks, and the statements on them.

use crate::clock::wall_clock_ms;
use crate::listing::{shown_key, start_of};
use crate::schema::APPLICATION_ID;
use crate::trouble::Trouble;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use tenure_core::{
    Bump, Claimed, Cursor, Fault, FenceError, FencingToken, Horizon, LeaseName, Leases, ListedMark,
    MARKS_MAX, Mark, MarkPage, REMOVE_MARK, Refused, ResourceName, Ruling, StoreError, Term, bump_clock_ms,
    bumped, check_owner, decide_claim, decide_entry, horizon,
};

/// The name of their table.
pub(crate) const FENCE_TABLE: &str = "tenure_fence";

pub(super) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS tenure_fence (
    resource        TEXT    NOT NULL PRIMARY KEY,
    lease           TEXT    NOT NULL, -- whose tokens these are; empty until the first claim, and again from a bump to the next claim
    token           INTEGER NOT NULL, -- the mark: of the latest term that claimed; only rises
    claimed_at      TEXT    NOT NULL, -- this and the last one: wall clock, for people
    refused         INTEGER NOT NULL DEFAULT 0,
    last_refused    INTEGER,          -- the token that was refused last
    last_refused_at TEXT,
    bound_to        TEXT              -- of a bumped mark: whose tokens may claim it; null: anybody's
) STRICT, WITHOUT ROWID;";

/// A mark, and who has claimed it.
pub(super) struct Kept {
    pub(super) mark: Mark,
}

impl Kept {
    /// Nobody, where an operator has raised the mark.
    fn claimant(&self) -> Option<&LeaseName> {
        self.mark.lease.as_ref().filter(|_| !self.mark.bumped)
    }
}

/// The mark as the table has it; one that is no mark is refused rather than believed.
pub(super) fn kept(connection: &Connection, resource: &ResourceName) -> Result<Option<Kept>, Trouble> {
    let mut statement = connection.prepare_cached("SELECT * FROM tenure_fence WHERE resource = ?1")?;
    let mut rows = statement.query([resource.as_str()])?;
    rows.next()?.map(read).transpose()
}

/// A page of marks after `after`.
pub(super) fn marks(connection: &Connection, after: Option<&Cursor>) -> Result<MarkPage, Trouble> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT * FROM tenure_fence WHERE resource > ?1 ORDER BY resource LIMIT {MARKS_MAX} + 1"
    ))?;
    let mut rows = statement.query([start_of(after)])?;
    let mut marks = Vec::new();
    while let Some(row) = rows.next()? {
        let key = key_of(row)?;
        let read = match read(row) {
            Ok(kept) => Ok(kept.mark),
            Err(Trouble::Told(error)) => Err(error),
            Err(trouble) => return Err(trouble),
        };
        let listed = ListedMark::from_read(|| shown_key(key), read).map_err(Trouble::Told)?;
        marks.push((Cursor::behind(key), listed));
    }
    Ok(MarkPage::beginning(marks))
}

/// Decides a claim by what the file says, without changing it: a refusal takes no lock from anybody.
pub(super) fn rule(
    connection: &Connection,
    leases: Leases,
    resource: &ResourceName,
    term: &Term,
) -> Result<Result<(Ruling, Option<FencingToken>), FenceError>, Trouble> {
    let kept = kept(connection, resource)?;
    let owner = kept.as_ref().and_then(|kept| kept.mark.lease.as_ref());
    if let Err(foreign) = check_owner(resource, term, owner) {
        return Ok(Err(foreign));
    }
    let claimant = kept.as_ref().and_then(Kept::claimant);
    let from = kept.as_ref().map(|kept| kept.mark.token);
    let limit = match granted(connection, leases, &term.lease)? {
        Some(highest) => Horizon::Granted(highest),
        None => Horizon::Clock(horizon(wall_clock_ms(), from)),
    };
    Ok(decide_claim(resource, term, claimant, from, limit).map(|ruling| (ruling, from)))
}

/// Decides whether a term may enter.
pub(super) fn ruled(resource: &ResourceName, term: &Term, kept: Option<&Kept>) -> Result<(), FenceError> {
    check_owner(resource, term, kept.and_then(|kept| kept.mark.lease.as_ref()))?;
    let (claimant, token) = (kept.and_then(Kept::claimant), kept.map(|kept| kept.mark.token));
    decide_entry(resource, term, claimant, token)
}

/// Claims, while this connection holds the write lock.
pub(super) fn claim(
    connection: &Connection,
    leases: Leases,
    resource: &ResourceName,
    term: &Term,
) -> Result<Result<Claimed, FenceError>, Trouble> {
    let from = match rule(connection, leases, resource, term)? {
        Err(refused) => return Ok(Err(refused)),
        Ok((Ruling::Holds, _)) => return Ok(Ok(Claimed::Already)),
        Ok((Ruling::Raise, from)) => from,
    };
    raise(connection, resource, term)?;
    Ok(Ok(Claimed::Raised { from }))
}

/// Bumps, while this connection holds the write lock.
pub(super) fn bump(connection: &Connection, leases: Leases, bump: &Bump) -> Result<Mark, Trouble> {
    let before = kept(connection, &bump.resource)?.map(|kept| kept.mark);
    let lease = bump
        .lease
        .clone()
        .or_else(|| before.as_ref().and_then(|mark| mark.lease.clone()));
    let granted = match &lease {
        Some(lease) => granted(connection, leases, lease)?,
        None => None,
    };
    let (mark, above) = (before.as_ref().map(|mark| mark.token), bump.above.max(granted));
    let token = bumped(mark, above, bump_clock_ms(mark.max(above), wall_clock_ms()));
    let token = token.ok_or_else(|| {
        Trouble::Told(StoreError::not_applied(
            Fault::Invalid,
            format!("fence \"{}\": no token is left above the mark", bump.resource),
        ))
    })?;
    lift(connection, &bump.resource, lease.as_ref(), token)?;
    Ok(Mark {
        resource: bump.resource.clone(),
        lease,
        bumped: true,
        token,
        refused: before.as_ref().map_or(0, |mark| mark.refused),
        last_refused: before.and_then(|mark| mark.last_refused),
    })
}

/// Adds refusals to the row of a resource, if there is one.
pub(super) fn note(
    connection: &Connection,
    resource: &ResourceName,
    refused: Refused,
) -> Result<(), Trouble> {
    let count = i64::try_from(refused.count).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            // A sum that does not fit becomes a REAL, which the table refuses.
            "UPDATE tenure_fence SET refused = iif(refused > ?2 - ?3, ?2, refused + ?3), last_refused = ?4, \
             last_refused_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE resource = ?1",
        )?
        .execute(params![resource.as_str(), i64::MAX, count, refused.last.signed()])?;
    Ok(())
}

fn raise(connection: &Connection, resource: &ResourceName, term: &Term) -> Result<(), Trouble> {
    connection
        .prepare_cached(
            "INSERT INTO tenure_fence (resource, lease, token, claimed_at) \
             VALUES (?1, ?2, ?3, strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) ON CONFLICT (resource) \
             DO UPDATE SET lease = excluded.lease, token = excluded.token, claimed_at = excluded.claimed_at",
        )?
        .execute(params![
            resource.as_str(),
            term.lease.as_str(),
            term.token.signed()
        ])?;
    Ok(())
}

fn lift(
    connection: &Connection,
    resource: &ResourceName,
    lease: Option<&LeaseName>,
    token: FencingToken,
) -> Result<(), Trouble> {
    let known = "SELECT 1 FROM pragma_table_info('tenure_fence') WHERE name = 'bound_to'";
    if !connection.prepare(known)?.exists([])? {
        // A table of an earlier Tenure, which goes on to work with it.
        connection.execute_batch("ALTER TABLE tenure_fence ADD COLUMN bound_to TEXT")?;
    }
    connection
        .prepare_cached(
            "INSERT INTO tenure_fence (resource, lease, token, claimed_at, bound_to) \
             VALUES (?1, '', ?2, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), ?3) ON CONFLICT (resource) DO UPDATE SET \
             lease = '', token = excluded.token, claimed_at = excluded.claimed_at, bound_to = excluded.bound_to",
        )?
        .execute(params![
            resource.as_str(),
            token.signed(),
            lease.map(LeaseName::as_str)
        ])?;
    Ok(())
}

/// The highest token that the lease's record shows, if the leases are here, this file is Tenure's own, and
/// the lease has a record.
fn granted(
    connection: &Connection,
    leases: Leases,
    lease: &LeaseName,
) -> Result<Option<FencingToken>, Trouble> {
    if leases == Leases::Elsewhere {
        return Ok(None);
    }
    let application_id: i32 = connection
        .prepare_cached("PRAGMA application_id")?
        .query_row([], |row| row.get(0))?;
    if application_id != APPLICATION_ID {
        return Ok(None);
    }
    let token: Option<i64> = connection
        .prepare_cached("SELECT token FROM lease WHERE name = ?1")?
        .query_row([lease.as_str()], |row| row.get(0))
        .optional()?;
    Ok(token.and_then(|token| FencingToken::from_signed(token).ok()))
}

/// The resource as it stands there.
fn key_of<'row>(row: &'row Row<'_>) -> Result<&'row [u8], Trouble> {
    let key = row.get_ref("resource")?.as_bytes();
    Ok(key.map_err(rusqlite::Error::from)?)
}

fn read(row: &Row<'_>) -> Result<Kept, Trouble> {
    // A text may be no UTF-8.
    let text = |column| row.get_ref(column).map(|value| value.as_str_or_null().ok());
    let resource = key_of(row)?;
    let unreadable = || {
        Trouble::Told(StoreError::not_applied(
            Fault::Unreadable,
            format!(
                "fence \"{}\" has a mark that is no token, or a lease that is no name; nobody is admitted; mend that row \
                 of tenure_fence (the highest token ever used, and the lease that granted it), or {REMOVE_MARK}",
                shown_key(resource)
            ),
        ))
    };
    let token = |column| match row.get_ref(column) {
        Ok(ValueRef::Integer(number)) => FencingToken::from_signed(number).ok(),
        Ok(_) | Err(_) => None,
    };
    let claimant = text("lease")?.flatten().ok_or_else(unreadable)?;
    // So every trigger refuses a mark that an operator has raised, also one that an earlier Tenure has made.
    let bumped = claimant.is_empty();
    let lease = match text("bound_to") {
        _ if !bumped => Some(claimant),
        // A table of an earlier Tenure, in which nobody has bumped a mark since.
        Err(rusqlite::Error::InvalidColumnName(_)) => None,
        bound => bound?.ok_or_else(unreadable)?,
    };
    let lease = lease.map(LeaseName::new).transpose().map_err(|_| unreadable())?;
    let resource = std::str::from_utf8(resource)
        .ok()
        .and_then(|name| ResourceName::new(name).ok());
    let mark = Mark {
        resource: resource.ok_or_else(unreadable)?,
        lease,
        bumped,
        token: token("token").ok_or_else(unreadable)?,
        refused: u64::try_from(row.get::<_, i64>("refused")?).unwrap_or_default(),
        last_refused: token("last_refused"),
    };
    Ok(Kept { mark })
}
