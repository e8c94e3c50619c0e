use crate::fault::Deed;
use crate::record::decode_term;
use crate::reply::{Reply, misunderstood};
use crate::script::{Arguments, RELEASE};
use crate::site::{Site, subject};
use tenure_core::{Release, Released, StoreError};

impl Site {
    /// Gives leases back, all in one atomic step of the server, which wakes who waits for them.
    pub(crate) async fn release(&self, requests: &[Release]) -> Vec<Result<Released, StoreError>> {
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
            arguments.push(self.keys.channel(&request.name));
        }
        match self.run(&RELEASE, &arguments, Deed::Write, &what).await {
            Ok(mut reply) => requests
                .iter()
                .map(|request| self.released(request, reply.array()?))
                .collect(),
            Err(error) => vec![Err(error); requests.len()],
        }
    }

    fn released(&self, request: &Release, mut reply: Reply) -> Result<Released, StoreError> {
        let verdict = reply.word()?;
        if verdict == "vacated" {
            return Ok(Released::Vacated);
        }
        let now_ms = reply.number()?;
        let (key, name) = (self.keys.record(&request.name), request.name.as_str());
        match verdict.as_str() {
            "lost" => Ok(Released::NotYours(decode_term(
                &key,
                name,
                reply.fields()?.as_ref(),
                now_ms,
            )?)),
            "none" => Ok(Released::NotYours(None)),
            "unreadable" => Err(self.cannot_read(&key, name, reply.fields()?.as_ref(), now_ms)),
            _ => Err(misunderstood()),
        }
    }
}
