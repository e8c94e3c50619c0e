//! Requests that a server refuses, of several steps a later one: what was done is not denied.

use crate::common::{Scratch, renewal, request, seconds, take};
use mongodb::Client;
use mongodb::bson::{Document, doc};
use std::time::Duration;
use tenure_core::{
    Bump, Certainty, Fault, Fence, FenceError, FencingToken, LeaseName, LeaseStore, Leases, Renewed,
    ResourceName, StoreError, Term,
};
use tenure_mongodb::{EnterError, FencedUpdate, MongoFence, MongoStore};
use tenure_testkit::{FaultProxy, ReplicaSet, RequestFault, Size, in_one_of};

/// A set of one that refuses commands when it is told to, which the shared one does not.
struct Refusing {
    set: ReplicaSet,
    client: Client,
}

impl Refusing {
    async fn start() -> Self {
        let set = ReplicaSet::with_fail_points(Size::One).await.expect("a set");
        let client = Client::with_uri_str(set.uri()).await.expect("a client");
        Self { set, client }
    }

    async fn tell(&self, point: Document) {
        let told = self.client.database("admin").run_command(point).await;
        told.expect("a fail point");
    }

    /// Refuses every such command from here on, after so many more; no permission, so certainly not applied.
    async fn refuse(&self, command: &str, after: i32) {
        let refusal = doc! { "failCommands": [command], "errorCode": 13 };
        let point = doc! { "configureFailPoint": "failCommand", "mode": { "skip": after }, "data": refusal };
        self.tell(point).await;
    }

    /// Refuses the next such command with this code.
    async fn refuse_once(&self, command: &str, code: i32) {
        let refusal = doc! { "failCommands": [command], "errorCode": code };
        self.tell(doc! { "configureFailPoint": "failCommand", "mode": { "times": 1 }, "data": refusal })
            .await;
    }

    /// Takes the first such command, and from the second on answers that this is no primary.
    async fn depose_after_one(&self, command: &str) {
        let refusal = doc! { "failCommands": [command], "errorCode": 10107 };
        let point = doc! { "configureFailPoint": "failCommand", "mode": { "skip": 1 }, "data": refusal };
        self.tell(point).await;
    }

    /// Has the next such command of the client of this name wait for so long.
    async fn delay(&self, command: &str, of_client: &str, time: Duration) {
        let time_ms = i64::try_from(time.as_millis()).expect("seconds");
        let delay = doc! {
            "failCommands": [command],
            "appName": of_client,
            "blockConnection": true,
            "blockTimeMS": time_ms,
        };
        self.tell(doc! { "configureFailPoint": "failCommand", "mode": { "times": 1 }, "data": delay })
            .await;
    }

    /// Waits until somebody has met the delay.
    async fn met(&self) {
        let wait = doc! { "waitForFailPoint": "failCommand", "timesEntered": 1_i64, "maxTimeMS": 20_000_i64 };
        self.tell(wait).await;
    }

    async fn relent(&self) {
        let point = doc! { "configureFailPoint": "failCommand", "mode": "off" };
        self.tell(point).await;
    }
}

#[track_caller]
fn unknown<T: std::fmt::Debug>(outcome: Result<T, StoreError>) {
    let error = outcome.expect_err("it was refused");
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Forbidden, Certainty::Unknown),
        "{error}"
    );
}

