//! A proxy that sends what reads to another server than what writes.
use crate::common::Scratch;
use std::io;
use std::sync::Arc;
use tenure_core::{Certainty, Fault, Leases};
use tenure_mysql::{MysqlFence, MysqlStore};
use tenure_testkit::Mariadb;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// What it answers of the primary's settings is true, and what it reads may be old.
#[tokio::test]
async fn proxy_that_sends_what_reads_to_another_server_is_refused() {
    let primary = Mariadb::primary(&[]).await.unwrap();
    let replica = primary.replica(&[]).await.unwrap();
    let scratch = Scratch::on(&primary.address()).await;
    replica.catch_up(&primary).await.unwrap();
    let proxy = splitting(primary.address(), replica.address()).await;
    let url = scratch.url_at("root", &proxy);
    // Also where it has been let take writes.
    for read_only in ["ON", "OFF"] {
        let set = format!("SET GLOBAL read_only = {read_only}");
        replica.execute(&set).await.unwrap();
        let store = MysqlStore::connect(&url).await.unwrap_err();
        let fence = MysqlFence::connect(&url, Leases::Here).await.unwrap_err();
        for error in [store, fence] {
            assert_eq!(
                (error.fault, error.certainty),
                (Fault::ReadOnly, Certainty::NotApplied),
                "{error}"
            );
            assert!(error.message.contains("two servers answer here"), "{error}");
        }
    }
    let whole = splitting(primary.address(), primary.address()).await;
    MysqlStore::connect(&scratch.url_at("root", &whole))
        .await
        .unwrap();
}

/// Its own address.
async fn splitting(writer: String, reader: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (writer, reader) = (writer.clone(), reader.clone());
            tokio::spawn(async move {
                let servers = [
                    TcpStream::connect(writer).await.unwrap(),
                    TcpStream::connect(reader).await.unwrap(),
                ];
                // Until whoever came is gone.
                let _ended = split(client, servers).await;
            });
        }
    });
    own
}

/// Both let in who has no password, whatever they have greeted with.
async fn split(mut client: TcpStream, mut servers: [TcpStream; 2]) -> io::Result<()> {
    let greeting = of_both(&mut servers).await?;
    client.write_all(&greeting).await?;
    let login = packet(&mut client).await?;
    for server in &mut servers {
        server.write_all(&login).await?;
    }
    let let_in = of_both(&mut servers).await?;
    client.write_all(&let_in).await?;
    let (from_client, to_client) = client.into_split();
    let to_client = Arc::new(Mutex::new(to_client));
    let [(from_writer, to_writer), (from_reader, to_reader)] = servers.map(TcpStream::into_split);
    // Whoever was not asked says nothing.
    tokio::select! {
        ended = asked(from_client, to_writer, to_reader) => ended,
        ended = answered(from_writer, &to_client) => ended,
        ended = answered(from_reader, &to_client) => ended,
    }
}

/// A packet of each, of which the first one's counts.
async fn of_both([writer, reader]: &mut [TcpStream; 2]) -> io::Result<Vec<u8>> {
    packet(reader).await?;
    packet(writer).await
}

async fn asked(
    mut client: OwnedReadHalf,
    mut writer: OwnedWriteHalf,
    mut reader: OwnedWriteHalf,
) -> io::Result<()> {
    loop {
        let asked = packet(&mut client).await?;
        match asked[HEADER..].starts_with(b"\x03SELECT") {
            true => reader.write_all(&asked).await?,
            false => writer.write_all(&asked).await?,
        }
    }
}

async fn answered(mut server: OwnedReadHalf, client: &Mutex<OwnedWriteHalf>) -> io::Result<()> {
    loop {
        let answer = packet(&mut server).await?;
        client.lock().await.write_all(&answer).await?;
    }
}

async fn packet(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; HEADER];
    from.read_exact(&mut bytes).await?;
    let length = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
    bytes.resize(HEADER + usize::try_from(length).unwrap(), 0);
    from.read_exact(&mut bytes[HEADER..]).await?;
    Ok(bytes)
}

/// Three bytes of length, one of the packet's number.
const HEADER: usize = 4;
