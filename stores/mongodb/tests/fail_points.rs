//! Requests of several steps of which a later one is refused: what the earlier did is not denied.

use crate::common::{Scratch, renewal, request, seconds, take};
use mongodb::bson::{Document, doc};
use std::process::Command;
use std::time::Duration;
use tenure_core::{
    Bump, Certainty, Fault, Fence, FenceError, FencingToken, LeaseName, LeaseStore, ResourceName, StoreError,
    Term,
};
use tenure_mongodb::MongoFence;
use tenure_testkit::{Process, ScratchDir, eventually_async, free_port, mongod_program};

/// A set of one that refuses commands when it is told to, which the shared one does not.
struct Refusing {
    uri: String,
    // Before the folder: fields are dropped in this order.
    _process: Process,
    _folder: ScratchDir,
}

impl Refusing {
    async fn start() -> Self {
        let folder = ScratchDir::new("refusing-mongod");
        let port = free_port();
        let mut command = Command::new(mongod_program().expect("a server"));
        command.arg("--dbpath").arg(folder.path());
        command.args([
            "--port",
            &port.to_string(),
            "--bind_ip",
            "127.0.0.1",
            "--nounixsocket",
        ]);
        command.args([
            "--replSet",
            "refusing",
            "--oplogSize",
            "64",
            "--wiredTigerCacheSizeGB",
            "0.25",
        ]);
        command.args(["--setParameter", "enableTestCommands=1"]);
        let server = Self {
            uri: format!("mongodb://127.0.0.1:{port}/?directConnection=true"),
            _process: Process::spawn(command).expect("a server"),
            _folder: folder,
        };
        let member = doc! { "_id": 0, "host": format!("127.0.0.1:{port}") };
        let set = doc! { "replSetInitiate": { "_id": "refusing", "members": [member] } };
        eventually_async(SOON, "a set", || server.tell(set.clone())).await;
        eventually_async(SOON, "a primary", || async {
            let hello = server.tell(doc! { "hello": 1 }).await?;
            let primary = hello.get_bool("isWritablePrimary").unwrap_or(false);
            primary.then_some(()).ok_or_else(|| hello.to_string())
        })
        .await;
        server
    }

    async fn tell(&self, command: Document) -> Result<Document, String> {
        let client = mongodb::Client::with_uri_str(&self.uri).await;
        let client = client.map_err(|error| error.to_string())?;
        let answer = client.database("admin").run_command(command).await;
        match answer {
            // Of an earlier try, whose answer was lost.
            Err(error) if error.to_string().contains("already initialized") => Ok(doc! {}),
            answer => answer.map_err(|error| error.to_string()),
        }
    }

    /// Refuses every such command from here on, after so many more; no permission, so certainly not applied.
    async fn refuse(&self, command: &str, after: i32) {
        let refusal = doc! { "failCommands": [command], "errorCode": 13 };
        let point = doc! { "configureFailPoint": "failCommand", "mode": { "skip": after }, "data": refusal };
        self.tell(point).await.expect("a fail point");
    }

    async fn relent(&self) {
        let point = doc! { "configureFailPoint": "failCommand", "mode": "off" };
        self.tell(point).await.expect("a fail point");
    }
}

/// For what takes a second on an idle machine.
const SOON: Duration = Duration::from_secs(60);

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
    let scratch = Scratch::new(server.uri.clone());
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
    // A statement that a validator refuses is repeated for each of its leases, and the others were extended.
    let leases = scratch.leases().await;
    let database = leases.client().database(&scratch.database);
    let foreign = doc! { "$set": { "foreign": 1 } };
    let marked = leases.update_one(doc! { "_id": "refused" }, foreign).await;
    assert_eq!(marked.expect("the test can write").modified_count, 1);
    let validator = doc! { "collMod": "job_leases", "validator": { "foreign": { "$exists": false } } };
    database.run_command(validator).await.expect("a validator");
    server.refuse("update", 1).await;
    let verdicts = store.renew(&renewals).await;
    server.relent().await;
    verdicts.into_iter().for_each(unknown);
}

#[tokio::test]
async fn a_claim_or_bump_that_fails_after_the_mark_may_have_raised_it() {
    let server = Refusing::start().await;
    let scratch = Scratch::new(server.uri.clone());
    let fence = MongoFence::new(&scratch.client().await.database(&scratch.database));
    let resource = ResourceName::new("ledger").expect("a name");
    let term = |number| {
        let token = FencingToken::new(number).expect("a token");
        Term::new(LeaseName::new("nightly").expect("a name"), token)
    };
    fence.claim(&resource, &term(1)).await.expect("a claim");
    // The stripes, and the look at them; before it the mark was looked at once.
    for (number, command, before) in [(2, "update", 0), (3, "find", 1)] {
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
