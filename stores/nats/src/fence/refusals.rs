//! Where refusals are counted: beside the mark, and apart from it, so that a refused writer changes no
//! revision of it.

use super::mark::{decode_refused, encode_refused};
use super::{FenceSite, subject};
use crate::api::{Condition, Put};
use tenure_core::{FencingToken, Refused, ResourceName};
use tenure_remote::{Notes, pause_between_rounds};

/// How often one note looks and writes: others may count at the same time.
const LOOKS_MAX: u32 = 8;

const UNREADABLE: &str = "the count beside the mark cannot be read: a later Tenure may have written it";

impl Notes for FenceSite {
    async fn note(&self, resource: &ResourceName, count: u64, last: FencingToken) -> Result<(), String> {
        let subject = subject(resource);
        let to = self.keys.refusals(resource);
        for _look in 0..LOOKS_MAX {
            let stored = self
                .link
                .last(&self.stream, &to, &subject)
                .await
                .map_err(|error| error.message)?;
            let over = Condition::last_stored(stored.as_ref());
            // Of a later Tenure's nothing is lost: this one's stay counted, and are in the log.
            let before = match stored.and_then(|stored| stored.value) {
                None => 0,
                Some(value) => decode_refused(&value).ok_or(UNREADABLE)?.count,
            };
            let value = encode_refused(Refused {
                count: before.saturating_add(count),
                last,
            });
            let put = self.link.put(&self.stream, &to, value, over, &subject);
            match put.await.map_err(|error| error.message)? {
                Put::As { .. } => return Ok(()),
                Put::Conflict => pause_between_rounds().await,
            }
        }
        Err(format!("others counted {LOOKS_MAX} times meanwhile"))
    }
}
