//! Giving leases back.

use crate::attached::Sitting;
use crate::found::Found;
use crate::keys::Part;
use crate::site::{PARTS_MAX, Site, transact_each};
use crate::wire::kv::{Compare, RequestOp, TxnRequest};
use tenure_core::{LeaseName, Release, Released, StoreError};
use tenure_remote::Deed;

type Verdict = Result<Released, StoreError>;

impl Site {
    /// Gives leases back, many with one request. A release only removes keys, so it works on a server that is full, too.
    pub(crate) async fn release(&self, requests: &[Release]) -> Vec<Verdict> {
        let mut verdicts = Vec::with_capacity(requests.len());
        for part in requests.chunks(PARTS_MAX) {
            verdicts.extend(self.release_part(part).await);
        }
        verdicts
    }

    async fn release_part(&self, requests: &[Release]) -> Vec<Verdict> {
        let sittings: Vec<Sitting> = requests.iter().map(sitting).collect();
        let seen = match self.seen_for(requests, &sittings).await {
            Ok(seen) => seen,
            Err(error) => return vec![Err(error); requests.len()],
        };
        let mut verdicts: Vec<Option<Verdict>> = vec![None; requests.len()];
        let mut parts = Vec::new();
        for (place, found) in seen.into_iter().enumerate() {
            let (request, sitting) = (&requests[place], &sittings[place]);
            match found {
                Ok(found) if found.is_term(sitting, request.token) => parts.push((place, found)),
                Ok(found) => verdicts[place] = Some(self.not_yours(&request.name, &found).await),
                Err(error) => verdicts[place] = Some(Err(error)),
            }
        }
        if !parts.is_empty() {
            self.vacate(requests, &sittings, parts, &mut verdicts).await;
        }
        let unanswered = || Err(self.misunderstood());
        verdicts
            .into_iter()
            .map(|verdict| verdict.unwrap_or_else(unanswered))
            .collect()
    }

    /// What is known of each, where it is the term; else what the server says.
    async fn seen_for(
        &self,
        requests: &[Release],
        sittings: &[Sitting],
    ) -> Result<Vec<Result<Found, StoreError>>, StoreError> {
        let known: Vec<Option<Found>> = requests
            .iter()
            .zip(sittings)
            .map(|(request, sitting)| {
                let last = self.known.last(&request.name);
                last.filter(|found| found.is_term(sitting, request.token))
            })
            .collect();
        let unknown = requests.iter().zip(&known).filter(|(_, known)| known.is_none());
        let names: Vec<&LeaseName> = unknown.map(|(request, _)| &request.name).collect();
        let mut read = match names.as_slice() {
            [] => Vec::new(),
            names => self.read_many(&self.requests, names).await?.0,
        }
        .into_iter();
        let one = |known: Option<Found>| match known {
            Some(found) => Ok(found),
            None => read.next().unwrap_or_else(|| Err(self.misunderstood())),
        };
        Ok(known.into_iter().map(one).collect())
    }

    async fn vacate(
        &self,
        requests: &[Release],
        sittings: &[Sitting],
        parts: Vec<(usize, Found)>,
        verdicts: &mut [Option<Verdict>],
    ) {
        let vacating = parts
            .iter()
            .map(|(place, found)| self.vacating(&requests[*place].name, found.record_revision))
            .collect();
        let answers = match transact_each(&self.requests, vacating).await {
            Ok(answers) => answers,
            Err(failure) => {
                for (place, _) in parts {
                    let error = self.failed(&failure, Deed::Write, &requests[place].name);
                    verdicts[place] = Some(Err(error));
                }
                return;
            }
        };
        let mut others = Vec::new();
        for ((place, found), answer) in parts.into_iter().zip(answers) {
            if answer.succeeded {
                self.sessions.dismiss(&sittings[place], requests[place].token);
                self.known.see(&requests[place].name, &vacant(found));
                verdicts[place] = Some(Ok(Released::Vacated));
            } else {
                others.push(place);
            }
        }
        self.look_at_others(requests, others, verdicts).await;
    }

    /// What was known of these was no longer so, and nothing was changed.
    async fn look_at_others(
        &self,
        requests: &[Release],
        others: Vec<usize>,
        verdicts: &mut [Option<Verdict>],
    ) {
        let names: Vec<&LeaseName> = others.iter().map(|place| &requests[*place].name).collect();
        if names.is_empty() {
            return;
        }
        let seen = match self.read_many(&self.requests, &names).await {
            Ok((seen, _)) => seen,
            Err(error) => vec![Err(error); others.len()],
        };
        for (place, found) in others.into_iter().zip(seen) {
            verdicts[place] = Some(match found {
                Ok(found) => self.not_yours(&requests[place].name, &found).await,
                Err(error) => Err(error),
            });
        }
    }

    fn vacating(&self, name: &LeaseName, record_revision: i64) -> TxnRequest {
        let key = |part| self.keys.part(name, part);
        TxnRequest {
            compare: vec![Compare::written_at(&key(Part::Record), record_revision)],
            success: vec![
                RequestOp::delete(key(Part::Term)),
                RequestOp::delete(key(Part::Holder)),
                RequestOp::delete(key(Part::Wish)),
            ],
            failure: Vec::new(),
        }
    }

    async fn not_yours(&self, name: &LeaseName, found: &Found) -> Verdict {
        let shown = self.lease_now(name, found).await?;
        Ok(Released::NotYours(shown.map(Box::new)))
    }
}

fn sitting(request: &Release) -> Sitting {
    Sitting {
        name: request.name.clone(),
        incarnation: request.incarnation,
        attempt: request.attempt,
    }
}

fn vacant(found: Found) -> Found {
    Found {
        term_revision: 0,
        holder_revision: 0,
        holder: None,
        asked: false,
        ..found
    }
}
