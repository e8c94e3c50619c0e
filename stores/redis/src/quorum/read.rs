//! Reading: what a majority knows.

use super::agree::Agreed;
use super::member::Progress;
use super::{Effect, Quorum};
use crate::fault::Deed;
use crate::list::unreadable;
use crate::read::Sighting;
use crate::site::subject;
use std::collections::BTreeMap;
use tenure_core::{Cursor, Fault, Lease, LeaseName, LeasePage, Listed, Page, StoreError};

impl Quorum {
    /// Reads one lease.
    pub(super) async fn get(&self, name: &LeaseName) -> Result<Option<Lease>, StoreError> {
        match self.look(name).await? {
            Agreed::Never => Ok(None),
            Agreed::Term(lease) => Ok(Some(lease)),
            // Who asks what became of a term of its own must not be told that it is another's.
            Agreed::Open(_) => Err(self.not_agreed(name)),
        }
    }

    /// Either of two terms may be the one that holds the lease.
    pub(super) fn not_agreed(&self, name: &LeaseName) -> StoreError {
        StoreError::not_applied(
            Fault::Unreachable,
            format!(
                "{} at the quorum {}: its members do not agree who holds it, and too few answer; ask again",
                subject(name),
                self.place
            ),
        )
    }

    /// What the members that answer say together.
    pub(super) async fn look(&self, name: &LeaseName) -> Result<Agreed, StoreError> {
        let poll = self
            .ask(
                0..self.members.len(),
                Deed::Read,
                |site| {
                    let name = name.clone();
                    async move { site.sighting(&name).await }
                },
                |answers, waiting| {
                    let seen = answers.iter().filter_map(|(_, seen)| seen.as_ref());
                    let is_enough = answers.len() >= self.majority() && self.is_agreed(seen, waiting.all);
                    Progress::decided_if(is_enough)
                },
            )
            .await;
        if poll.answers.len() < self.majority() {
            let unreadable = poll
                .errors
                .iter()
                .filter(|error| error.fault == Fault::Unreadable);
            let unreadable: Vec<&StoreError> = unreadable.collect();
            return Err(match unreadable.first() {
                Some(error) if self.blocks(unreadable.len()) => (*error).clone(),
                _ => self.undecided(&subject(name), poll.answers.len(), &poll.errors, Effect::Nothing),
            });
        }
        let unheard = self.members.len() - poll.answers.len();
        let sightings = poll.answers.iter().filter_map(|(_, sighting)| sighting.as_ref());
        Ok(self.agreed(sightings, unheard))
    }

    /// Reads a page: what stands up to where every answering member has reached, in its order.
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
        let unheard = self.members.len() - poll.answers.len();
        // A member whose page ends there knows of no later name yet.
        let ends = poll.answers.iter().filter_map(|(_, found)| found.next.clone());
        let mut next = ends.min();
        let mut by_key: BTreeMap<Cursor, (Vec<Sighting>, Option<StoreError>)> = BTreeMap::new();
        for seen in poll.answers.into_iter().flat_map(|(_, found)| found.seen) {
            let (sightings, unreadable) = by_key.entry(seen.at).or_default();
            match seen.record {
                Ok(sighting) => sightings.push(sighting),
                Err(error) => *unreadable = Some(error),
            }
        }
        let mut leases = Vec::new();
        let is_reached = |key: &Cursor| next.as_ref().is_none_or(|next| key <= next);
        let reached = by_key.into_iter().take_while(|(key, _)| is_reached(key));
        let listed = reached.filter_map(|(key, (sightings, unreadable))| {
            let one = self.listed(&key, &sightings, unheard, unreadable)?;
            Some((key, one))
        });
        let mut listed = listed.peekable();
        let mut last = None;
        while leases.len() < usize::from(page.limit)
            && let Some((key, one)) = listed.next()
        {
            leases.push(one);
            last = Some(key);
        }
        if listed.peek().is_some() {
            next = last;
        }
        Ok(LeasePage { leases, next })
    }

    /// What the members that answered show under one key; nothing where it is no term yet. What `get` does
    /// not tell is not told here.
    fn listed(
        &self,
        key: &Cursor,
        sightings: &[Sighting],
        unheard: usize,
        error: Option<StoreError>,
    ) -> Option<Listed> {
        match (self.agreed(sightings, unheard), error) {
            (_, Some(error)) if sightings.len() < self.majority() => Some(unreadable(key, error)),
            (Agreed::Term(lease), _) => Some(Listed::Lease(lease)),
            (Agreed::Open(lease), _) => Some(unreadable(key, self.not_agreed(&lease.name))),
            (Agreed::Never, error) => error.map(|error| unreadable(key, error)),
        }
    }
}
