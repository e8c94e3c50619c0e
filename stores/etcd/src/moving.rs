//! Putting a lease that is held on another session.

use crate::acquire::wish as wish_value;
use crate::attached::Put;
use crate::clock;
use crate::extend::Kept;
use crate::found::{Found, holder_value};
use crate::keys::Part;
use crate::renew::{Asked, Verdict, wish};
use crate::site::{Site, transact};
use crate::wire::kv::{Compare, RequestOp, ResponseOp, TxnRequest};
use std::sync::Arc;
use tenure_core::{Fault, FencingToken, LeaseName, Renewed, StoreError};
use tenure_remote::{Deed, lease_subject};

impl Site {
    /// Puts a lease that is held on a session of this store with the ttl that is asked for: of another process by the
    /// same name, or from another ttl.
    pub(crate) async fn renew_by_moving(self: &Arc<Self>, one: &Asked<'_>, found: &Found) -> Verdict {
        let name = one.name();
        let session = self
            .sessions
            .of(&self.renewals, one.seconds)
            .await
            .map_err(|failure| self.failed(&failure, Deed::Read, name))?;
        // Before, and not beside: were the extension lost, the lease would end with a session that is almost over, although
        // its holder was told more.
        if !session.is_fresh(clock::now()) {
            let kept = self.extend_proven(&self.renewals, &session, name).await;
            // Nothing was done to the lease yet.
            match kept.map_err(|failure| self.failed(&failure, Deed::Read, name))? {
                Kept::Gone => return Err(self.session_over(name)),
                Kept::Until { .. } => {}
            }
        }
        let holder = holder_value(&session, &one.sitting, Some(one.request.token));
        let moving = self.moving(name, found, one.request.token, &holder, session.id);
        session.admit(&one.sitting, holder.clone());
        let answer = match transact(&self.renewals, &moving).await {
            Err(failure) if failure.is_session_gone() => {
                session.end();
                return Err(self.session_over(name));
            }
            answer => answer.map_err(|failure| self.failed(&failure, Deed::Write, name))?,
        };
        self.known.forget(name);
        if answer.succeeded {
            let put = Put {
                token: one.request.token,
                revision: answer.header.map_or(0, |header| header.revision),
            };
            self.sessions.confirm(&session, name, &holder, put);
        } else {
            session.dismiss(name, &holder);
            let rows = answer.responses.into_iter().next().map(ResponseOp::keys);
            let now = self.understand(name, &rows.ok_or_else(|| self.misunderstood())?)?;
            // A twin of this request may have moved it already.
            let moved = now
                .holder
                .as_ref()
                .is_some_and(|holder| holder.session == session.id);
            if !self.is_held_by(one, &now) {
                return Ok(self.lost(name, &now));
            }
            if !moved {
                return Err(self.restless(name));
            }
        }
        Ok(Renewed::Extended {
            ttl: session.ttl,
            wish: wish(found.asked),
        })
    }

    /// The session that a lease was to be put on is over.
    pub(crate) fn session_over(&self, name: &LeaseName) -> StoreError {
        StoreError::not_applied(
            Fault::Busy,
            format!(
                "{} at {}: the process's session had ended; ask again",
                lease_subject(name),
                self.place
            ),
        )
    }

    /// The transaction that puts a term on another session, if it is held.
    pub(crate) fn moving(
        &self,
        name: &LeaseName,
        found: &Found,
        token: FencingToken,
        holder: &[u8],
        session: i64,
    ) -> TxnRequest {
        let key = |part| self.keys.part(name, part);
        let mut success = vec![RequestOp::put(key(Part::Holder), holder.to_vec(), session)];
        if found.asked {
            success.push(RequestOp::put(key(Part::Wish), wish_value(token), session));
        }
        TxnRequest {
            compare: vec![
                Compare::written_at(&key(Part::Record), found.record_revision),
                Compare::written_at(&key(Part::Holder), found.holder_revision),
            ],
            success,
            failure: vec![self.reading(name)],
        }
    }
}
