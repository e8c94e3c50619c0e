//! Statements that a connection keeps prepared, where it leads to the server itself.
//!
//! Behind a pooler nothing is prepared: the next statement is another session's, which has not this one by
//! that name, or has another's.

use crate::lane::Live;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Statement};

/// What is asked so often that it is worth being kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Often {
    Take,
    GiveBack,
}

/// How it stands with a statement on one connection.
#[derive(Default)]
enum Standing {
    #[default]
    Unknown,
    UnderWay,
    Kept(Statement),
    /// It was refused, or given up.
    Refused,
}

/// Those of one connection.
#[derive(Default)]
pub(crate) struct Kept {
    take: Mutex<Standing>,
    give_back: Mutex<Standing>,
}

impl Kept {
    pub(crate) fn get(&self, often: Often) -> Option<Statement> {
        match &*self.lock(often) {
            Standing::Kept(statement) => Some(statement.clone()),
            Standing::Unknown | Standing::UnderWay | Standing::Refused => None,
        }
    }

    /// Has it be prepared anew: the server does not know it any more, or not as it was.
    pub(crate) fn forget(&self, often: Often) {
        *self.lock(often) = Standing::Unknown;
    }

    /// Whether nobody has prepared it yet. Whoever is told so does.
    fn begin(&self, often: Often) -> bool {
        let mut standing = self.lock(often);
        let is_first = matches!(*standing, Standing::Unknown);
        if is_first {
            *standing = Standing::UnderWay;
        }
        is_first
    }

    fn lock(&self, often: Often) -> MutexGuard<'_, Standing> {
        let place = match often {
            Often::Take => &self.take,
            Often::GiveBack => &self.give_back,
        };
        place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has a statement be prepared for the next one who asks it, once; nobody waits for that.
pub(crate) fn prepare(live: &Arc<Live>, often: Often, statement: &str, types: Vec<Type>, time_max: Duration) {
    if !live.kept.begin(often) {
        return;
    }
    let (live, statement) = (Arc::clone(live), statement.to_owned());
    tokio::spawn(async move {
        let preparing = live.client.prepare_typed(&statement, &types);
        let prepared = tokio::time::timeout(time_max, preparing).await;
        *live.kept.lock(often) = match prepared {
            Ok(Ok(prepared)) => Standing::Kept(prepared),
            Ok(Err(_)) | Err(_) => Standing::Refused,
        };
    });
}

/// Whether the server refuses a statement because it was prepared: it answers otherwise by now, or is not
/// known any more, as after somebody's `DEALLOCATE`. Then nothing was done.
pub(crate) fn is_outdated(error: &Error) -> bool {
    let code = error.code();
    code == Some(&SqlState::FEATURE_NOT_SUPPORTED) || code == Some(&SqlState::INVALID_SQL_STATEMENT_NAME)
}
