//! A verdict for each of many leases, at the cost of one.

use crate::clock;
use crate::extend::{Kept, Witness};
use crate::fault::Failure;
use crate::keys::Part;
use crate::renew::{Asked, Verdict, note_extended, wish};
use crate::session::Session;
use crate::site::Site;
use crate::wire::lease::{LeaseTimeToLiveRequest, LeaseTimeToLiveResponse};
use crate::wire::path;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use tenure_core::{Renewed, StoreError};
use tenure_remote::Deed;

/// Which keys are on a session.
#[derive(Default, Debug)]
pub(crate) struct Listing {
    keys: HashSet<Vec<u8>>,
    /// Who told.
    member: u64,
    /// The member's revision when it told: a key that was put by a later one cannot be among them, but one of
    /// the same name that a server has again which was put back.
    revision: i64,
}

impl Site {
    /// A verdict for each of many leases, from the keys that are on their sessions. Returns those that need
    /// to be looked at themselves.
    ///
    /// Which keys are on a session its leader knows. The member that answered the extension, and was proven
    /// to know the true leader or a later one, is asked for them after that, and no other: it can only know a
    /// later one still.
    pub(crate) async fn renew_attached<'a>(
        self: &Arc<Self>,
        mut asked: Vec<Asked<'a>>,
        verdicts: &mut [Option<Verdict>],
    ) -> Vec<Asked<'a>> {
        let Some(any) = asked.first() else {
            return asked;
        };
        let probe = self.probe(&self.renewals, any.name());
        let sent = clock::now();
        let (mut extended, probed) = tokio::join!(self.extend_all(&asked), probe);
        note_extended(&mut asked, &extended);
        let probed = probed.map(|raft_term| Witness { sent, raft_term });
        let mut attached: BTreeMap<i64, Arc<Listing>> = BTreeMap::new();
        let sessions: BTreeMap<i64, Arc<Session>> = asked
            .iter()
            .filter_map(|one| one.session.clone())
            .map(|session| (session.id, session))
            .collect();
        for (id, session) in sessions {
            let proven = self.prove_and_list(&session, extended.remove(&id), &probed).await;
            match proven {
                Ok(listing) => {
                    attached.insert(id, listing);
                }
                Err(error) => {
                    extended.insert(id, Err(error));
                }
            }
        }
        let mut left = Vec::new();
        for one in asked {
            let Some(session) = &one.session else {
                left.push(one);
                continue;
            };
            if let Some(Err(error)) = extended.get(&session.id) {
                verdicts[one.place] = Some(Err(one.failed(error.clone())));
                continue;
            }
            let Some(listing) = attached.get(&session.id) else {
                left.push(one);
                continue;
            };
            let has = |part| listing.keys.contains(&self.keys.part(one.name(), part));
            // Keys on the session have names alone. Asked after they were listed: whoever had put one there
            // by then was a member before he did.
            if has(Part::Holder) && session.holds_alone(&one.sitting, one.request.token, listing.revision) {
                verdicts[one.place] = Some(Ok(Renewed::Extended {
                    ttl: session.ttl,
                    wish: wish(has(Part::Wish)),
                }));
            } else {
                left.push(one);
            }
        }
        left
    }

    /// Proves that a session was extended, and reads which keys are on it; none where it is over.
    async fn prove_and_list(
        self: &Arc<Self>,
        session: &Arc<Session>,
        kept: Option<Result<Kept, StoreError>>,
        probed: &Result<Witness, Failure>,
    ) -> Result<Arc<Listing>, StoreError> {
        let failed = |failure: &Failure| failure.error(Deed::Write, "the session of leases", &self.place);
        let kept = kept.unwrap_or_else(|| Err(self.misunderstood()))?;
        let witness = probed.as_ref().map_err(failed)?;
        let proven = self.prove(&self.renewals, session, kept, *witness).await;
        let Kept::Until { member, .. } = proven.map_err(|failure| failed(&failure))? else {
            return Ok(Arc::default());
        };
        let listing = session.listing.ask(self.list_keys(session)).await;
        let listing = listing.map_err(|failure| failed(&failure))?;
        if listing.member != member {
            let moved = "the connection went to another member under the request; ask again";
            return Err(failed(&Failure::Status(tonic::Status::unavailable(moved))));
        }
        Ok(listing)
    }

    async fn list_keys(&self, session: &Session) -> Result<Arc<Listing>, Failure> {
        let request = LeaseTimeToLiveRequest {
            id: session.id,
            keys: true,
        };
        let listed: LeaseTimeToLiveResponse = self.renewals.unary(path::LEASE_TIME_TO_LIVE, &request).await?;
        let header = listed.header.unwrap_or_default();
        Ok(Arc::new(Listing {
            keys: listed.keys.into_iter().collect(),
            member: header.member_id,
            revision: header.revision,
        }))
    }
}
