//! A lease as its keys say, at one revision.

use crate::attached::Sitting;
use crate::keys::{Keys, Part, shown};
use crate::record::{Record, unreadable, wall_clock_ms, without_record};
use crate::session::Session;
use crate::wire::kv::KeyValue;
use serde_json::Value;
use std::time::Duration;
use tenure_core::{Acquire, End, FencingToken, Lease, LeaseName, Occupancy, StoreError, Ttl};

/// What the keys of a lease say. A revision is 0 where there is no such key.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Found {
    pub(crate) record: Option<Written>,
    pub(crate) record_revision: i64,
    pub(crate) term_revision: i64,
    pub(crate) holder_revision: i64,
    pub(crate) holder: Option<Holder>,
    pub(crate) asked: bool,
}

/// A record with what its key says of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Written {
    pub(crate) record: Record,
    /// The revision that wrote it.
    pub(crate) token: FencingToken,
    /// How often it was written.
    pub(crate) terms: u64,
}

/// The key that is there as long as the lease is held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Holder {
    /// The session that it ends with.
    pub(crate) session: i64,
    /// The ttl of the last acquisition or renewal.
    pub(crate) ttl: Ttl,
    /// As it stands there: by it, it is known again.
    pub(crate) value: Vec<u8>,
}

/// What is known of the session of a holder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Remains {
    pub(crate) remaining: Duration,
    pub(crate) renewed_ago: Duration,
}

/// How an acquisition is decided, by the rules of the contract.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// A new term begins; how the one before ended, where there was one.
    Begin(Option<End>),
    /// The term is the same attempt's already.
    Again,
    /// Somebody else holds it.
    Held,
    /// A later attempt was made, or this one was released.
    Superseded,
}

impl Found {
    /// Reads the keys of one lease. Keys of another layout are passed over.
    ///
    /// # Errors
    /// [`Fault::Unreadable`](tenure_core::Fault::Unreadable): a key of the lease cannot be understood.
    pub(crate) fn read(keys: &Keys, name: &str, rows: &[KeyValue]) -> Result<Self, StoreError> {
        let mut found = Self::default();
        for row in rows {
            match keys.read(&row.key) {
                Some((of, Part::Record)) if of == name => {
                    found.record = Some(written(name, row)?);
                    found.record_revision = row.mod_revision;
                }
                Some((of, Part::Term)) if of == name => found.term_revision = row.mod_revision,
                Some((of, Part::Holder)) if of == name => {
                    found.holder = Some(Holder {
                        session: row.lease,
                        ttl: ttl_of_holder(name, row)?,
                        value: row.value.clone(),
                    });
                    found.holder_revision = row.mod_revision;
                }
                Some((of, Part::Wish)) if of == name => found.asked = true,
                Some(_) | None => {}
            }
        }
        match (&found.record, &found.holder) {
            // Whoever holds it may go on believing in that: it is nobody else's yet. Without a session it is
            // no holder's.
            (None, Some(holder)) if holder.session != 0 => {
                Err(without_record(keys.lease(name).as_bytes(), name))
            }
            (Some(_), _) | (None, _) => Ok(found),
        }
    }

