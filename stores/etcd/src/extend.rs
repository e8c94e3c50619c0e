//! Extending sessions, and knowing that it counts.

use crate::clock;
use crate::fault::Failure;
use crate::keys::Part;
use crate::lane::Lane;
use crate::session::Session;
use crate::site::{Site, raft_term};
use crate::wire::kv::{RangeRequest, RangeResponse};
use crate::wire::path;
use std::sync::Arc;
use tenure_core::{LeaseName, Moment};

/// How often a session is extended because the answer came from a member that may have been deposed.
const KEEPS_MAX: u32 = 3;

/// What became of a request to extend a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kept {
    /// It was extended, by the leader of this term of the consensus or of a later one.
    Until {
        raft_term: u64,
        /// Who said so.
        member: u64,
    },
    /// There is no such session any more, and no key that was on it.
    Gone,
}

/// What the consensus answered to something that was asked of it beside an extension.
#[derive(Clone, Copy)]
pub(crate) struct Witness {
    /// Before it was asked, and before the extension was.
    pub(crate) sent: Moment,
    /// The term in which it was answered.
    pub(crate) raft_term: u64,
}

impl Site {
    /// Extends a session. What nobody holds on it is ended beside that.
    pub(crate) async fn extend(
        self: &Arc<Self>,
        lane: &Lane,
        session: &Arc<Session>,
    ) -> Result<Kept, Failure> {
        if session.is_to_be_cleared() {
            // Of its own: neither may the extension wait for it, nor may it end with who asked for the
            // extension.
            tokio::spawn(Arc::clone(self).clear(Arc::clone(session)));
        }
        let kept = lane.keep_alive(session.id).await?;
        if kept.ttl <= 0 {
            session.end();
            return Ok(Kept::Gone);
        }
        Ok(Kept::Until {
            raft_term: raft_term(kept.header),
            member: kept.header.map_or(0, |header| header.member_id),
        })
    }

    /// Extends a session, and knows that it counts: what is asked of the consensus for that is the record of
    /// a lease.
    pub(crate) async fn extend_proven(
        self: &Arc<Self>,
        lane: &Lane,
        session: &Arc<Session>,
        name: &LeaseName,
    ) -> Result<Kept, Failure> {
        let sent = clock::now();
        let (kept, probed) = tokio::join!(self.extend(lane, session), self.probe(lane, name));
        let raft_term = probed?;
        self.prove(lane, session, kept?, Witness { sent, raft_term })
            .await
    }

    /// The consensus's term, by asking something of it.
    pub(crate) async fn probe(&self, lane: &Lane, name: &LeaseName) -> Result<u64, Failure> {
        let probe = RangeRequest {
            key: self.keys.part(name, Part::Record),
            count_only: true,
            ..RangeRequest::default()
        };
        let answer: RangeResponse = lane.unary(path::RANGE, &probe).await?;
        Ok(raft_term(answer.header))
    }

    /// Whether the extension counts, given what was asked of the consensus at the same time or later.
    ///
    /// A deposed leader that does not know it goes on extending sessions that the new one lets expire
    /// (etcd-io/etcd#15247). What is read or written through the consensus is answered in the term of the
    /// true leader, or of a later one. So an extension in an earlier term than that is asked for again.
    /// Should a leader be elected after the witness was asked, it gives every session its whole ttl anew,
    /// from then on: so the session lives from when the witness was asked, and not from when a later
    /// extension was.
    pub(crate) async fn prove(
        self: &Arc<Self>,
        lane: &Lane,
        session: &Arc<Session>,
        mut kept: Kept,
        witness: Witness,
    ) -> Result<Kept, Failure> {
        for _keep in 0..KEEPS_MAX {
            match kept {
                Kept::Gone => return Ok(Kept::Gone),
                Kept::Until { raft_term, .. } if raft_term >= witness.raft_term => {
                    session.extended(witness.sent);
                    return Ok(kept);
                }
                Kept::Until { .. } => kept = self.extend(lane, session).await?,
            }
        }
        Err(Failure::Status(tonic::Status::unavailable(
            "the member extends sessions in an old term of the consensus: it is cut off, or an election is under way",
        )))
    }
}
