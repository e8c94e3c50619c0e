//! Users that are dropped, made anew or given another password while a store is connected.

use crate::common::{giving_back, persist, renewal, request, seconds, with_database};
use mongodb::Client;
use mongodb::bson::{Document, doc};
use std::time::Duration;
use tenure_conformance::logins::has_a_login_refused;
use tenure_core::{
    Acquire, Acquired, Certainty, Fault, Grant, Interest, LeaseStore, Released, Renewed, Scope, StoreError,
    WatchEvent,
};
use tenure_mongodb::MongoStore;
use tenure_testkit::{FaultProxy, ReplicaSet, Size, User, eventually_async};

/// Long, as a loaded machine may need it.
const PATIENCE: Duration = Duration::from_secs(60);

const DATABASE: &str = "bank";

const ROLES: [(&str, &str); 1] = [("readWrite", DATABASE)];

/// A set that demands credentials, and the user of its stores.
struct Site {
    set: ReplicaSet,
    service: User,
}

impl Site {
    async fn new() -> Self {
        let set = ReplicaSet::with_auth(Size::One).await.expect("a set");
        let service = set.create_user("service", "first", &ROLES);
        Self {
            service: service.await.expect("the user"),
            set,
        }
    }

    fn url(&self) -> String {
        with_database(&self.set.uri_as(&self.service), DATABASE, "")
    }

    async fn store(&self) -> MongoStore {
        MongoStore::connect(&self.url()).await.expect("connects")
    }

    async fn administer(&self, command: Document) {
        let administrator = Client::with_uri_str(self.set.uri()).await.expect("a client");
        let done = administrator.database("admin").run_command(command).await;
        done.expect("the administrator may");
    }

    /// As a script does that sets users up anew.
    async fn make_the_user_anew(&self) {
        self.administer(doc! { "dropUser": "service" }).await;
        let anew = self.set.create_user("service", &self.service.password, &ROLES);
        anew.await.expect("the user");
    }
}

fn is_of_nobody(error: &StoreError) {
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Unauthenticated, Certainty::NotApplied),
        "{error}"
    );
    assert!(error.message.contains("dropped, or made anew"), "{error}");
}

/// One has the lease, and the other has asked for it.
async fn leads_beside(
    leader: &MongoStore,
    asked: &Acquire,
    standby: &MongoStore,
    waiting: &Acquire,
) -> Grant {
    let grant = persist(leader, asked).await;
    let held = standby.acquire(waiting).await.expect("an answer");
    assert!(matches!(held, Acquired::Held(_)), "{held:?}");
    grant
}

/// To the server it is another one, and each connection of before is nobody's.
#[tokio::test]
async fn a_user_that_is_dropped_and_made_anew_is_logged_in_anew() {
    let site = Site::new().await;
    let (leader, standby) = (site.store().await, site.store().await);
    let [asked, waiting] = ["leader", "standby"].map(|label| request("job", label, seconds(300)));
    let grant = leads_beside(&leader, &asked, &standby, &waiting).await;
    let everything = Scope::Prefix(String::new());
    let mut watch = standby
        .watch(&everything, Interest::Everything)
        .await
        .expect("a watch");
    site.make_the_user_anew().await;

    let beat = [renewal(&asked, grant.token)];
    let renewed = eventually_async(PATIENCE, "a renewal", async || {
        let renewed = leader.renew(&beat).await.remove(0);
        renewed.inspect_err(is_of_nobody)
    })
    .await;
    assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
    let held = eventually_async(PATIENCE, "an answer", async || {
        standby.acquire(&waiting).await.inspect_err(is_of_nobody)
    })
    .await;
    assert!(matches!(held, Acquired::Held(_)), "{held:?}");
    // Whoever waits hears that it hears no more, and hears again.
    let over = tokio::time::timeout(PATIENCE, watch.next())
        .await
        .expect("in time");
    is_of_nobody(&over.expect_err("nothing has happened"));
    let mut watch = eventually_async(PATIENCE, "a watch", || {
        standby.watch(&everything, Interest::Everything)
    })
    .await;
    persist(&leader, &request("other", "leader", seconds(300))).await;
    let heard = tokio::time::timeout(PATIENCE, watch.next())
        .await
        .expect("in time");
    assert!(matches!(heard, Ok(WatchEvent::Changed { .. })), "{heard:?}");
}

