//! Putting a lease that is held on another session.

use crate::acquire::wish as wish_value;
use crate::attached::Put;
use crate::extend::Kept;
use crate::fault::Failure;
use crate::found::{Found, holder_value};
use crate::keys::Part;
use crate::renew::{Asked, Verdict, wish};
use crate::site::{Site, raft_term, transact};
use crate::wire::kv::{Compare, RequestOp, ResponseOp, TxnRequest};
use tenure_core::{Fault, FencingToken, LeaseName, Renewed, StoreError};
use tenure_remote::{Deed, after_a_step, lease_subject};

impl Site {
    /// Puts a lease that is held on a session of this store with the ttl that is asked for: of another process by the
    /// same name, or from another ttl.
    pub(crate) async fn renew_by_moving(&self, one: &Asked<'_>, found: &Found) -> Verdict {
        let name = one.name();
        let failed = |failure: Failure| self.failed(&failure, Deed::Write, name);
        let session = self
            .sessions
            .of(&self.renewals, one.seconds)
            .await
            .map_err(failed)?;
        let holder = holder_value(&session, &one.sitting, Some(one.request.token));
        let moving = self.moving(name, found, one.request.token, &holder, session.id);
        session.admit(&one.sitting, holder.clone());
        let (answer, kept) = tokio::join!(
            transact(&self.renewals, &moving),
            self.extend(&self.renewals, &session)
        );
        let answer = match answer {
            Err(failure) if failure.is_session_gone() => {
                session.end();
                return Err(self.session_over(name));
            }
            answer => answer.map_err(failed)?,
        };
        self.known.forget(name);
        let (revision, term) = (
            answer.header.map_or(0, |header| header.revision),
            raft_term(answer.header),
        );
        if !answer.succeeded {
            session.dismiss(name, &holder);
            let rows = answer.responses.into_iter().next().map(ResponseOp::keys);
            let now = self.understand(name, &rows.ok_or_else(|| self.misunderstood())?)?;
            // A twin of this request may have moved it already.
            let moved = now
                .holder
                .as_ref()
                .is_some_and(|holder| holder.session == session.id);
            if !self.is_held_by(one, &now) {
                return self.lost(name, &now).await;
            }
            if !moved {
                return Err(self.restless(name));
            }
        }
        // It was moved: whatever fails from here on.
        let unproven = |failure: Failure| after_a_step(failed(failure));
        let kept = kept.map_err(unproven)?;
        let proven = self.prove(&self.renewals, &session, kept, term).await;
        match proven.map_err(unproven)? {
            Kept::Gone => Err(after_a_step(self.session_over(name))),
            Kept::Until { .. } => {
                if answer.succeeded {
                    let token = one.request.token;
                    self.sessions
                        .confirm(&session, name, &holder, Put { token, revision });
                }
                Ok(Renewed::Extended {
                    ttl: session.ttl,
                    wish: wish(found.asked),
                })
            }
        }
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
