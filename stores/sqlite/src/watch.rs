//! Being woken when a lease changes.

use crate::bell::Listener;
use crate::database::Database;
use crate::ear::Heard;
use crate::glances;
use crate::patience::patiently;
use std::collections::VecDeque;
use std::sync::Arc;
use tenure_core::{Answer, Glances, Interest, Scope, StoreError, Watch, WatchEvent, changes_between};

/// A running watch of one handle.
pub(crate) struct SqliteWatch {
    database: Arc<Database>,
    scope: Scope,
    listener: Listener,
    known: Glances,
    /// Found and not yet told.
    events: VecDeque<WatchEvent>,
    /// Whether a signal came after the last look. Kept here, so that a dropped `next` loses nothing.
    look_due: bool,
}

impl SqliteWatch {
    /// Listens first and looks then: what happens in between is seen twice rather than never.
    pub(crate) async fn start(
        database: Arc<Database>,
        scope: Scope,
        interest: Interest,
    ) -> Result<Self, StoreError> {
        let listener = Listener::start(&database, interest).await?;
        let mut watch = Self {
            known: Glances::new(),
            events: VecDeque::new(),
            look_due: false,
            database,
            scope,
            listener,
        };
        watch.known = watch.look().await?;
        Ok(watch)
    }

    async fn look(&self) -> Result<Glances, StoreError> {
        let (database, scope) = (&*self.database, &self.scope);
        patiently(
            &database.patience,
            || "the watch".to_owned(),
            &database.shown,
            || glances::look(database, scope),
        )
        .await
    }

    async fn advance(&mut self) -> Result<WatchEvent, StoreError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            if self.look_due {
                let now = self.look().await?;
                self.events.extend(changes_between(&self.known, &now));
                self.known = now;
                self.look_due = false;
                continue;
            }
            let heard = self.listener.next(&self.database).await?;
            self.look_due = true;
            if heard == Heard::Interruption {
                self.events.push_back(WatchEvent::Gap);
            }
        }
    }
}

impl Watch for SqliteWatch {
    fn next(&mut self) -> Answer<'_, Result<WatchEvent, StoreError>> {
        Box::pin(self.advance())
    }
}
