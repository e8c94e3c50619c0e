//! Extending sessions, and knowing that it counts.

use crate::attached::Member;
use crate::clock;
use crate::fault::Failure;
use crate::keys::Part;
use crate::lane::Lane;
use crate::session::Session;
use crate::site::{PARTS_MAX, Site, raft_term, transact_each};
use crate::wire::kv::{Compare, RequestOp, TxnRequest};
use tenure_core::Moment;

/// How often a session is extended because the answer came from a member that may have been deposed.
const KEEPS_MAX: u32 = 3;

/// What became of a request to extend a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kept {
    /// It was extended, by the leader of this term of the consensus or of a later one.
    Until {
        sent: Moment,
        raft_term: u64,
        /// Who said so.
        member: u64,
    },
    /// There is no such session any more, and no key that was on it.
    Gone,
}

impl Site {
    /// Extends a session, and ends what its holders have abandoned on it first.
    pub(crate) async fn extend(&self, lane: &Lane, session: &Session) -> Result<Kept, Failure> {
        self.end_abandoned(lane, session).await;
        let sent = clock::now();
        let kept = lane.keep_alive(session.id).await?;
        if kept.ttl <= 0 {
            session.end();
            return Ok(Kept::Gone);
        }
        Ok(Kept::Until {
            sent,
            raft_term: raft_term(kept.header),
            member: kept.header.map_or(0, |header| header.member_id),
        })
    }

    /// Whether the extension counts, given the term of the consensus in which something was read or written that was asked
    /// for at the same time or later.
    ///
    /// A deposed leader that does not know it goes on extending sessions that the new one lets expire (etcd-io/etcd#15247).
    /// What is read or written through the consensus is answered in the term of the true leader, or of a later one. So an
    /// extension in an earlier term than that is asked for again. Should a leader be elected after it was asked for, it
    /// gives every session its whole ttl anew, from then on.
    pub(crate) async fn prove(
        &self,
        lane: &Lane,
        session: &Session,
        mut kept: Kept,
        term: u64,
    ) -> Result<Kept, Failure> {
        for _keep in 0..KEEPS_MAX {
            match kept {
                Kept::Gone => return Ok(Kept::Gone),
                Kept::Until { sent, raft_term, .. } if raft_term >= term => {
                    session.extended(sent);
                    return Ok(kept);
                }
                Kept::Until { .. } => kept = self.extend(lane, session).await?,
            }
        }
        Err(Failure::Status(tonic::Status::unavailable(
            "the member extends sessions in an old term of the consensus: it is cut off, or an election is under way",
        )))
    }

    /// Ends the leases that share the session and whose holders did not ask for a whole ttl, so that their trust is over:
    /// a neighbour's renewals must not hold them for ever. What cannot be ended now, the next extension ends.
    async fn end_abandoned(&self, lane: &Lane, session: &Session) {
        let abandoned = session.take_abandoned();
        for part in abandoned.chunks(PARTS_MAX) {
            let endings = part.iter().map(|member| self.ending(session, member)).collect();
            match transact_each(lane, endings).await {
                Ok(_) => part
                    .iter()
                    .for_each(|member| self.known.forget(&member.sitting.name)),
                Err(failure) => {
                    tracing::debug!(place = %self.place, leases = part.len(), ?failure, "abandoned leases could not be ended yet");
                    session.put_back(part);
                }
            }
        }
    }

    fn ending(&self, session: &Session, member: &Member) -> TxnRequest {
        let name = &member.sitting.name;
        let holder = self.keys.part(name, Part::Holder);
        TxnRequest {
            compare: vec![
                Compare::ends_with(&holder, session.id),
                Compare::value(&holder, &member.holder),
            ],
            success: vec![
                RequestOp::delete(holder),
                RequestOp::delete(self.keys.part(name, Part::Wish)),
            ],
            failure: Vec::new(),
        }
    }
}
