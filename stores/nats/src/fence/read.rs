//! Reading data behind the fence: as they are after the claim.

use super::write::EXPECTED_OF;
use super::{FenceSite, NatsFence, Refusal, subject};
use crate::api::{Condition, Put};
use tenure_core::{Certainty, Fault, FenceError, ResourceName, StoreError, Term};

/// How often one key is looked at. It is looked at again when it was written meanwhile, or was shown as it
/// was before.
const LOOKS_MAX: u32 = 32;

impl NatsFence {
    /// The value of a key in the fence's bucket, as it is at some moment after `term` has claimed the mark of
    /// `resource`; `None` where there is none. What older terms have written is in it, as nothing of theirs
    /// is stored after the claim.
    ///
    /// Any other read may miss that: a direct get, as the driver's `get` of a key where the bucket allows it,
    /// is answered by whichever copy is near, and the others by a leader that may have been deposed and not
    /// know it. A term that goes on from such a value writes over what an older one was confirmed. So what
    /// was read is confirmed by a write of no meaning on the condition that it still is the key's last:
    /// servers that are behind cannot store it.
    ///
    /// Two messages, of which one is a write. It does not say whether the term has the mark still: that is
    /// what refuses what it writes.
    ///
    /// # Errors
    /// As [`put`](Self::put), and nothing was changed.
    pub async fn get(
        &self,
        resource: &ResourceName,
        term: &Term,
        key: &str,
    ) -> Result<Option<Vec<u8>>, FenceError> {
        let of = self.subject_of(resource, key)?;
        let (site, resource, term) = (self.0.site().clone(), resource.clone(), term.clone());
        self.run(async move { site.read(&resource, &term, &of).await })
            .await
    }
}

impl FenceSite {
    async fn read(&self, resource: &ResourceName, term: &Term, of: &str) -> Result<Option<Vec<u8>>, Refusal> {
        // The claim was stored before the read: else an older term could write after it.
        self.admitting(resource, term).await?;
        let (to, subject) = (self.keys.reads(resource), subject(resource));
        let unchanged = |error| StoreError {
            certainty: Certainty::NotApplied,
            ..error
        };
        for _look in 0..LOOKS_MAX {
            let stored = self.link.last(&self.stream, of, &subject).await?;
            let is_the_last = Condition {
                further: &[(EXPECTED_OF, of)],
                ..Condition::last_stored(stored.as_ref())
            };
            let confirmed = self
                .link
                .put(&self.stream, &to, Vec::new(), is_the_last, &subject);
            match confirmed.await.map_err(unchanged)? {
                Put::As { .. } => return Ok(stored.and_then(|stored| stored.value)),
                Put::Conflict => {}
            }
        }
        let message = format!("{subject}: the key changed {LOOKS_MAX} times under the request; try again");
        Err(StoreError::not_applied(Fault::Busy, message).into())
    }
}
