//! What the proxy can do to traffic, and the record of what it did.

use std::time::Duration;

/// What happens to all traffic, old connections included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    Pass,
    /// Every message waits before it is passed on.
    Delay {
        /// Wait of what the client sends.
        to_server: Duration,
        /// Wait of what the server sends.
        to_client: Duration,
    },
    /// Everything stops, and goes on when the fault is over, as after a cable was plugged in again.
    ///
    /// A request that was sent meanwhile is delivered then, even if its client has given up and closed.
    Hold,
    /// Everything is accepted, nothing is passed on, nothing comes back.
    ///
    /// A connection that lost something stays silent for good, as its two ends no longer agree on what was
    /// sent.
    BlackHole,
    /// Requests reach the server and are applied; replies are lost, the connection stays open.
    ///
    /// A connection that lost a reply stays silent for good.
    HalfOpen,
    /// New connections are reset before anything is read from them; old ones go on.
    Refuse,
    /// Every request of the application meets this.
    EveryRequest(RequestFault),
}

/// What happens to a single request.
///
/// With [`FaultProxy::mongodb`](crate::FaultProxy::mongodb) a request is a whole message of the application:
/// greetings, authentication and the driver's housekeeping pass. With
/// [`FaultProxy::bytes`](crate::FaultProxy::bytes) it is whatever arrives in one piece, which is right for
/// protocols of short questions and answers only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// The connection is reset; the server never sees the request.
    CutBefore,
    /// The request is passed on, its whole reply is received and thrown away, the connection is reset: it
    /// *was* applied, and the client cannot know.
    CutAfter,
    /// After its reply came, the request is sent once more on a connection of its own and the second reply is
    /// thrown away. The client gets its reply when both are applied.
    ///
    /// A write that carries a transaction number gets its first result again, as the server recognises it;
    /// one of a client with `retryWrites=false` is applied twice. The other connection is not authenticated,
    /// so this shows nothing on a server that demands credentials.
    Duplicate,
    /// As [`Duplicate`](RequestFault::Duplicate), but the client gets its reply at once and the second
    /// request is sent this much later, when the world may have moved on.
    DuplicateLater(Duration),
}

/// How often the proxy did what, since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted and passed on.
    pub connections: u64,
    /// Connections reset as they were refused.
    pub refused: u64,
    /// Requests of the application that were passed on to the server, duplicates not counted.
    pub requests: u64,
    /// Messages, of either direction, that were delayed.
    pub delayed: u64,
    /// Messages, of either direction, that were held back for a time.
    pub held: u64,
    /// Client messages that were swallowed.
    pub swallowed_requests: u64,
    /// Server messages that were swallowed.
    pub swallowed_replies: u64,
    /// Requests cut before they reached the server.
    pub cut_before: u64,
    /// Requests whose reply was received and dropped.
    pub cut_after: u64,
    /// Requests that were sent, and answered, a second time; one that was answered with an error is not among
    /// them, unless it is MongoDB's of a key that is there already.
    pub duplicated: u64,
    /// Connections reset by [`FaultProxy::cut_connections`](crate::FaultProxy::cut_connections).
    pub cut_connections: u64,
}
