use crate::fault::Deed;
use crate::kept::Often;
use crate::record::{Record, Told, is_there, note_text, read};
use crate::site::{Site, Typed, subject};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::{Acquire, Acquired, Fault, FencingToken, Grant, LeaseName, StoreError};
use tenure_remote::after_a_step;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// How long after its begin a term is announced. It locks the lease's row for a moment, which would hold up a
/// release that comes at once, as of a lock that is held for a moment.
const ANNOUNCED_AFTER: Duration = Duration::from_millis(20);

/// Terms that have begun and were not announced yet.
#[derive(Default)]
pub(crate) struct Unannounced(Mutex<HashMap<LeaseName, FencingToken>>);

impl Unannounced {
    fn begin(&self, name: &LeaseName, token: FencingToken) {
        self.lock().insert(name.clone(), token);
    }

    /// Whether this term is still to be announced. It is not any more.
    pub(crate) fn end(&self, name: &LeaseName, token: FencingToken) -> bool {
        let mut terms = self.lock();
        let is_waiting = terms.get(name) == Some(&token);
        if is_waiting {
            terms.remove(name);
        }
        is_waiting
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LeaseName, FencingToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Site {
    /// Decides an acquisition, in one atomic step of the server. A term that begins is announced afterwards,
    /// and nobody waits for that.
    pub(crate) async fn acquire(self: Arc<Self>, request: &Acquire) -> Result<Acquired, StoreError> {
        let (name, note) = (request.name.as_str(), note_text(&request.note));
        let attempt = i64::try_from(request.attempt.number()).expect("an attempt is at most 2^63 - 1");
        let ttl_ms = i64::try_from(request.ttl.as_millis()).expect("a ttl is at most 24 h");
        let incarnation = request.candidate.incarnation.to_string();
        let subject = subject(&request.name);
        let parameters: [Typed<'_>; 6] = [
            (&name, Type::TEXT),
            (&request.candidate.id.as_str(), Type::TEXT),
            (&incarnation, Type::TEXT),
            (&attempt, Type::INT8),
            (&ttl_ms, Type::INT8),
            (&note, Type::TEXT),
        ];
        let rows = if self.quick {
            let statement = format!(
                "SELECT {}.take($1, $2, $3, $4, $5, $6), pg_catalog.pg_backend_pid()",
                self.schema()
            );
            self.ask_often(Often::Take, &subject, &statement, &parameters)
                .await?
        } else {
            let statement = format!("SELECT * FROM {}.acquire($1, $2, $3, $4, $5, $6)", self.schema());
            self.ask(Deed::Write, &subject, &statement, &parameters).await?
        };
        let Some(row) = rows.first() else {
            return Err(self.without_verdict(&subject));
        };
        let Some((verdict, record)) = self.judged(row) else {
            return Err(self.crossed(&subject));
        };
        // What was granted is granted, whether or not its record can be read.
        let granted = matches!(verdict.as_str(), "granted" | "again");
        let record = record.map_err(|error| if granted { after_a_step(error) } else { error })?;
        let lease = &record.lease;
        let is_own = lease.holder.incarnation == request.candidate.incarnation;
        let is_to_this = match verdict.as_str() {
            "granted" | "again" => is_own && lease.attempt == request.attempt,
            "superseded" => is_own,
            "held" => !is_own,
            _ => true,
        };
        if lease.name != request.name || !is_to_this {
            return Err(self.crossed(&subject));
        }
        let grant = |again| Grant {
            token: record.lease.token,
            ttl: record.lease.ttl,
            terms: record.lease.terms,
            again,
            predecessor: record.previous.clone(),
        };
        match verdict.as_str() {
            // Also the second time: whoever was to announce it may not have heard that it began.
            "granted" | "again" => {
                let granted = grant(verdict == "again");
                self.announce(request.name.clone(), granted.token);
                Ok(Acquired::Granted(granted))
            }
            "superseded" => Ok(Acquired::Superseded),
            "held" => Ok(Acquired::Held(record.lease)),
            "exhausted" => {
                let message = format!(
                    "{subject}: its tokens are used up at {}; use another name",
                    FencingToken::MAX
                );
                Err(StoreError::not_applied(Fault::Internal, message))
            }
            _ => Err(self.without_verdict(&subject)),
        }
    }

    /// What an acquisition was answered, in one value or in a row; nothing if it is the answer to something
    /// else.
    fn judged(&self, row: &Row) -> Option<(String, Result<Record, StoreError>)> {
        if self.quick {
            let told = Told::read(row)?;
            return Some((told.verdict().to_owned(), told.record(&self.table())));
        }
        let verdict = || row.try_get(0).unwrap_or_default();
        is_there(row, 1).then(|| (verdict(), read(row, 1, &self.table())))
    }

    /// Tells watchers that a term has begun, if it is not over by then. A hint: where it cannot be told,
    /// standbys still wait by the remaining time.
    fn announce(self: &Arc<Self>, name: LeaseName, token: FencingToken) {
        let site = Arc::clone(self);
        site.unannounced.begin(&name, token);
        tokio::spawn(async move {
            tokio::time::sleep(ANNOUNCED_AFTER).await;
            if !site.unannounced.end(&name, token) {
                return;
            }
            let statement = format!("SELECT {}.announce($1, $2)", site.schema());
            let parameters: [crate::site::Typed<'_>; 2] =
                [(&name.as_str(), Type::TEXT), (&token.signed(), Type::INT8)];
            if let Err(error) = site
                .ask(Deed::Write, &subject(&name), &statement, &parameters)
                .await
            {
                tracing::debug!(lease = %name, "the begin of a term was not announced: {error}");
            }
        });
    }

    /// For an answer that says nothing of what was asked. It may have been to something else: see
    /// [`Site::crossed`].
    pub(crate) fn without_verdict(&self, subject: &str) -> StoreError {
        self.leave();
        let message = format!(
            "{subject} at {}: the server answered without a verdict; run `tenure store init`, the functions may be another \
             version's",
            self.place
        );
        StoreError::unknown(Fault::Internal, message)
    }

    /// The table of the leases, for messages.
    pub(crate) fn table(&self) -> String {
        format!("{}.leases", self.dial.url.schema)
    }
}
