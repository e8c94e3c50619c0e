//! What a term reads behind its fence: all that older terms were confirmed, whichever server answers.

use crate::common::{Scratch, name};
use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::{Certainty, Fault, Fence, FenceError, FencingToken, Leases, ResourceName, Term};
use tenure_nats::NatsFence;
use tenure_testkit::{FaultProxy, NatsCluster, NatsOptions, eventually_async};

/// An election takes the servers 4 to 10 s; the rest is for a loaded machine.
const ELECTION: Duration = Duration::from_secs(60);

const KEY: &str = "balance";

fn ledger() -> ResourceName {
    ResourceName::new("ledger").expect("a name")
}

fn term(token: u64) -> Term {
    Term::new(name("job"), FencingToken::new(token).expect("a token"))
}

async fn fence(address: &str, scratch: &Scratch) -> NatsFence {
    let fence = NatsFence::connect(&format!("nats://{address}/{}", scratch.bucket), Leases::Elsewhere).await;
    fence.expect("a fence")
}

async fn claimed_in_time(fence: &NatsFence, token: u64) {
    eventually_async(ELECTION, "a claim", || async {
        fence.claim(&ledger(), &term(token)).await
    })
    .await;
}

async fn stored_in_time(fence: &NatsFence, token: u64, value: &str) {
    eventually_async(ELECTION, "a write", || async {
        fence.put(&ledger(), &term(token), KEY, value).await
    })
    .await;
}

async fn read_in_time(fence: &NatsFence, token: u64) -> Option<String> {
    let value = eventually_async(ELECTION, "a read", || async {
        fence.get(&ledger(), &term(token), KEY).await
    })
    .await;
    value.map(|value| String::from_utf8(value).expect("text"))
}

#[tokio::test]
async fn what_was_put_is_read_and_what_was_never_put_or_was_deleted_is_not_there() {
    let scratch = Scratch::new().await;
    let server = scratch.url.trim_start_matches("nats://").to_owned();
    let (old, new) = (fence(&server, &scratch).await, fence(&server, &scratch).await);
    let (first, second) = (term(7), term(8));
    let unclaimed = old.get(&ledger(), &first, KEY).await;
    assert!(
        matches!(unclaimed, Err(FenceError::Unclaimed { .. })),
        "{unclaimed:?}"
    );
    old.claim(&ledger(), &first).await.expect("claimed");
    assert_eq!(old.get(&ledger(), &first, KEY).await, Ok(None));
    old.put(&ledger(), &first, KEY, "1").await.expect("admitted");
    new.claim(&ledger(), &second).await.expect("claimed");
    assert_eq!(new.get(&ledger(), &second, KEY).await, Ok(Some(b"1".to_vec())));
    new.delete(&ledger(), &second, KEY).await.expect("admitted");
    assert_eq!(new.get(&ledger(), &second, KEY).await, Ok(None));
    let foreign = new.get(&ledger(), &second, "lease.job").await;
    assert!(
        matches!(&foreign, Err(FenceError::Store(error)) if error.fault == Fault::Invalid),
        "{foreign:?}"
    );
}

/// In a bucket as other programs make them it answers reads, and has nothing of what the others have stored
/// since.
#[tokio::test]
async fn what_a_follower_does_not_have_yet_is_not_missing_from_what_a_term_reads() {
    server_that_is_cut_off_shows_no_term_what_was_before_its_claim(false).await;
}

/// It leads no more, and answers what it has as a leader does until it has noticed.
#[tokio::test]
async fn deposed_leader_shows_no_term_what_was_before_its_claim_and_refuses_none_that_has_claimed() {
    server_that_is_cut_off_shows_no_term_what_was_before_its_claim(true).await;
}

/// The fence turns to it after the claim.
async fn server_that_is_cut_off_shows_no_term_what_was_before_its_claim(has_led: bool) {
    let mut cluster = NatsCluster::start(NatsOptions::default())
        .await
        .expect("a cluster");
    let [first, _, last] = [0, 1, 2].map(|place: usize| cluster.servers()[place].address());
    let scratch = Scratch::on(&format!("nats://{first}"));
    let config = json!({ "num_replicas": 3, "allow_direct": true });
    scratch.beneath().await.make(config).await;
    until_the_last_leads(has_led, &cluster, &scratch).await;
    let way = FaultProxy::nats(&first).expect("a proxy");
    let old = fence(&first, &scratch).await;
    let new = fence(&way.address().to_string(), &scratch).await;
    claimed_in_time(&old, 41).await;
    stored_in_time(&old, 41, "100").await;
    cluster.cut_off_the_last();
    stored_in_time(&old, 41, "95").await;
    claimed_in_time(&new, 42).await;
    way.lead_to(last);
    way.cut_connections();
    for _try in 0..3 {
        says_only_that_it_cannot("checked", new.check(&ledger(), &term(42)).await);
        let read = new.get(&ledger(), &term(42), KEY).await;
        says_only_that_it_cannot("read", read);
    }
    let written = new.put(&ledger(), &term(42), KEY, "94").await;
    says_only_that_it_cannot("written", written);
    cluster.join_the_last();
    // What was not confirmed may have been stored: here never, as nobody followed.
    assert_eq!(read_in_time(&new, 42).await.as_deref(), Some("95"));
}

fn says_only_that_it_cannot<T: std::fmt::Debug>(what: &str, answer: Result<T, FenceError>) {
    let Err(FenceError::Store(error)) = answer else {
        panic!("{what}: {answer:?}")
    };
    let is_sure = error.certainty == Certainty::NotApplied;
    assert!(is_sure || what == "written", "{what}: {error}");
}

/// The servers choose at each step down.
async fn until_the_last_leads(wanted: bool, cluster: &NatsCluster, scratch: &Scratch) {
    let beneath = scratch.beneath().await;
    eventually_async(ELECTION, "another leader", || async {
        let leader = cluster.leader_of(&scratch.stream()).await;
        let leader = leader.map_err(|error| error.to_string())?;
        if (leader == 2) == wanted {
            return Ok(());
        }
        let api = format!("STREAM.LEADER.STEPDOWN.{}", scratch.stream());
        beneath.call(&api, Value::Null).await;
        Err(format!("{leader} leads"))
    })
    .await;
}
