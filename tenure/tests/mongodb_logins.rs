//! Leading while the user of a MongoDB is made anew, or has another password.

use crate::harness::soon;
use std::sync::Arc;
use std::time::Duration;
use tenure::mongodb::MongoStore;
use tenure::mongodb::mongodb::Client;
use tenure::mongodb::mongodb::bson::{Document, doc};
use tenure::{Authority, Election, Leadership, ReleaseOutcome, SharedStore, Timing, Ttl};
use tenure_conformance::logins::has_a_login_refused;
use tenure_testkit::{ReplicaSet, Size, User};

const ROLES: [(&str, &str); 1] = [("readWrite", "bank")];

/// A set that demands credentials, and the user of its candidates.
struct Site {
    set: ReplicaSet,
    service: User,
}

impl Site {
    async fn new() -> Self {
        let set = ReplicaSet::with_auth(Size::One).await.unwrap();
        let service = set.create_user("service", "first", &ROLES).await.unwrap();
        Self { set, service }
    }

    async fn store(&self) -> SharedStore {
        let uri = self.set.uri_as(&self.service);
        let (address, query) = uri.split_once('?').unwrap_or((&uri, ""));
        let url = format!("{}/bank?{query}", address.trim_end_matches('/'));
        Arc::new(soon("connecting", MongoStore::connect(&url)).await.unwrap())
    }

    async fn administer(&self, command: Document) {
        let administrator = Client::with_uri_str(self.set.uri()).await.unwrap();
        administrator
            .database("admin")
            .run_command(command)
            .await
            .unwrap();
    }
}

/// Long enough for a login that is refused beside a renewal, on a loaded machine.
fn timing() -> Timing {
    Timing::of(Ttl::from_secs(12).unwrap())
}

fn election(store: SharedStore, candidate: &str) -> Election {
    Election::builder("job", store)
        .candidate(candidate)
        .timing(timing())
        .build()
        .unwrap()
}

/// Past the deadline that it has now: it was renewed.
async fn goes_on(leadership: &Leadership) {
    tokio::time::sleep(timing().ttl().duration() + Duration::from_secs(1)).await;
    assert!(
        matches!(leadership.authority(), Authority::Held { .. }),
        "{leadership:?}"
    );
}

#[tokio::test]
async fn leader_and_standby_on_mongodb_outlast_their_user_being_made_anew() {
    let site = Site::new().await;
    let leader = election(site.store().await, "leader");
    let standby = election(site.store().await, "standby");
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let campaign = tokio::spawn(async move { (standby.campaign().await, standby) });
    // It waits by then.
    tokio::time::sleep(Duration::from_secs(1)).await;
    site.administer(doc! { "dropUser": "service" }).await;
    let anew = site.set.create_user("service", &site.service.password, &ROLES);
    anew.await.unwrap();
    goes_on(&leadership).await;
    let token = leadership.token();
    soon("the release", leadership.step_down()).await;
    let (won, _standby) = soon("the take-over", campaign).await.unwrap();
    assert!(won.unwrap().token() > token);
}

/// Whoever looks beside the renewals needs a new connection, and has the driver close all of its client.
#[tokio::test]
async fn leader_on_mongodb_outlasts_a_login_that_is_refused() {
    let site = Site::new().await;
    let store = site.store().await;
    let leader = election(Arc::clone(&store), "leader");
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    // Renewed once: its connections are there.
    tokio::time::sleep(timing().ttl().duration() / 2).await;
    site.administer(doc! { "updateUser": "service", "pwd": "second" })
        .await;
    has_a_login_refused(&*store).await;
    goes_on(&leadership).await;
    let outcome = soon("the release", leadership.step_down()).await;
    assert!(matches!(outcome, ReleaseOutcome::Released), "{outcome:?}");
}
