//! Tables that somebody keeps locked, as a dump does: what that costs the server, and who is granted what
//! when it is over.
use crate::common::{PATIENCE, Scratch, renewal, request, seconds, take};
use crate::short_sessions::pooler;
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use std::time::{Duration, Instant};
use tenure_conformance::asking::finding;
use tenure_conformance::wire::bounded;
use tenure_core::{Certainty, Fault, LeaseStore, Verdict};
use tenure_mysql::MysqlStore;
use tenure_testkit::Mariadb;
use tokio::time::{sleep, timeout};

/// By which a dump, a snapshot or an operator keeps tables from being written to.
const LOCKS: [&str; 2] = [
    "LOCK TABLES tenure_leases READ, tenure_fences READ, tenure_refusals READ, tenure_setup READ",
    "FLUSH TABLES WITH READ LOCK",
];

/// As an engine gives up a request of a short ttl.
const GIVEN_UP_AFTER: Duration = Duration::from_millis(300);

/// Sessions of the server that are in the middle of a statement, beside the one that looks.
async fn busy(client: &mut Conn) -> u64 {
    let asked = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND COMMAND = 'Query'";
    client.query_first(asked).await.unwrap().unwrap()
}

/// While whoever has locked the tables keeps them.
async fn nobody_waits(looker: &mut Conn) {
    let began = Instant::now();
    while busy(looker).await > 0 {
        assert!(began.elapsed() < PATIENCE, "they wait on");
        sleep(Duration::from_millis(50)).await;
    }
}

/// A server waits for a table for a year if it is let: each request that is given up would leave a session
/// behind that waits on, until the server has none left for anybody, and when the lock is over the lease
/// would be granted to who is gone.
#[tokio::test]
async fn request_that_is_given_up_at_a_locked_table_leaves_no_session_and_is_not_granted_later() {
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let store = scratch.store().await;
    let (held, gone) = (
        request("held", "holder", seconds(300)),
        request("gone", "gone", seconds(300)),
    );
    let beat = [renewal(&held, take(&store, &held).await.token)];
    let (mut locker, mut looker) = (scratch.client().await, scratch.client().await);
    for lock in LOCKS {
        locker.query_drop(lock).await.unwrap();
        for _request in 0..5 {
            let asking = store.acquire(&gone);
            let answer = timeout(GIVEN_UP_AFTER, asking).await;
            assert!(answer.is_err(), "{lock}: {answer:?}");
        }
        nobody_waits(&mut looker).await;
        // Who waits for the answer is told before the store gives it up.
        let told = [
            bounded("an acquisition", store.acquire(&gone)).await.unwrap_err(),
            bounded("a renewal", store.renew(&beat))
                .await
                .remove(0)
                .unwrap_err(),
        ];
        for error in told {
            assert_eq!(
                (error.fault, error.certainty),
                (Fault::Busy, Certainty::NotApplied),
                "{lock}: {error}"
            );
            assert!(error.message.contains("LOCK TABLES"), "{error}");
        }
        locker.query_drop("UNLOCK TABLES").await.unwrap();
        assert_eq!(store.get(&gone.name).await, Ok(None), "{lock}");
        let renewed = store.renew(&beat).await.remove(0);
        assert!(renewed.is_ok(), "{renewed:?}");
    }
}

/// As while a dump is read back. Each try to connect would leave a session there.
#[tokio::test]
async fn dial_that_is_given_up_at_a_locked_table_of_mysql_leaves_no_session() {
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let (mut locker, mut looker) = (scratch.client().await, scratch.client().await);
    locker.query_drop("LOCK TABLES tenure_setup WRITE").await.unwrap();
    for _dial in 0..3 {
        let dialled = timeout(GIVEN_UP_AFTER, MysqlStore::connect(&scratch.url())).await;
        assert!(dialled.is_err(), "{dialled:?}");
    }
    nobody_waits(&mut looker).await;
    locker.query_drop("UNLOCK TABLES").await.unwrap();
    scratch.store().await;
}

/// Its next user would be refused what it has always waited for. So the operator is told to say it for all
/// sessions of this user.
#[tokio::test]
async fn session_of_a_pooler_goes_on_waiting_for_tables_as_before_and_doctor_tells_of_it() {
    let scratch = Scratch::new().await;
    let findings = scratch.store().await.examine().await.unwrap();
    let told = findings.iter().find(|finding| finding.subject == "table locks");
    assert!(told.is_none(), "{told:?}");
    let pooler = pooler(scratch.address.clone()).await;
    let behind = MysqlStore::connect(&scratch.url_at("root", &pooler))
        .await
        .unwrap();
    let told = finding(&behind, "table locks").await;
    assert_eq!(told.verdict, Verdict::Warning, "{told:?}");
    assert!(told.repair.unwrap().contains("init_connect"));
}
