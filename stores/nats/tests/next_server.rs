//! What becomes of a store's connections when one of several servers falls silent.

use crate::common::{Scratch, in_time, renewal, request, seconds, shared, take};
use std::time::Duration;
use tenure_core::{Fault as StoreFault, LeaseStore, Renew, Renewed, StoreError};
use tenure_nats::NatsStore;
use tenure_testkit::{Fault, FaultProxy, NatsOptions, NatsServer, eventually_async, free_port};
use tokio::net::{TcpListener, TcpStream, lookup_host};

/// As a request of the engine's, whose patience is a tenth of the ttl: shorter than what a dial gives one
/// server.
const PATIENCE: Duration = Duration::from_millis(300);

/// In 20 s a loaded machine, too, has come past one silent server.
const TRIES_MAX: usize = 40;
const LATER_PATIENCE: Duration = Duration::from_millis(500);

/// A server greets, is greeted, and answers: three of these are more than one is given where there are
/// others, and less than one alone.
const AWAY: Duration = Duration::from_millis(250);

/// How often a loaded machine may be too slow to connect to the first server.
const ROUNDS_MAX: u32 = 5;

/// The kernel accepts, and nobody ever greets: as a frozen server, or one whose host has vanished.
async fn silent_server() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.expect("a port")
}

#[tokio::test]
async fn silent_server_is_passed_by_although_every_caller_gives_up_while_it_is_dialled() {
    let silent = silent_server().await;
    let proxy = FaultProxy::nats(shared().await.address()).expect("a proxy");
    let addresses = format!(
        "nats://{},{}",
        silent.local_addr().expect("an address"),
        proxy.address()
    );
    let store = Scratch::on(&addresses).store().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    let renewals = [renewal(&asked, grant.token)];
    assert!(store.renew(&renewals).await[0].is_ok(), "over its own connection");
    proxy.set(Fault::BlackHole);
    let impatient = tokio::time::timeout(PATIENCE, store.renew(&renewals));
    assert!(impatient.await.is_err(), "nothing answers");
    proxy.heal();
    // The next dial begins with the silent one.
    renewed_at_last(&store, &renewals).await;
}

/// As over TLS from afar, where a greeting takes some round trips: longer than one server is given where
/// there are others.
#[tokio::test]
async fn servers_that_are_far_away_are_connected_to_although_another_is_down() {
    let alive = shared().await.address();
    let far = || {
        let proxy = FaultProxy::nats(&alive).expect("a proxy");
        proxy.set(Fault::Delay {
            to_server: AWAY,
            to_client: AWAY,
        });
        proxy
    };
    let (one, other) = (far(), far());
    let down = free_port();
    let addresses = format!("nats://{},127.0.0.1:{down},{}", one.address(), other.address());
    let store = Scratch::on(&addresses).store().await;
    let asked = request("job", "holder", seconds(60));
    eventually_async(Duration::from_secs(60), "a term", || store.acquire(&asked)).await;
}

/// A server says goodbye, and then its host is gone: nothing has told that the next one is better.
#[tokio::test]
async fn server_that_vanishes_after_its_goodbye_is_passed_by_although_every_caller_gives_up() {
    let alive = shared().await.address();
    for _round in 0..ROUNDS_MAX {
        let proxy = FaultProxy::nats(&alive).expect("a proxy");
        let store = Scratch::on(&format!("nats://{},{alive}", proxy.address()))
            .store()
            .await;
        let asked = request("job", "holder", seconds(60));
        let grant = take(&store, &asked).await;
        let renewals = [renewal(&asked, grant.token)];
        assert!(store.renew(&renewals).await[0].is_ok(), "over its own connection");
        // One more for each that a busy machine was too slow to make.
        if proxy.counts().connections >= 2 {
            proxy.set(Fault::BlackHole);
            proxy.cut_connections();
            return renewed_at_last(&store, &renewals).await;
        }
    }
    panic!("both connections were made to the first server in none of {ROUNDS_MAX} rounds");
}

