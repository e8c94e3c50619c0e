//! The sessions of the short way: which of them have one, and what becomes of a request where a session
//! breaks.
use crate::common::{Scratch, family, give_back, request, seconds, take, warm};
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure_conformance::wire::bounded;
use tenure_core::{Acquired, Certainty, Fault, LeaseStore, Note, Verdict};
use tenure_mysql::MysqlStore;
use tenure_testkit::{Mariadb, SqlFamily};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// How many statements the server keeps for whoever has prepared them.
async fn prepared(client: &mut Conn) -> u64 {
    let asked = "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'";
    let (_, count): (String, u64) = client.query_first(asked).await.unwrap().unwrap();
    count
}

/// What one store has prepared where nothing is in the way.
fn statements_of_one() -> u64 {
    match family() {
        SqlFamily::Mariadb => 2,
        SqlFamily::Mysql => 0,
    }
}

/// What a server may say to each new session of who is no administrator.
const BEGINS: [&str; 6] = [
    "SET SESSION autocommit = 0",
    "START TRANSACTION",
    "SET SESSION sql_mode = ''",
    "SET SESSION sql_mode = 'ANSI,STRICT_ALL_TABLES'",
    "SET NAMES latin1",
    "SET SESSION unique_checks = 0, foreign_key_checks = 0",
];

/// What is confirmed is committed also where the server's words to each new session keep it from committing
/// by itself, or keep it in a transaction.
#[tokio::test]
async fn what_is_confirmed_is_committed_whatever_sessions_begin_with() {
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let database = &scratch.database;
    scratch
        .sql(&format!(
            "CREATE USER service IDENTIFIED BY 'x'; GRANT ALL ON {database}.* TO service"
        ))
        .await;
    let mut client = scratch.client().await;
    for (round, begin) in BEGINS.into_iter().enumerate() {
        server
            .execute(&format!("SET GLOBAL init_connect = \"{begin}\""))
            .await
            .unwrap();
        let store = MysqlStore::connect(&server.uri_as("service", "x", database))
            .await
            .unwrap();
        let mut asked = request(&format!("job-{round}"), "holder", seconds(60));
        asked.note = Note::new("für Łukasz").unwrap();
        let token = take(&store, &asked).await.token;
        let look = format!(
            "SELECT token, note, released_us IS NOT NULL FROM tenure_leases WHERE name = '{}'",
            asked.name
        );
        let found = |released: u8| Some((token.number(), asked.note.as_str().to_owned(), released));
        assert_eq!(client.query_first(&look).await.unwrap(), found(0), "{begin}");
        give_back(&store, &asked, token).await;
        assert_eq!(client.query_first(&look).await.unwrap(), found(1), "{begin}");
    }
}

/// A replica would judge by itself what is logged as a statement: such a session writes nothing, as without
/// the short way.
#[tokio::test]
async fn nothing_is_taken_where_the_binary_log_is_of_statements() {
    let server = Mariadb::with_settings(&["log-bin=log", "server-id=1", "binlog-format=STATEMENT"])
        .await
        .unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let store = scratch.store().await;
    for _ in 0..2 {
        let error = store
            .acquire(&request("job", "holder", seconds(60)))
            .await
            .unwrap_err();
        let told = (error.fault, error.certainty);
        assert_eq!(told, (Fault::Unsupported, Certainty::NotApplied), "{error}");
        assert!(error.message.contains("binlog_format"), "{error}");
    }
    let findings = store.examine().await.unwrap();
    let found = findings.iter().find(|finding| finding.subject == "binary log");
    assert!(
        found.is_some_and(|found| found.verdict == Verdict::Warning),
        "{findings:?}"
    );
}

