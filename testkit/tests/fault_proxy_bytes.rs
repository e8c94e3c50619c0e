//! The proxy in front of a server whose protocol it does not know.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tenure_testkit::{Fault, FaultProxy, RequestFault};

#[test]
fn bytes_pass_both_ways() {
    let server = Echo::start();
    let proxy = FaultProxy::bytes(server.address.to_string()).unwrap();

    assert_eq!(ask(proxy.address()).unwrap(), *b"ping");
    assert_eq!(proxy.counts().requests, 1);
}

#[test]
fn cut_before_keeps_the_bytes_from_the_server() {
    let server = Echo::start();
    let proxy = FaultProxy::bytes(server.address.to_string()).unwrap();

    proxy.next_requests(1, RequestFault::CutBefore);
    ask(proxy.address()).unwrap_err();

    assert_eq!(server.heard(), 0);
    assert_eq!(proxy.counts().cut_before, 1);
}

#[test]
fn cut_after_lets_the_server_hear_the_bytes() {
    let server = Echo::start();
    let proxy = FaultProxy::bytes(server.address.to_string()).unwrap();

    proxy.next_requests(1, RequestFault::CutAfter);
    ask(proxy.address()).unwrap_err();

    assert_eq!(server.heard(), 1);
    assert_eq!(proxy.counts().cut_after, 1);
}

#[test]
fn duplicate_is_heard_twice_and_answered_once() {
    let server = Echo::start();
    let proxy = FaultProxy::bytes(server.address.to_string()).unwrap();

    proxy.next_requests(1, RequestFault::Duplicate);
    assert_eq!(ask(proxy.address()).unwrap(), *b"ping");

    assert_eq!(server.heard(), 2);
    assert_eq!(proxy.counts().duplicated, 1);
}

#[test]
fn refused_connection_fails_at_once() {
    let server = Echo::start();
    let proxy = FaultProxy::bytes(server.address.to_string()).unwrap();

    proxy.set(Fault::Refuse);
    ask(proxy.address()).unwrap_err();

    assert_eq!(server.heard(), 0);
    assert_eq!(proxy.counts().refused, 1);
}

#[test]
fn dead_server_shows_as_a_reset_connection() {
    let nobody = tenure_testkit::free_port();
    let proxy = FaultProxy::bytes(format!("127.0.0.1:{nobody}")).unwrap();

    ask(proxy.address()).unwrap_err();
}

/// Sends four bytes and waits for four.
fn ask(address: SocketAddr) -> std::io::Result<[u8; 4]> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(b"ping")?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

/// Sends back what it hears. Its threads end with the test process.
struct Echo {
    address: SocketAddr,
    heard: Arc<AtomicU32>,
}

impl Echo {
    fn start() -> Echo {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
        let address = listener.local_addr().expect("it listens");
        let heard = Arc::new(AtomicU32::new(0));
        let count = heard.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let count = count.clone();
                std::thread::spawn(move || {
                    let mut bytes = [0; 4];
                    while stream.read_exact(&mut bytes).is_ok() {
                        count.fetch_add(1, Ordering::SeqCst);
                        if stream.write_all(&bytes).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Echo { address, heard }
    }

    fn heard(&self) -> u32 {
        self.heard.load(Ordering::SeqCst)
    }
}
