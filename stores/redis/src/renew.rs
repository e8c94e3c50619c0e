use crate::fault::Deed;
use crate::record::decode_term;
use crate::reply::{Reply, misunderstood};
use crate::script::{Arguments, RENEW};
use crate::site::{Site, subject};
use tenure_core::{Renew, Renewed, StoreError, Wish};

impl Site {
    /// Extends leases, all in one atomic step of the server, on a connection that nothing else uses.
    pub(crate) async fn renew(&self, requests: &[Renew]) -> Vec<Result<Renewed, StoreError>> {
        let what = match requests {
            [] => return Vec::new(),
            [only] => subject(&only.name),
            several => format!("{} leases", several.len()),
        };
        let keys = requests.iter().map(|request| self.keys.record(&request.name));
        let mut arguments = Arguments::on([self.keys.index()].into_iter().chain(keys)).with(self.purge_ms());
        for request in requests {
            arguments.push(request.incarnation);
            arguments.push(request.token);
            arguments.push(request.attempt);
            arguments.push(request.ttl.as_millis());
        }
        let running = async {
            self.is_alone(&self.renewals).await?;
            let running = self
                .renewals
                .run(&RENEW, &arguments, Deed::Write, &what, &self.place);
            running.await
        };
        match self.in_time(Deed::Write, &what, running).await {
            Ok(mut reply) => requests
                .iter()
                .map(|request| self.renewed(request, reply.array()?))
                .collect(),
            Err(error) => vec![Err(error); requests.len()],
        }
    }

    fn renewed(&self, request: &Renew, mut reply: Reply) -> Result<Renewed, StoreError> {
        let verdict = reply.word()?;
        let extended = |wish| {
            let ttl = request.ttl;
            Ok(Renewed::Extended { ttl, wish })
        };
        match verdict.as_str() {
            "extended" => return extended(Wish::Nothing),
            "asked" => return extended(Wish::StepDown),
            _ => {}
        }
        let now_ms = reply.number()?;
        let (key, name) = (self.keys.record(&request.name), request.name.as_str());
        match verdict.as_str() {
            "lost" => Ok(Renewed::Lost(decode_term(
                &key,
                name,
                reply.fields()?.as_ref(),
                now_ms,
            )?)),
            "none" => Ok(Renewed::Lost(None)),
            "unreadable" => Err(self.cannot_read(&key, name, reply.fields()?.as_ref(), now_ms)),
            _ => Err(misunderstood()),
        }
    }
}
