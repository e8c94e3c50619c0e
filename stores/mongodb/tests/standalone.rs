//! One server without replication: what works there, and what is said of the rest.

use crate::common::{Scratch, request, seconds, take};
use mongodb::bson::{Document, doc};
use mongodb::error::ErrorKind;
use std::time::Duration;
use tenure_core::{
    Claimed, Fault, Fence, FenceError, FencingToken, LeaseName, LeaseStore, Leases, ResourceName, Term,
    Verdict,
};
use tenure_mongodb::{EnterError, MongoFence, MongoStore};
use tenure_testkit::{FaultProxy, Mongod, ReplicaSet, Size, eventually_async};

/// It has no other member that could prove that it leads, and needs none.
#[tokio::test]
async fn a_fence_per_document_works_on_a_server_without_replication() {
    let server = Mongod::start().await.expect("a server");
    let scratch = Scratch::new(server.uri());
    let store = scratch.store().await;
    let resource = ResourceName::new("accounts").expect("a name");
    let lease = LeaseName::new("nightly").expect("a name");
    // Beside the leases: it looks at their records, too.
    let fence = MongoFence::connect(&scratch.url(""), Leases::Here)
        .await
        .expect("a fence");
    let first = take(&store, &request("nightly", "first", seconds(60)))
        .await
        .token;
    let earlier = Term::new(lease.clone(), first);
    assert_eq!(
        fence.claim(&resource, &earlier).await,
        Ok(Claimed::Raised { from: None })
    );
    fence.check(&resource, &earlier).await.expect("it holds the mark");
    let accounts = scratch
        .client()
        .await
        .database(&scratch.database)
        .collection::<Document>("accounts");
    accounts
        .insert_one(doc! { "_id": 1, "cents": 100 })
        .await
        .expect("an account");
    let of_the_earlier = fence
        .documents(&resource, &earlier, &accounts)
        .await
        .expect("claimed");

    let number = FencingToken::new(first.number() + 1).expect("a token");
    let later = Term::new(lease, number);
    let elsewhere = MongoFence::new(
        &scratch.client().await.database(&scratch.database),
        Leases::Elsewhere,
    );
    let of_the_later = elsewhere
        .documents(&resource, &later, &accounts)
        .await
        .expect("claimed");
    let set = |cents: i32| doc! { "$set": { "cents": cents } };
    of_the_later
        .update_one(doc! { "_id": 1 }, set(7))
        .await
        .expect("written");
    let stale = of_the_earlier.update_one(doc! { "_id": 1 }, set(0)).await;
    assert!(
        matches!(&stale, Err(EnterError::Refused(FenceError::Stale { mark, .. })) if *mark == number),
        "{stale:?}"
    );
    let stale = fence.claim(&resource, &earlier).await;
    assert!(matches!(&stale, Err(FenceError::Stale { .. })), "{stale:?}");
}

/// As a member that is started without its set's name, for maintenance: a later term may raise the mark
/// meanwhile, where the set goes on.
#[tokio::test]
async fn a_fence_of_a_replica_set_does_not_go_by_a_member_that_stands_alone() {
    let (set, alone) = (
        ReplicaSet::start(Size::One).await.expect("a set"),
        Mongod::start().await.expect("a server"),
    );
    let proxy = FaultProxy::mongodb(set.address(0)).expect("a proxy");
    let url = format!("mongodb://{}/?directConnection=true", proxy.address());
    let scratch = Scratch::new(set.uri());
    let client = mongodb::Client::with_uri_str(&url).await.expect("a client");
    let fence = MongoFence::new(&client.database(&scratch.database), Leases::Elsewhere);
    let resource = ResourceName::new("accounts").expect("a name");
    let number = FencingToken::new(7).expect("a token");
    let term = Term::new(LeaseName::new("nightly").expect("a name"), number);
    let claimed = eventually_async(PATIENCE, "a claim", || fence.claim(&resource, &term)).await;
    assert_eq!(claimed, Claimed::Raised { from: None });
    proxy.lead_to(alone.address());
    proxy.cut_connections();
    let error = eventually_async(PATIENCE, "that it stands alone", async || {
        match fence.claim(&resource, &term).await {
            Err(FenceError::Store(error)) if error.message.contains("no member") => Ok(error),
            // It is learnt first that the connection has ended.
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    assert_eq!(error.fault, Fault::Unreachable, "{error}");
    let refused = fence.check(&resource, &term).await;
    assert!(
        matches!(&refused, Err(FenceError::Store(error)) if error.fault == Fault::Unreachable),
        "{refused:?}"
    );
}

/// No write can get past the fence there, and whoever examines the server is told before the first term
/// writes.
#[tokio::test]
async fn a_server_without_replication_has_no_transactions_and_the_examination_says_so() {
    let server = Mongod::start().await.expect("a server");
    let scratch = Scratch::new(server.uri());
    let findings = scratch.store().await.examine().await.expect("an examination");
    let topology = findings.iter().find(|finding| finding.subject == "topology");
    let topology = topology.expect("it is examined");
    assert_eq!(topology.verdict, Verdict::Warning, "{topology:?}");
    for part in ["no transactions", "the one per document"] {
        assert!(topology.detail.contains(part), "{part} is not in: {topology:?}");
    }
    // What has connected takes it for one server still.
    let repair = topology.repair.as_deref().unwrap_or_default();
    assert!(repair.contains("start the processes anew"), "{topology:?}");

    let client = scratch.client().await;
    let fence = MongoFence::new(&client.database(&scratch.database), Leases::Elsewhere);
    let (resource, lease) = (
        ResourceName::new("ledger").expect("a name"),
        LeaseName::new("nightly").expect("a name"),
    );
    let term = Term::new(lease, FencingToken::new(5).expect("a token"));
    fence.claim(&resource, &term).await.expect("a claim");
    let mut session = client.start_session().await.expect("a session");
    session.start_transaction().await.expect("nothing is sent yet");
    let entered = fence.enter(&mut session, &resource, &term).await;
    match entered {
        Err(EnterError::Driver(error)) => assert!(
            matches!(&*error.kind, ErrorKind::Command(refused) if refused.code == 20)
                || error.to_string().contains("ransaction"),
            "{error}"
        ),
        other => panic!("{other:?}"),
    }
}

/// It has no members of which a majority could build it, and refuses to count them.
#[tokio::test]
async fn an_index_for_clean_ups_is_made_on_a_server_without_replication() {
    let server = Mongod::start().await.expect("a server");
    let scratch = Scratch::new(server.uri());
    // A machine that stands still may not make it in time: then the next one who connects asks for it.
    eventually_async(PATIENCE, "the index", || async {
        let store = MongoStore::connect(&scratch.url("purgeAfter=30d")).await;
        let store = store.map_err(|error| error.to_string())?;
        let findings = store.examine().await.map_err(|error| error.to_string())?;
        let found = findings
            .into_iter()
            .find(|finding| finding.subject == "ttl index")
            .expect("it is examined");
        match found.verdict {
            Verdict::Good => Ok(()),
            _ => Err(format!("{found:?}")),
        }
    })
    .await;
}

/// Long, as a loaded machine may need it.
const PATIENCE: Duration = Duration::from_secs(60);
