//! Watching by a procedure that waits: the server looks at its own rows, and answers when they have changed.

use crate::fault::{store_error, timed_out};
use crate::row::{number, text};
use crate::schema::{call, literal};
use crate::session::farewell;
use crate::site::Site;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Row};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{
    Fault, FencingToken, Glance, Glances, Interest, LeaseName, Scope, StoreError, WatchSource,
    changes_between,
};
use tenure_remote::{Deed, OwnThread, ReadWatch, Told};
use tokio::sync::mpsc;

/// Watches of one store at a time. Each keeps a connection of its own busy.
pub(crate) const WATCHES_MAX: usize = 16;

/// How long the server waits for a change before it says that there is none. A procedure whose client is gone
/// ends then.
const QUIET_MAX: Duration = Duration::from_secs(5);

/// What the first question knows; no answer is like it. By how it begins, the procedure tells what is looked
/// for: all changes, or all but terms that begin.
fn nothing_known(interest: Interest) -> &'static str {
    match interest {
        Interest::Everything | Interest::EveryEnd => "",
        Interest::Ends => "ends",
    }
}

/// Whether the procedure looks for it. One of an earlier set-up knows of changes alone, and would answer at
/// once each time.
fn is_looked_for(interest: Interest, known: &str) -> bool {
    nothing_known(interest).is_empty() || known.starts_with("ends ")
}

pub(crate) const SUBJECT: &str = "the watch";

impl Site {
    /// Finds out whether the procedure that waits is there and granted, by calling it for a moment.
    ///
    /// # Errors
    /// If the server cannot be asked. That there is none is no error: then watching is absent.
    pub(crate) async fn prove_watch(&mut self) -> Result<(), StoreError> {
        match self.call_wait().await {
            Ok(()) => self.watch = WatchSource::Poll,
            Err(error) if is_missing(&error) => {
                tracing::info!(place = %self.place(), %error, "candidates wait for the remaining time; run `tenure store init` again");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Calls it for a moment.
    pub(crate) async fn call_wait(&self) -> Result<(), StoreError> {
        let nothing = [
            literal(""),
            literal(nothing_known(Interest::Everything)),
            "0".to_owned(),
        ];
        self.ask(Deed::Read, SUBJECT, &call("wait", &nothing))
            .await
            .map(drop)
    }
}

/// Whether the procedure is not there, or not this role's to call.
pub(crate) fn is_missing(error: &StoreError) -> bool {
    matches!(error.fault, Fault::Unsupported | Fault::Forbidden)
}

/// Looks once; every later change is told.
///
/// # Errors
/// Not applied: [`Fault::Busy`] where [`WATCHES_MAX`] are open, [`Fault::Unsupported`] where the procedure
/// was missing at connect.
pub(crate) async fn open(
    site: Arc<Site>,
    thread: &OwnThread,
    scope: Scope,
    interest: Interest,
) -> Result<ReadWatch, StoreError> {
    if site.watch == WatchSource::Absent {
        let message = format!(
            "{} cannot be watched: the procedure that waits is missing or not granted; run `tenure store init` again, or wait by \
             the remaining time",
            site.place()
        );
        return Err(StoreError::not_applied(Fault::Unsupported, message));
    }
    let permit = site.watches.take(site.place())?;
    let place = site.place().to_owned();
    let waiting = thread.run(Waiting::open(site, scope, interest)).await??;
    Ok(ReadWatch::start(thread, permit, place, |events| {
        waiting.read(events)
    }))
}

/// What one watch knows.
struct Waiting {
    site: Arc<Site>,
    /// There until this is dropped.
    conn: Option<Conn>,
    scope: Scope,
    pattern: String,
    /// What the server told last of the rows, in its own words.
    known: String,
    glances: Glances,
}

impl Waiting {
    async fn open(site: Arc<Site>, scope: Scope, interest: Interest) -> Result<Self, StoreError> {
        let mut waiting = Self {
            conn: Some(site.dial.open(SUBJECT).await?),
            pattern: pattern(&scope),
            known: nothing_known(interest).to_owned(),
            glances: Glances::new(),
            scope,
            site,
        };
        waiting.glances = waiting.ask().await?;
        if !is_looked_for(interest, &waiting.known) {
            let place = waiting.site.place();
            tracing::debug!(%place, "whoever waits is woken by each term that begins; `tenure store init` brings a better procedure");
        }
        Ok(waiting)
    }

    /// Hands on events until the connection or the reader's interest ends.
    async fn read(mut self, events: mpsc::Sender<Told>) {
        loop {
            let now = tokio::select! {
                () = events.closed() => return,
                now = self.ask() => now,
            };
            let found = match now {
                Ok(now) => {
                    let found = changes_between(&self.glances, &now);
                    self.glances = now;
                    found.into_iter().map(Ok).collect()
                }
                Err(error) => vec![Err(error)],
            };
            for event in found {
                let ended = event.is_err();
                if events.send(event).await.is_err() || ended {
                    return;
                }
            }
        }
    }

    /// Waits for rows that are not as they were known, or for [`QUIET_MAX`].
    async fn ask(&mut self) -> Result<Glances, StoreError> {
        let literals = [
            literal(&self.pattern),
            literal(&self.known),
            QUIET_MAX.as_micros().to_string(),
        ];
        let statement = call("wait", &literals);
        let place = self.site.place();
        let allowed = QUIET_MAX + self.site.time_max;
        let conn = self.conn.as_mut().expect("a watch has a connection");
        let rows = tokio::time::timeout(allowed, conn.query::<Row, _>(statement))
            .await
            .map_err(|_late| timed_out(Deed::Read, SUBJECT, place, allowed))?
            .map_err(|error| store_error(&error, Deed::Read, SUBJECT, place))?;
        let Some(known) = rows.first().and_then(|row| text(row, 0)) else {
            return Err(self.site.without_verdict(SUBJECT));
        };
        known.clone_into(&mut self.known);
        // A row that cannot be understood is no news; whoever acquires it is told.
        let glances = rows.iter().filter_map(glance);
        Ok(glances.filter(|(name, _)| self.scope.covers(name)).collect())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.conn.take().into_iter().for_each(farewell);
    }
}

fn glance(row: &Row) -> Option<(LeaseName, Glance)> {
    let glance = Glance {
        token: FencingToken::from_signed(number(row, 2)?).ok()?,
        released: number(row, 3)? == 1,
        asked: number(row, 4)? == 1,
    };
    Some((LeaseName::new(text(row, 1)?).ok()?, glance))
}

/// What `LIKE` takes for the names in scope.
fn pattern(scope: &Scope) -> String {
    let (text, rest) = match scope {
        Scope::Name(name) => (name.as_str(), ""),
        Scope::Prefix(prefix) => (prefix.as_str(), "%"),
    };
    let mut pattern = String::with_capacity(text.len() + 1);
    for letter in text.chars() {
        if matches!(letter, '!' | '%' | '_') {
            pattern.push('!');
        }
        pattern.push(letter);
    }
    pattern + rest
}

#[cfg(test)]
mod tests {
    use super::pattern;
    use tenure_core::Scope;

    #[test]
    fn what_like_would_take_for_more_than_a_letter_is_taken_for_itself() {
        let scope = Scope::Prefix("50%_off!/a".to_owned());
        assert_eq!(pattern(&scope), "50!%!_off!!/a%");
    }
}