    /// Whether its holder's key ends with a session. Whoever copies keys, as `etcdctl make-mirror` does,
    /// copies no sessions: it would be held for ever. It is nobody else's at once, as a renewal of a holder
    /// that lives puts it on a session again.
    ///
    /// # Errors
    /// [`Fault::Unreadable`](tenure_core::Fault::Unreadable): it ends by nothing.
    pub(crate) fn ends_by_itself(&self, keys: &Keys, name: &LeaseName) -> Result<(), StoreError> {
        match (&self.record, &self.holder) {
            (Some(_), Some(holder)) if holder.session == 0 => Err(unreadable(
                &keys.part(name, Part::Holder),
                name.as_str(),
                "it is on no session, as after etcdctl make-mirror or put, so that nothing ends it",
            )),
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// Whether the lease may be taken, where there is a record.
    pub(crate) fn occupancy(&self) -> Occupancy {
        match (&self.holder, self.term_revision) {
            (Some(_), _) => Occupancy::Held,
            (None, 0) => Occupancy::Vacant,
            (None, _) => Occupancy::Expired,
        }
    }

    /// Whether this is the term, held or not.
    pub(crate) fn is_term(&self, sitting: &Sitting, token: FencingToken) -> bool {
        self.record.as_ref().is_some_and(|written| {
            written.token == token
                && written.record.holder.incarnation == sitting.incarnation
                && written.record.attempt == sitting.attempt
        })
    }

    /// Decides as the contract wants it.
    pub(crate) fn decide(&self, request: &Acquire) -> Decision {
        let Some(Written { record, .. }) = &self.record else {
            return Decision::Begin(None);
        };
        let ours = record.holder.incarnation == request.candidate.incarnation;
        let (theirs, asked) = (record.attempt, request.attempt);
        match self.occupancy() {
            Occupancy::Vacant if ours && theirs >= asked => Decision::Superseded,
            Occupancy::Expired | Occupancy::Held if ours && theirs > asked => Decision::Superseded,
            Occupancy::Vacant => Decision::Begin(Some(End::Released)),
            Occupancy::Expired => Decision::Begin(Some(End::Expired)),
            Occupancy::Held if ours && theirs == asked => Decision::Again,
            Occupancy::Held if ours => Decision::Begin(Some(End::Released)),
            Occupancy::Held => Decision::Held,
        }
    }

    /// The lease for its readers; `None` where there is no record.
    pub(crate) fn lease(&self, name: &LeaseName, remains: Remains) -> Option<Lease> {
        let written = self.record.as_ref()?;
        let record = &written.record;
        let held_for = Duration::from_millis(wall_clock_ms().saturating_sub(record.acquired_at_ms));
        let held = self.holder.is_some();
        let ttl = self.holder.as_ref().map_or(record.ttl, |holder| holder.ttl);
        Some(Lease {
            name: name.clone(),
            holder: record.holder.clone(),
            token: written.token,
            attempt: record.attempt,
            terms: written.terms,
            ttl,
            remaining: match held {
                // A session may have more to spare than its lease has.
                true => remains.remaining.min(ttl.duration()).max(REMAINING_MIN),
                false => Duration::ZERO,
            },
            released: self.occupancy() == Occupancy::Vacant,
            held_for,
            renewed_ago: match held {
                true => remains.renewed_ago.min(held_for),
                false => held_for,
            },
            asked_to_step_down: held && self.asked,
            note: record.note.clone(),
        })
    }
}

fn written(name: &str, row: &KeyValue) -> Result<Written, StoreError> {
    let number = |number: i64| FencingToken::from_signed(number);
    let (Ok(token), Ok(terms)) = (number(row.mod_revision), number(row.version)) else {
        return Err(unreadable(&row.key, name, "its revision is none"));
    };
    Ok(Written {
        record: Record::decode(&row.key, name, &row.value)?,
        token,
        terms: terms.number(),
    })
}

/// The value of a holder's key: no two are alike on one session, so that a late request to end an abandoned
/// lease cannot end what was put there since.
pub(crate) fn holder_value(session: &Session, sitting: &Sitting, token: Option<FencingToken>) -> Vec<u8> {
    // Where it was written with the record the token is its revision, which could not be known before.
    let mut value = serde_json::json!({
        "incarnation": sitting.incarnation.to_string(),
        "attempt": sitting.attempt.number(),
        "ttlMs": session.ttl.as_millis(),
        "serial": session.next_serial(),
    });
    if let Some(token) = token {
        value["token"] = token.number().into();
    }
    value.to_string().into_bytes()
}

fn ttl_of_holder(name: &str, row: &KeyValue) -> Result<Ttl, StoreError> {
    let wrong = || {
        let found = shown(&row.value);
        unreadable(
            &row.key,
            name,
            &format!("its value is {found}, not a JSON object with \"ttlMs\""),
        )
    };
    let value: Value = serde_json::from_slice(&row.value).map_err(|_| wrong())?;
    let milliseconds = value.get("ttlMs").and_then(Value::as_u64).ok_or_else(wrong)?;
    Ttl::from_millis(milliseconds).map_err(|_| wrong())
}

/// The term that a removed holder's key belonged to.
pub(crate) fn token_of_holder(row: &KeyValue) -> Option<FencingToken> {
    let value: Value = serde_json::from_slice(&row.value).ok()?;
    match value.get("token") {
        Some(token) => FencingToken::new(token.as_u64()?).ok(),
        None => FencingToken::from_signed(row.mod_revision).ok(),
    }
}

/// What remains at least of a lease that is held: its session may be over for a moment before its key is.
const REMAINING_MIN: Duration = Duration::from_millis(50);
