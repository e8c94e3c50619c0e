//! Removing the records that nobody uses, a page at a time.

use crate::connect::refused;
use crate::list::READS_MAX;
use crate::swap::Kv;
use futures_util::stream::{self, StreamExt as _};
use serde_json::json;
use tenure_core::{FencingToken, LeaseName, Purge, Purged, Purging, StoreError};
use tenure_remote::Deed;

/// What errors are about.
const SUBJECT: &str = "the clean-up of leases";

impl Kv {
    /// Reads a page, and removes each record that nobody uses, up to its number: one that was written since
    /// has a greater one.
    pub(crate) async fn purge(&self, request: &Purge) -> Result<Purged, StoreError> {
        let page = request.page();
        // Before the records: so none looks older than it is.
        let now_ms = self.clock_ms(SUBJECT).await?;
        let (keys, next) = self.page_of_keys(&page).await?;
        let names = keys.into_iter().filter_map(|key| key.name);
        let looks = stream::iter(names.map(|name| self.unused(name, request, now_ms))).buffered(READS_MAX);
        let found: Vec<Result<Option<Unused>, StoreError>> = looks.collect().await;
        let found: Vec<Option<Unused>> = found.into_iter().collect::<Result<_, _>>()?;
        let found: Vec<Unused> = found.into_iter().flatten().collect();
        let mut removed = 0;
        if request.purging == Purging::Removes {
            let removals = found
                .clone()
                .into_iter()
                .map(|one| self.remove(one.name, one.sequence));
            let mut removals = stream::iter(removals).buffered(READS_MAX);
            while let Some(was_there) = removals.next().await {
                removed += u64::from(was_there?);
            }
        }
        Ok(Purged {
            unused: found.into_iter().map(|unused| unused.name).collect(),
            removed,
            next,
        })
    }

    /// The record, if nobody uses it.
    async fn unused(
        &self,
        name: LeaseName,
        request: &Purge,
        now_ms: u64,
    ) -> Result<Option<Unused>, StoreError> {
        let subject = self.keys.lease(&name);
        let Some(stored) = self.link.last(&self.stream, &subject, SUBJECT).await? else {
            return Ok(None);
        };
        let (sequence, stored_ms) = (stored.sequence, stored.time_ms);
        // What cannot be understood stays; and so does what was removed already.
        let Ok(Some(version)) = self.version(name.as_str(), stored) else {
            return Ok(None);
        };
        // Its last write was a release, or an extension by its ttl.
        let ttl = version.entry.ttl;
        let lasted = if version.entry.released {
            0
        } else {
            ttl.as_millis()
        };
        let unused_ms = request.unused_at_least(ttl).as_millis() + u128::from(lasted);
        let is_old = u128::from(now_ms.saturating_sub(stored_ms)) >= unused_ms;
        let rises = next_is_above(version.entry.token, stored_ms, now_ms);
        Ok((is_old && rises).then_some(Unused { name, sequence }))
    }

    /// Removes a record as it was seen; `false` if it is another by now.
    async fn remove(&self, name: LeaseName, sequence: u64) -> Result<bool, StoreError> {
        let api = format!("STREAM.PURGE.{}", self.stream);
        // Up to this number and without it: what was written since has a greater one.
        let request = json!({ "filter": self.keys.lease(&name), "seq": sequence + 1 });
        match self.link.call(&api, &request, Deed::Write, SUBJECT).await? {
            // More than one where the bucket keeps earlier revisions, too.
            Ok(answer) => Ok(answer["purged"].as_u64().is_some_and(|purged| purged >= 1)),
            Err(refusal) => Err(refused(Deed::Write, SUBJECT, self.link.place(), &refusal)),
        }
    }
}

/// For how long a clock must have shown more than a token that was ahead of it: longer than any request may
/// take that looks for the record, and carries on a reading of that clock from before.
const PASSED_FOR_MS: u64 = 60_000;

/// Whether the next token of a name is above this one, though the record be gone: it starts from the clock.
/// Where that was not behind the token at the last write, it has passed it for as long as nobody has used the
/// record.
fn next_is_above(token: FencingToken, stored_ms: u64, now_ms: u64) -> bool {
    let token = token.number();
    token <= stored_ms || token.saturating_add(PASSED_FOR_MS) < now_ms
}

/// A record that nobody uses, and its number.
#[derive(Clone, Debug)]
struct Unused {
    name: LeaseName,
    sequence: u64,
}

#[cfg(test)]
mod tests {
    use super::{PASSED_FOR_MS, next_is_above};
    use tenure_core::FencingToken;

    #[test]
    fn token_that_the_clock_has_just_passed_is_not_forgotten() {
        let token = FencingToken::new(1_800_000_000_000).expect("a token");
        let stored_ms = token.number() - 5;
        for (passed_ms, is_above) in [(0, false), (1, false), (2_000, false), (PASSED_FOR_MS + 1, true)] {
            let now_ms = token.number() + passed_ms;
            assert_eq!(
                next_is_above(token, stored_ms, now_ms),
                is_above,
                "{passed_ms} ms past it"
            );
            assert!(next_is_above(token, token.number(), now_ms), "it was never ahead");
        }
    }
}
