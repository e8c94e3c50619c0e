//! One connection to the servers, made when it is needed and replaced when it is of no use any more.

use crate::connect::{Servers, denied, nobody_there};
use crate::dialled::{Dialled, Sent, Unanswered};
use async_nats::Message;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::{Deed, Dial, line, timed_out};

/// How long one request may take beyond connecting: the store's own bound, beside the engine's.
pub(crate) const REQUEST_TIME_MAX: Duration = Duration::from_secs(3);

/// How long a server is listened to that says that nobody takes requests, before another is.
const LISTENED_TO_FOR: Duration = Duration::from_secs(1);

/// The connection in use.
pub(crate) type Open = tenure_remote::Open<Dialled>;

/// A connection that heals: the driver's own keeps a silent one for minutes, and holds requests back for a
/// later one.
pub(crate) struct Link(tenure_remote::Link<Servers>);

impl Dial for Servers {
    type Connection = Dialled;

    async fn dial(&self) -> Result<Dialled, StoreError> {
        self.connect().await
    }

    fn is_over(dialled: &Dialled) -> bool {
        *dialled.ended.borrow()
    }

    /// A server that is frozen or has vanished answers nothing; one that is cut off from the others says that
    /// nobody is there: see [`Link::look_elsewhere`].
    fn leave(&self, dialled: &Dialled) {
        // With its watches: cut off, it may go on to say that it is there, and hear nothing.
        dialled.left.send_replace(true);
        self.pass_over(dialled.server);
    }
}

/// What was answered.
pub(crate) struct Told {
    pub(crate) message: Message,
    /// The epoch in which it was asked: what the answer shows, or has written, is of it.
    pub(crate) epoch: u64,
    /// Over which connection.
    pub(crate) open: Open,
}

impl Link {
    pub(crate) fn new(servers: Arc<Servers>) -> Self {
        Self(tenure_remote::Link::new(servers))
    }

    /// How it is made.
    pub(crate) fn servers(&self) -> &Arc<Servers> {
        self.0.dial()
    }

    /// For messages; it holds no secret.
    pub(crate) fn place(&self) -> &str {
        &self.servers().place
    }

    /// The connection, made if there is none.
    ///
    /// # Errors
    /// Not applied.
    pub(crate) async fn open(&self) -> Result<Open, StoreError> {
        self.0.open().await
    }

    /// Sends one request and waits for its answer, in bounded time.
    ///
    /// # Errors
    /// [`StoreError`] with `subject` (as `lease "x"`) and the place in its message.
    pub(crate) async fn ask(
        &self,
        allowed: Duration,
        sent: &Sent,
        deed: Deed,
        subject: &str,
    ) -> Result<Told, StoreError> {
        let open = self.open().await?;
        self.ask_on(&open, allowed, sent, deed, subject).await
    }

    /// The same over this very connection.
    pub(crate) async fn ask_on(
        &self,
        open: &Open,
        allowed: Duration,
        sent: &Sent,
        deed: Deed,
        subject: &str,
    ) -> Result<Told, StoreError> {
        let epoch = self.servers().epoch();
        let asking = self.send(open, sent, deed, subject);
        let check = "the network and whether the servers are frozen, or lack a majority";
        let late = |_| Err(timed_out(deed, subject, self.place(), allowed, check));
        let message = tokio::time::timeout(allowed, asking).await.unwrap_or_else(late)?;
        Ok(Told {
            message,
            epoch,
            open: open.clone(),
        })
    }

    /// The server says that nobody takes requests now. It may be cut off from the others, which have a
    /// majority: so the next connection is made to another, also where the URL names one host, behind which
    /// there may be several; and a watch over this one, which would hear nothing and go on, ends. Where all
    /// say so, an election is under way: each is listened to for a second at least.
    pub(crate) fn look_elsewhere(&self, open: &Open) {
        if open.connection.made_at.elapsed() >= LISTENED_TO_FOR {
            self.leave(open);
        }
    }

    /// Has the next connection be made to another server, where there is one, and ends the watches over this
    /// one.
    pub(crate) fn leave(&self, open: &Open) {
        if self.0.discard(open) {
            self.servers().leave(&open.connection);
        }
    }

    async fn send(&self, open: &Open, sent: &Sent, deed: Deed, subject: &str) -> Result<Message, StoreError> {
        let mut waiting = self.0.wait_on(open);
        let failed = |fault, certainty, why| deed.error(fault, certainty, subject, self.place(), why);
        let why = match open.connection.ask(sent).await {
            Ok(message) => {
                waiting.answered();
                return Ok(message);
            }
            Err(why) => why,
        };
        Err(match why {
            Unanswered::Denied(complaint, certainty) => {
                waiting.answered();
                denied(deed, certainty, subject, self.place(), &complaint)
            }
            Unanswered::Nobody => {
                waiting.answered();
                self.look_elsewhere(open);
                nobody_there(deed, subject, self.place())
            }
            Unanswered::Unfit(error) => failed(Fault::Unsupported, Certainty::NotApplied, line(error)),
            Unanswered::Failed(error) => {
                self.0.discard(open);
                failed(Fault::Unreachable, Certainty::Unknown, line(error))
            }
            Unanswered::Ended => {
                self.0.discard(open);
                let why = "the connection ended before the answer came".to_owned();
                failed(Fault::Unreachable, Certainty::Unknown, why)
            }
        })
    }
}
