//! Changing data behind the fence: compared and stored in one message.

use super::claim::restless;
use super::look::Found;
use super::{FenceSite, NatsFence, Refusal, subject};
use crate::api::{Condition, Put};
use crate::keys::Keys;
use std::sync::Arc;
use tenure_core::{Fault, FenceError, ResourceName, StoreError, Term};

/// How often one write is tried. It is tried again when the mark is not as it was remembered.
const TRIES_MAX: u32 = 32;

/// Longest key, in bytes.
const KEY_BYTES_MAX: usize = 1_024;

/// The subject that the condition is about, where it is not the message's own.
pub(super) const EXPECTED_OF: &str = "Nats-Expected-Last-Subject-Sequence-Subject";

impl NatsFence {
    /// Stores the value of a key in the fence's bucket, if `term` holds the mark of `resource`; answers with
    /// its revision.
    ///
    /// One message; before a term's first write, and after another's claim, the mark is read, too.
    ///
    /// # Errors
    /// [`FenceError::Stale`], [`FenceError::Unclaimed`] or [`FenceError::Foreign`]: nothing was written, and
    /// the refusal is counted. [`FenceError::Store`] if the servers failed, and [`Fault::Invalid`] for what
    /// is no key of a bucket (letters, digits and `-_=/`, in parts between dots), or is one of Tenure's own.
    pub async fn put(
        &self,
        resource: &ResourceName,
        term: &Term,
        key: &str,
        value: impl Into<Vec<u8>>,
    ) -> Result<u64, FenceError> {
        self.store(resource, term, key, value.into(), Change::Put).await
    }

    /// Removes the value of a key as `nats kv del` does, if `term` holds the mark of `resource`; answers with
    /// the revision of its removal. A key without a value may be removed, too.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn delete(&self, resource: &ResourceName, term: &Term, key: &str) -> Result<u64, FenceError> {
        self.store(resource, term, key, Vec::new(), Change::Delete).await
    }

    /// The subject of a key of the user's.
    pub(super) fn subject_of(&self, resource: &ResourceName, key: &str) -> Result<String, StoreError> {
        if is_key(key) {
            return Ok(self.0.site().keys.subject(key));
        }
        let message = format!(
            "{}: \"{}\" is no key of yours; use letters, digits and -_=/ in parts between dots, which do not begin with \
             lease, tenure-fence, tenure-refusals or tenure-reads",
            subject(resource),
            crate::record::shown(key)
        );
        Err(StoreError::not_applied(Fault::Invalid, message))
    }

    async fn store(
        &self,
        resource: &ResourceName,
        term: &Term,
        key: &str,
        value: Vec<u8>,
        change: Change,
    ) -> Result<u64, FenceError> {
        let to = self.subject_of(resource, key)?;
        let (site, resource, term) = (Arc::clone(self.0.site()), resource.clone(), term.clone());
        self.run(async move { site.enter(&resource, &term, &to, value, change).await })
            .await
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Put,
    Delete,
}

impl FenceSite {
    async fn enter(
        &self,
        resource: &ResourceName,
        term: &Term,
        to: &str,
        value: Vec<u8>,
        change: Change,
    ) -> Result<u64, Refusal> {
        let (guard, subject) = (self.keys.mark(resource), subject(resource));
        let further: &[(&'static str, &str)] = match change {
            Change::Put => &[(EXPECTED_OF, &guard)],
            Change::Delete => &[(EXPECTED_OF, &guard), ("KV-Operation", "DEL")],
        };
        let mut found = self.admitting(resource, term).await?;
        for _try in 0..TRIES_MAX {
            let condition = Condition {
                sequence: found.revision,
                epoch: found.epoch,
                further,
            };
            match self
                .link
                .put(&self.stream, to, value.clone(), condition, &subject)
                .await?
            {
                Put::As { sequence, .. } => return Ok(sequence),
                Put::Conflict => found = self.look_for(resource, term).await?,
            }
        }
        Err(restless(resource).into())
    }

    /// A mark that admits the term: the one that is remembered, or the one that stands there.
    pub(super) async fn admitting(&self, resource: &ResourceName, term: &Term) -> Result<Found, Refusal> {
        let remembered = self.remembered().get(resource).cloned();
        match remembered.filter(|found| found.entry(resource, term).is_ok()) {
            Some(found) => Ok(found),
            // What is remembered may be old, either way: only what the leader says refuses.
            None => self.look_for(resource, term).await,
        }
    }

    pub(super) async fn look_for(&self, resource: &ResourceName, term: &Term) -> Result<Found, Refusal> {
        let found = self.look(resource).await?;
        self.rule(resource, term, &found)?;
        Ok(found)
    }
}

/// Whether this is a key of a bucket, and none of Tenure's own.
fn is_key(key: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=/".contains(&byte);
    let part_fits = |part: &str| !part.is_empty() && part.bytes().all(fits);
    key.len() <= KEY_BYTES_MAX && key.split('.').all(part_fits) && !Keys::is_reserved(key)
}

#[cfg(test)]
mod tests {
    use super::is_key;

    #[test]
    fn keys_of_a_bucket_are_told_from_what_is_none() {
        for key in ["balance", "balance.alice", "a/b-c_d=e"] {
            assert!(is_key(key), "{key}");
        }
        for none in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "a b",
            "a*",
            ">",
            "lease.x",
            "tenure-fence.x",
            "tenure-refusals.x",
            "tenure-reads.x",
        ] {
            assert!(!is_key(none), "{none}");
        }
    }
}
