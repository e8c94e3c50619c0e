//! Extending leases: one request for each session, whatever number of leases is on it, and a verdict for each lease.

use crate::extend::Kept;
use crate::fault::Failure;
use crate::found::{Found, holder_value};
use crate::keys::Part;
use crate::session::{Session, Sitting};
use crate::site::{PARTS_MAX, Site, raft_term, transact};
use crate::wire::kv::{RangeRequest, RangeResponse, ResponseOp};
use crate::wire::lease::{LeaseTimeToLiveRequest, LeaseTimeToLiveResponse};
use crate::wire::path;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use tenure_core::{Fault, LeaseName, Renew, Renewed, StoreError, Wish};
use tenure_remote::{Deed, lease_subject};

type Verdict = Result<Renewed, StoreError>;

/// One request of a batch.
struct Asked<'a> {
    /// Where its verdict belongs.
    place: usize,
    request: &'a Renew,
    seconds: u64,
    sitting: Sitting,
    /// The session that the lease is on, as far as is known here.
    session: Option<Arc<Session>>,
}

impl Asked<'_> {
    fn name(&self) -> &LeaseName {
        &self.request.name
    }
}

/// What became of the sessions of a batch.
type Extended = BTreeMap<i64, Result<Kept, StoreError>>;

impl Site {
    /// Extends leases. Those that are known to be on a session of this store cost one request together; others are moved
    /// to such a session first.
    pub(crate) async fn renew(&self, requests: &[Renew]) -> Vec<Verdict> {
        let mut verdicts: Vec<Option<Verdict>> = vec![None; requests.len()];
        let mut asked = Vec::new();
        for (place, request) in requests.iter().enumerate() {
            match self.asked(place, request) {
                Ok(one) => asked.push(one),
                Err(error) => verdicts[place] = Some(Err(error)),
            }
        }
        if asked.len() > PARTS_MAX {
            asked = self.renew_attached(asked, &mut verdicts).await;
        }
        let mut asked = asked.into_iter().peekable();
        while asked.peek().is_some() {
            let part: Vec<Asked<'_>> = asked.by_ref().take(PARTS_MAX).collect();
            self.renew_directly(part, &mut verdicts).await;
        }
        let unanswered = || Err(self.misunderstood());
        verdicts
            .into_iter()
            .map(|verdict| verdict.unwrap_or_else(unanswered))
            .collect()
    }

