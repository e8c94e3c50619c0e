//! A host that is gone: nobody refuses a connection to it, and nobody takes it.

use crate::error::Error;
use crate::runtime::on_runtime;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

/// How long nobody may take a connection before it is known that nobody will.
const SILENCE: Duration = Duration::from_millis(300);

/// An address at which connecting takes for ever: whoever listens there has no room for one more.
#[derive(Debug)]
pub struct VanishedHost {
    address: SocketAddr,
    _listener: TcpListener,
    _waiting: Vec<TcpStream>,
}

impl VanishedHost {
    /// One on a port of its own, as long as this lives; afterwards connections to it are refused.
    ///
    /// # Errors
    /// The system grants no socket.
    pub async fn new() -> Result<Self, Error> {
        let made = on_runtime(async {
            let socket = TcpSocket::new_v4()?;
            socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
            let listener = socket.listen(1)?;
            let address = listener.local_addr()?;
            let mut waiting = Vec::new();
            while let Ok(taken) = timeout(SILENCE, TcpStream::connect(address)).await {
                waiting.push(taken?);
            }
            Ok(Self {
                address,
                _listener: listener,
                _waiting: waiting,
            })
        });
        made.await.map_err(Error::system("make a host that is gone"))
    }

    /// Where it was.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
