//! A connection that was made: what is asked over it, and what comes of that.

use async_nats::{Client, HeaderMap, Message, Request, RequestError, RequestErrorKind};
use std::sync::Arc;
use std::time::Instant;
use tenure_core::Certainty;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

/// A connection. It does not heal: the next request makes another.
#[derive(Clone)]
pub(crate) struct Dialled {
    pub(crate) client: Client,
    /// Becomes true when the server has closed it.
    pub(crate) ended: watch::Receiver<bool>,
    /// Becomes true when it is left for another server, as its own is cut off from the others.
    pub(crate) left: watch::Sender<bool>,
    /// What the server says that it does not allow.
    pub(crate) denials: broadcast::Sender<Arc<str>>,
    /// Which server it is: its place in the URL's list.
    pub(crate) server: usize,
    /// How many were made before it.
    pub(crate) number: u64,
    pub(crate) made_at: Instant,
}

/// What is sent, and where.
pub(crate) struct Sent {
    pub(crate) to: String,
    pub(crate) headers: Option<HeaderMap>,
    pub(crate) payload: Vec<u8>,
}

/// Why there is no answer.
pub(crate) enum Unanswered {
    /// The server complained so of what was sent, or of where its answer goes to.
    Denied(Arc<str>, Certainty),
    /// Nobody takes requests there.
    Nobody,
    /// The driver does not send this.
    Unfit(RequestError),
    /// The driver gave up.
    Failed(RequestError),
    /// The connection has ended.
    Ended,
}

impl Dialled {
    /// Whether it was there when this epoch began, and so for as long as it lasts: its server has not been
    /// started again since what was shown in that epoch, and has lost nothing of it. Of the servers of a
    /// cluster that keep the bucket this tells nothing, if they are others.
    pub(crate) fn is_older_than(&self, epoch: u64) -> bool {
        self.number < epoch
    }

    /// Whether its server is of a cluster for certain. One that has leaf-node remotes, and no cluster, tells
    /// its own name as that of its cluster.
    pub(crate) fn is_clustered(&self) -> bool {
        let server = self.client.server_info();
        server
            .cluster
            .is_some_and(|cluster| cluster != server.server_name)
    }

    /// Sends one request and waits for its answer, for as long as the connection lasts.
    pub(crate) async fn ask(&self, sent: &Sent) -> Result<Message, Unanswered> {
        // Before the request is sent: its denial would be missed.
        let mut denials = self.denials.subscribe();
        let request = Request {
            payload: Some(sent.payload.clone().into()),
            headers: sent.headers.clone(),
            ..Request::default()
        };
        let complaint = async {
            loop {
                match denials.recv().await {
                    Ok(complaint) => {
                        if let Some(certainty) = denies(&complaint, &sent.to) {
                            return (complaint, certainty);
                        }
                    }
                    Err(RecvError::Lagged(_)) => {}
                    // The sender lives as long as the connection, whose end is told otherwise.
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        let mut ended = self.ended.clone();
        let broken = async { drop(ended.wait_for(|ended| *ended).await) };
        let answer = tokio::select! {
            biased;
            answer = self.client.send_request(sent.to.clone(), request) => answer,
            (complaint, certainty) = complaint => return Err(Unanswered::Denied(complaint, certainty)),
            () = broken => return Err(Unanswered::Ended),
        };
        answer.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => Unanswered::Nobody,
            RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                Unanswered::Unfit(error)
            }
            _ => Unanswered::Failed(error),
        })
    }
}

/// What a complaint of the server's says about something that was sent to this subject: that it was not
/// taken, or that its answer may not be heard, and then nobody knows what became of it. `None`: nothing.
fn denies(complaint: &str, subject: &str) -> Option<Certainty> {
    // The server's words alone: subjects that differ in case are two.
    let says = |words: &str| {
        let begin = complaint.get(..words.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(words))
    };
    if says("permissions violation for publish") && complaint.contains(&format!("\"{subject}\"")) {
        return Some(Certainty::NotApplied);
    }
    // The driver hears all answers of a connection by one pattern; a watch has an inbox without one.
    let of_answers = || complaint.contains("\"_INBOX.") && complaint.contains(".*\"");
    (says("permissions violation for subscription") && of_answers()).then_some(Certainty::Unknown)
}

#[cfg(test)]
mod tests {
    use super::denies;
    use tenure_core::Certainty;

    #[test]
    fn complaint_is_of_what_was_sent_or_of_its_answer_or_of_something_else() {
        let of = |complaint: &str| denies(complaint, "$KV.app.lease.x");
        assert_eq!(
            of("Permissions Violation for Publish to \"$KV.app.lease.x\""),
            Some(Certainty::NotApplied)
        );
        assert_eq!(
            of("Permissions Violation for Subscription to \"_INBOX.Ab1.*\""),
            Some(Certainty::Unknown)
        );
        for other in [
            "Permissions Violation for Publish to \"$KV.app.lease.y\"",
            "Permissions Violation for Publish to \"$KV.app.lease.X\"",
            "Permissions Violation for Subscription to \"_INBOX.Ab1\"",
            "Slow Consumer",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
