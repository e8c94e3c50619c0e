//! Reading marks.

use super::mark::{MarkValue, decode_refused};
use super::{FenceSite, subject};
use crate::api::Condition;
use crate::list::{Key, READS_MAX};
use crate::record::shown;
use futures_util::stream::{self, StreamExt as _};
use tenure_core::{
    Cursor, Fault, FenceError, FencingToken, Horizon, LeaseName, Leases, ListedMark, MARKS_MAX, Mark,
    MarkPage, REMOVE_MARK, ResourceName, Ruling, StoreError, Term, check_owner, decide_claim, decide_entry,
};
use tenure_remote::lease_subject;

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

    /// Whether it was set before this other one, as tokens of one lease only rise; or is not there.
    pub(super) fn is_older_than(&self, other: &Self) -> bool {
        let is_of_one_lease = self.mark.is_none() || self.lease() == other.lease();
        is_of_one_lease && self.token() < other.token()
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
            let key = self.keys.mark(resource);
            return Err(no_mark(&subject, &shown(self.keys.key(&key)), "it is no mark"));
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
        self.link.clock_ms(&self.keys, &subject(resource)).await
    }

    /// The highest token of a lease, where its record is in this bucket.
    pub(super) async fn granted(
        &self,
        leases: Leases,
        lease: Option<&LeaseName>,
    ) -> Result<Option<FencingToken>, StoreError> {
        let Some(lease) = lease.filter(|_| leases == Leases::Here) else {
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
            bumped: mark.claimant().is_none(),
            lease: mark.lease,
            token: mark.token,
            refused: counted.map_or(0, |refused| refused.count),
            last_refused: counted.map(|refused| refused.last),
        }))
    }

    /// A page of marks after `after`.
    pub(super) async fn marks(&self, after: Option<&Cursor>) -> Result<MarkPage, StoreError> {
        let pick = |subject: &str| {
            let key = Key::new(&self.keys, subject, self.keys.resource(subject));
            after.is_none_or(|after| key.place() > *after).then_some(key)
        };
        let of = self.keys.marks();
        let mut keys = self.link.subjects(&self.stream, &of, MARKS, pick).await?;
        keys.sort_by_cached_key(Key::place);
        let read = keys.into_iter().map(|key| async move {
            let listed = self.listed(&key).await?;
            Ok::<_, StoreError>(listed.map(|listed| (key.place(), listed)))
        });
        let mut read = stream::iter(read).buffered(READS_MAX);
        let mut listed = Vec::new();
        // Until the page is full, and one more shows that there is a next: a name whose mark was removed
        // takes no place in it.
        while listed.len() <= MARKS_MAX
            && let Some(one) = read.next().await
        {
            listed.extend(one?);
        }
        Ok(MarkPage::beginning(listed))
    }

    async fn listed(&self, key: &Key<ResourceName>) -> Result<Option<ListedMark>, StoreError> {
        let shown_key = shown(self.keys.key(&key.subject));
        let Some(resource) = &key.name else {
            let error = no_mark(
                &format!("fence \"{}\"", shown(&key.escaped)),
                &shown_key,
                "no resource has this key",
            );
            return Ok(Some(ListedMark::Unreadable {
                key: shown_key,
                error,
            }));
        };
        let read = self.shown(resource).await.transpose();
        let listed = read.map(|read| ListedMark::from_read(|| shown(resource.as_str()), read));
        listed.transpose()
    }
}

fn no_mark(subject: &str, key: &str, why: &str) -> StoreError {
    StoreError::not_applied(
        Fault::Unreadable,
        format!(
            "{subject} at key \"{key}\": {why}; it was left as it is; look at it with `nats kv get`, then mend it, \
             or {REMOVE_MARK}"
        ),
    )
}
