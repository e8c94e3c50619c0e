//! Finding out that a pooler passes no notifications on: what that leaves behind, and what does not deceive
//! it.
use crate::common::{PATIENCE, Scratch};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{sleep, spawn};
use std::time::Duration;
use tenure_core::{LeaseStore, WatchSource};
use tenure_postgres::PostgresStore;
use tenure_testkit::{PgBouncer, Postgres, eventually_async};

/// Server connections of the pooler.
const POOLED: u32 = 3;

/// The sessions are others' as well: they would hear Tenure's notifications, and one of them in a long
/// transaction would keep the queue from being cut.
#[tokio::test]
async fn connecting_through_a_pooler_leaves_no_listen_in_its_sessions() {
    let scratch = Scratch::new().await;
    let pooler = PgBouncer::start(Postgres::shared().await, POOLED).await.unwrap();
    let uri = pooler.uri_of("postgres");
    for _process in 0..4 {
        let store = PostgresStore::connect(&scratch.url_on(&uri, "")).await.unwrap();
        assert_eq!(store.traits().watch, WatchSource::Absent);
    }
    // In a transaction each, so that each has one of them for itself.
    let (mut clients, mut listening) = (Vec::new(), Vec::new());
    for _session in 0..POOLED {
        let client = Postgres::client(&uri).await.unwrap();
        client.batch_execute("BEGIN").await.unwrap();
        let asked = "SELECT pg_backend_pid(), ARRAY(SELECT pg_listening_channels())";
        let told = client.query_one(asked, &[]).await.unwrap();
        listening.push((told.get::<_, i32>(0), told.get::<_, Vec<String>>(1)));
        clients.push(client);
    }
    listening.sort();
    listening.dedup_by_key(|(process, _)| *process);
    assert_eq!(listening.len(), POOLED as usize, "{listening:?}");
    assert!(
        listening.iter().all(|(_, channels)| channels.is_empty()),
        "{listening:?}"
    );
}

/// Stands before a server and passes on the first notification of each connection alone. A pooler does so by
/// chance, where it has just given whoever listens the session that is notified.
struct OnceHeard(SocketAddr);

impl OnceHeard {
    /// What is asked is so late at the server.
    fn before(server: String, late: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        spawn(move || {
            for client in listener.incoming() {
                let server = TcpStream::connect(&server).unwrap();
                serve(client.unwrap(), server, late);
            }
        });
        Self(address)
    }
}

fn serve(client: TcpStream, server: TcpStream, late: Duration) {
    let (mut asking, mut asked) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    spawn(move || {
        let mut bytes = [0; 1 << 14];
        while let Ok(length @ 1..) = asking.read(&mut bytes) {
            sleep(late);
            if asked.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        let _gone = asked.shutdown(std::net::Shutdown::Both);
    });
    spawn(move || pass_on(server, client));
}

fn pass_on(mut server: TcpStream, mut client: TcpStream) {
    let mut is_first = true;
    loop {
        // Of every message: what it is, and how long, the length included.
        let mut head = [0; 5];
        if server.read_exact(&mut head).is_err() {
            let _gone = client.shutdown(std::net::Shutdown::Both);
            return;
        }
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        if server.read_exact(&mut body).is_err() {
            return;
        }
        let is_notification = head[0] == b'A';
        if is_notification && !std::mem::take(&mut is_first) {
            continue;
        }
        if client.write_all(&[&head[..], &body].concat()).is_err() {
            return;
        }
    }
}

/// A store that took it for a watch would hear nothing for its whole life.
#[tokio::test]
async fn notification_that_is_heard_once_by_chance_proves_no_watch() {
    let scratch = Scratch::new().await;
    let once = OnceHeard::before(Postgres::shared().await.address(), Duration::ZERO);
    let uri = format!("postgres://postgres@{}/postgres", once.0);
    let store = PostgresStore::connect(&scratch.url_on(&uri, "sslmode=disable"))
        .await
        .unwrap();
    assert_eq!(store.traits().watch, WatchSource::Absent);
}

/// All that connecting asks there, and waits for, would come to more than its own time.
#[tokio::test]
async fn slow_pooler_by_which_a_notification_is_heard_once_is_connected_to_in_time() {
    let scratch = Scratch::new().await;
    let late = Duration::from_millis(200);
    let once = OnceHeard::before(Postgres::shared().await.address(), late);
    let uri = format!("postgres://postgres@{}/postgres", once.0);
    let url = scratch.url_on(&uri, "sslmode=disable");
    let store = eventually_async(PATIENCE, "a store", || PostgresStore::connect(&url)).await;
    assert_eq!(store.traits().watch, WatchSource::Absent);
}
