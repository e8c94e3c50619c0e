//! Reading marks.

use super::mark::{MarkValue, decode_refused};
use super::{FenceSite, Leases, subject};
use crate::api::Condition;
use crate::connect::refused;
use crate::moments::milliseconds;
use crate::record::shown;
use futures_util::stream::{self, StreamExt as _};
use tenure_core::{
    Fault, FenceError, FencingToken, Horizon, LeaseName, MARKS_MAX, Mark, ResourceName, Ruling, StoreError,
    Term, check_owner, decide_claim, decide_entry,
};
use tenure_remote::{Deed, lease_subject};

/// Most marks of a page that are being read at once.
const READS_MAX: usize = 64;

/// Most answers with names that are asked for, each of up to 100,000: more marks than that many are not listed.
const ANSWERS_MAX: usize = 100;

const MARKS: &str = "the fence";

/// What is known of a mark.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// `None` if there is none.
    pub(super) mark: Option<MarkValue>,
    /// The revision of the mark: what a write is conditional on. 0 where there never was one.
    pub(super) revision: u64,
    /// The epoch in which it was shown: no write is sent on this condition over a younger connection.
    pub(super) epoch: u64,
}

impl Found {
    pub(super) fn lease(&self) -> Option<&LeaseName> {
        self.mark.as_ref().and_then(|mark| mark.lease.as_ref())
    }

    pub(super) fn token(&self) -> Option<FencingToken> {
        self.mark.as_ref().map(|mark| mark.token)
    }

    fn claimant(&self) -> Option<&LeaseName> {
        self.mark.as_ref().and_then(MarkValue::claimant)
    }

    /// What a claim has to do to the mark.
    pub(super) fn claim(
        &self,
        resource: &ResourceName,
        term: &Term,
        limit: Horizon,
    ) -> Result<Ruling, FenceError> {
        check_owner(resource, term, self.lease())?;
        decide_claim(resource, term, self.claimant(), self.token(), limit)
    }

    /// Whether a term may enter by the mark.
    pub(super) fn entry(&self, resource: &ResourceName, term: &Term) -> Result<(), FenceError> {
        check_owner(resource, term, self.lease())?;
        decide_entry(resource, term, self.claimant(), self.token())
    }
}

impl FenceSite {
    /// The mark, from the stream's leader.
    pub(super) async fn look(&self, resource: &ResourceName) -> Result<Found, StoreError> {
        let subject = subject(resource);
        let stored = self
            .link
            .last(&self.stream, &self.keys.mark(resource), &subject)
            .await?;
        let Condition {
            sequence: revision,
            epoch,
            ..
        } = Condition::last_stored(stored.as_ref());
        let Some(value) = stored.and_then(|stored| stored.value) else {
            return Ok(Found {
                mark: None,
                revision,
                epoch,
            });
        };
        let Some(mark) = MarkValue::decode(&value) else {
            return Err(StoreError::not_applied(
                Fault::Unreadable,
                format!(
                    "{subject} at key \"{}\": it is no mark; it was left as it is; look at it with `nats kv get`, then mend \
                     or remove it",
                    shown(self.keys.key(&self.keys.mark(resource)))
                ),
            ));
        };
        let found = Found {
            mark: Some(mark),
            revision,
            epoch,
        };
        self.remember(resource, &found);
        Ok(found)
    }

    /// The server's clock in milliseconds.
    pub(super) async fn clock_ms(&self, resource: &ResourceName) -> Result<u64, StoreError> {
        let subject = subject(resource);
        let info = self.link.info(&self.stream, None, &subject).await?;
        let info = info.map_err(|refusal| refused(Deed::Read, &subject, self.link.place(), &refusal))?;
        let told = info["ts"].as_str().and_then(milliseconds);
        told.ok_or_else(|| self.link.misunderstood(Deed::Read, &subject))
    }

    /// The highest token of a lease, where its record is in this bucket.
    pub(super) async fn granted(
        &self,
        lease: Option<&LeaseName>,
    ) -> Result<Option<FencingToken>, StoreError> {
        let Some(lease) = lease.filter(|_| self.leases == Leases::Here) else {
            return Ok(None);
        };
        let of = self.keys.lease(lease);
        let stored = self.link.last(&self.stream, &of, &lease_subject(lease)).await?;
        let Some(value) = stored.and_then(|stored| stored.value) else {
            return Ok(None);
        };
        let entry = crate::record::decode(self.keys.key(&of), lease.as_str(), &value)?;
        Ok(Some(entry.token))
    }

    /// A mark with its refusals, for people.
    pub(super) async fn shown(&self, resource: &ResourceName) -> Result<Option<Mark>, StoreError> {
        let found = self.look(resource).await?;
        let Some(mark) = found.mark else { return Ok(None) };
        let counted = self.keys.refusals(resource);
        let counted = self.link.last(&self.stream, &counted, &subject(resource)).await?;
        let counted = counted.and_then(|stored| decode_refused(&stored.value?));
        Ok(Some(Mark {
            resource: resource.clone(),
            lease: mark.lease,
            token: mark.token,
            refused: counted.map_or(0, |refused| refused.count),
            last_refused: counted.map(|refused| refused.last),
        }))
    }

    /// A page of marks after `after`.
    pub(super) async fn marks(&self, after: Option<&ResourceName>) -> Result<Vec<Mark>, StoreError> {
        let mut resources = Vec::new();
        let mut offset = 0;
        for _answer in 0..ANSWERS_MAX {
            let info = self
                .link
                .info(&self.stream, Some((&self.keys.marks(), offset)), MARKS)
                .await?;
            let info = info.map_err(|refusal| refused(Deed::Read, MARKS, self.link.place(), &refusal))?;
            let subjects = info["state"]["subjects"].as_object();
            let count = subjects.map_or(0, serde_json::Map::len);
            offset += count;
            let all = subjects.into_iter().flatten();
            let named = all.filter_map(|(subject, _count)| self.keys.resource(subject));
            resources.extend(named.filter(|resource| after.is_none_or(|after| resource > after)));
            let total = info["total"]
                .as_u64()
                .and_then(|total| usize::try_from(total).ok());
            if count == 0 || total.is_none_or(|total| offset >= total) {
                break;
            }
        }
        resources.sort();
        let read = resources
            .into_iter()
            .map(|resource| async move { self.shown(&resource).await });
        let mut read = stream::iter(read).buffered(READS_MAX);
        let mut marks = Vec::new();
        // Until the page is full: a name whose mark was removed takes no place in it, and a page that is not full is the last.
        while marks.len() < MARKS_MAX
            && let Some(shown) = read.next().await
        {
            marks.extend(shown?);
        }
        Ok(marks)
    }
}
