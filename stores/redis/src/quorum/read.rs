//! Reading: what a majority knows.

use super::{Effect, Quorum};
use crate::fault::Deed;
use crate::read::Sighting;
use crate::site::subject;
use std::collections::BTreeMap;
use tenure_core::{Lease, LeaseName, LeasePage, Listed, Page, StoreError};

impl Quorum {
    /// Reads one lease.
    pub(super) async fn get(&self, name: &LeaseName) -> Result<Option<Lease>, StoreError> {
        let poll = self
            .ask(
                0..self.members.len(),
                Deed::Read,
                |site| {
                    let name = name.clone();
                    async move { site.sighting(&name).await }
                },
                |answers, waiting| {
                    answers.len() >= self.majority()
                        && self.is_agreed(answers.iter().filter_map(|(_, seen)| seen.as_ref()), waiting)
                },
            )
            .await;
        if poll.answers.len() < self.majority() {
            let unreadable = poll
                .errors
                .iter()
                .filter(|error| error.fault == tenure_core::Fault::Unreadable);
            let unreadable: Vec<&StoreError> = unreadable.collect();
            return Err(match unreadable.first() {
                Some(error) if self.blocks(unreadable.len()) => (*error).clone(),
                _ => self.undecided(&subject(name), poll.answers.len(), &poll.errors, Effect::Nothing),
            });
        }
        Ok(self.agreed(poll.answers.iter().filter_map(|(_, sighting)| sighting.as_ref())))
    }

    /// Reads a page: the names that every answering member has reached, in their order.
    pub(super) async fn list(&self, page: &Page) -> Result<LeasePage, StoreError> {
        let poll = self
            .ask_majority(Deed::Read, |site| {
                let page = page.clone();
                async move { site.page(&page).await }
            })
            .await;
        if poll.answers.len() < self.majority() {
            return Err(self.undecided(
                "the list of leases",
                poll.answers.len(),
                &poll.errors,
                Effect::Nothing,
            ));
        }
        // A member whose page ends there knows of no later name yet.
        let reached = poll
            .answers
            .iter()
            .filter_map(|(_, found)| found.next.clone())
            .min();
        let mut by_name: BTreeMap<String, (Vec<Sighting>, Option<Listed>)> = BTreeMap::new();
        for (_, found) in poll.answers {
            for (listed, confirmed) in found.listed {
                match listed {
                    Listed::Lease(lease) => {
                        let name = lease.name.as_str().to_owned();
                        by_name
                            .entry(name)
                            .or_default()
                            .0
                            .push(Sighting { lease, confirmed });
                    }
                    Listed::Unreadable { key, error } => {
                        let entry = by_name.entry(key.clone()).or_default();
                        entry.1 = Some(Listed::Unreadable { key, error });
                    }
                }
            }
        }
        let within = |name: &str| reached.as_ref().is_none_or(|reached| name <= reached.as_str());
        let mut leases = Vec::new();
        let (mut last, mut more) = (None, reached.is_some());
        for (name, (sightings, unreadable)) in &by_name {
            if !within(name) {
                break;
            }
            let listed = match (self.agreed(sightings), unreadable) {
                (Some(lease), _) if sightings.len() >= self.majority() || unreadable.is_none() => {
                    Some(Listed::Lease(lease))
                }
                (_, Some(unreadable)) => Some(unreadable.clone()),
                (_, None) => None,
            };
            let Some(listed) = listed else { continue };
            let named = LeaseName::new(name).ok();
            if leases.len() >= usize::from(page.limit) {
                more = true;
                // A page can only begin after a name: it goes on to one.
                if last.is_none() && named.is_some() {
                    leases.pop();
                } else if last.is_none() {
                    continue;
                } else {
                    break;
                }
            }
            leases.push(listed);
            last = named.or(last);
        }
        let full = leases.len() >= usize::from(page.limit);
        let next = if full { last.or(reached) } else { reached };
        Ok(LeasePage {
            leases,
            next: next.filter(|_| more),
        })
    }
}
