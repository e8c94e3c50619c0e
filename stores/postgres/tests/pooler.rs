//! A pooler that loses the server under a request: what it says of its own is no refusal of the statement.
use crate::common::{Scratch, giving_back, renewal, request, seconds, take};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::spawn;
use tenure_conformance::wire::bounded;
use tenure_core::{Acquired, Certainty, Fault, LeaseStore, Released, Renewed, StoreError};
use tenure_postgres::PostgresStore;
use tenure_testkit::Postgres;

/// An answer that ends, outside of a transaction.
const READY: &[u8] = b"Z\0\0\0\x05I";

/// What is said, and instead of whose answer.
#[derive(Clone)]
struct Loss {
    function: &'static str,
    severity: &'static str,
    code: &'static str,
}

/// Passes everything on, until a request calls the function of the loss: that is applied, and answered as
/// PgBouncer does when the server's connection breaks before the answer. Not PgBouncer itself, as that moment
/// cannot be met from outside.
struct LosingPooler {
    address: SocketAddr,
    next: Arc<Mutex<Option<Loss>>>,
}

impl LosingPooler {
    fn before(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let next = Arc::new(Mutex::new(None));
        let loss = Arc::clone(&next);
        spawn(move || {
            for client in listener.incoming() {
                let server = TcpStream::connect(&server).unwrap();
                serve(&client.unwrap(), &server, &loss);
            }
        });
        Self { address, next }
    }

    fn lose_next(&self, loss: &Loss) {
        *self.next.lock().unwrap() = Some(loss.clone());
    }
}

fn serve(client: &TcpStream, server: &TcpStream, next: &Arc<Mutex<Option<Loss>>>) {
    let lost = Arc::new(Mutex::new(None));
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (next, marked) = (Arc::clone(next), Arc::clone(&lost));
    spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..length]);
            let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(loss) = next.take_if(|loss| text.contains(&format!(".{}(", loss.function))) {
                *marked.lock().unwrap() = Some(loss);
            }
            drop(next);
            to.write_all(&bytes[..length]).unwrap();
        }
        let _gone = to.shutdown(std::net::Shutdown::Both);
    });
    let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    spawn(move || {
        let (mut bytes, mut answer) = (vec![0; 1 << 16], Vec::new());
        let mut greeted = false;
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            if !greeted {
                greeted = rename(&mut bytes[..length]);
            }
            let lost = lost.lock().unwrap().clone();
            let Some(loss) = lost else {
                to.write_all(&bytes[..length]).unwrap();
                continue;
            };
            answer.extend_from_slice(&bytes[..length]);
            if answer.ends_with(READY) {
                // And not closed: that the next request is answered shows that the store has let go by
                // itself.
                to.write_all(&told(&loss)).unwrap();
            }
        }
    });
}

/// Makes a number up for the session, as a pooler does: whoever believes that it talks to the server itself
/// asks by names that say nothing here.
fn rename(greeting: &mut [u8]) -> bool {
    let at = greeting.windows(KEY.len()).position(|bytes| bytes == KEY);
    if let Some(at) = at {
        greeting[at + KEY.len()] ^= 0x40;
    }
    at.is_some()
}

/// How the server's words begin by which a client may cancel what it has asked.
const KEY: &[u8] = b"K\0\0\0\x0c";

/// PgBouncer's own error: without the field `V`, which PostgreSQL adds and never translates.
fn told(loss: &Loss) -> Vec<u8> {
    let fields = format!("S{}\0C{}\0Mserver conn crashed?\0\0", loss.severity, loss.code);
    let length = u32::try_from(fields.len() + 4).unwrap();
    [b"E".as_slice(), &length.to_be_bytes(), fields.as_bytes()].concat()
}

fn assert_unknown(error: &StoreError, loss: &Loss) {
    assert_eq!(error.certainty, Certainty::Unknown, "{}: {error}", loss.code);
    assert!(
        matches!(error.fault, Fault::Unreachable | Fault::Internal),
        "{error}"
    );
}

/// The statement was applied, or perhaps was: nobody may go on as if it had been refused.
#[tokio::test]
async fn what_a_pooler_says_of_a_lost_server_leaves_every_write_uncertain() {
    let scratch = Scratch::new().await;
    let pooler = LosingPooler::before(Postgres::shared().await.address());
    let uri = format!("postgres://postgres@{}/postgres", pooler.address);
    let url = scratch.url_on(&uri, "listen=off&sslmode=disable");
    let store = PostgresStore::connect(&url).await.unwrap();
    for (severity, code) in [
        ("FATAL", "08P01"),
        ("FATAL", "XX000"),
        ("ERROR", "08006"),
        ("ERROR", "57P01"),
        ("ERROR", "58000"),
    ] {
        let loss = |function| Loss {
            function,
            severity,
            code,
        };
        let asked = request(&format!("{severity}{code}"), "holder", seconds(60));
        pooler.lose_next(&loss("take"));
        let error = bounded("an acquisition", store.acquire(&asked))
            .await
            .unwrap_err();
        assert_unknown(&error, &loss("take"));
        // It was applied, and the same attempt is told so.
        let grant = take(&store, &asked).await;
        assert!(grant.again, "{grant:?}");
        let (renewals, releases) = ([renewal(&asked, grant.token)], [giving_back(&asked, grant.token)]);
        pooler.lose_next(&loss("renew"));
        let error = bounded("a renewal", store.renew(&renewals)).await.remove(0);
        assert_unknown(&error.unwrap_err(), &loss("renew"));
        let renewed = bounded("a renewal", store.renew(&renewals)).await;
        assert!(matches!(renewed[0], Ok(Renewed::Extended { .. })), "{renewed:?}");
        pooler.lose_next(&loss("give_back"));
        let error = bounded("a release", store.release(&releases)).await.remove(0);
        assert_unknown(&error.unwrap_err(), &loss("give_back"));
        let released = bounded("a release", store.release(&releases)).await;
        assert!(matches!(released[0], Ok(Released::Vacated)), "{released:?}");
        let rival = request(asked.name.as_str(), "rival", seconds(60));
        let taken = store.acquire(&rival).await;
        assert!(matches!(taken, Ok(Acquired::Granted(_))), "{taken:?}");
    }
}
