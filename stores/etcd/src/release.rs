//! Giving leases back.

use crate::attached::Sitting;
use crate::found::Found;
use crate::keys::Part;
use crate::side_by_side::side_by_side;
use crate::site::{PARTS_MAX, ROUNDS_MAX, Site, transact_each};
use crate::wire::kv::{Compare, RequestOp, TxnRequest};
use std::sync::Arc;
use tenure_core::{LeaseName, Occupancy, Release, Released, StoreError};
use tenure_remote::Deed;

/// How many requests of a batch are under way at once. One after another, a batch of thousands would take
/// longer than its caller waits.
const PARTS_AT_ONCE: usize = 16;

type Verdict = Result<Released, StoreError>;

/// What a lease is, as far as was seen.
#[derive(Clone)]
struct Seen {
    found: Found,
    /// Whether the server has said so now, and not some time ago.
    certain: bool,
}

fn certain(found: Result<Found, StoreError>) -> Result<Seen, StoreError> {
    found.map(|found| Seen { found, certain: true })
}

impl Site {
    /// Gives leases back, many with one request. A release only removes keys, so it works on a server that is
    /// full, too.
    pub(crate) async fn release(self: &Arc<Self>, requests: &[Release]) -> Vec<Verdict> {
        if requests.len() <= PARTS_MAX {
            return self.release_part(requests).await;
        }
        // A batch that was given up goes on where it was when it is asked for again: what was given back then
        // comes last.
        let mut places: Vec<usize> = (0..requests.len()).collect();
        places.sort_by_cached_key(|place| self.seems_given_back(&requests[*place]));
        let parts = places.chunks(PARTS_MAX).map(|places| {
            let (site, places) = (Arc::clone(self), places.to_vec());
            let part: Vec<Release> = places.iter().map(|place| requests[*place].clone()).collect();
            async move { (places, site.release_part(&part).await) }
        });
        let parts: Vec<_> = parts.collect();
        let mut verdicts: Vec<Option<Verdict>> = vec![None; requests.len()];
        for (places, part) in side_by_side(parts, PARTS_AT_ONCE).await {
            for (place, verdict) in places.into_iter().zip(part) {
                verdicts[place] = Some(verdict);
            }
        }
        let unanswered = |verdict: Option<Verdict>| verdict.unwrap_or_else(|| Err(self.misunderstood()));
        verdicts.into_iter().map(unanswered).collect()
    }

    /// Whether it was given back, as far as was seen.
    fn seems_given_back(&self, request: &Release) -> bool {
        let known = self.known.last(&request.name);
        known.is_some_and(|found| {
            found.is_term(&sitting(request), request.token) && found.occupancy() == Occupancy::Vacant
        })
    }

    async fn release_part(&self, requests: &[Release]) -> Vec<Verdict> {
        let sittings: Vec<Sitting> = requests.iter().map(sitting).collect();
        let mut verdicts: Vec<Option<Verdict>> = vec![None; requests.len()];
        let mut seen = match self.seen_for(requests, &sittings).await {
            Ok(seen) => seen,
            Err(error) => return vec![Err(error); requests.len()],
        };
        for _round in 0..ROUNDS_MAX {
            let mut parts = Vec::new();
            for (place, found) in seen {
                let (request, sitting) = (&requests[place], &sittings[place]);
                match found {
                    Ok(one) if one.found.is_term(sitting, request.token) => parts.push((place, one)),
                    Ok(one) => verdicts[place] = Some(self.not_yours(&request.name, &one.found).await),
                    Err(error) => verdicts[place] = Some(Err(error)),
                }
            }
            let others = match parts.is_empty() {
                true => Vec::new(),
                false => self.vacate(requests, &sittings, parts, &mut verdicts).await,
            };
            if others.is_empty() {
                break;
            }
            seen = self.looked_at(requests, others).await;
        }
        let unanswered = |(verdict, request): (Option<Verdict>, &Release)| {
            verdict.unwrap_or_else(|| Err(self.restless(&request.name)))
        };
        verdicts.into_iter().zip(requests).map(unanswered).collect()
    }

    /// What is known of each, where it is the term; else what the server says.
    async fn seen_for(
        &self,
        requests: &[Release],
        sittings: &[Sitting],
    ) -> Result<Vec<(usize, Result<Seen, StoreError>)>, StoreError> {
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
            Some(found) => Ok(Seen {
                found,
                certain: false,
            }),
            None => read.next().map_or_else(|| Err(self.misunderstood()), certain),
        };
        Ok(known.into_iter().map(one).enumerate().collect())
    }

    /// Those of which what was known was no longer so: nothing was changed, and the server says what they
    /// are.
    async fn looked_at(
        &self,
        requests: &[Release],
        places: Vec<usize>,
    ) -> Vec<(usize, Result<Seen, StoreError>)> {
        let names: Vec<&LeaseName> = places.iter().map(|place| &requests[*place].name).collect();
        let seen = match self.read_many(&self.requests, &names).await {
            Ok((seen, _)) => seen.into_iter().map(certain).collect(),
            Err(error) => vec![Err(error); places.len()],
        };
        places.into_iter().zip(seen).collect()
    }

    /// Frees them, each if it is as it was seen; which of them are not.
    async fn vacate(
        &self,
        requests: &[Release],
        sittings: &[Sitting],
        parts: Vec<(usize, Seen)>,
        verdicts: &mut [Option<Verdict>],
    ) -> Vec<usize> {
        let vacating = parts
            .iter()
            .map(|(place, seen)| self.vacating(&requests[*place].name, seen))
            .collect();
        let answers = match transact_each(&self.requests, vacating).await {
            Ok(answers) => answers,
            Err(failure) => {
                for (place, _) in parts {
                    let error = self.failed(&failure, Deed::Write, &requests[place].name);
                    verdicts[place] = Some(Err(error));
                }
                return Vec::new();
            }
        };
        if answers.len() != parts.len() {
            for (place, _) in parts {
                verdicts[place] = Some(Err(self.misunderstood()));
            }
            return Vec::new();
        }
        let mut others = Vec::new();
        for ((place, seen), answer) in parts.into_iter().zip(answers) {
            if answer.succeeded {
                self.sessions.dismiss(&sittings[place], requests[place].token);
                self.known.see(&requests[place].name, &vacant(seen.found));
                verdicts[place] = Some(Ok(Released::Vacated));
            } else {
                others.push(place);
            }
        }
        others
    }

    /// The transaction that frees a term. A server that was put back may have another term under the very
    /// revision that is remembered; but that is on another session.
    fn vacating(&self, name: &LeaseName, Seen { found, certain }: &Seen) -> TxnRequest {
        let key = |part| self.keys.part(name, part);
        let holder = key(Part::Holder);
        let mut compare = vec![Compare::written_at(&key(Part::Record), found.record_revision)];
        match &found.holder {
            _ if *certain => {}
            Some(known) => compare.push(Compare::ends_with(&holder, known.session)),
            None => compare.push(Compare::written_at(&holder, 0)),
        }
        TxnRequest {
            compare,
            success: vec![
                RequestOp::delete(key(Part::Term)),
                RequestOp::delete(holder),
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
