//! NATS servers: they start, answer, freeze, keep what they keep, and elect another leader.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use tenure_testkit::{NatsCluster, NatsOptions, NatsServer, eventually, is_alive};

/// As a loaded machine may need it.
const LONG: Duration = Duration::from_secs(60);

/// Sends one request on a connection of its own, and returns the payload of the reply.
fn ask(address: &str, subject: &str, payload: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let connect = r#"CONNECT {"verbose":false,"headers":true,"no_responders":true}"#;
    let sent = format!(
        "{connect}\r\nSUB reply 1\r\nPUB {subject} reply {}\r\n{payload}\r\n",
        payload.len()
    );
    stream.write_all(sent.as_bytes()).ok()?;
    // To the first failure: a reader that has timed out goes on failing for as long as somebody asks.
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.find(|line| line.starts_with("MSG "))?;
    lines.next()
}

/// Asks until the stream is there: a cluster that is electing answers nobody, and asking again for the same
/// stream changes nothing.
fn make_stream(address: &str, replicas: u8) {
    let stream = format!(r#"{{"name":"S","subjects":["s"],"storage":"file","num_replicas":{replicas}}}"#);
    eventually(LONG, "the stream", || {
        let made = ask(address, "$JS.API.STREAM.CREATE.S", &stream);
        made.is_some_and(|made| made.contains(r#""config""#))
    });
}

fn messages(server: &NatsServer) -> Option<u64> {
    let told = ask(&server.address(), "$JS.API.STREAM.INFO.S", "")?;
    let told: serde_json::Value = serde_json::from_str(&told).ok()?;
    told["state"]["messages"].as_u64()
}

/// Sends a message, and returns how many the stream confirms with it.
fn confirmed(server: &NatsServer) -> Option<u64> {
    let told: serde_json::Value = serde_json::from_str(&ask(&server.address(), "s", "hello")?).ok()?;
    told["seq"].as_u64()
}

#[tokio::test]
async fn server_keeps_what_it_confirmed_through_a_kill_and_is_gone_when_dropped() {
    let mut server = NatsServer::start(NatsOptions::durable()).await.unwrap();
    make_stream(&server.address(), 1);
    // An answer that is late leaves its message in the stream: the first that comes tells how many there are.
    let kept = eventually(LONG, "a confirmed message", || confirmed(&server));
    server.restart().await.unwrap();
    let found = eventually(LONG, "an answer", || messages(&server));
    assert!(found >= kept, "{found} of {kept}");
    let pid = server.pid().unwrap();
    drop(server);
    eventually(LONG, "the server's end", || !is_alive(pid));
}

#[tokio::test]
async fn frozen_server_does_not_answer_until_it_is_thawed() {
    let server = NatsServer::start(NatsOptions::default()).await.unwrap();
    server.freeze();
    assert!(server.look("/varz").is_err(), "a frozen server answered");
    server.thaw();
    eventually(LONG, "an answer", || server.look("/varz").is_ok());
}

#[tokio::test]
async fn cluster_of_three_elects_another_leader_when_it_is_killed() {
    let mut cluster = NatsCluster::start(NatsOptions::default()).await.unwrap();
    make_stream(&cluster.servers()[0].address(), 3);
    let leader = cluster.leader_of("S").await.unwrap();
    cluster.servers()[leader].kill();
    let next = cluster.leader_of("S").await.unwrap();
    assert_ne!(next, leader);
    let heir = cluster.servers()[next].address();
    eventually(LONG, "a write", || {
        ask(&heir, "s", "hello").is_some_and(|answer| answer.contains("seq"))
    });
}