#[track_caller]
fn unknown_to_fence<T: std::fmt::Debug>(outcome: Result<T, FenceError>) {
    match outcome {
        Err(FenceError::Store(error)) => unknown::<T>(Err(error)),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_batch_that_fails_after_its_first_step_may_have_extended() {
    let server = Refusing::start().await;
    let scratch = Scratch::new(server.set.uri());
    let store = scratch.store().await;
    let mut renewals = Vec::new();
    for lease in ["mended", "refused"] {
        let asked = request(lease, "holder", seconds(60));
        let grant = take(&store, &asked).await;
        renewals.push(renewal(&asked, grant.token));
    }
    // How many were read before one is refused: those that were extended, then those that were not.
    let nobody = renewal(&request("nobody", "holder", seconds(60)), renewals[0].token);
    let with_nobody = [renewals[0].clone(), nobody];
    for reads in [0, 1] {
        server.refuse("find", reads).await;
        let verdicts = store.renew(&with_nobody).await;
        server.relent().await;
        verdicts.into_iter().for_each(unknown);
    }
    // What a statement that a validator refuses has not come to is asked for one by one; the others were
    // extended.
    let leases = scratch.leases().await;
    let database = leases.client().database(&scratch.database);
    let foreign = doc! { "$set": { "foreign": 1 } };
    let marked = leases.update_one(doc! { "_id": "refused" }, foreign).await;
    assert_eq!(marked.expect("the test can write").modified_count, 1);
    let validator = doc! { "collMod": "job_leases", "validator": { "foreign": { "$exists": false } } };
    database.run_command(validator).await.expect("a validator");
    server.refuse("update", 1).await;
    let mut verdicts = store.renew(&renewals).await;
    server.relent().await;
    unknown(verdicts.remove(1));
    let mended = verdicts.remove(0);
    assert!(matches!(mended, Ok(Renewed::Extended { .. })), "{mended:?}");
}

#[tokio::test]
async fn a_claim_or_bump_that_fails_after_the_mark_may_have_raised_it() {
    let server = Refusing::start().await;
    let scratch = Scratch::new(server.set.uri());
    let fence = MongoFence::new(
        &scratch.client().await.database(&scratch.database),
        Leases::Elsewhere,
    );
    let resource = ResourceName::new("ledger").expect("a name");
    let term = |number| {
        let token = FencingToken::new(number).expect("a token");
        Term::new(LeaseName::new("nightly").expect("a name"), token)
    };
    fence.claim(&resource, &term(1)).await.expect("a claim");
    // The stripes are raised, and then opened.
    for (number, command, before) in [(2, "update", 0), (3, "update", 1)] {
        server.refuse(command, before).await;
        let claimed = fence.claim(&resource, &term(number)).await;
        server.relent().await;
        unknown_to_fence(claimed);
        let mark = fence.mark(&resource).await.expect("a look").expect("a mark");
        assert_eq!(mark.token.number(), number, "the mark was raised");
    }
    let bump = Bump {
        resource: resource.clone(),
        above: None,
        lease: Some(LeaseName::new("hourly").expect("a name")),
    };
    // The mark after its lease, the stripes, the look at them, the look at the mark, its refusals.
    for (command, before) in [
        ("findAndModify", 0),
        ("update", 1),
        ("find", 1),
        ("find", 2),
        ("find", 3),
    ] {
        server.refuse(command, before).await;
        let bumped = fence.bump(&bump).await;
        server.relent().await;
        unknown_to_fence(bumped);
    }
}

/// The driver tells the refusal of the repetition, and the first write stands.
#[tokio::test]
async fn a_refusal_of_a_repeated_write_does_not_deny_the_first() {
    let server = Refusing::start().await;
    let proxy = FaultProxy::mongodb(server.set.address(0)).expect("a proxy");
    let scratch = Scratch::new(server.set.uri());
    let uri = format!("{}&retryWrites=true", proxy.mongodb_uri());
    let client = Client::with_uri_str(uri).await.expect("a client");
    let fence = MongoFence::new(&client.database(&scratch.database), Leases::Elsewhere);
    let store = MongoStore::with_client(client, &scratch.database, "job_leases")
        .await
        .expect("attaches");
    let asked = request("job", "holder", seconds(60));

    server.depose_after_one("findAndModify").await;
    proxy.next_commands(1, "findAndModify", RequestFault::CutAfter);
    let acquired = store.acquire(&asked).await;
    server.relent().await;
    assert_eq!(proxy.counts().cut_after, 1, "the fault happened");
    let error = acquired.expect_err("the repetition was refused");
    assert!(error.message.contains("10107"), "{error}");
    assert_eq!(error.certainty, Certainty::Unknown, "{error}");
    let lease = store.get(&asked.name).await.expect("a read").expect("a lease");
    assert_eq!(lease.holder.incarnation, asked.candidate.incarnation);

    let resource = ResourceName::new("ledger").expect("a name");
    let term = Term::new(asked.name.clone(), lease.token);
    server.depose_after_one("findAndModify").await;
    proxy.next_commands(1, "findAndModify", RequestFault::CutAfter);
    let claimed = fence.claim(&resource, &term).await;
    server.relent().await;
    assert_eq!(proxy.counts().cut_after, 2, "the fault happened again");
    match claimed {
        Err(FenceError::Store(error)) => {
            assert!(error.message.contains("10107"), "{error}");
            assert_eq!(error.certainty, Certainty::Unknown, "{error}");
        }
        other => panic!("{other:?}"),
    }
    let mark = fence.mark(&resource).await.expect("a look").expect("a mark");
    assert_eq!(mark.token, lease.token);
}

/// How often a machine may be too slow for one bump to overtake another, within what is left of a request.
const ROUNDS_MAX: u32 = 3;

/// Stripes above the mark would refuse terms that the mark admits.
#[tokio::test]
async fn a_bump_that_another_has_overtaken_leaves_the_stripes_at_the_mark() {
    in_one_of(
        ROUNDS_MAX,
        "no bump was told that it was overtaken",
        is_overtaken_and_leaves_the_stripes,
    )
    .await;
}

/// Whether the one was overtaken: not, where the other came too late for that, or the delay was too long for
/// the one.
async fn is_overtaken_and_leaves_the_stripes() -> bool {
    let server = Refusing::start().await;
    let scratch = Scratch::new(server.set.uri());
    let uri = format!("{}&appName=slow", server.set.uri());
    let slow = Client::with_uri_str(uri).await.expect("a client");
    let slow = MongoFence::new(&slow.database(&scratch.database), Leases::Elsewhere);
    let fence = MongoFence::new(
        &scratch.client().await.database(&scratch.database),
        Leases::Elsewhere,
    );
    let resource = ResourceName::new("ledger").expect("a name");
    let lease = |name| LeaseName::new(name).expect("a name");
    let token = |number| FencingToken::new(number).expect("a token");
    let first = Term::new(lease("nightly"), token(1));
    fence.claim(&resource, &first).await.expect("a claim");
    let rebinding = Bump {
        resource: resource.clone(),
        above: None,
        lease: Some(lease("hourly")),
    };
    let higher = Bump {
        above: Some(token(1_000_000)),
        lease: None,
        ..rebinding.clone()
    };
    server
        .delay("findAndModify", "slow", Duration::from_secs(3))
        .await;
    let (overtaken, rebound) = tokio::join!(slow.bump(&higher), async {
        server.met().await;
        fence.bump(&rebinding).await.expect("the other bump")
    });
    match overtaken {
        Err(FenceError::Store(error)) if error.fault == Fault::Busy => {}
        Err(FenceError::Store(error)) if error.fault == Fault::TimedOut => return false,
        Ok(_in_time) => return false,
        Err(error) => panic!("{error}"),
    }
    let next = Term::new(lease("hourly"), token(rebound.token.number() + 1));
    fence.claim(&resource, &next).await.expect("the mark admits it");
    true
}

/// A server that is going down breaks off what it may have written already; one that is no primary has not
/// begun.
#[tokio::test]
async fn a_write_that_a_server_breaks_off_may_stand_and_one_that_it_turns_away_does_not() {
    let server = Refusing::start().await;
    let scratch = Scratch::new(server.set.uri());
    let store = scratch.store().await;
    for (code, certainty) in [
        (10107, Certainty::NotApplied),
        (13435, Certainty::NotApplied),
        (11600, Certainty::Unknown),
        (11602, Certainty::Unknown),
        (91, Certainty::Unknown),
        (189, Certainty::Unknown),
    ] {
        server.refuse_once("findAndModify", code).await;
        let refused = store.acquire(&request("job", "holder", seconds(60))).await;
        let error = refused.expect_err("it was refused");
        assert_eq!(
            (error.fault, error.certainty),
            (Fault::Unreachable, certainty),
            "{code}: {error}"
        );
    }
}

/// As Atlas answers whatever it refuses itself: what stands in the text of it may pass.
#[tokio::test]
async fn what_atlas_refuses_by_its_own_number_ends_no_campaign() {
    const ATLAS_ERROR: i32 = 8000;
    let server = Refusing::start().await;
    let scratch = Scratch::new(server.set.uri());
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(60));
    server.refuse_once("findAndModify", ATLAS_ERROR).await;
    let error = store.acquire(&asked).await.expect_err("it was refused");
    assert!(!error.fault.is_misconfiguration(), "{error}");
    assert_eq!(error.certainty, Certainty::Unknown, "{error}");
    take(&store, &asked).await;
}

/// What was written may be taken back, so it is not for sure that all but the stale part was carried out.
#[tokio::test]
async fn a_bulk_that_is_not_confirmed_says_so_also_where_a_part_of_it_is_stale() {
    let server = Refusing::start().await;
    let scratch = Scratch::new(server.set.uri());
    let database = scratch.client().await.database(&scratch.database);
    let accounts = database.collection::<Document>("accounts");
    accounts
        .insert_many([doc! { "_id": 1 }, doc! { "_id": 2 }])
        .await
        .expect("accounts");
    let fence = MongoFence::new(&database, Leases::Elsewhere);
    let of_term = async |number| {
        let token = FencingToken::new(number).expect("a token");
        let term = Term::new(LeaseName::new("nightly").expect("a name"), token);
        let resource = ResourceName::new("accounts").expect("a name");
        fence
            .documents(&resource, &term, &accounts)
            .await
            .expect("claimed")
    };
    let earlier = of_term(5).await;
    let later = of_term(9).await;
    later
        .claim_one(doc! { "_id": 1 })
        .await
        .expect("read")
        .expect("the account");
    let unconfirmed = doc! { "code": 64, "errmsg": "waiting for replication timed out" };
    let data = doc! { "failCommands": ["update"], "writeConcernError": unconfirmed };
    server
        .tell(doc! { "configureFailPoint": "failCommand", "mode": { "times": 1 }, "data": data })
        .await;
    let bulk = [1, 2].map(|id| FencedUpdate::one(doc! { "_id": id }, doc! { "$set": { "cents": 0 } }));
    let error = match earlier.update_bulk(bulk.to_vec()).await {
        Err(EnterError::Refused(FenceError::Store(error))) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(error.certainty, Certainty::Unknown, "{error}");
    assert!(error.message.contains("replication timed out"), "{error}");
}

/// As one that waits behind a change of the collection, on a server that answers all else.
#[tokio::test]
async fn list_of_indexes_that_does_not_come_ends_no_examination() {
    let server = Refusing::start().await;
    let scratch = Scratch::new(server.set.uri());
    let store = MongoStore::connect(&scratch.url("appName=looks"))
        .await
        .expect("connects");
    server
        .delay("listIndexes", "looks", Duration::from_secs(40))
        .await;
    let examined = tokio::time::timeout(Duration::from_secs(30), store.examine()).await;
    let findings = examined.expect("an end in time").expect("an examination");
    let indexes = findings.iter().find(|finding| finding.subject == "ttl index");
    let indexes = indexes.expect("it is told of");
    assert!(indexes.detail.contains("the list of indexes"), "{indexes:?}");
    server.relent().await;
}
