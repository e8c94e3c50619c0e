//! Taking a lease.

use crate::attached::{Put, Sitting};
use crate::clock;
use crate::extend::{Kept, Witness};
use crate::fault::Failure;
use crate::found::{Decision, Found, Holder, Written, holder_value};
use crate::keys::Part;
use crate::record::Record;
use crate::session::Session;
use crate::site::{ROUNDS_MAX, Site, raft_term, transact};
use crate::wire::kv::{Compare, RequestOp, TxnRequest, TxnResponse};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Acquire, Acquired, FencingToken, Grant, LeaseName, Moment, Predecessor, StoreError};
use tenure_remote::{Deed, after_a_step};

/// What a round of an acquisition came to.
enum Round {
    /// The lease is the caller's.
    Granted(Grant),
    /// It is in another state than was thought.
    Changed(Found),
    /// The session had ended; nothing was changed.
    SessionOver,
}

impl Site {
    /// Decides an acquisition: one transaction, which compares what was known of the lease. Where that was
    /// wrong, what there is is read, and compared by another. Beside it the session is extended, where that
    /// was too long ago for the lease to last its whole ttl.
    pub(crate) async fn acquire(self: &Arc<Self>, request: &Acquire) -> Result<Acquired, StoreError> {
        let name = &request.name;
        let seconds = self.seconds(name, request.ttl)?;
        let sent = clock::now();
        // What is not known is guessed to be new: the transaction finds out.
        let (mut found, mut certain) = (self.known.last(name).unwrap_or_default(), false);
        for _round in 0..ROUNDS_MAX {
            let decision = found.decide(request);
            let round = match decision {
                // What others have done since may have changed it.
                Decision::Superseded | Decision::Held | Decision::Again if !certain => {
                    Round::Changed(self.read(&self.requests, name).await?)
                }
                Decision::Superseded => return Ok(Acquired::Superseded),
                Decision::Held => {
                    let lease = self.lease_now(name, &found).await?;
                    return Ok(Acquired::Held(lease.ok_or_else(|| self.misunderstood())?));
                }
                Decision::Begin(_) | Decision::Again => {
                    let session = self.sessions.of(&self.requests, seconds).await;
                    let session = session.map_err(|failure| self.failed(&failure, Deed::Read, name))?;
                    self.take(request, &found, certain, &decision, &session, sent)
                        .await?
                }
            };
            (found, certain) = match round {
                Round::Granted(grant) => return Ok(Acquired::Granted(grant)),
                Round::Changed(now) => (now, true),
                Round::SessionOver => (self.read(&self.requests, name).await?, true),
            };
        }
        Err(self.restless(name))
    }

