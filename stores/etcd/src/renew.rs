//! Extending leases: one request for each session, whatever number of leases is on it, and a verdict for each
//! lease.

use crate::attached::Sitting;
use crate::clock;
use crate::extend::{Kept, Witness};
use crate::fault::Failure;
use crate::found::{Found, Remains};
use crate::session::Session;
use crate::site::{PARTS_MAX, Site};
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure_core::{Certainty, LeaseName, Renew, Renewed, StoreError, Wish};
use tenure_remote::{Deed, after_a_step};

pub(crate) type Verdict = Result<Renewed, StoreError>;

/// One request of a batch.
pub(crate) struct Asked<'a> {
    /// Where its verdict belongs.
    pub(crate) place: usize,
    pub(crate) request: &'a Renew,
    pub(crate) seconds: u64,
    pub(crate) sitting: Sitting,
    /// The session that the lease is on, as far as is known here.
    pub(crate) session: Option<Arc<Session>>,
    /// Whether that may have been extended already, and the lease with it.
    may_be_extended: bool,
}

impl Asked<'_> {
    pub(crate) fn name(&self) -> &LeaseName {
        &self.request.name
    }

    /// Its failure: whatever that says of itself, it is uncertain once the session may have been extended.
    pub(crate) fn failed(&self, error: StoreError) -> StoreError {
        match self.may_be_extended {
            true => after_a_step(error),
            false => error,
        }
    }
}

/// What became of the sessions of a batch.
type Extended = BTreeMap<i64, Result<Kept, StoreError>>;

/// Notes whose sessions may have been extended.
pub(crate) fn note_extended(asked: &mut [Asked<'_>], extended: &Extended) {
    for one in asked {
        let kept = one.session.as_ref().and_then(|session| extended.get(&session.id));
        one.may_be_extended |= match kept {
            Some(Ok(Kept::Until { .. })) => true,
            Some(Err(error)) => error.certainty == Certainty::Unknown,
            Some(Ok(Kept::Gone)) | None => false,
        };
    }
}

impl Site {
    /// Extends leases. Those that are known to be on a session of this store cost one request together;
    /// others are moved to such a session first.
    pub(crate) async fn renew(self: &Arc<Self>, requests: &[Renew]) -> Vec<Verdict> {
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
            may_be_extended: false,
        })
    }

    /// Extends the sessions that any of these leases is on.
    pub(crate) async fn extend_all(self: &Arc<Self>, asked: &[Asked<'_>]) -> Extended {
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

    /// A verdict for each of a few leases, from their own keys.
    async fn renew_directly(self: &Arc<Self>, mut asked: Vec<Asked<'_>>, verdicts: &mut [Option<Verdict>]) {
        let names: Vec<&LeaseName> = asked.iter().map(|one| &one.request.name).collect();
        let sent = clock::now();
        let (extended, reading) =
            tokio::join!(self.extend_all(&asked), self.read_many(&self.renewals, &names));
        note_extended(&mut asked, &extended);
        let (all_found, raft_term) = match reading {
            Ok(reading) => reading,
            Err(error) => {
                for one in &asked {
                    verdicts[one.place] = Some(Err(one.failed(error.clone())));
                }
                return;
            }
        };
        let extended = self
            .prove_all(&asked, extended, Witness { sent, raft_term })
            .await;
        for (one, found) in asked.into_iter().zip(all_found) {
            let verdict = match found {
                Ok(found) => {
                    let verdict = self.verdict(&one, &found, &extended).await;
                    verdict.map_err(|error| one.failed(error))
                }
                // What stands there is no lease that could have been extended.
                Err(unreadable) => Err(unreadable),
            };
            verdicts[one.place] = Some(verdict);
        }
    }

    /// Proves what was extended, by what was read at the same time.
    async fn prove_all(
        self: &Arc<Self>,
        asked: &[Asked<'_>],
        mut extended: Extended,
        witness: Witness,
    ) -> Extended {
        let mut proven = Extended::new();
        for session in asked.iter().filter_map(|one| one.session.as_ref()) {
            // Each once: it is taken out.
            let Some(kept) = extended.remove(&session.id) else {
                continue;
            };
            let kept = match kept {
                Ok(kept) => self.prove(&self.renewals, session, kept, witness).await,
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
    async fn verdict(self: &Arc<Self>, one: &Asked<'_>, found: &Found, extended: &Extended) -> Verdict {
        let Some(holder) = found.holder.as_ref().filter(|_| self.is_held_by(one, found)) else {
            return Ok(self.lost(one.name(), found));
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
                let found = self.read(&self.renewals, one.name()).await?;
                match found.holder {
                    None => Ok(self.lost(one.name(), &found)),
                    Some(_) => Err(self.restless(one.name())),
                }
            }
        }
    }

    pub(crate) fn is_held_by(&self, one: &Asked<'_>, found: &Found) -> bool {
        found.holder.is_some() && found.term_revision != 0 && found.is_term(&one.sitting, one.request.token)
    }

    /// What remains of the next term is not asked for: the verdict, and its neighbours', would wait for that.
    pub(crate) fn lost(&self, name: &LeaseName, found: &Found) -> Renewed {
        Renewed::Lost(found.lease(name, Remains::default()).map(Box::new))
    }
}

pub(crate) fn wish(asked: bool) -> Wish {
    match asked {
        true => Wish::StepDown,
        false => Wish::Nothing,
    }
}
