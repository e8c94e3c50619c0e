//! Where a store's records live, and what goes to them on which connection.

use crate::dial::Members;
use crate::fault::Failure;
use crate::keys::Keys;
use crate::known::Known;
use crate::lane::Lane;
use crate::session::Sessions;
use crate::url::StoreUrl;
use crate::version;
use crate::wire::kv::{RequestOp, ResponseOp, TxnRequest, TxnResponse};
use crate::wire::{ResponseHeader, path};
use std::sync::Arc;
use tenure_core::{Durability, Fault, LeaseName, StoreError, Ttl};
use tenure_remote::{Deed, WatchPlaces, lease_subject};

/// Most transactions within one: servers take 128 operations side by side, as their default.
pub(crate) const PARTS_MAX: usize = 100;

/// How often a request looks again because what it had seen was changed under it.
pub(crate) const ROUNDS_MAX: u32 = 8;

/// Watches of one store at a time.
pub(crate) const WATCHES_MAX: usize = 1_024;

/// Longest ttl: a day, as everywhere.
pub(crate) const TTL_MAX: Ttl = Ttl::MAX;

/// The records under one prefix of one cluster.
pub(crate) struct Site {
    pub(crate) members: Arc<Members>,
    pub(crate) keys: Keys,
    /// Members and prefix, for people.
    pub(crate) place: String,
    /// Everything but renewals and watches.
    pub(crate) requests: Arc<Lane>,
    /// Renewals alone: nothing that takes long stands before them.
    pub(crate) renewals: Arc<Lane>,
    /// What watches listen on.
    pub(crate) watching: Lane,
    pub(crate) sessions: Sessions,
    pub(crate) known: Known,
    /// How many more watches there may be.
    pub(crate) watches: WatchPlaces,
    /// The shortest ttl that the server grants.
    pub(crate) ttl_min: Ttl,
    /// What the members' versions say of the sessions that they keep.
    pub(crate) durability: Durability,
}

impl Site {
    /// Sends nothing.
    ///
    /// # Errors
    /// [`Fault::Invalid`]: a file that the URL names cannot be read.
    pub(crate) fn new(url: StoreUrl) -> Result<Self, StoreError> {
        let (keys, place) = (Keys::new(&url.prefix), url.shown());
        let members = Arc::new(Members::new(url)?);
        Ok(Self {
            keys,
            place,
            requests: Arc::new(Lane::new(Arc::clone(&members))),
            renewals: Arc::new(Lane::new(Arc::clone(&members))),
            watching: Lane::new(Arc::clone(&members)),
            members,
            sessions: Sessions::default(),
            known: Known::default(),
            watches: WatchPlaces::new(WATCHES_MAX),
            ttl_min: Ttl::MIN,
            durability: version::durability(&[None]),
        })
    }

    /// A failure of a request about a lease.
    pub(crate) fn failed(&self, failure: &Failure, deed: Deed, name: &LeaseName) -> StoreError {
        failure.error(deed, &lease_subject(name), &self.place)
    }

    /// Whole seconds, which are what sessions are granted for: a ttl between two is rounded up.
    ///
    /// # Errors
    /// [`Fault::Invalid`] outside the range of the store.
    pub(crate) fn seconds(&self, name: &LeaseName, ttl: Ttl) -> Result<u64, StoreError> {
        if (self.ttl_min..=TTL_MAX).contains(&ttl) {
            return Ok(ttl.as_millis().div_ceil(1_000));
        }
        Err(StoreError::not_applied(
            Fault::Invalid,
            format!(
                "ttl {ttl} of lease \"{name}\" is outside {} to {TTL_MAX}, which {} keeps to; the shortest follows from the \
                 server's --election-timeout",
                self.ttl_min, self.place
            ),
        ))
    }

    /// What a lease was changed to while it was being asked for, again and again.
    pub(crate) fn restless(&self, name: &LeaseName) -> StoreError {
        StoreError::not_applied(
            Fault::Busy,
            format!(
                "{} at {}: it changed {ROUNDS_MAX} times under the request; ask again",
                lease_subject(name),
                self.place
            ),
        )
    }

    /// What a member said that the protocol does not allow.
    pub(crate) fn misunderstood(&self) -> StoreError {
        StoreError::unknown(
            Fault::Internal,
            format!("{}: the answer has another form than asked for", self.place),
        )
    }
}

/// A transaction on one of the store's connections.
pub(crate) async fn transact(lane: &Lane, request: &TxnRequest) -> Result<TxnResponse, Failure> {
    lane.unary(path::TXN, request).await
}

/// Several transactions in one step, each by its own conditions.
///
/// One alone is sent as it is: servers such as 3.4.23 do not look for the rights to what is within a
/// transaction's transactions.
pub(crate) async fn transact_each(
    lane: &Lane,
    mut parts: Vec<TxnRequest>,
) -> Result<Vec<TxnResponse>, Failure> {
    if parts.len() == 1 {
        let only = parts.remove(0);
        return Ok(vec![transact(lane, &only).await?]);
    }
    let together = TxnRequest {
        success: parts.into_iter().map(RequestOp::txn).collect(),
        ..TxnRequest::default()
    };
    let answer = transact(lane, &together).await?;
    Ok(answer.responses.into_iter().filter_map(ResponseOp::txn).collect())
}

/// The consensus's term in a header.
pub(crate) fn raft_term(header: Option<ResponseHeader>) -> u64 {
    header.map_or(0, |header| header.raft_term)
}
