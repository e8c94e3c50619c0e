//! How many commands of the server a call comes to.

use crate::common::{Scratch, renewal, request, seconds, take};
use mongodb::Client;
use mongodb::bson::{Bson, Document, doc};
use mongodb::event::EventHandler;
use mongodb::event::command::CommandEvent;
use mongodb::options::ClientOptions;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::{
    Fence, FenceError, FencingToken, LeaseName, LeaseStore, Leases, Renewed, ResourceName, Term,
};
use tenure_mongodb::{EnterError, FencedUpdate, MongoFence, MongoStore};
use tenure_testkit::ReplicaSet;

/// The commands that a client has sent.
#[derive(Clone, Default)]
struct Commands(Arc<Mutex<Vec<Document>>>);

impl Commands {
    fn take(&self) -> Vec<Document> {
        std::mem::take(&mut self.0.lock().expect("nobody panics here"))
    }

    /// Those of this name.
    fn take_of(&self, name: &str) -> Vec<Document> {
        let mut taken = self.take();
        taken.retain(|command| command.contains_key(name));
        taken
    }
}

async fn counted(scratch: &Scratch) -> (Client, Commands) {
    let mut options = ClientOptions::parse(&scratch.uri).await.expect("a URL");
    let commands = Commands::default();
    let sent = commands.clone();
    options.command_event_handler = Some(EventHandler::callback(move |event| {
        if let CommandEvent::Started(started) = event {
            let mut sent = sent.0.lock().expect("nobody panics here");
            sent.push(started.command);
        }
    }));
    options.retry_writes = Some(false);
    (Client::with_options(options).expect("a client"), commands)
}

#[tokio::test]
async fn beat_of_many_leases_of_mongodb_is_a_few_commands() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let (client, commands) = counted(&scratch).await;
    let store = MongoStore::with_client(client, &scratch.database, "job_leases")
        .await
        .expect("attaches");
    let mut renewals = Vec::new();
    for number in 0..130 {
        let asked = request(&format!("job-{number}"), "holder", seconds(60));
        let token = take(&store, &asked).await.token;
        renewals.push(renewal(&asked, token));
    }
    let mut sent = Vec::new();
    for _beat in 0..BEATS_MAX {
        commands.take();
        for renewed in store.renew(&renewals).await {
            assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        }
        sent = commands.take();
        assert!(!sent.is_empty());
        if sent.len() <= 3 {
            break;
        }
        // A command that a slow server breaks off is asked again in parts.
    }
    assert!(sent.len() <= 3, "{sent:?}");
}

/// How often a server may be too slow for one command.
const BEATS_MAX: u32 = 5;

#[tokio::test]
async fn entering_a_fence_of_mongodb_is_one_command_of_the_transaction() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let (client, commands) = counted(&scratch).await;
    let database = client.database(&scratch.database);
    let ledger = database.collection::<Document>("ledger");
    ledger.insert_one(doc! { "_id": 1 }).await.expect("an account");
    let (fence, resource) = (
        MongoFence::new(&database, Leases::Elsewhere),
        ResourceName::new("ledger").expect("a name"),
    );
    let term = Term::new(
        LeaseName::new("nightly").expect("a name"),
        FencingToken::new(5).expect("a token"),
    );
    fence.claim(&resource, &term).await.expect("a claim");
    let mut session = client.start_session().await.expect("a session");
    session.start_transaction().await.expect("a transaction");
    commands.take();
    fence
        .enter(&mut session, &resource, &term)
        .await
        .expect("admitted");
    assert_eq!(commands.take().len(), 1);
    session.abort_transaction().await.expect("given up");
}

/// A build of it that never ends would hold up each of them, again and again.
#[tokio::test]
async fn an_index_that_is_there_is_not_asked_for_again() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let (client, commands) = counted(&scratch).await;
    let connect = async || {
        let builder = MongoStore::builder().purge_after(Duration::from_secs(30 * 24 * 60 * 60));
        let _store = builder
            .attach(client.clone(), &scratch.database)
            .await
            .expect("attaches");
        commands.take_of("createIndexes")
    };
    let mut asked = connect().await;
    assert_eq!(asked.len(), 1, "{asked:?}");
    for _try in 0..BEATS_MAX {
        let [first] = &asked[..] else { break };
        // It waits for no member that is down, and no longer than whoever asks for it.
        assert_eq!(first.get_str("commitQuorum").ok(), Some("majority"), "{first}");
        assert!(first.contains_key("maxTimeMS"), "{first}");
        // A machine that stood still may not have made it in time.
        asked = connect().await;
    }
    assert_eq!(asked, []);
}

/// The server plans each branch of a condition with every index that might serve it: of thousands at once
/// that takes it longer than anybody waits.
#[tokio::test]
async fn what_a_bulk_has_not_matched_is_looked_for_in_parts_that_are_bounded() {
    const STATEMENTS: usize = 250;
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let (client, commands) = counted(&scratch).await;
    let database = client.database(&scratch.database);
    let accounts = database.collection::<Document>("accounts");
    let number = |id: usize| i64::try_from(id).expect("a small number");
    // A later term has written one in each part, and not the same one.
    let token = |id: usize| match id {
        3 => 9_i64,
        103 => 11,
        203 => 10,
        _ => 1,
    };
    let documents = (0..STATEMENTS).map(|id| doc! { "_id": number(id), "state": "new", "fence": token(id) });
    accounts.insert_many(documents).await.expect("accounts");
    let term = Term::new(
        LeaseName::new("nightly").expect("a name"),
        FencingToken::new(5).expect("a token"),
    );
    let resource = ResourceName::new("accounts").expect("a name");
    let fence = MongoFence::new(&database, Leases::Elsewhere);
    let fenced = fence
        .documents(&resource, &term, &accounts)
        .await
        .expect("claimed");
    let bulk = (0..STATEMENTS).map(|id| {
        let this = doc! { "_id": number(id), "state": "new" };
        FencedUpdate::one(this, doc! { "$set": { "cents": 0 } })
    });
    commands.take();
    let refused = fenced.update_bulk(bulk.collect()).await;
    assert!(
        matches!(&refused, Err(EnterError::Refused(FenceError::Stale { mark, .. })) if mark.number() == 11),
        "{refused:?}"
    );
    let looks = commands.take_of("find");
    let mut branches = Vec::new();
    for look in &looks {
        assert!(look.contains_key("maxTimeMS"), "{look}");
        let filter = look.get_document("filter").expect("a filter");
        branches.push(filter.get_array("$or").map_or(0, Vec::len));
    }
    assert_eq!(branches, [100, 100, 50], "{:?}", looks.first().map(Bson::from));
}
