//! Many who are connected to the pages at a time, and stay.

use crate::common::Sandbox;
use crate::endpoint::get;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure_testkit::free_port;

/// As a kubelet, which kills a container that does not answer: others poll, or have connected and ask
/// nothing.
#[test]
fn who_asks_nothing_takes_no_place_for_long() {
    let sandbox = Sandbox::new("idle-pages");
    let address = format!("127.0.0.1:{}", free_port());
    let _leader = sandbox.run(&["--metrics", &address], "job", "sleep 300");
    assert_eq!(get(&address, "/livez").0, 200);
    let _idle: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(&address).unwrap()).collect();
    assert_eq!(get(&address, "/livez").0, 200);
}

/// Connects again as soon as its connection is closed, and keeps each.
struct Peer {
    stream: Option<TcpStream>,
    asks: bool,
}

impl Peer {
    /// Holds a place, or waits for one.
    fn stay(&mut self, address: &str) {
        if let Some(stream) = &mut self.stream {
            let mut answer = [0; 4096];
            let is_open = loop {
                match stream.read(&mut answer) {
                    Ok(0) => break false,
                    Ok(_) => {}
                    Err(error) => break error.kind() == ErrorKind::WouldBlock,
                }
            };
            if is_open {
                if self.asks {
                    let _ = stream.write_all(QUESTION);
                }
                return;
            }
        }
        let connected = TcpStream::connect_timeout(&address.parse().unwrap(), Duration::from_secs(1));
        self.stream = connected.ok().inspect(|mut stream| {
            stream.set_nonblocking(true).unwrap();
            if self.asks {
                let _ = stream.write_all(QUESTION);
            }
        });
    }
}

/// Of whoever wants to keep the connection for the next one.
const QUESTION: &[u8] = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n";

/// As a pool of scrapers or a balancer does it without malice: a container that does not answer is killed in
/// the midst of its work.
#[test]
fn no_crowd_of_peers_that_stay_connected_keeps_livez_from_its_answer() {
    let sandbox = Sandbox::new("crowd");
    let address = format!("127.0.0.1:{}", free_port());
    let _leader = sandbox.run(&["--metrics", &address], "job", "sleep 300");
    assert_eq!(get(&address, "/livez").0, 200);
    for (count, asking) in [(64, 64), (200, 0), (200, 100)] {
        let mut peers: Vec<Peer> = (0..count)
            .map(|number| Peer {
                stream: None,
                asks: number < asking,
            })
            .collect();
        peers.iter_mut().for_each(|peer| peer.stay(&address));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let at_work = peers.iter_mut().take_while(|_| !is_over.load(Ordering::SeqCst));
                    at_work.for_each(|peer| peer.stay(&address));
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
            let answered: Vec<_> = (0..3)
                .map(|_| std::panic::catch_unwind(|| get(&address, "/livez").0).ok())
                .collect();
            is_over.store(true, Ordering::SeqCst);
            assert_eq!(answered, [Some(200); 3], "{count} peers, of which {asking} ask");
        });
    }
}
