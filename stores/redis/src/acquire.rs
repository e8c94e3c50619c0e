use crate::alone::hosts;
use crate::fault::Deed;
use crate::record::{decode, predecessor};
use crate::reply::misunderstood;
use crate::script::{ACQUIRE, Arguments};
use crate::site::{Site, subject};
use tenure_core::{Acquire, Acquired, Fault, FencingToken, Grant, StoreError};

impl Site {
    /// Decides an acquisition, in one atomic step of the server.
    pub(crate) async fn acquire(&self, request: &Acquire) -> Result<Acquired, StoreError> {
        self.identify().await?;
        let key = self.keys.record(&request.name);
        let arguments = Arguments::on([self.keys.index(), key.clone()])
            .with(&request.candidate.id)
            .with(request.candidate.incarnation)
            .with(request.attempt)
            .with(request.ttl.as_millis())
            .with(&request.note)
            .with(&request.name)
            .with(self.keys.channel(&request.name))
            .with(self.purge_ms())
            .with(self.keys.records());
        let mut reply = self
            .run(&ACQUIRE, &arguments, Deed::Write, &subject(&request.name))
            .await?;
        let (verdict, now_ms) = (reply.word()?, reply.number()?);
        let name = request.name.as_str();
        match verdict.as_str() {
            "granted" | "again" => {
                let token = FencingToken::new(reply.number()?).map_err(|_| misunderstood())?;
                let terms = reply.number()?;
                Ok(Acquired::Granted(Grant {
                    token,
                    ttl: request.ttl,
                    terms,
                    again: verdict == "again",
                    predecessor: predecessor(&key, name, &mut reply, now_ms)?,
                }))
            }
            "held" => Ok(Acquired::Held(decode(
                &key,
                name,
                reply.fields()?.as_ref(),
                now_ms,
            )?)),
            "superseded" => Ok(Acquired::Superseded),
            "exhausted" => Err(StoreError::not_applied(
                Fault::Internal,
                format!(
                    "{}: its tokens are used up at {}; use another name",
                    subject(&request.name),
                    FencingToken::MAX
                ),
            )),
            // Also while not all of them know each other: what begins then would be seen by nobody who
            // completes them.
            "member" => Err(self.of_a_quorum(&hosts(&reply.word()?))),
            "unreadable" => Err(self.cannot_read(&key, name, reply.fields()?.as_ref(), now_ms)),
            _ => Err(misunderstood()),
        }
    }
}
