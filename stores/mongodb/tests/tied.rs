//! A URL that ties all requests to one server, as `mongosh` prints it.

use crate::common::{Scratch, request, seconds, take};
use std::time::Duration;
use tenure_core::{Finding, LeaseStore, Verdict};
use tenure_mongodb::MongoStore;
use tenure_testkit::{Mongod, ReplicaSet, eventually_async};

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
