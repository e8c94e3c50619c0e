//! The standalone server: credentials, faults, and what happens where it is not installed.

use std::process::Command;
use std::time::Duration;

use mongodb::Client;
use mongodb::bson::{Document, doc};
use mongodb::error::ErrorKind;
use mongodb::options::WriteConcern;
use tenure_testkit::{FETCH_COMMAND, Mongod, Process, ScratchDir, User, block_on, is_alive};

#[tokio::test]
async fn restarted_server_keeps_its_port_and_its_data() {
    let mut server = Mongod::start().await.unwrap();
    let (address, first_pid) = (server.address(), server.pid().unwrap());
    let notes = Client::with_uri_str(server.uri())
        .await
        .unwrap()
        .database("test")
        .collection::<Document>("notes");
    let journaled = WriteConcern::builder().journal(true).build();
    notes
        .insert_one(doc! { "_id": 1 })
        .write_concern(journaled)
        .await
        .unwrap();

    server.kill();
    assert!(!is_alive(first_pid));
    server.restart().await.unwrap();

    assert_eq!(server.address(), address);
    let client = Client::with_uri_str(server.uri()).await.unwrap();
    let notes = client.database("test").collection::<Document>("notes");
    assert_eq!(notes.count_documents(doc! { "_id": 1 }).await.unwrap(), 1);
}

#[tokio::test]
async fn frozen_server_answers_after_the_thaw() {
    let mut server = Mongod::start().await.unwrap();
    let client = Client::with_uri_str(server.uri()).await.unwrap();
    let ping = || async { client.database("admin").run_command(doc! { "ping": 1 }).await };
    ping().await.unwrap();

    server.freeze();
    let silent = tokio::time::timeout(Duration::from_millis(300), ping()).await;
    assert!(silent.is_err(), "a frozen server answered: {silent:?}");

    server.thaw();
    ping().await.unwrap();
}

#[tokio::test]
async fn server_with_authentication_tells_right_from_wrong() {
    let server = Mongod::with_auth().await.unwrap();
    let writer = server
        .create_user("writer", "secret", &[("readWrite", "shop")])
        .await
        .unwrap();
    let insert = |uri: String| async move {
        let client = Client::with_uri_str(uri).await.unwrap();
        client
            .database("shop")
            .collection::<Document>("orders")
            .insert_one(doc! {})
            .await
    };

    insert(server.uri()).await.unwrap();
    insert(server.uri_as(&writer)).await.unwrap();

    let wrong = insert(server.uri_as(&User::new("writer", "wrong")))
        .await
        .unwrap_err();
    assert!(matches!(*wrong.kind, ErrorKind::Authentication { .. }), "{wrong}");
    let nobody = insert(server.uri_without_credentials()).await.unwrap_err();
    assert!(nobody.to_string().contains("requires authentication"), "{nobody}");
}

#[test]
fn server_outlives_the_thread_that_started_it() {
    let starter = std::thread::spawn(|| block_on(Mongod::start()).unwrap());
    let server = starter.join().unwrap();
    let client_answers = block_on(server.create_user("someone", "secret", &[]));
    client_answers.unwrap();
}

/// A test process that is killed drops nothing; the kernel must end its server, and the next one sweep its
/// folders.
#[test]
fn killed_process_leaves_neither_server_nor_folder() {
    let target = ScratchDir::new("target");
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_testkit"));
        command
            .args(["run", "mongod"])
            .env("CARGO_TARGET_DIR", target.path());
        command.env("TESTKIT_MONGOD", tenure_testkit::mongod_program().unwrap());
        Process::spawn(command).unwrap()
    };
    let folders = || target.join("servers/scratch").read_dir().unwrap().count();

    let first = run();
    let line = first
        .wait_for_line("node 0: pid ", Duration::from_secs(120))
        .unwrap()
        .text;
    let server: u32 = line.split(' ').nth(3).unwrap().parse().unwrap();
    assert!(is_alive(server));
    // The leader alone: the server is in a group of its own anyway, so only the kernel can end it.
    first.kill_leader();
    first.wait_for_exit(Duration::from_secs(30)).unwrap();
    tenure_testkit::eventually(Duration::from_secs(30), "death of the server", || {
        !is_alive(server)
    });
    assert_eq!(folders(), 1);

    let second = run();
    second
        .wait_for_line("mongodb://", Duration::from_secs(120))
        .unwrap();
    assert_eq!(folders(), 1, "the folder of the dead process is still there");
}

#[test]
fn missing_server_fails_with_the_command_that_installs_it() {
    let empty = ScratchDir::new("empty");
    let mut command = Command::new(env!("CARGO_BIN_EXE_testkit"));
    command
        .arg("where")
        .env("CARGO_TARGET_DIR", empty.path())
        .env("PATH", "")
        .env_remove("TESTKIT_MONGOD");

    let output = command.output().unwrap();

    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains(FETCH_COMMAND), "{message}");
}

#[test]
fn named_server_that_does_not_exist_is_not_replaced_by_another() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_testkit"));
    command.arg("where").env("TESTKIT_MONGOD", "/nonexistent/mongod");

    let output = command.output().unwrap();

    assert!(!output.status.success());
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("TESTKIT_MONGOD=/nonexistent/mongod")
    );
}
