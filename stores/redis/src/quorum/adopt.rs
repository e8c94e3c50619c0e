//! Bringing terms to members that missed them: each that is away loses what it held, and without this,
//! members that are away one after the other would take a majority from a leader who was extended all the
//! time.

use super::Quorum;
use super::member::Member;
use crate::fault::Deed;
use crate::reply::misunderstood;
use crate::script::{ADOPT, Arguments, TERM};
use crate::site::{Site, subject};
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure_core::{Occupancy, Renew, Renewed, StoreError};
use tokio::sync::Semaphore;

/// How many renewals bring terms at once. Those beyond it leave it to the next ones.
const ADOPTIONS_MAX: usize = 16;

/// Turns of those who bring terms.
pub(super) fn turns() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(ADOPTIONS_MAX))
}

/// Terms that a member missed, by who holds them and who does not.
type Missed = BTreeMap<(usize, usize), Vec<Renew>>;

impl Quorum {
    /// Has members that say that a term is lost take it in, where a majority has just extended it: `told` is
    /// what each has answered, `verdicts` what came of it. Nobody waits for it, and if nobody is behind,
    /// nothing is sent.
    ///
    /// Each member is still asked to extend what it holds, and its answer counts by itself: this one counts
    /// for nothing. That nobody is harmed by one that comes late is with the script. Such a one may keep a
    /// minority, which has missed the release too, from others for one ttl.
    pub(super) fn bring(
        &self,
        requests: &[Renew],
        told: &[(usize, Vec<Result<Renewed, StoreError>>)],
        verdicts: &[Result<Renewed, StoreError>],
    ) {
        let mut missed = Missed::new();
        for (place, request) in requests.iter().enumerate() {
            if !is_extended(&verdicts[place]) {
                continue;
            }
            let source = told.iter().find(|(_, answers)| is_extended(&answers[place]));
            let Some((source, _)) = source else { continue };
            let behind = told
                .iter()
                .filter(|(_, answers)| may_be_behind(request, &answers[place]));
            for (member, _) in behind {
                missed
                    .entry((*source, *member))
                    .or_default()
                    .push(request.clone());
            }
        }
        if missed.is_empty() {
            return;
        }
        let Ok(turn) = Arc::clone(&self.adoptions).try_acquire_owned() else {
            return;
        };
        let members = self.members.clone();
        tokio::spawn(async move {
            for ((source, target), requests) in missed {
                // The next renewal tries again.
                let _failed = adopt(&members[source], &members[target], &requests).await;
            }
            drop(turn);
        });
    }
}

fn is_extended(answer: &Result<Renewed, StoreError>) -> bool {
    matches!(answer, Ok(Renewed::Extended { .. }))
}

/// Whether a member may take the term in. It would refuse to where it knows of a later one, or that this one
/// was given back.
fn may_be_behind(request: &Renew, answer: &Result<Renewed, StoreError>) -> bool {
    match answer {
        Ok(Renewed::Lost(None)) => true,
        Ok(Renewed::Lost(Some(now))) => {
            now.occupancy() != Occupancy::Held && now.token <= request.token && {
                !(now.released && now.token == request.token)
            }
        }
        Ok(Renewed::Extended { .. }) | Err(_) => false,
    }
}

async fn adopt(source: &Member, target: &Member, requests: &[Renew]) -> Result<(), StoreError> {
    let reading = terms(&source.site, requests);
    let terms = source.in_time(Deed::Read, reading).await?;
    let held = requests.iter().zip(terms).filter_map(|(request, term)| {
        let term = term?;
        Some((request, term))
    });
    let site = &target.site;
    let mut arguments = Arguments::on([site.keys.index(), site.keys.removed(), site.keys.membership()])
        .with(site.member_id());
    for (request, term) in held {
        arguments.keys.push(site.keys.record(&request.name));
        arguments.push(request.incarnation);
        arguments.push(request.token);
        arguments.push(request.attempt);
        arguments.push(request.ttl.as_millis());
        arguments.push(&request.name);
        term.iter().for_each(|word| arguments.values.push_bytes(word));
    }
    if arguments.values.len() == 1 {
        return Ok(());
    }
    let what = about(requests);
    // Not on the connection of renewals: nothing stands before them.
    let bringing = site.run(&ADOPT, &arguments, Deed::Write, &what);
    target.in_time(Deed::Write, bringing).await?;
    Ok(())
}

/// What a member that holds these terms knows of each beside who holds it; nothing of one that it does not
/// hold any more.
async fn terms(site: &Site, requests: &[Renew]) -> Result<Vec<Option<Vec<Vec<u8>>>>, StoreError> {
    let keys = requests.iter().map(|request| site.keys.record(&request.name));
    let mut arguments = Arguments::on([site.keys.index()].into_iter().chain(keys));
    for request in requests {
        arguments.push(request.incarnation);
        arguments.push(request.token);
        arguments.push(request.attempt);
    }
    let mut reply = site.run(&TERM, &arguments, Deed::Read, &about(requests)).await?;
    let mut found = Vec::with_capacity(requests.len());
    for _ in requests {
        let mut term = reply.array()?;
        found.push(match term.word()?.as_str() {
            "held" => {
                let mut parts = Vec::new();
                while !term.is_empty() {
                    parts.push(term.bytes()?);
                }
                (parts.len() == TOLD).then_some(parts)
            }
            "gone" => None,
            _ => return Err(misunderstood()),
        });
    }
    Ok(found)
}

/// How much a member tells of a term.
const TOLD: usize = 9;

fn about(requests: &[Renew]) -> String {
    match requests {
        [only] => subject(&only.name),
        several => format!("{} leases", several.len()),
    }
}