/// One was forgotten when the password was changed. Only if each refuses it there is nothing to wait for.
#[tokio::test]
async fn server_that_refuses_the_credentials_is_passed_by_and_ends_nothing_while_another_is_away() {
    let server = async |password: &str| {
        let users = format!("authorization {{ users: [ {{ user: app, password: {password} }} ] }}");
        let options = NatsOptions::default().with(&users);
        NatsServer::start(options).await.expect("a server starts")
    };
    let (forgotten, changed) = (server("old").await, server("new").await);
    let to = |other: &str| format!("nats://app:new@{},{other}", forgotten.address());
    let store = Scratch::on(&to(&changed.address())).store().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    renewed_at_last(&store, &[renewal(&asked, grant.token)]).await;

    let away = refused_at_last(&to("127.0.0.1:1")).await;
    assert_eq!(away.fault, StoreFault::Unreachable, "{away}");
    let by_all = refused_at_last(&to(&forgotten.address())).await;
    assert_eq!(by_all.fault, StoreFault::Unauthenticated, "{by_all}");
}

/// Why nobody lets it in, who would be let in by none: one that took too long to refuse it is asked again.
async fn refused_at_last(url: &str) -> StoreError {
    eventually_async(Duration::from_secs(60), "a refusal", async || {
        let error = NatsStore::connect(url).await.expect_err("nobody lets it in");
        let is_told = error.message.contains("check user and password");
        let is_of_each = is_told && error.fault != StoreFault::TimedOut;
        if is_of_each { Ok(error) } else { Err(error) }
    })
    .await
}

/// As of `localhost` on many machines, or of a service with several servers behind it. Left out where it has
/// one address.
#[tokio::test]
async fn each_address_of_a_host_is_greeted_and_what_all_of_them_say_is_told() {
    let addresses = lookup_host("localhost:0").await.expect("it is known");
    let [first, second] = addresses.map(|address| address.ip()).collect::<Vec<_>>()[..] else {
        println!("localhost has not two addresses");
        return;
    };
    let with = async |settings: &str| {
        let options = NatsOptions::default().with(settings);
        NatsServer::start(options).await.expect("a server starts")
    };
    let users = "authorization { users: [ { user: app, password: new } ] }";
    let (locked, full) = (with(users).await, with("max_connections: 1").await);
    let _only_one = async_nats::connect(full.address()).await.expect("the first");
    for (leads_to, login, fault) in [
        ([&locked, &locked], "app:old@", Some(StoreFault::Unauthenticated)),
        ([&locked, &locked], "app:new@", None),
        ([&full, &locked], "app:new@", None),
    ] {
        let listener = TcpListener::bind((first, 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(lead_to(listener, leads_to[0].address()));
        let listener = TcpListener::bind((second, port)).await.expect("the same port");
        tokio::spawn(lead_to(listener, leads_to[1].address()));
        let url = Scratch::on(&format!("nats://{login}localhost:{port}")).store_url();
        let told = in_time("an answer of each", async || {
            match NatsStore::connect(&url).await {
                Err(error) if error.fault == StoreFault::Unauthenticated => Ok(Some(error.fault)),
                connected => connected.map(|_store| None),
            }
        })
        .await;
        assert_eq!(told, fault);
    }
}

async fn lead_to(listener: TcpListener, address: String) {
    while let Ok((mut here, _)) = listener.accept().await {
        let address = address.clone();
        tokio::spawn(async move {
            let mut there = TcpStream::connect(address).await.expect("it listens");
            // Either end may break it off.
            let _broken = tokio::io::copy_bidirectional(&mut here, &mut there).await;
        });
    }
}

async fn renewed_at_last(store: &NatsStore, renewals: &[Renew]) {
    let mut last = None;
    for _try in 0..TRIES_MAX {
        last = tokio::time::timeout(LATER_PATIENCE, store.renew(renewals))
            .await
            .ok()
            .map(|mut answers| answers.remove(0));
        match last {
            Some(Ok(Renewed::Extended { .. })) => return,
            // An answer that comes at once is no try of a server's.
            Some(_) => tokio::time::sleep(PATIENCE).await,
            None => {}
        }
    }
    panic!("no renewal came through in {TRIES_MAX} tries; the last: {last:?}");
}