/// Where somebody stands between, whose session is not the one that was greeted, nothing is prepared: the
/// next statement may be another session's. Nor is it where the server keeps no more statements. Leases are
/// taken and given back all the same.
#[tokio::test]
async fn nothing_is_prepared_behind_a_pooler_nor_where_the_server_keeps_no_more() {
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let mut client = scratch.client().await;
    let plain = warm(scratch.store().await).await;
    assert_eq!(prepared(&mut client).await, statements_of_one());
    let pooler = pooler(server.address()).await;
    let behind = warm(
        MysqlStore::connect(&scratch.url_at("root", &pooler))
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(prepared(&mut client).await, statements_of_one());
    server
        .execute("SET GLOBAL max_prepared_stmt_count = 0")
        .await
        .unwrap();
    let crowded = warm(scratch.store().await).await;
    assert_eq!(prepared(&mut client).await, statements_of_one());
    for store in [&plain, &behind, &crowded] {
        let asked = request("job", "holder", seconds(60));
        let token = take(store, &asked).await.token;
        give_back(store, &asked, token).await;
    }
}

/// A connection that breaks while the statements are prepared on it has lost no request: it is not handed out
/// before.
#[tokio::test]
async fn connection_that_breaks_while_it_is_made_ready_has_lost_no_request() {
    let scratch = Scratch::new().await;
    let breaks = Arc::new(AtomicBool::new(false));
    let broken = Arc::clone(&breaks);
    let address = between(scratch.address.clone(), move |packet| {
        let asks = [PING, PREPARE].map(|command| packet.is_request(command));
        match asks.contains(&true) && broken.load(Ordering::SeqCst) {
            true => Fate::Cut,
            false => Fate::Passed,
        }
    });
    let url = scratch.url_at("root", &address.await);
    let store = warm(MysqlStore::connect(&url).await.unwrap()).await;
    breaks.store(true, Ordering::SeqCst);
    // After that it is asked whether it is still there, and is not.
    sleep(Duration::from_millis(1_200)).await;
    let asked = request("job", "holder", seconds(60));
    let answer = bounded("an acquisition", store.acquire(&asked)).await;
    let again = match (family(), answer) {
        (SqlFamily::Mariadb, Err(error)) => {
            let told = (error.fault, error.certainty);
            assert_eq!(told, (Fault::Unreachable, Certainty::NotApplied), "{error}");
            false
        }
        (SqlFamily::Mysql, Ok(Acquired::Granted(_))) => true,
        (_, answer) => panic!("{answer:?}"),
    };
    breaks.store(false, Ordering::SeqCst);
    let grant = take(&store, &asked).await;
    assert_eq!((grant.again, grant.terms), (again, 1));
    give_back(&store, &asked, grant.token).await;
}

/// The row that was written comes before the commit: if that fails, nobody knows, and the next request finds
/// out.
#[tokio::test]
async fn error_that_comes_after_the_row_of_a_term_counts() {
    let scratch = Scratch::new().await;
    let fails = Arc::new(AtomicBool::new(false));
    let failing = Arc::clone(&fails);
    let address = between(scratch.address.clone(), move |packet| {
        let ends = packet.sender == Sender::Server && packet.bytes.get(HEADER) == Some(&END);
        match ends && failing.swap(false, Ordering::SeqCst) {
            true => Fate::Replaced(b"\xff\x9c\x04#HY000the commit failed".to_vec()),
            false => Fate::Passed,
        }
    });
    let url = scratch.url_at("root", &address.await);
    let store = warm(MysqlStore::connect(&url).await.unwrap()).await;
    let asked = request("job", "holder", seconds(60));
    fails.store(true, Ordering::SeqCst);
    let error = store.acquire(&asked).await.unwrap_err();
    let told = (error.fault, error.certainty);
    assert_eq!(told, (Fault::Internal, Certainty::Unknown), "{error}");
    assert!(error.message.contains("the commit failed"), "{error}");
    assert!(take(&store, &asked).await.again);
}

/// A packet on its way.
pub(super) struct Packet<'a> {
    sender: Sender,
    bytes: &'a [u8],
}

impl Packet<'_> {
    fn is_request(&self, command: u8) -> bool {
        self.sender == Sender::Client && self.bytes.get(HEADER) == Some(&command)
    }

    /// Whether a client asks with these words.
    pub(super) fn holds(&self, words: &[u8]) -> bool {
        self.sender == Sender::Client && self.bytes.windows(words.len()).any(|piece| piece == words)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    Client,
    Server,
}

/// What becomes of a packet.
pub(super) enum Fate {
    Passed,
    /// Another body comes in its place.
    Replaced(Vec<u8>),
    /// The connection ends before it.
    Cut,
}

/// Where somebody stands between the server at `address` and whoever comes, and decides of each packet.
pub(super) async fn between(
    address: String,
    decides: impl Fn(&Packet<'_>) -> Fate + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().to_string();
    let decides = Arc::new(decides);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&address).await.unwrap();
            let decides = Arc::clone(&decides);
            tokio::spawn(async move {
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::select! {
                    () = carried(Sender::Client, from_client, to_server, &*decides) => {}
                    () = carried(Sender::Server, from_server, to_client, &*decides) => {}
                }
            });
        }
    });
    own
}

/// Carries packets until the stream ends or one is cut.
async fn carried(
    sender: Sender,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    decides: &(impl Fn(&Packet<'_>) -> Fate + Sync),
) {
    loop {
        let mut bytes = vec![0; HEADER];
        if from.read_exact(&mut bytes).await.is_err() {
            return;
        }
        let length = usize::from(bytes[0]) | usize::from(bytes[1]) << 8 | usize::from(bytes[2]) << 16;
        bytes.resize(HEADER + length, 0);
        if from.read_exact(&mut bytes[HEADER..]).await.is_err() {
            return;
        }
        match decides(&Packet {
            sender,
            bytes: &bytes,
        }) {
            Fate::Passed => {}
            Fate::Replaced(body) => {
                bytes.truncate(HEADER);
                bytes[..3].copy_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes()[..3]);
                bytes.extend(body);
            }
            Fate::Cut => return,
        }
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// What greets with a number of the session that is its own, as a pooler does.
pub(super) async fn pooler(address: String) -> String {
    between(address, |packet| {
        // The first packet of all: whatever else a server sends answers a packet, and has a number above its.
        let greets = packet.sender == Sender::Server && packet.bytes[3] == 0;
        if !greets {
            return Fate::Passed;
        }
        let mut greeting = packet.bytes[HEADER..].to_vec();
        // Behind the version, which ends with a zero.
        let version = greeting[1..].iter().position(|byte| *byte == 0).unwrap();
        greeting[1 + version + 1 + 2] ^= 0x55;
        Fate::Replaced(greeting)
    })
    .await
}

/// Three bytes of length, one of the packet's number.
const HEADER: usize = 4;
const PING: u8 = 0x0e;
const PREPARE: u8 = 0x16;
const END: u8 = 0xfe;
