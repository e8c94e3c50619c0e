//! A duplicate has its effect a second time, on every server whose requests the proxy knows; one that fails
//! is not counted.
//!
//! MongoDB's stand in `fault_proxy`, MariaDB's in `mariadb`.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use tenure_testkit::{
    Etcd, EtcdOptions, FaultProxy, Mariadb, NatsOptions, NatsServer, Postgres, RedisOptions, RedisServer,
    RequestFault, eventually,
};

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn insertion_into_postgres_that_arrives_twice_inserts_two_rows() {
    let server = Postgres::start().await.unwrap();
    server
        .execute("CREATE TABLE many (n int); CREATE TABLE one (n int PRIMARY KEY)")
        .await
        .unwrap();
    let proxy = FaultProxy::postgres(server.address()).unwrap();
    let client = Postgres::client(&format!("postgres://postgres@{}/postgres", proxy.address()))
        .await
        .unwrap();
    for (table, rows, duplicated) in [("many", 2, 1), ("one", 1, 1)] {
        proxy.next_commands(1, "INSERT", RequestFault::Duplicate);
        let insert = format!("INSERT INTO {table} VALUES (1)");
        client.batch_execute(&insert).await.unwrap();
        let count = format!("SELECT count(*) FROM {table}");
        let row = client.query_one(&count, &[]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), rows, "{table}");
        assert_eq!(
            (proxy.faults_left(), proxy.counts().duplicated),
            (0, duplicated),
            "{table}"
        );
    }
}

#[tokio::test]
async fn insertion_into_mariadb_that_fails_the_second_time_is_no_duplicate() {
    let server = Mariadb::start().await.unwrap();
    server
        .execute("CREATE DATABASE d; CREATE TABLE d.one (n INT PRIMARY KEY)")
        .await
        .unwrap();
    let proxy = FaultProxy::mysql(server.address()).unwrap();
    let uri = format!("mysql://root@{}/d", proxy.address());
    let mut client = Mariadb::client(&uri).await.unwrap();
    proxy.next_commands(1, "INSERT", RequestFault::Duplicate);
    client.query_drop("INSERT INTO one VALUES (1)").await.unwrap();
    assert_eq!((proxy.faults_left(), proxy.counts().duplicated), (0, 0));
}

/// Connects, and sends this.
fn send(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

/// Reads until this has come.
fn until(stream: &mut TcpStream, told: &[u8]) {
    let mut read = Vec::new();
    while !read.windows(told.len()).any(|part| part == told) {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "the end, after {}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&piece[..count]);
    }
}

#[tokio::test]
async fn counter_of_redis_that_is_raised_twice_is_two() {
    let server = RedisServer::start(RedisOptions::default()).await.unwrap();
    let proxy = FaultProxy::redis(server.address()).unwrap();
    proxy.next_requests(1, RequestFault::Duplicate);
    until(
        &mut send(proxy.address(), b"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n"),
        b":1\r\n",
    );
    assert_eq!(server.ask("GET n").unwrap(), "$1");
    assert_eq!(server.ask("INCR n").unwrap(), ":3");
    assert_eq!(proxy.counts().duplicated, 1);
    // What has its name once cannot get another again.
    proxy.next_requests(1, RequestFault::Duplicate);
    let rename = b"*3\r\n$6\r\nRENAME\r\n$1\r\nn\r\n$1\r\nm\r\n";
    until(&mut send(proxy.address(), rename), b"+OK\r\n");
    assert_eq!((proxy.faults_left(), proxy.counts().duplicated), (0, 1));
}

#[tokio::test]
async fn message_to_nats_that_arrives_twice_is_stored_twice() {
    let server = NatsServer::start(NatsOptions::default()).await.unwrap();
    let proxy = FaultProxy::nats(server.address()).unwrap();
    let make = r#"{"name":"S","subjects":["s"],"storage":"memory"}"#;
    let begin = "CONNECT {\"verbose\":false}\r\nSUB reply 1\r\n";
    let made = format!(
        "{begin}PUB $JS.API.STREAM.CREATE.S reply {}\r\n{make}\r\n",
        make.len()
    );
    until(&mut send(proxy.address(), made.as_bytes()), b"did_create");
    proxy.next_commands(1, "PUB", RequestFault::Duplicate);
    let mut client = send(
        proxy.address(),
        format!("{begin}PUB s reply 1\r\nx\r\n").as_bytes(),
    );
    // The reply to the duplicate comes here, too.
    until(&mut client, b"\"seq\":2");
    assert_eq!(proxy.counts().duplicated, 1);
    // A server that knows no such user reads nothing more.
    let refusing = RedisServer::start(RedisOptions::default()).await.unwrap();
    proxy.next_commands(1, "PUB", RequestFault::Duplicate);
    proxy.lead_to(refusing.address());
    client.write_all(b"PUB s reply 1\r\nx\r\n").unwrap();
    until(&mut client, b"\"seq\":3");
    assert_eq!((proxy.faults_left(), proxy.counts().duplicated), (0, 1));
}

/// A request of gRPC's on a connection of its own: what names the method is not compressed.
fn grpc(path: &str, message: &[u8]) -> Vec<u8> {
    // POST, http, and as written: the path, the authority, the type of the content, and that trailers are
    // read.
    let mut headers = vec![0x83, 0x86];
    for (name, value) in [
        (&[0x04][..], path),
        (&[0x01], "etcd"),
        (&[0x0f, 0x10], "application/grpc"),
    ] {
        headers.extend_from_slice(name);
        headers.push(u8::try_from(value.len()).unwrap());
        headers.extend_from_slice(value.as_bytes());
    }
    headers.extend_from_slice(b"\x00\x02te\x08trailers");
    let mut data = vec![0, 0, 0, 0, u8::try_from(message.len()).unwrap()];
    data.extend_from_slice(message);
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    for (kind, flags, stream, payload) in [
        (4, 0, 0, &[][..]),
        // The end of the headers; the end of the stream.
        (1, 4, 1, &headers),
        (0, 1, 1, &data),
    ] {
        bytes.extend_from_slice(&[
            0,
            0,
            u8::try_from(payload.len()).unwrap(),
            kind,
            flags,
            0,
            0,
            0,
            stream,
        ]);
        bytes.extend_from_slice(payload);
    }
    bytes
}

#[tokio::test]
async fn put_into_etcd_that_arrives_twice_has_made_two_versions() {
    let etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    let proxy = FaultProxy::http2(etcd.address(0)).unwrap();
    proxy.next_requests(1, RequestFault::Duplicate);
    let put = grpc("/etcdserverpb.KV/Put", b"\x0a\x01k\x12\x01v");
    let _open = send(proxy.address(), &put);
    eventually(LONG, "two puts", || {
        let found = etcd.post(0, "/v3/kv/range", r#"{"key":"aw=="}"#).unwrap();
        if found.contains(r#""version":"2""#) {
            Ok(())
        } else {
            Err(found)
        }
    });
    eventually(LONG, "the count", || proxy.counts().duplicated == 1);
    // A lease of this number, which is there the second time.
    proxy.next_requests(1, RequestFault::Duplicate);
    let grant = grpc("/etcdserverpb.Lease/LeaseGrant", b"\x08\x3c\x10\x07");
    let mut granted = send(proxy.address(), &grant);
    // The trailers, which end the headers and the stream, come after the duplicate's.
    until(&mut granted, &[1, 5, 0, 0, 0, 1]);
    assert_eq!((proxy.faults_left(), proxy.counts().duplicated), (0, 1));
}
