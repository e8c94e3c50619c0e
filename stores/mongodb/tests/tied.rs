//! A URL that ties all requests to one server, as `mongosh` prints it.

use crate::common::{Scratch, persist, renewal, request, seconds, take};
use std::time::Duration;
use tenure_core::{
    Fault, Fence as _, FencingToken, Finding, LeaseName, LeaseStore, Leases, Renewed, ResourceName, Term,
    Verdict,
};
use tenure_mongodb::{MongoFence, MongoStore};
use tenure_testkit::{Mongod, ReplicaSet, Size, eventually_async};

/// Long, as a loaded machine may need it.
const PATIENCE: Duration = Duration::from_secs(60);

const OPTION: &str = "directConnection=true";

fn told<'a>(findings: &'a [Finding], subject: &str) -> Option<&'a Finding> {
    findings.iter().find(|finding| finding.subject == subject)
}

/// The driver looks at none of them: whoever is told that they are down restarts healthy members.
#[tokio::test]
async fn members_that_a_tied_url_keeps_from_being_asked_are_not_called_silent() {
    let set = ReplicaSet::shared().await;
    let database = Scratch::new(set.uri()).database.clone();
    let findings = eventually_async(PATIENCE, "the primary", || async {
        let primary = set.primary().await.map_err(|error| error.to_string())?;
        let tied = Scratch {
            uri: set.direct_uri(primary),
            database: database.clone(),
        };
        let store = MongoStore::connect(&tied.url(""))
            .await
            .map_err(|error| error.to_string())?;
        take(&store, &request("job", "holder", seconds(60))).await;
        store.examine().await.map_err(|error| error.to_string())
    })
    .await;
    assert_eq!(told(&findings, "members"), None, "{findings:#?}");
    let topology = told(&findings, "topology").expect("it is examined");
    assert_eq!(topology.verdict, Verdict::Warning, "{topology:?}");
    for part in [OPTION, "a fail-over is not followed"] {
        assert!(topology.detail.contains(part), "{part} is not in: {topology:?}");
    }
    let repair = topology.repair.as_deref().unwrap_or_default();
    assert!(repair.contains(OPTION), "{topology:?}");
}

/// As for maintenance, within a leader's ttl: what is asked of it then its set may have given to another.
#[tokio::test]
async fn a_member_that_is_started_without_its_set_extends_nothing_for_who_is_tied_to_it() {
    let mut set = ReplicaSet::start(Size::One).await.expect("a set");
    let scratch = Scratch::new(set.direct_uri(0));
    assert!(scratch.uri.contains(OPTION), "{}", scratch.uri);
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(300));
    let beat = [renewal(&asked, persist(&store, &asked).await.token)];
    let fence = MongoFence::connect(&scratch.url(""), Leases::Here)
        .await
        .expect("a fence");
    let (resource, lease) = (
        ResourceName::new("ledger").expect("a name"),
        LeaseName::new("elsewhere").expect("a name"),
    );
    let term = Term::new(lease, FencingToken::new(7).expect("a token"));
    set.restart_alone(0).await.expect("it starts");
    for _again in 0..ROUNDS {
        let renewed = store.renew(&beat).await.remove(0);
        let error = renewed.expect_err("its set is not there");
        assert_eq!(error.fault, Fault::Unreachable, "{error}");
    }
    let claimed = fence.claim(&resource, &term).await;
    claimed.expect_err("a fence is tied like that, too");
    set.restart(0).await.expect("it starts");
    let renewed = eventually_async(PATIENCE, "a renewal", || async {
        store.renew(&beat).await.remove(0)
    });
    let renewed = renewed.await;
    assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
}

/// How often it is asked: the first time it may be learnt that the connection has ended.
const ROUNDS: usize = 4;

/// An election that "may be under way" would never be over.
#[tokio::test]
async fn a_url_that_is_tied_to_a_member_that_does_not_lead_says_so() {
    let set = ReplicaSet::shared().await;
    let scratch = Scratch::new(set.uri());
    let error = eventually_async(PATIENCE, "a secondary", || async {
        let primary = set.primary().await.map_err(|error| error.to_string())?;
        let tied = set.direct_uri((primary + 1) % set.size());
        let url = crate::common::with_database(&tied, &scratch.database, "");
        match MongoStore::connect(&url).await {
            Err(error) => Ok(error),
            Ok(_store) => Err("it leads by now".to_owned()),
        }
    })
    .await;
    assert!(error.message.contains(OPTION), "{error}");
}

/// There is nothing else that it could be tied to.
#[tokio::test]
async fn a_server_that_is_alone_is_not_warned_of_for_being_asked_directly() {
    let server = Mongod::start().await.expect("a server");
    let scratch = Scratch::new(server.uri());
    assert!(scratch.uri.contains(OPTION), "{}", scratch.uri);
    let store = scratch.store().await;
    let findings = store.examine().await.expect("an examination");
    let about = findings.iter().find(|finding| finding.detail.contains(OPTION));
    assert_eq!(about, None, "{findings:#?}");
}
