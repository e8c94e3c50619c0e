use super::super::records::{Records, Slot};
use super::read::is_behind_a_name;
use crate::model::Defect;
use std::time::Duration;
use tenure_core::{LeaseName, PURGE_TTLS_MIN, Purge, Purged, Purging, StoreError};

impl Defect {
    /// The rule for cleaning up, broken.
    pub(super) fn clean_up(
        self,
        records: &mut Records,
        request: &Purge,
        now_ms: u64,
    ) -> Result<Purged, StoreError> {
        let mut asked = request.clone();
        match self {
            Self::CleanUpIgnoresAge => asked.unused_for = Duration::ZERO,
            Self::CleanUpLooksAndRemoves => asked.purging = Purging::Removes,
            Self::CleanUpIgnoresPrefix => asked.prefix.truncate(asked.prefix.trim_end_matches("/a/").len()),
            Self::CleanUpTakesAnyPage => asked.limit = asked.limit.clamp(1, 1_000),
            _ => {}
        }
        let kept = match self {
            Self::CleanUpKeepsExpired => taken_out(records, now_ms),
            _ => Vec::new(),
        };
        let mut purged = records.clean_up(&asked, now_ms)?;
        records.slots.extend(kept);
        if self == Self::CleanUpEndsAtNoName {
            purged.next = purged.next.take().filter(is_behind_a_name);
        }
        if self == Self::CleanUpLooksAndRemoves {
            purged.removed = 0;
        }
        let also: Vec<LeaseName> = records
            .slots
            .iter()
            .filter(|(name, slot)| name.as_str().starts_with(&asked.prefix) && self.takes(slot, now_ms))
            .map(|(name, _)| name.clone())
            .collect();
        for name in also {
            records.purge(&name);
            purged.removed += 1;
        }
        Ok(purged)
    }

    /// Whether the defect removes what the rule keeps.
    fn takes(self, slot: &Slot, now_ms: u64) -> bool {
        match (self, slot) {
            (Self::CleanUpTakesUnreadable, Slot::Foreign(_)) => true,
            (Self::CleanUpTakesAhead, Slot::Own(record)) => record.token.number() > now_ms,
            (Self::CleanUpTakesYoung, Slot::Own(record)) => record.released_ms.is_some(),
            (Self::CleanUpCountsFromTheTerm, Slot::Own(record)) => {
                let unused_ms = record.ttl.as_millis() * u64::from(PURGE_TTLS_MIN);
                !record.is_held(now_ms) && record.began_ms + unused_ms <= now_ms
            }
            (Self::CleanUpTakesHeld, Slot::Own(record)) => record.is_held(now_ms),
            _ => false,
        }
    }
}

/// The records that have expired, as if they were not there.
fn taken_out(records: &mut Records, now_ms: u64) -> Vec<(LeaseName, Slot)> {
    let has_expired = |slot: &Slot| match slot {
        Slot::Own(record) => record.released_ms.is_none() && !record.is_held(now_ms),
        Slot::Foreign(_) => false,
    };
    let slots = std::mem::take(&mut records.slots);
    let (expired, rest): (Vec<_>, Vec<_>) = slots.into_iter().partition(|(_, slot)| has_expired(slot));
    records.slots.extend(rest);
    expired
}
