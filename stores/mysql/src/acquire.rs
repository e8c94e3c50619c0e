use crate::record::{read, read_taken};
use crate::row::text;
use crate::schema::{call, literal};
use crate::short::Short;
use crate::site::{Site, subject};
use tenure_core::{Acquire, Acquired, Fault, FencingToken, Grant, StoreError};
use tenure_remote::after_a_step;

impl Site {
    /// Decides an acquisition, in one atomic step of the server.
    pub(crate) async fn acquire(&self, request: &Acquire) -> Result<Acquired, StoreError> {
        let acquired = self.acquired(request).await?;
        if matches!(acquired, Acquired::Granted(_)) {
            self.unsettled.settle(&request.name);
        }
        Ok(acquired)
    }

    async fn acquired(&self, request: &Acquire) -> Result<Acquired, StoreError> {
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
        let short = self.unsettled.begin(&request.name).then(|| Short::take(request));
        let answer = self.ask_shortly(&subject, short.as_ref(), &statement).await?;
        let Some(row) = answer.rows.first() else {
            return Err(self.without_verdict(&subject));
        };
        if answer.shortly {
            // The server has committed it.
            let taken = read_taken(row, request.name.as_str(), &self.table()).map_err(after_a_step)?;
            return Ok(Acquired::Granted(Grant {
                token: taken.token,
                ttl: request.ttl,
                terms: taken.terms,
                again: false,
                predecessor: taken.previous,
            }));
        }
        let verdict = text(row, 0).ok_or_else(|| self.without_verdict(&subject))?;
        if verdict == "busy" {
            let message = format!(
                "{subject} at {}: another transaction keeps the row locked, or it came and went under the request; look in \
                 information_schema.innodb_trx, or ask again",
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
                let message = format!(
                    "{subject}: its tokens are used up at {}; use another name",
                    FencingToken::MAX
                );
                Err(StoreError::not_applied(Fault::Internal, message))
            }
            _ => Err(self.without_verdict(&subject)),
        }
    }
}
