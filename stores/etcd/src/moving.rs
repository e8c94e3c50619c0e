//! Putting a lease that is held on another session.

use crate::acquire::wish as wish_value;
use crate::attached::Put;
use crate::clock;
use crate::extend::Kept;
use crate::found::{Found, holder_value};
use crate::keys::Part;
use crate::renew::{Asked, Verdict, wish};
use crate::session::Session;
use crate::site::{ROUNDS_MAX, Site, transact};
use crate::wire::kv::{Compare, RequestOp, ResponseOp, TxnRequest};
use std::sync::Arc;
use tenure_core::{Fault, FencingToken, LeaseName, Renewed, StoreError};
use tenure_remote::{Deed, lease_subject};

impl Site {
    /// Puts a lease that is held on a session of this store with the ttl that is asked for: of another
    /// process by the same name, or from another ttl.
    pub(crate) async fn renew_by_moving(self: &Arc<Self>, one: &Asked<'_>, found: &Found) -> Verdict {
        let name = one.name();
        let session = self
            .sessions
            .of(&self.renewals, one.seconds)
            .await
            .map_err(|failure| self.failed(&failure, Deed::Read, name))?;
        // Before, and not beside: were the extension lost, the lease would end with a session that is almost
        // over, although its holder was told more.
        if !session.is_fresh(clock::now()) {
            let kept = self.extend_proven(&self.renewals, &session, name).await;
            // Nothing was done to the lease yet.
            match kept.map_err(|failure| self.failed(&failure, Deed::Read, name))? {
                Kept::Gone => return Err(self.session_over(name)),
                Kept::Until { .. } => {}
            }
        }
        let mut found = found.clone();
        for _round in 0..ROUNDS_MAX {
            match self.move_once(one, &found, &session).await? {
                None => {
                    return Ok(Renewed::Extended {
                        ttl: session.ttl,
                        wish: wish(found.asked),
                    });
                }
                Some(now) if self.is_held_by(one, &now) => found = now,
                Some(now) => return Ok(self.lost(name, &now)),
            }
        }
        Err(self.restless(name))
    }

    /// Puts a lease on a session if it is as it was found; what it is now, if it is not. Where a twin of this
    /// request has put it there, too, it is put there anew: whoever holds it is to be known there by what he
    /// was answered.
    async fn move_once(
        &self,
        one: &Asked<'_>,
        found: &Found,
        session: &Session,
    ) -> Result<Option<Found>, StoreError> {
        let (name, token) = (one.name(), one.request.token);
        let holder = holder_value(session, &one.sitting, Some(token));
        let moving = self.moving(name, found, token, &holder, session.id);
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
            let revision = answer.header.map_or(0, |header| header.revision);
            let put = Put { token, revision };
            self.sessions.confirm(session, name, &holder, put);
            return Ok(None);
        }
        session.dismiss(name, &holder);
        let rows = answer.responses.into_iter().next().map(ResponseOp::keys);
        let rows = rows.ok_or_else(|| self.misunderstood())?;
        self.understand(name, &rows).map(Some)
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
        let mut compare = vec![
            Compare::written_at(&key(Part::Record), found.record_revision),
            Compare::written_at(&key(Part::Holder), found.holder_revision),
        ];
        let mut success = vec![RequestOp::put(key(Part::Holder), holder.to_vec(), session)];
        match found.asked {
            true => success.push(RequestOp::put(key(Part::Wish), wish_value(token), session)),
            // One that came since would stay behind, and end with the session that the lease was on.
            false => compare.push(Compare::written_at(&key(Part::Wish), 0)),
        }
        TxnRequest {
            compare,
            success,
            failure: vec![self.reading(name)],
        }
    }
}