    /// Takes the lease if it is as it was found.
    async fn take(
        self: &Arc<Self>,
        request: &Acquire,
        found: &Found,
        certain: bool,
        decision: &Decision,
        session: &Arc<Session>,
        sent: Moment,
    ) -> Result<Round, StoreError> {
        let name = &request.name;
        let sitting = Sitting {
            name: name.clone(),
            incarnation: request.candidate.incarnation,
            attempt: request.attempt,
        };
        let again = match (decision, &found.record) {
            (Decision::Again, Some(written)) => Some((written.token, written.terms)),
            _ => None,
        };
        let holder = holder_value(session, &sitting, again.map(|(token, _)| token));
        let transaction = match again {
            Some((token, _)) => self.moving(name, found, token, &holder, session.id),
            None => self.beginning(request, found, certain, session, &holder),
        };
        session.admit(&sitting, holder.clone());
        let transacting = transact(&self.requests, &transaction);
        let transacted_from = clock::now();
        let (answer, kept) = match session.is_fresh(sent) {
            true => (transacting.await, None),
            false => {
                let (answer, kept) = tokio::join!(transacting, self.extend(&self.requests, session));
                (answer, Some(kept))
            }
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) if failure.is_session_gone() => {
                session.end();
                return Ok(Round::SessionOver);
            }
            Err(failure) => {
                self.known.forget(name);
                return Err(self.failed(&failure, Deed::Write, name));
            }
        };
        if !answer.succeeded {
            session.dismiss(name, &holder);
            return self.changed(name, answer).await;
        }
        let revision = answer.header.map_or(0, |header| header.revision);
        if let Some(kept) = kept {
            let lost = |failure: Failure| {
                self.known.forget(name);
                after_a_step(self.failed(&failure, Deed::Write, name))
            };
            let kept = kept.map_err(lost)?;
            let witness = Witness {
                sent: transacted_from,
                raft_term: raft_term(answer.header),
            };
            let proven = self.prove(&self.requests, session, kept, witness).await;
            if proven.map_err(lost)? == Kept::Gone {
                self.known.forget(name);
                return Err(after_a_step(self.session_over(name)));
            }
        }
        let (token, terms) = match again {
            Some(known) => known,
            None => {
                let token = FencingToken::from_signed(revision).map_err(|_| self.misunderstood())?;
                let terms = found.record.as_ref().map_or(0, |written| written.terms);
                (token, terms + 1)
            }
        };
        let put = Put { token, revision };
        self.sessions.confirm(session, name, &holder, put);
        let predecessor = self.predecessor(request, found, decision);
        match again {
            None => self.know_begun(request, session, token, terms, holder),
            Some(_) => self.known.forget(name),
        }
        Ok(Round::Granted(Grant {
            token,
            ttl: session.ttl,
            terms,
            again: again.is_some(),
            predecessor,
        }))
    }

    /// The transaction that begins a term: the revision of it is the token. What was known of the lease
    /// before anybody was asked is mostly so still. Else the transaction also reads what there is instead:
    /// where others take it and let go of it, too, a look of its own would be late again and again.
    ///
    /// A server that was put back may have another's term under the very revisions that are remembered. So
    /// what was free is taken only where nobody holds it; and what this process held, and hands on, only
    /// where it is held by the very key that it has put.
    fn beginning(
        &self,
        request: &Acquire,
        found: &Found,
        certain: bool,
        session: &Session,
        holder: &[u8],
    ) -> TxnRequest {
        let key = |part| self.keys.part(&request.name, part);
        let record = Record::begin(request, session.ttl).encode();
        let mut compare = vec![
            Compare::written_at(&key(Part::Record), found.record_revision),
            Compare::written_at(&key(Part::Term), found.term_revision),
            Compare::written_at(&key(Part::Holder), found.holder_revision),
        ];
        if let Some(known) = found.holder.as_ref().filter(|_| !certain) {
            compare.push(Compare::value(&key(Part::Holder), &known.value));
        }
        TxnRequest {
            compare,
            success: vec![
                RequestOp::put(key(Part::Record), record, 0),
                RequestOp::put(key(Part::Term), Vec::new(), 0),
                RequestOp::put(key(Part::Holder), holder.to_vec(), session.id),
                RequestOp::delete(key(Part::Wish)),
            ],
            failure: match certain || found.record.is_none() {
                true => vec![self.reading(&request.name)],
                false => Vec::new(),
            },
        }
    }

    /// Reads the keys of a lease within a transaction.
    pub(crate) fn reading(&self, name: &LeaseName) -> RequestOp {
        let (from, end) = self.keys.of_lease(name);
        RequestOp::range(from, end)
    }

    async fn changed(&self, name: &LeaseName, answer: TxnResponse) -> Result<Round, StoreError> {
        Ok(Round::Changed(match answer.responses.into_iter().next() {
            Some(response) => self.understand(name, &response.keys())?,
            None => self.read(&self.requests, name).await?,
        }))
    }

    fn predecessor(&self, request: &Acquire, found: &Found, decision: &Decision) -> Option<Predecessor> {
        let Decision::Begin(Some(end)) = decision else {
            return None;
        };
        let written = found.record.as_ref()?;
        let vacant_for = match found.holder {
            // Given up for a later attempt: it was never vacant.
            Some(_) => Duration::ZERO,
            None => self.known.free_for(&request.name, found.record_revision),
        };
        Some(Predecessor {
            candidate: written.record.holder.id.clone(),
            token: written.token,
            end: *end,
            vacant_for,
        })
    }

    /// Remembers a term that was taken, so that neither its release nor handing it on needs a reading.
    fn know_begun(
        &self,
        request: &Acquire,
        session: &Session,
        token: FencingToken,
        terms: u64,
        holder: Vec<u8>,
    ) {
        let revision = token.signed();
        let now = Found {
            record: Some(Written {
                record: Record::begin(request, session.ttl),
                token,
                terms,
            }),
            record_revision: revision,
            term_revision: revision,
            holder_revision: revision,
            holder: Some(Holder {
                session: session.id,
                ttl: session.ttl,
                value: holder,
            }),
            asked: false,
        };
        self.known.see(&request.name, &now);
    }
}

/// The value of a wish's key: the term that it is for.
pub(crate) fn wish(token: FencingToken) -> Vec<u8> {
    serde_json::json!({ "token": token.number() })
        .to_string()
        .into_bytes()
}
