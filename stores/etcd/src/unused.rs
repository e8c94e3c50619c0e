//! What a clean-up notes of a record that nobody uses.

use crate::found::Found;
use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::{FencingToken, Occupancy};

/// A record that nobody uses, and when a clean-up saw it so first.
///
/// That is told by the wall clock of the machine that cleans up, and how old it is by that of the machine
/// that comes later. etcd has no clock that can be asked. A session would be one, put beside the record for
/// as long as is asked; but it begins anew with every change of the cluster's leader, and where those are
/// more frequent than thirty days nothing would ever go. Revisions count writes, and the time in the record
/// is of its holder's clock, which may be any machine's.
///
/// So the only clocks that are compared are those of the machines that clean up, over a day at least where
/// `tenure gc` asks. If one is wrong by more than that, the record of a name that nobody holds may go before
/// its time, and its history with it. No lease and no token can: the transaction that removes compares that
/// nobody holds the record and that it is the very term, and the next token is a revision, whatever is
/// removed. A note from the future counts as none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unused {
    /// The term. Whoever uses the name begins another.
    token: FencingToken,
    /// Whether it was given back, or has only expired: then it may still be.
    released: bool,
    noted_at_ms: u64,
}

impl Unused {
    /// `None` where there is no record, or somebody holds it.
    pub(crate) fn seen(found: &Found, now_ms: u64) -> Option<Self> {
        let token = found.record.as_ref()?.token;
        let released = match found.occupancy() {
            Occupancy::Held => return None,
            Occupancy::Vacant => true,
            Occupancy::Expired => false,
        };
        Some(Self {
            token,
            released,
            noted_at_ms: now_ms,
        })
    }

    /// For how long the record has been as it is now; `None` where it was used since.
    pub(crate) fn age(&self, now: &Self) -> Option<Duration> {
        let same = (self.token, self.released) == (now.token, now.released);
        let age_ms = now.noted_at_ms.checked_sub(self.noted_at_ms).filter(|_| same)?;
        Some(Duration::from_millis(age_ms))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        json!({ "token": self.token.number(), "released": self.released, "notedAt": self.noted_at_ms })
            .to_string()
            .into_bytes()
    }

    /// `None` for what is no note.
    pub(crate) fn decode(value: &[u8]) -> Option<Self> {
        let fields: Value = serde_json::from_slice(value).ok()?;
        Some(Self {
            token: FencingToken::new(fields.get("token")?.as_u64()?).ok()?,
            released: fields.get("released")?.as_bool()?,
            noted_at_ms: fields.get("notedAt")?.as_u64()?,
        })
    }
}
