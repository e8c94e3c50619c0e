//! Clearing sessions: what is on one and nobody holds any more is ended.

use crate::fault::Failure;
use crate::keys::Part;
use crate::session::Session;
use crate::site::{PARTS_MAX, Site, transact_each};
use crate::wire::kv::{Compare, RequestOp, TxnRequest};
use crate::wire::lease::{LeaseTimeToLiveRequest, LeaseTimeToLiveResponse};
use crate::wire::path;
use std::sync::Arc;
use std::time::Instant;
use tenure_core::LeaseName;

impl Site {
    /// Ends the leases that share a session and that nobody trusts in any more: a neighbour's renewals must
    /// not hold them for ever. What cannot be ended now is ended beside the next extension.
    pub(crate) async fn clear(self: Arc<Self>, session: Arc<Session>) {
        let Ok(_turn) = session.clearing.try_lock() else {
            return;
        };
        let began = Instant::now();
        session.drop_abandoned();
        match self.end_what_nobody_holds(&session).await {
            Ok(()) => session.was_cleared(began),
            Err(failure) => {
                tracing::debug!(place = %self.place, ?failure, "a session could not be cleared of what nobody holds yet");
            }
        }
    }

    /// Whoever puts a lease on a session is a member of it before he does. So a holder's key that was there
    /// before nobody was one is nobody's, whatever put it there; and one that is put there since has a later
    /// revision.
    ///
    /// Not where renewals are: a member that does not write may still extend.
    async fn end_what_nobody_holds(&self, session: &Session) -> Result<(), Failure> {
        let request = LeaseTimeToLiveRequest {
            id: session.id,
            keys: true,
        };
        let listed: LeaseTimeToLiveResponse = self.requests.unary(path::LEASE_TIME_TO_LIVE, &request).await?;
        let revision = listed.header.map_or(0, |header| header.revision);
        let held = listed.keys.iter().filter_map(|key| match self.keys.read(key) {
            Some((name, Part::Holder)) => LeaseName::new(name).ok(),
            Some(_) | None => None,
        });
        let ended: Vec<LeaseName> = held.filter(|name| !session.has(name)).collect();
        for part in ended.chunks(PARTS_MAX) {
            let endings = part.iter().map(|name| self.ending(session, name, revision));
            transact_each(&self.requests, endings.collect()).await?;
            for name in part {
                self.known.forget(name);
            }
        }
        Ok(())
    }

    fn ending(&self, session: &Session, name: &LeaseName, revision: i64) -> TxnRequest {
        let holder = self.keys.part(name, Part::Holder);
        TxnRequest {
            compare: vec![
                Compare::ends_with(&holder, session.id),
                Compare::not_written_after(&holder, revision),
            ],
            success: vec![
                RequestOp::delete(holder),
                RequestOp::delete(self.keys.part(name, Part::Wish)),
            ],
            failure: Vec::new(),
        }
    }
}
