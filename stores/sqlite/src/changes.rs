//! What changed between two looks at the leases in a watch's scope.

use crate::database::Database;
use crate::record::WISH_STEP_DOWN;
use crate::trouble::Trouble;
use rusqlite::types::ValueRef;
use rusqlite::{Row, Rows};
use std::collections::BTreeMap;
use tenure_core::{Change, FencingToken, LeaseName, Scope, WatchEvent};

/// The leases in scope, as far as a watch reports them.
pub(crate) type Snapshot = BTreeMap<LeaseName, Glance>;

/// What a watch remembers of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Glance {
    token: FencingToken,
    released: bool,
    asked: bool,
}

/// One try at looking.
pub(crate) fn look(database: &Database, scope: &Scope) -> Result<Snapshot, Trouble> {
    let connections = database.connections()?;
    match scope {
        Scope::Name(name) => {
            let mut statement = connections
                .relaxed
                .prepare_cached("SELECT name, token, released, wish FROM lease WHERE name = ?1")?;
            collect(scope, statement.query([name.as_str()])?)
        }
        Scope::Prefix(prefix) => {
            let mut statement = connections.relaxed.prepare_cached(
                "SELECT name, token, released, wish FROM lease WHERE name >= ?1 ORDER BY name",
            )?;
            collect(scope, statement.query([prefix])?)
        }
    }
}

fn collect(scope: &Scope, mut rows: Rows<'_>) -> Result<Snapshot, Trouble> {
    let mut snapshot = Snapshot::new();
    while let Some(row) = rows.next()? {
        // A row that cannot be understood is no news; whoever acquires it is told.
        let Some((name, glance)) = read(row) else { continue };
        if !scope.covers(&name) {
            break;
        }
        snapshot.insert(name, glance);
    }
    Ok(snapshot)
}

fn read(row: &Row<'_>) -> Option<(LeaseName, Glance)> {
    let name = LeaseName::new(row.get_ref(0).ok()?.as_str().ok()?).ok()?;
    let token = FencingToken::from_signed(row.get_ref(1).ok()?.as_i64().ok()?).ok()?;
    let released = row.get_ref(2).ok()? == ValueRef::Integer(1);
    let asked = row.get_ref(3).ok()?.as_str().ok()? == WISH_STEP_DOWN;
    Some((
        name,
        Glance {
            token,
            released,
            asked,
        },
    ))
}

/// The events that lead from one look to the next; within a lease in the order in which they happened.
pub(crate) fn between(before: &Snapshot, after: &Snapshot) -> Vec<WatchEvent> {
    let mut events = Vec::new();
    let mut report = |name: &LeaseName, change: Change, token: Option<FencingToken>| {
        events.push(WatchEvent::Changed {
            name: name.clone(),
            change,
            token,
        });
    };
    for (name, old) in before {
        if !after.contains_key(name) {
            report(name, Change::Vacated, Some(old.token));
        }
    }
    for (name, new) in after {
        let old = before.get(name).filter(|old| old.token == new.token);
        if old.is_none() {
            report(name, Change::Taken, Some(new.token));
        }
        if new.asked && !old.is_some_and(|old| old.asked) {
            report(name, Change::Asked, Some(new.token));
        }
        if new.released && !old.is_some_and(|old| old.released) {
            report(name, Change::Vacated, Some(new.token));
        }
    }
    events
}
