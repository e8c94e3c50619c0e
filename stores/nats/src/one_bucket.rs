//! The one bucket that is asked: each other would have leaders and marks of its own.

use crate::connect::{denied, nobody_there, refused};
use crate::dialled::{Dialled, Sent, Unanswered};
use crate::fault::{Refusal, STREAM_NOT_FOUND};
use crate::link::{Link, Open};
use serde_json::Value;
use std::sync::OnceLock;
use std::time::Duration;
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::{Deed, line, timed_out};

/// How long whoever was connected to may take to say which bucket it has.
pub(crate) const LOOK_TIME_MAX: Duration = Duration::from_secs(1);

/// What failures of that are about.
const SUBJECT: &str = "connecting";

/// That of whoever was connected to first. A server that has another of this name is none of ours, however
/// late it comes: as one whose disk was emptied, and where somebody has made a bucket since.
pub(crate) struct OneBucket {
    stream: String,
    /// When it was made: [`created`].
    made: OnceLock<String>,
}

impl OneBucket {
    pub(crate) fn new(stream: String) -> Self {
        Self {
            stream,
            made: OnceLock::new(),
        }
    }

    /// It is the one that this tells of, unless another is known already.
    pub(crate) fn is(&self, info: &Value) {
        if let Some(made) = created(info) {
            self.made.get_or_init(|| made.to_owned());
        }
    }

    /// Whether a server that tells this may have it. Why not, otherwise.
    fn check(&self, host: &str, info: &Value) -> Result<(), String> {
        let theirs = created(info).unwrap_or("at no time that it tells");
        match self.made.get() {
            Some(ours) if ours != theirs => Err(format!(
                "{host} has another bucket of this name, made {theirs}, than whoever was connected to first, made {ours}: each would \
                 have a leader of its own; name the servers of one cluster in the NATS URL, and start this process anew if the \
                 bucket was made anew or restored"
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Has a server say which bucket it has, before it is asked anything else. Nobody is asked before one is
    /// known.
    ///
    /// # Errors
    /// It has not this one, or does not say. Not applied.
    pub(crate) async fn recognise(&self, dialled: &Dialled, host: &str) -> Result<(), StoreError> {
        if self.made.get().is_none() {
            return Ok(());
        }
        let sent = Sent {
            to: format!("$JS.API.STREAM.INFO.{}", self.stream),
            headers: None,
            payload: Vec::new(),
        };
        let failed =
            |fault: Fault, why: String| Deed::Read.error(fault, Certainty::NotApplied, SUBJECT, host, why);
        let Ok(answer) = tokio::time::timeout(LOOK_TIME_MAX, dialled.ask(&sent)).await else {
            let check = "the network and whether the servers are frozen, or lack a majority";
            return Err(timed_out(Deed::Read, SUBJECT, host, LOOK_TIME_MAX, check));
        };
        let message = answer.map_err(|why| match why {
            Unanswered::Denied(complaint, certainty) => {
                denied(Deed::Read, certainty, SUBJECT, host, &complaint)
            }
            Unanswered::Nobody => nobody_there(Deed::Read, SUBJECT, host),
            Unanswered::Unfit(error) | Unanswered::Failed(error) => failed(Fault::Unreachable, line(error)),
            Unanswered::Ended => {
                let why = "the connection ended before it said which bucket it has";
                failed(Fault::Unreachable, why.to_owned())
            }
        })?;
        // Whoever answers none of JetStream's tells nothing.
        let told = serde_json::from_slice(&message.payload).unwrap_or(Value::Null);
        match Refusal::of(&told) {
            Some(refusal) => Err(without(&refusal, refused(Deed::Read, SUBJECT, host, &refusal))),
            // Also of one that does not lead the stream: each that keeps it knows.
            None => self
                .check(host, &told)
                .map_err(|why| failed(Fault::AnotherStore, why)),
        }
    }
}

/// What a refusal comes to where the bucket is known: a server that has none is another one, also where it is
/// about to know of it.
fn without(refusal: &Refusal, error: StoreError) -> StoreError {
    match refusal.number {
        STREAM_NOT_FOUND => StoreError {
            fault: Fault::AnotherStore,
            ..error
        },
        _ => error,
    }
}

impl Link {
    /// Believes what was told of the bucket over this connection only if it is ours: it may have been made
    /// again, or the server that is connected pass requests on to others.
    ///
    /// # Errors
    /// It is another. The next connection is made to whoever has ours.
    pub(crate) fn believe(&self, open: &Open, info: &Value, subject: &str) -> Result<(), StoreError> {
        let servers = self.servers();
        let host = servers.host(open.connection.server);
        servers.bucket.check(&host, info).map_err(|why| {
            self.leave(open);
            Deed::Read.error(
                Fault::AnotherStore,
                Certainty::NotApplied,
                subject,
                self.place(),
                why,
            )
        })
    }
}

/// When the bucket was made that this tells of, by its servers' clock to the nanosecond: no two were made at
/// once. All that keep it say the same, through restarts and other settings; only one that a cluster restores
/// of a backup is of that moment.
pub(crate) fn created(info: &Value) -> Option<&str> {
    info["created"].as_str()
}
