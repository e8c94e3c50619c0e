//! Servers before NATS 2.11 keep leases, and cannot keep a fence. The server is a new one whose greeting is
//! changed under way: what it says of itself is all that is asked.

use crate::common::{Scratch, request, seconds, shared, take};
use tenure_core::{Certainty, Fault, Leases};
use tenure_nats::NatsFence;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Where the shared server says that it is of this version.
async fn shared_as(version: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = shared().await.address();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&server).await.expect("the server is there");
            tokio::spawn(pass_on(client, server, version));
        }
    });
    format!("nats://{address}")
}

async fn pass_on(mut client: TcpStream, server: TcpStream, version: &str) {
    let mut server = BufReader::new(server);
    let mut greeting = String::new();
    server.read_line(&mut greeting).await.expect("the server greets");
    let (before, told) = greeting.split_once("\"version\":\"").expect("its version");
    let (_, after) = told.split_once('"').expect("the version's end");
    let changed = format!("{before}\"version\":\"{version}\"{after}");
    client.write_all(changed.as_bytes()).await.expect("passed on");
    // Its end is the store's or the server's business.
    let _ended = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}

#[tokio::test]
async fn server_before_2_11_keeps_leases_and_a_fence_on_it_is_refused_with_the_way_out() {
    let scratch = Scratch::on(&shared_as("2.10.29").await);
    let error = NatsFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect_err("no write through it could be stored");
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Unsupported, Certainty::NotApplied),
        "{error}"
    );
    assert_eq!(error.message.lines().count(), 1, "{error}");
    for part in ["the fence", "server scratch", "2.10.29", "2.11", "leases"] {
        assert!(error.message.contains(part), "{part}: {error}");
    }
    let store = scratch.store().await;
    take(&store, &request("job", "a", seconds(60))).await;
}

#[tokio::test]
async fn fence_is_opened_on_the_first_version_that_can_keep_it() {
    let scratch = Scratch::on(&shared_as("2.11.0-RC.1").await);
    drop(
        NatsFence::connect(&scratch.store_url(), Leases::Here)
            .await
            .expect("it is opened"),
    );
}
