//! A network that is cut: what passes and what does not, and that nothing of it stays.
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tenure_testkit::{Cut, Network, RedisOptions, RedisServer, eventually, in_one_of, nft_command};

const SOON: Duration = Duration::from_secs(60);

/// Long for what arrives at all.
const ARRIVES_IN: Duration = Duration::from_secs(5);

/// How often a machine may be too slow.
const ROUNDS_MAX: u32 = 5;

/// A primary, and a replica that has caught up and has begun the connection between them.
async fn pair(network: &Network) -> (RedisServer, RedisServer) {
    let options = RedisOptions::with("--repl-diskless-sync-delay 0").on(network);
    let primary = RedisServer::start(options.clone()).await.expect("a server");
    let mut following = options;
    following
        .settings
        .extend(["--replicaof", "127.0.0.1", &primary.port().to_string()].map(str::to_owned));
    let replica = RedisServer::start(following).await.expect("a replica");
    eventually(SOON, "a replica that confirms", || {
        confirmed(&primary, "SET warm 1")
    });
    (primary, replica)
}

/// Writes, and whether the replica confirms that while one waits a little: both are asked by the same client.
fn confirmed(primary: &RedisServer, write: &str) -> bool {
    let mut stream = TcpStream::connect(primary.address()).expect("its clients reach it");
    let asked = format!("{write}\r\nWAIT 1 300\r\n");
    stream.write_all(asked.as_bytes()).expect("its clients reach it");
    let mut lines = BufReader::new(stream)
        .lines()
        .map(|line| line.expect("an answer"));
    assert_eq!(lines.next().expect("an answer"), "+OK");
    lines.next().expect("an answer") == ":1"
}

#[tokio::test]
async fn servers_that_are_cut_from_each_other_answer_their_clients_and_go_on_when_it_heals() {
    let Some(network) = Network::unless_left_out() else {
        return;
    };
    let (primary, replica) = pair(&network).await;
    network.cut_off(&primary.address(), Cut::Both);
    assert!(!confirmed(&primary, "SET key one"));
    // What is asked of the one that is cut off arrives, so this answer is not just early.
    assert_eq!(replica.ask("GET key").expect("it answers"), "$-1");
    // Nor is there a new connection.
    let moved = primary.ask(&format!("MIGRATE 127.0.0.1 {} warm 0 300", replica.port()));
    assert!(moved.expect("an answer").starts_with("-IOERR"));
    network.heal();
    eventually(SOON, "it is confirmed", || confirmed(&primary, "SET warm 2"));
    assert_eq!(replica.ask("GET key").expect("it answers"), "$3");
}

#[tokio::test]
async fn a_cut_of_one_way_lets_pass_what_goes_the_other() {
    let Some(network) = Network::unless_left_out() else {
        return;
    };
    // Who hears of no arrival sends nothing new on a connection as soon as it repeats what it has sent
    // before, as TCP has it.
    let why = "the primary waited for the arrival of something before";
    in_one_of(ROUNDS_MAX, why, async || {
        lets_pass_what_goes_the_other(&network).await
    })
    .await;
}

async fn lets_pass_what_goes_the_other(network: &Network) -> bool {
    let (primary, replica) = pair(network).await;
    network.cut_off(&replica.address(), Cut::WhatItSends);
    assert!(
        !confirmed(&primary, "SET key one"),
        "what confirms it does not come back"
    );
    let arrives = || replica.ask("GET key").expect("it answers") == "$3";
    let sent = Instant::now();
    while !arrives() {
        if sent.elapsed() > ARRIVES_IN {
            network.heal();
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    network.heal();
    eventually(SOON, "it is confirmed", || confirmed(&primary, "SET warm 2"));
    // The other way, on a connection that the replica has begun.
    network.cut_off(&replica.address(), Cut::WhatItHears);
    assert!(!confirmed(&primary, "SET other two"));
    assert_eq!(replica.ask("GET other").expect("it answers"), "$-1");
    network.heal();
    eventually(SOON, "it is confirmed", || confirmed(&primary, "SET warm 2"));
    true
}

#[tokio::test]
async fn networks_beside_each_other_do_not_meet_and_leave_nothing() {
    let (Some(one), Some(other)) = (Network::unless_left_out(), Network::unless_left_out()) else {
        return;
    };
    let ((primary, replica), (beside, _its_replica)) = (pair(&one).await, pair(&other).await);
    one.cut_off(&primary.address(), Cut::Both);
    eventually(SOON, "it is confirmed", || confirmed(&beside, "SET key one"));
    assert!(!confirmed(&primary, "SET key one"));
    let names = [format!("{one:?}"), format!("{other:?}")];
    let known = || {
        let tables = nft_command()
            .expect("nft")
            .args(["list", "tables"])
            .output()
            .expect("nft");
        let tables = String::from_utf8(tables.stdout).expect("a text");
        names.clone().map(|name| tables.contains(&format!("{name}\n")))
    };
    assert_eq!(known(), [true, true]);
    drop(primary);
    drop(one);
    assert_eq!(known(), [true, true], "the servers have it still");
    drop(replica);
    eventually(SOON, "it is gone", || known() == [false, true]);
}
