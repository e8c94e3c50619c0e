//! One look at the leases in a watch's scope.

use crate::database::Database;
use crate::record::WISH_STEP_DOWN;
use crate::trouble::Trouble;
use rusqlite::types::ValueRef;
use rusqlite::{Row, Rows};
use tenure_core::{FencingToken, Glance, Glances, LeaseName, Scope};

/// One try at looking.
pub(crate) fn look(database: &Database, scope: &Scope) -> Result<Glances, Trouble> {
    let session = database.session()?;
    match scope {
        Scope::Name(name) => {
            let mut statement = session
                .connection
                .prepare_cached("SELECT name, token, released, wish FROM lease WHERE name = ?1")?;
            collect(scope, statement.query([name.as_str()])?)
        }
        Scope::Prefix(prefix) => {
            let mut statement = session.connection.prepare_cached(
                "SELECT name, token, released, wish FROM lease WHERE name >= ?1 ORDER BY name",
            )?;
            collect(scope, statement.query([prefix])?)
        }
    }
}

fn collect(scope: &Scope, mut rows: Rows<'_>) -> Result<Glances, Trouble> {
    let mut snapshot = Glances::new();
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
