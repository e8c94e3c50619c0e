//! Claims that a transaction of an earlier term keeps waiting: its leader died in it, and the server has not
//! heard of that.
use crate::harness::{Site, soon};
use std::time::Duration;
use tenure::contract::Release;
use tenure::postgres::tokio_postgres::{Client, NoTls};
use tenure::postgres::{PostgresFence, PostgresStore};
use tenure::{
    Claimed, Fault, Fence, FenceError, FencingToken, LeaseName, Leases, ResourceName, Term, Timing, Ttl,
};
use tenure_testkit::Postgres;

fn ledger() -> ResourceName {
    ResourceName::new("ledger").unwrap()
}

async fn client() -> Client {
    let (client, connection) =
        tenure::postgres::tokio_postgres::connect(&Postgres::shared().await.uri(), NoTls)
            .await
            .unwrap();
    tokio::spawn(connection);
    client
}

/// The fence in a schema of its own, and its mark claimed by a term that has entered a transaction which
/// nobody ends.
async fn left_open(schema: &str, client: &mut Client, old: &Term) -> PostgresFence {
    let url = format!("{}?schema={schema}", Postgres::shared().await.uri());
    PostgresStore::init(&url).await.unwrap();
    let fence = PostgresFence::connect(&url, Leases::Elsewhere).await.unwrap();
    fence.claim(&ledger(), old).await.unwrap();
    client.batch_execute("BEGIN").await.unwrap();
    let entering = format!("SELECT {schema}.enter($1, $2, $3)");
    client
        .execute(&entering, &[&"ledger", &old.lease.as_str(), &old.token.signed()])
        .await
        .unwrap();
    fence
}

fn is_kept_waiting(claimed: &Result<Claimed, FenceError>) -> bool {
    matches!(claimed, Err(FenceError::Store(error)) if error.fault == Fault::Busy)
}

#[tokio::test]
async fn leader_claims_when_the_transaction_of_a_dead_one_is_over_at_last() {
    let site = Site::new();
    let leader = site.election("leader");
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let mut client = client().await;
    let old = Term::new(leadership.name().clone(), FencingToken::new(1).unwrap());
    let fence = &left_open("claim_waits", &mut client, &old).await;
    let ledger = &ledger();
    let claiming = leadership.claim(fence, ledger);
    let ending = async {
        // Begun later, so that the leader's own was refused before.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let refused = fence.claim(ledger, &leadership.term()).await;
        assert!(is_kept_waiting(&refused), "{refused:?}");
        client.batch_execute("ROLLBACK").await.unwrap();
    };
    let (claimed, ()) = soon("the claim", async { tokio::join!(claiming, ending) }).await;
    assert_eq!(
        claimed,
        Ok(Claimed::Raised {
            from: Some(old.token)
        })
    );
}

#[tokio::test]
async fn claim_that_waits_ends_with_its_term() {
    let site = Site::new();
    // One that is renewed soon, and then heard to be over.
    let leader = Site::election_of(site.store(), "leader", Timing::of(Ttl::from_secs(6).unwrap()));
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let mut client = client().await;
    let old = Term::new(leadership.name().clone(), FencingToken::new(1).unwrap());
    let fence = &left_open("claim_ends", &mut client, &old).await;
    let operator = site.store();
    let ledger = &ledger();
    let claiming = leadership.claim(fence, ledger);
    let ending = async {
        let name = LeaseName::new(leadership.name().as_str()).unwrap();
        let lease = operator.get(&name).await.unwrap().unwrap();
        let release = Release {
            name,
            incarnation: lease.holder.incarnation,
            token: lease.token,
            attempt: lease.attempt,
        };
        operator.release(&[release]).await.remove(0).unwrap();
    };
    let (claimed, ()) = soon("the claim's end", async { tokio::join!(claiming, ending) }).await;
    assert!(is_kept_waiting(&claimed), "{claimed:?}");
    client.batch_execute("ROLLBACK").await.unwrap();
}
