//! Connecting once.

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tower_service::Service;

/// Makes one connection, and no second one.
///
/// A channel replaces a connection that has ended between two calls by itself, and the next call goes to
/// whoever has the address by then. That may be a member of another cluster: it would be asked unchecked, and
/// give a lease away that has a holder, with a lower token. So the channel is told that there is no other
/// connection, and the call that hears of it dials anew, with every check.
pub(crate) struct Once {
    http: HttpConnector<To>,
    was_asked: bool,
}

impl Once {
    /// How a connection is made: to which of the member's addresses, how long that may take, and how often a
    /// silent one is asked whether it lives.
    pub(crate) fn new(addresses: Vec<SocketAddr>, time_max: Duration, ping_every: Duration) -> Self {
        let mut http = HttpConnector::new_with_resolver(To(addresses));
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(time_max));
        http.set_keepalive(Some(ping_every));
        Self {
            http,
            was_asked: false,
        }
    }
}

type BoxError = Box<dyn Error + Send + Sync>;

impl Service<http::Uri> for Once {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.http.poll_ready(context).map_err(BoxError::from)
    }

    fn call(&mut self, member: http::Uri) -> Self::Future {
        if std::mem::replace(&mut self.was_asked, true) {
            return Box::pin(ready(Err(BoxError::from(HasEnded))));
        }
        let connecting = self.http.call(member);
        Box::pin(async move { connecting.await.map_err(BoxError::from) })
    }
}

/// Where a name leads to, which was looked up before.
#[derive(Clone)]
struct To(Vec<SocketAddr>);

impl Service<Name> for To {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        ready(Ok(self.0.clone().into_iter()))
    }
}

/// The one connection has ended. Nothing was sent of a call that fails of it.
#[derive(Debug)]
pub(crate) struct HasEnded;

impl fmt::Display for HasEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection had ended")
    }
}

impl Error for HasEnded {}
