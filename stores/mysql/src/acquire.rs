use crate::record::read;
use crate::row::text;
use crate::schema::{call, literal};
use crate::site::{Site, subject};
use tenure_core::{Acquire, Acquired, Fault, Grant, StoreError};
use tenure_remote::{Deed, after_a_step};

impl Site {
    /// Decides an acquisition, in one atomic step of the server.
    pub(crate) async fn acquire(&self, request: &Acquire) -> Result<Acquired, StoreError> {
        let statement = call(
            "acquire",
            &[
                literal(request.name.as_str()),
                literal(request.candidate.id.as_str()),
                literal(&request.candidate.incarnation.to_string()),
                request.attempt.number().to_string(),
                request.ttl.as_millis().to_string(),
                literal(request.note.as_str()),
            ],
        );
        let subject = subject(&request.name);
        let rows = self.ask(Deed::Write, &subject, &statement).await?;
        let Some(row) = rows.first() else {
            return Err(self.without_verdict(&subject));
        };
        let verdict = text(row, 0).ok_or_else(|| self.without_verdict(&subject))?;
        if verdict == "busy" {
            let message = format!(
                "{subject} at {}: the record came and went under the request",
                self.place()
            );
            return Err(StoreError::not_applied(Fault::Busy, message));
        }
        let record = match read(row, 1, &self.table()) {
            // The server has committed it.
            Err(error) if matches!(verdict, "granted" | "again") => return Err(after_a_step(error)),
            record => record?,
        };
        let grant = |again| {
            Acquired::Granted(Grant {
                token: record.lease.token,
                ttl: record.lease.ttl,
                terms: record.lease.terms,
                again,
                predecessor: record.previous.clone(),
            })
        };
        match verdict {
            "granted" => Ok(grant(false)),
            "again" => Ok(grant(true)),
            "superseded" => Ok(Acquired::Superseded),
            "held" => Ok(Acquired::Held(record.lease)),
            "exhausted" => {
                let message = format!("{subject}: its tokens are used up at 2^63 - 1; use another name");
                Err(StoreError::not_applied(Fault::Internal, message))
            }
            _ => Err(self.without_verdict(&subject)),
        }
    }
}