/// A batch, whose command is another.
#[tokio::test]
async fn leases_that_are_renewed_together_go_on_with_a_user_that_was_made_anew() {
    let site = Site::new().await;
    let store = site.store().await;
    let mut beat = Vec::new();
    for name in ["job", "other"] {
        let asked = request(name, "leader", seconds(300));
        beat.push(renewal(&asked, persist(&store, &asked).await.token));
    }
    site.make_the_user_anew().await;
    let renewed = eventually_async(PATIENCE, "renewals", async || {
        let renewed = store.renew(&beat).await;
        renewed.into_iter().collect::<Result<Vec<_>, _>>()
    })
    .await;
    assert!(
        renewed
            .iter()
            .all(|renewed| matches!(renewed, Renewed::Extended { .. })),
        "{renewed:?}"
    );
}

/// Nobody knows its options, and its owner uses it for other things.
#[tokio::test]
async fn a_client_of_the_users_own_is_never_exchanged() {
    let site = Site::new().await;
    let client = Client::with_uri_str(site.url()).await.expect("a client");
    let store = MongoStore::with_client(client.clone(), DATABASE, "job_leases")
        .await
        .expect("attaches");
    let asked = request("job", "leader", seconds(300));
    let grant = persist(&store, &asked).await;
    site.make_the_user_anew().await;
    // Longer than a client of the store's own serves at least.
    for _again in 0..8 {
        let refused = store.renew(&[renewal(&asked, grant.token)]).await.remove(0);
        let refused = refused.expect_err("the connection is nobody's");
        assert_eq!(refused.fault, Fault::Unauthenticated, "{refused}");
        assert!(refused.message.contains("start this process anew"), "{refused}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// The new client has met nobody: it goes by what the store has met before.
#[tokio::test]
async fn a_stranger_is_not_asked_by_who_logs_in_anew() {
    let (site, strange) = tokio::join!(Site::new(), Site::new());
    let proxy = FaultProxy::mongodb(site.set.address(0)).expect("a proxy");
    let url = with_database(&proxy.mongodb_uri_as(&site.service), DATABASE, "");
    let store = MongoStore::connect(&url).await.expect("connects");
    persist(&store, &request("first", "holder", seconds(300))).await;
    // It has leases, and a mark, of its own.
    persist(&strange.store().await, &request("theirs", "other", seconds(300))).await;
    // The connections that there are go on to ours.
    proxy.lead_to(strange.set.address(0));
    site.make_the_user_anew().await;
    let asked = request("job", "holder", seconds(300));
    let refused = eventually_async(PATIENCE, "a refusal", async || {
        match store.acquire(&asked).await {
            Err(error) if error.fault == Fault::AnotherStore => Ok(error),
            Ok(answer) => panic!("a stranger has answered: {answer:?}"),
            Err(error) => Err(error),
        }
    })
    .await;
    assert_eq!(refused.certainty, Certainty::NotApplied, "{refused}");
    let looking = strange.store().await;
    let theirs = looking.get(&asked.name).await.expect("a look");
    assert_eq!(theirs, None, "the stranger was asked");
}

/// Whoever is connected keeps its connections, says the server; the driver closes them all when one more is
/// refused.
#[tokio::test]
async fn a_login_that_is_refused_keeps_nobody_from_renewing_and_giving_back() {
    let site = Site::new().await;
    let store = site.store().await;
    let asked = request("job", "leader", seconds(300));
    let grant = persist(&store, &asked).await;
    let beat = [renewal(&asked, grant.token)];
    let renewed = eventually_async(PATIENCE, "a renewal", async || store.renew(&beat).await.remove(0));
    renewed.await;
    site.administer(doc! { "updateUser": "service", "pwd": "second" })
        .await;
    has_a_login_refused(&store).await;
    let renewed = store.renew(&beat).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    // The client of the other requests is locked out, as a new one would be.
    let refused = store.acquire(&request("other", "leader", seconds(300))).await;
    assert!(refused.is_err(), "{refused:?}");
    let given_back = store.release(&[giving_back(&asked, grant.token)]).await.remove(0);
    assert_eq!(given_back, Ok(Released::Vacated));
}

/// Who waits for weeks has a connection for its first renewal: it is made when it asks for the lease.
#[tokio::test]
async fn who_waited_when_the_password_was_changed_renews_what_it_takes() {
    let site = Site::new().await;
    let waits = site.set.create_user("standby", "first", &ROLES).await;
    let waits = with_database(&site.set.uri_as(&waits.expect("the user")), DATABASE, "");
    let (leader, standby) = (
        site.store().await,
        MongoStore::connect(&waits).await.expect("connects"),
    );
    let [asked, waiting] = ["leader", "standby"].map(|label| request("job", label, seconds(300)));
    let grant = leads_beside(&leader, &asked, &standby, &waiting).await;
    // It asks for one thing after the other, by one connection; another is for renewals.
    let administrator = Client::with_uri_str(site.set.uri()).await.expect("a client");
    let logins = doc! { "aggregate": 1, "cursor": {}, "pipeline": [
        { "$currentOp": { "allUsers": true, "idleConnections": true } },
        { "$match": { "effectiveUsers.user": "standby" } },
    ] };
    eventually_async(PATIENCE, "a connection for its renewals", async || {
        let told = administrator.database("admin").run_command(logins.clone()).await;
        let told = told.map_err(|error| error.to_string())?;
        let found = told
            .get_document("cursor")
            .and_then(|cursor| cursor.get_array("firstBatch"));
        let connections = found.map_or(0, Vec::len);
        (connections >= 2).then_some(()).ok_or(format!("{connections}"))
    })
    .await;
    site.administer(doc! { "updateUser": "standby", "pwd": "second" })
        .await;
    leader
        .release(&[giving_back(&asked, grant.token)])
        .await
        .remove(0)
        .expect("released");
    let taken = persist(&standby, &waiting).await;
    let renewed = standby.renew(&[renewal(&waiting, taken.token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
}

/// Each would need a connection of its own, and so would a renewal beside one.
#[tokio::test]
async fn leases_given_back_at_once_after_the_password_was_changed_cost_no_other_its_term() {
    let site = Site::new().await;
    let store = site.store().await;
    let mut taken = Vec::new();
    for name in ["kept", "first", "second", "third", "fourth", "fifth", "sixth"] {
        let asked = request(name, "leader", seconds(300));
        let token = persist(&store, &asked).await.token;
        taken.push((renewal(&asked, token), giving_back(&asked, token)));
    }
    let (kept, dropped) = taken.split_first().expect("seven");
    let beat = std::slice::from_ref(&kept.0);
    let renewed = eventually_async(PATIENCE, "a renewal", async || store.renew(beat).await.remove(0));
    renewed.await;
    site.administer(doc! { "updateUser": "service", "pwd": "second" })
        .await;

    // The server is well: what fails is what the client has made of a login.
    let in_words = |error: StoreError| error.to_string();
    let back = async |place: usize| {
        let (_, dropped) = &dropped[place];
        let told = store.release(std::slice::from_ref(dropped)).await.remove(0);
        told.map_err(in_words)
    };
    let renew = async || store.renew(beat).await.remove(0).map_err(in_words);
    let (first, second, third, during, fourth) = tokio::join!(back(0), back(1), back(2), renew(), back(3));
    let told = (first, second, third, fourth);
    let (before, fifth, sixth) = tokio::join!(renew(), back(4), back(5));
    let told = (told, fifth, sixth);
    for renewed in [during, before, renew().await] {
        assert!(
            matches!(renewed, Ok(Renewed::Extended { .. })),
            "{renewed:?} beside {told:?}"
        );
    }
    // Whose login was refused gives back when it is alone.
    for place in 0..dropped.len() {
        assert_eq!(back(place).await, Ok(Released::Vacated), "{told:?}");
    }
}
