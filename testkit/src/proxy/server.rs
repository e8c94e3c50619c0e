//! The proxy as tests see it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

use super::connection::{self, cut};
use super::control::Control;
use super::fault::{Counts, Fault, RequestFault};
use super::frame::Protocol;
use crate::error::Error;
use crate::runtime::runtime;
use crate::servers::{User, connection_string};

/// A TCP proxy on loopback in front of one server; its faults are switched while it runs.
///
/// It runs on the kit's own runtime, so a test that blocks its thread does not stop it. It ends with the
/// guard.
///
/// A MongoDB client stays on the proxy only with `directConnection=true`, as
/// [`mongodb_uri`](FaultProxy::mongodb_uri) has it: otherwise it learns the servers' own addresses and goes
/// round the proxy. Put the proxy in front of the primary then, and remember that such a client does not
/// follow an election.
pub struct FaultProxy {
    control: Arc<Control>,
    address: SocketAddr,
    accepting: AbortHandle,
}

impl FaultProxy {
    /// A proxy in front of a MongoDB server at `host:port`, which knows where a message ends and what it asks
    /// for.
    ///
    /// # Errors
    /// [`Error::System`] when no port can be had.
    pub fn mongodb(upstream: impl Into<String>) -> Result<FaultProxy, Error> {
        FaultProxy::start(Protocol::MongoDb, upstream.into())
    }

    /// A proxy in front of a Redis or Valkey server at `host:port`, which knows where a request ends and what
    /// it asks for, of several on one connection, too. Clients must not encrypt, and must name the channels
    /// that they leave.
    ///
    /// # Errors
    /// [`Error::System`] when no port can be had.
    pub fn redis(upstream: impl Into<String>) -> Result<FaultProxy, Error> {
        FaultProxy::start(Protocol::Redis, upstream.into())
    }

    /// A proxy in front of a PostgreSQL server at `host:port`, which knows where a request ends and what it
    /// asks for. Clients must not encrypt.
    ///
    /// # Errors
    /// [`Error::System`] when no port can be had.
    pub fn postgres(upstream: impl Into<String>) -> Result<FaultProxy, Error> {
        FaultProxy::start(Protocol::Postgres, upstream.into())
    }

    /// A proxy in front of an HTTP/2 server at `host:port`, such as one of gRPC, which knows where a request
    /// ends and an answer does, and not what it asks for. Clients must not encrypt. Headers are compressed
    /// against those before them, so that a duplicate of a request is one of all that its connection has sent
    /// up to it.
    ///
    /// # Errors
    /// [`Error::System`] when no port can be had.
    pub fn http2(upstream: impl Into<String>) -> Result<FaultProxy, Error> {
        FaultProxy::start(Protocol::Http2, upstream.into())
    }

    /// A proxy in front of a MySQL or MariaDB server at `host:port`, which knows where a request ends and
    /// what it asks for. Clients must not encrypt, and must have no password. Prepared statements are known
    /// by what prepared them.
    ///
    /// # Errors
    /// [`Error::System`] when no port can be had.
    pub fn mysql(upstream: impl Into<String>) -> Result<FaultProxy, Error> {
        FaultProxy::start(Protocol::Mysql, upstream.into())
    }

    /// A proxy in front of a NATS server at `host:port`, which knows where a message ends and what it asks
    /// for. Clients must not encrypt. The reply to a duplicate reaches the client, too, which has its answer
    /// then.
    ///
    /// # Errors
    /// [`Error::System`] when no port can be had.
    pub fn nats(upstream: impl Into<String>) -> Result<FaultProxy, Error> {
        FaultProxy::start(Protocol::Nats, upstream.into())
    }

    /// A proxy in front of any server at `host:port`, to which a message is whatever arrives in one piece.
    ///
    /// # Errors
    /// [`Error::System`] when no port can be had.
    pub fn bytes(upstream: impl Into<String>) -> Result<FaultProxy, Error> {
        FaultProxy::start(Protocol::Bytes, upstream.into())
    }

    fn start(protocol: Protocol, upstream: String) -> Result<FaultProxy, Error> {
        let listen = || -> io::Result<(TcpListener, SocketAddr)> {
            let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            let _inside = runtime().enter();
            Ok((TcpListener::from_std(listener)?, address))
        };
        let (listener, address) = listen().map_err(Error::system("listening for the fault proxy"))?;
        let control = Arc::new(Control::new(protocol, upstream));
        let accepting = runtime().spawn(accept(listener, control.clone())).abort_handle();
        Ok(FaultProxy {
            control,
            address,
            accepting,
        })
    }

    /// Where clients connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connection string for a MongoDB client that stays on the proxy. Options may be added with `&`.
    #[must_use]
    pub fn mongodb_uri(&self) -> String {
        connection_string(None, &self.address.to_string(), "directConnection=true")
    }

    /// The same with credentials.
    #[must_use]
    pub fn mongodb_uri_as(&self, user: &User) -> String {
        connection_string(Some(user), &self.address.to_string(), "directConnection=true")
    }

    /// Sets what happens to all traffic from now on.
    pub fn set(&self, fault: Fault) {
        self.control.set(fault);
    }

    /// Has the next `count` requests of the application meet `fault`; all others go as
    /// [`set`](FaultProxy::set).
    pub fn next_requests(&self, count: usize, fault: RequestFault) {
        self.control.order(Some(fault), None, count);
    }

    /// The same for requests of one command: MongoDB's, such as `findAndModify`, or Redis's, such as
    /// `EVALSHA`; or of one function of PostgreSQL's or procedure of MySQL's, such as `acquire`: a statement
    /// that calls none at its begin counts by its first word; or of one call of JetStream's, such as
    /// `STREAM.MSG.GET`, where `PUB` is a message that is to be stored.
    ///
    /// Better than [`next_requests`](FaultProxy::next_requests) where other requests may come between, such
    /// as the `getMore` of a change stream.
    pub fn next_commands(&self, count: usize, command: &str, fault: RequestFault) {
        self.control.order(Some(fault), Some(command), count);
    }

    /// Lets the next `count` requests of this command pass, before what is ordered for it after this.
    pub fn spare_commands(&self, count: usize, command: &str) {
        self.control.order(None, Some(command), count);
    }

    /// How many requests of this command have met a fault that was ordered for it by
    /// [`next_commands`](Self::next_commands).
    #[must_use]
    pub fn struck(&self, command: &str) -> u64 {
        self.control.struck(command)
    }

    /// How many requests are still to meet their fault.
    #[must_use]
    pub fn faults_left(&self) -> usize {
        self.control.orders_left()
    }

    /// Back to [`Fault::Pass`], and no more faults for next requests.
    pub fn heal(&self) {
        self.control.cancel_orders();
        self.control.set(Fault::Pass);
    }

    /// Resets every open connection.
    pub fn cut_connections(&self) {
        self.control.cut_connections();
    }

    /// Has new connections lead to another server at `host:port`, as a name does after a fail-over. Those
    /// that are open stay.
    pub fn lead_to(&self, upstream: impl Into<String>) {
        self.control.lead_to(upstream.into());
    }

    /// How often the proxy did what, for a test to prove that its fault happened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.control.counts()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        // Its connections are tasks of a set it owns, and end with it.
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, control: Arc<Control>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else {
            continue;
        };
        while connections.try_join_next().is_some() {}
        if control.fault() == Fault::Refuse {
            control.count(|counts| counts.refused += 1);
            cut(&client);
            continue;
        }
        control.count(|counts| counts.connections += 1);
        connections.spawn(connection::carry(client, control.clone()));
    }
}