    fn asked<'a>(&self, place: usize, request: &'a Renew) -> Result<Asked<'a>, StoreError> {
        let seconds = self.seconds(&request.name, request.ttl)?;
        let sitting = Sitting {
            name: request.name.clone(),
            incarnation: request.incarnation,
            attempt: request.attempt,
        };
        let standing = self.sessions.standing(seconds);
        Ok(Asked {
            session: standing.filter(|session| session.holds(&sitting, request.token)),
            place,
            request,
            seconds,
            sitting,
        })
    }

    /// Extends the sessions that any of these leases is on.
    async fn extend_all(&self, asked: &[Asked<'_>]) -> Extended {
        let sessions: BTreeMap<i64, &Arc<Session>> = asked
            .iter()
            .filter_map(|one| one.session.as_ref())
            .map(|session| (session.id, session))
            .collect();
        let mut extended = Extended::new();
        for (id, session) in sessions {
            let kept = self.extend(&self.renewals, session).await;
            let failed = |failure: Failure| failure.error(Deed::Write, "the session of leases", &self.place);
            extended.insert(id, kept.map_err(failed));
        }
        extended
    }

    /// A verdict for each of many leases, from the keys that are on their sessions. Returns those that need to be looked
    /// at themselves.
    ///
    /// Which keys are on a session its server knows; that the server was no deposed leader is known as for the extension:
    /// the same member answers, later.
    async fn renew_attached<'a>(
        &self,
        asked: Vec<Asked<'a>>,
        verdicts: &mut [Option<Verdict>],
    ) -> Vec<Asked<'a>> {
        let Some(any) = asked.first() else {
            return asked;
        };
        let probe = RangeRequest {
            key: self.keys.part(any.name(), Part::Record),
            count_only: true,
            ..RangeRequest::default()
        };
        let (mut extended, probed) = tokio::join!(
            self.extend_all(&asked),
            self.renewals.unary::<_, RangeResponse>(path::RANGE, &probe)
        );
        let probed = probed.map(|answer| raft_term(answer.header));
        let mut attached: BTreeMap<i64, HashSet<Vec<u8>>> = BTreeMap::new();
        let sessions: BTreeMap<i64, Arc<Session>> = asked
            .iter()
            .filter_map(|one| one.session.clone())
            .map(|session| (session.id, session))
            .collect();
        for (id, session) in sessions {
            let proven = self.prove_and_list(&session, extended.remove(&id), &probed).await;
            match proven {
                Ok(keys) => {
                    attached.insert(id, keys);
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
                verdicts[one.place] = Some(Err(error.clone()));
                continue;
            }
            let keys = attached.get(&session.id);
            let has = |part| keys.is_some_and(|keys| keys.contains(&self.keys.part(one.name(), part)));
            if has(Part::Holder) {
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
        &self,
        session: &Session,
        kept: Option<Result<Kept, StoreError>>,
        probed: &Result<u64, Failure>,
    ) -> Result<HashSet<Vec<u8>>, StoreError> {
        let failed = |failure: &Failure| failure.error(Deed::Write, "the session of leases", &self.place);
        let kept = kept.unwrap_or_else(|| Err(self.misunderstood()))?;
        let term = probed.as_ref().map_err(failed)?;
        let proven = self.prove(&self.renewals, session, kept, *term).await;
        if proven.map_err(|failure| failed(&failure))? == Kept::Gone {
            return Ok(HashSet::new());
        }
        let request = LeaseTimeToLiveRequest {
            id: session.id,
            keys: true,
        };
        let listed: Result<LeaseTimeToLiveResponse, _> =
            self.renewals.unary(path::LEASE_TIME_TO_LIVE, &request).await;
        Ok(listed
            .map_err(|failure| failed(&failure))?
            .keys
            .into_iter()
            .collect())
    }

    /// A verdict for each of a few leases, from their own keys.
    async fn renew_directly(&self, asked: Vec<Asked<'_>>, verdicts: &mut [Option<Verdict>]) {
        let names: Vec<&LeaseName> = asked.iter().map(Asked::name).collect();
        let (extended, reading) =
            tokio::join!(self.extend_all(&asked), self.read_many(&self.renewals, &names));
        let (all_found, term) = match reading {
            Ok(reading) => reading,
            Err(error) => {
                for one in &asked {
                    verdicts[one.place] = Some(Err(error.clone()));
                }
                return;
            }
        };
        let extended = self.prove_all(&asked, extended, term).await;
        for (one, found) in asked.into_iter().zip(all_found) {
            let verdict = match found {
                Ok(found) => self.verdict(&one, &found, &extended).await,
                Err(error) => Err(error),
            };
            verdicts[one.place] = Some(verdict);
        }
    }

    /// Proves what was extended, by the term of the consensus in which something was read at the same time.
    async fn prove_all(&self, asked: &[Asked<'_>], mut extended: Extended, term: u64) -> Extended {
        let mut proven = Extended::new();
        for session in asked.iter().filter_map(|one| one.session.as_ref()) {
            // Each once: it is taken out.
            let Some(kept) = extended.remove(&session.id) else {
                continue;
            };
            let kept = match kept {
                Ok(kept) => self.prove(&self.renewals, session, kept, term).await,
                Err(error) => {
                    proven.insert(session.id, Err(error));
                    continue;
                }
            };
            let failed = |failure: Failure| failure.error(Deed::Write, "the session of leases", &self.place);
            proven.insert(session.id, kept.map_err(failed));
        }
        proven
    }

    /// The verdict by what was found.
    async fn verdict(&self, one: &Asked<'_>, found: &Found, extended: &Extended) -> Verdict {
        let Some(holder) = found.holder.as_ref().filter(|_| self.is_held_by(one, found)) else {
            return self.lost(one.name(), found).await;
        };
        let Some(session) = one
            .session
            .as_ref()
            .filter(|session| session.id == holder.session)
        else {
            return self.renew_by_moving(one, found).await;
        };
        let kept = extended
            .get(&session.id)
            .cloned()
            .unwrap_or_else(|| Err(self.misunderstood()))?;
        match kept {
            Kept::Until { .. } => Ok(Renewed::Extended {
                ttl: session.ttl,
                wish: wish(found.asked),
            }),
            // Found a moment before its session was over.
            Kept::Gone => {
                let found = self.read(one.name()).await?;
                match found.holder {
                    None => self.lost(one.name(), &found).await,
                    Some(_) => Err(self.restless(one.name())),
                }
            }
        }
    }

    fn is_held_by(&self, one: &Asked<'_>, found: &Found) -> bool {
        found.holder.is_some() && found.term_revision != 0 && found.is_term(&one.sitting, one.request.token)
    }

    async fn lost(&self, name: &LeaseName, found: &Found) -> Result<Renewed, StoreError> {
        Ok(Renewed::Lost(self.lease_now(name, found).await?.map(Box::new)))
    }

    /// Puts a lease that is held on a session of this store with the ttl that is asked for: of another process by the
    /// same name, or from another ttl.
    async fn renew_by_moving(&self, one: &Asked<'_>, found: &Found) -> Verdict {
        let name = one.name();
        let failed = |failure: Failure| self.failed(&failure, Deed::Write, name);
        let session = self
            .sessions
            .of(&self.renewals, one.seconds)
            .await
            .map_err(failed)?;
        let holder = holder_value(&one.sitting, session.ttl, Some(one.request.token));
        let moving = self.moving(name, found, one.request.token, &holder, session.id);
        session.admit(&one.sitting, holder);
        let (answer, kept) = tokio::join!(
            transact(&self.renewals, &moving),
            self.extend(&self.renewals, &session)
        );
        let answer = match answer {
            Err(failure) if failure.is_session_gone() => {
                session.end();
                let message = format!(
                    "{} at {}: the process's session had ended; ask again",
                    lease_subject(name),
                    self.place
                );
                return Err(StoreError::not_applied(Fault::Busy, message));
            }
            answer => answer.map_err(failed)?,
        };
        self.known.forget(name);
        let term = raft_term(answer.header);
        if !answer.succeeded {
            let rows = answer.responses.into_iter().next().map(ResponseOp::keys);
            let now = self.understand(name, &rows.ok_or_else(|| self.misunderstood())?)?;
            // A twin of this request may have moved it already.
            let moved = now
                .holder
                .as_ref()
                .is_some_and(|holder| holder.session == session.id);
            if !self.is_held_by(one, &now) {
                session.dismiss(&one.sitting);
                return self.lost(name, &now).await;
            }
            if !moved {
                session.dismiss(&one.sitting);
                return Err(self.restless(name));
            }
        }
        let kept = kept.map_err(failed)?;
        match self
            .prove(&self.renewals, &session, kept, term)
            .await
            .map_err(failed)?
        {
            Kept::Gone => Err(self.restless(name)),
            Kept::Until { .. } => {
                session.confirm(&one.sitting, one.request.token);
                self.leave_session(one, found, session.id);
                Ok(Renewed::Extended {
                    ttl: session.ttl,
                    wish: wish(found.asked),
                })
            }
        }
    }

    /// The lease has left the session that it was on.
    fn leave_session(&self, one: &Asked<'_>, found: &Found, now_on: i64) {
        let on = found.holder.as_ref().map_or(0, |holder| holder.session);
        for session in self.sessions.all() {
            if session.id == on && on != now_on {
                session.dismiss(&one.sitting);
            }
        }
    }
}

fn wish(asked: bool) -> Wish {
    match asked {
        true => Wish::StepDown,
        false => Wish::Nothing,
    }
}
