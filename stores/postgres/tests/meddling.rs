//! A stand-in for a pooler that does something to requests, as a real one does now and then.
use crate::common::Scratch;
use crate::fence::ledger;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tenure_core::Leases;
use tenure_postgres::PostgresFence;
use tenure_testkit::Postgres;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What happens to a request.
pub(super) enum Meddling {
    Nothing,
    /// It is answered with this, and the server never hears of it.
    Answers(&'static [u8]),
    /// The connection ends, and the server never hears of it.
    Cuts,
    /// The server is told this statement before, as by another client whose session it was.
    Precedes(&'static str),
}

/// Between clients and this server, and how many connections clients have made to it. A request is what
/// arrives in one piece.
pub(super) async fn meddling(
    server: String,
    with: impl Fn(&[u8]) -> Meddling + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let (counted, with) = (Arc::clone(&connections), Arc::new(with));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let server = TcpStream::connect(&server).await.unwrap();
            let with = Arc::clone(&with);
            tokio::spawn(async move { pass(client, server, |request| with(request)).await });
        }
    });
    (address, connections)
}

async fn pass(
    mut client: TcpStream,
    mut server: TcpStream,
    with: impl Fn(&[u8]) -> Meddling,
) -> io::Result<()> {
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let request = &asked[..read?];
                if request.is_empty() {
                    return Ok(());
                }
                match with(request) {
                    Meddling::Answers(answer) => {
                        client.write_all(answer).await?;
                        continue;
                    }
                    Meddling::Cuts => return Ok(()),
                    Meddling::Precedes(statement) => tell(&mut server, statement).await?,
                    Meddling::Nothing => {}
                }
                server.write_all(request).await?;
            }
            read = server.read(&mut answered) => match read? {
                0 => return Ok(()),
                length => client.write_all(&answered[..length]).await?,
            },
        }
    }
}

/// A plain query, to its last word.
async fn tell(server: &mut TcpStream, statement: &str) -> io::Result<()> {
    let mut query = vec![b'Q'];
    let length = u32::try_from(statement.len() + 5).unwrap();
    query.extend_from_slice(&length.to_be_bytes());
    query.extend_from_slice(statement.as_bytes());
    query.push(0);
    server.write_all(&query).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"Z\0\0\0\x05I") {
        assert_ne!(server.read_buf(&mut answer).await?, 0, "the server has gone");
    }
    Ok(())
}

/// What is found by one session's search path is not looked for by another's.
#[tokio::test]
async fn guard_is_of_the_table_that_was_found_whatever_path_the_next_session_has() {
    let scratch = Scratch::new().await;
    scratch
        .sql(
            "DROP SCHEMA IF EXISTS \"Other\" CASCADE; CREATE SCHEMA \"Other\"; CREATE TABLE \"Other\".\"My account\" (); \
             CREATE TABLE {schema}.\"My account\" ()",
        )
        .await;
    let anothers = |request: &[u8]| match request.windows(5).any(|piece| piece == b"BEGIN") {
        true => Meddling::Precedes("SET search_path TO \"Other\""),
        false => Meddling::Nothing,
    };
    let (address, _) = meddling(Postgres::shared().await.address(), anothers).await;
    let options = format!("sslmode=disable&options=-csearch_path%3D{}", scratch.schema);
    let url = scratch.url_on(&format!("postgres://postgres@{address}/postgres"), &options);
    let fence = PostgresFence::connect(&url, Leases::Here).await.unwrap();
    fence.guard("\"My account\"", &ledger()).await.unwrap();
    let client = scratch.client().await;
    let asked = "SELECT n.nspname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid \
                 JOIN pg_namespace n ON n.oid = c.relnamespace WHERE t.tgname = 'tenure_fence' AND c.relname = 'My account'";
    let guarded = client.query(asked, &[]).await.unwrap();
    let guarded: Vec<String> = guarded.iter().map(|row| row.get(0)).collect();
    assert_eq!(guarded, [scratch.schema.as_str()]);
}
