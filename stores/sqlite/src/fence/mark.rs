//! The rows of the marks, and the statements on them.

use crate::clock::wall_clock_ms;
use crate::schema::APPLICATION_ID;
use crate::trouble::Trouble;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use tenure_core::{
    Bump, Claimed, Fault, FenceError, FencingToken, Horizon, LeaseName, MARKS_MAX, Mark, Refused,
    ResourceName, Ruling, StoreError, Term, bumped, decide_claim, horizon,
};

pub(super) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS tenure_fence (
    resource        TEXT    NOT NULL PRIMARY KEY,
    lease           TEXT    NOT NULL, -- whose tokens these are; empty until the first claim
    token           INTEGER NOT NULL, -- the mark: of the latest term that claimed; only rises
    claimed_at      TEXT    NOT NULL, -- this and the last one: wall clock, for people
    refused         INTEGER NOT NULL DEFAULT 0,
    last_refused    INTEGER,          -- the token that was refused last
    last_refused_at TEXT
) STRICT, WITHOUT ROWID;";

const COLUMNS: &str = "SELECT resource, lease, token, refused, last_refused FROM tenure_fence";

/// The mark as the table has it; one that is no mark is refused rather than believed.
pub(super) fn mark(connection: &Connection, resource: &ResourceName) -> Result<Option<Mark>, Trouble> {
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE resource = ?1"))?;
    let mut rows = statement.query([resource.as_str()])?;
    rows.next()?.map(read).transpose()
}

/// A page of marks after `after`.
pub(super) fn marks(connection: &Connection, after: Option<&ResourceName>) -> Result<Vec<Mark>, Trouble> {
    let mut statement = connection.prepare_cached(&format!(
        "{COLUMNS} WHERE resource > ?1 ORDER BY resource LIMIT {MARKS_MAX}"
    ))?;
    let mut rows = statement.query([after.map_or("", ResourceName::as_str)])?;
    let mut marks = Vec::new();
    while let Some(row) = rows.next()? {
        marks.push(read(row)?);
    }
    Ok(marks)
}

/// Decides a claim by what the file says, without changing it: a refusal takes no lock from anybody.
pub(super) fn rule(
    connection: &Connection,
    resource: &ResourceName,
    term: &Term,
) -> Result<Result<(Ruling, Option<FencingToken>), FenceError>, Trouble> {
    let mark = mark(connection, resource)?;
    let (owner, from) = match mark {
        Some(mark) => (mark.lease, Some(mark.token)),
        None => (None, None),
    };
    let limit = match granted(connection, &term.lease)? {
        Some(highest) => Horizon::Granted(highest),
        None => Horizon::Clock(horizon(wall_clock_ms(), from)),
    };
    Ok(decide_claim(resource, term, owner.as_ref(), from, limit).map(|ruling| (ruling, from)))
}

/// Claims, while this connection holds the write lock.
pub(super) fn claim(
    connection: &Connection,
    resource: &ResourceName,
    term: &Term,
) -> Result<Result<Claimed, FenceError>, Trouble> {
    let from = match rule(connection, resource, term)? {
        Err(refused) => return Ok(Err(refused)),
        Ok((Ruling::Holds, _)) => return Ok(Ok(Claimed::Already)),
        Ok((Ruling::Raise, from)) => from,
    };
    raise(connection, resource, term.lease.as_str(), term.token)?;
    Ok(Ok(Claimed::Raised { from }))
}

/// Bumps, while this connection holds the write lock.
pub(super) fn bump(connection: &Connection, bump: &Bump) -> Result<Mark, Trouble> {
    let before = mark(connection, &bump.resource)?;
    let lease = bump
        .lease
        .clone()
        .or_else(|| before.as_ref().and_then(|mark| mark.lease.clone()));
    let granted = match &lease {
        Some(lease) => granted(connection, lease)?,
        None => None,
    };
    let token = bumped(
        before.as_ref().map(|mark| mark.token),
        bump.above.max(granted),
        wall_clock_ms(),
    );
    let token = token.ok_or_else(|| {
        Trouble::Told(StoreError::not_applied(
            Fault::Invalid,
            format!("fence \"{}\": no token is left above the mark", bump.resource),
        ))
    })?;
    raise(
        connection,
        &bump.resource,
        lease.as_ref().map_or("", LeaseName::as_str),
        token,
    )?;
    Ok(Mark {
        resource: bump.resource.clone(),
        lease,
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

fn raise(
    connection: &Connection,
    resource: &ResourceName,
    lease: &str,
    token: FencingToken,
) -> Result<(), Trouble> {
    connection
        .prepare_cached(
            "INSERT INTO tenure_fence (resource, lease, token, claimed_at) \
             VALUES (?1, ?2, ?3, strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) ON CONFLICT (resource) \
             DO UPDATE SET lease = excluded.lease, token = excluded.token, claimed_at = excluded.claimed_at",
        )?
        .execute(params![resource.as_str(), lease, token.signed()])?;
    Ok(())
}

/// The highest token that the lease's record shows, if this file is Tenure's own and the lease has a record.
fn granted(connection: &Connection, lease: &LeaseName) -> Result<Option<FencingToken>, Trouble> {
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

fn read(row: &Row<'_>) -> Result<Mark, Trouble> {
    let resource: String = row.get(0)?;
    let unreadable = || {
        Trouble::Told(StoreError::not_applied(
            Fault::Unreadable,
            format!(
                "fence \"{}\" has a mark that is no token, or a lease that is no name; nobody is admitted; correct \
                 that row of tenure_fence: the highest token ever used, and the lease that granted it",
                resource.escape_debug()
            ),
        ))
    };
    let token = |index| match row.get_ref(index) {
        Ok(ValueRef::Integer(number)) => FencingToken::from_signed(number).ok(),
        Ok(_) | Err(_) => None,
    };
    let lease = match row.get::<_, String>(1)?.as_str() {
        "" => None,
        name => Some(LeaseName::new(name).map_err(|_| unreadable())?),
    };
    Ok(Mark {
        resource: ResourceName::new(&resource).map_err(|_| unreadable())?,
        lease,
        token: token(2).ok_or_else(unreadable)?,
        refused: u64::try_from(row.get::<_, i64>(3)?).unwrap_or_default(),
        last_refused: token(4),
    })
}
