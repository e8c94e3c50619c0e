//! Servers of a URL that are not of the replica set that the driver has settled for.
//!
//! The driver takes the set of whichever server answers first for the one that is meant, and leaves out
//! whoever is not of it. So of two processes with the same URL, which names members of two sets, each may
//! lead in a set of its own.

use crate::driver::hosts;
use mongodb::Client;
use mongodb::bson::{Bson, Document, doc, oid::ObjectId};
use mongodb::options::{ClientOptions, ServerAddress};
use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tokio::task::JoinSet;

/// How long a server may take to tell. One that is down, and that the set does not know by the URL's name,
/// holds up for so long whoever connects.
const LOOK_TIME_MAX: Duration = Duration::from_millis(700);

/// Refuses a URL that names members of different sets. Who answers nothing is not looked at, and nobody is
/// asked whom the set names as the URL does, as it mostly is.
///
/// # Errors
/// [`Fault::Invalid`], not applied.
pub(crate) async fn refuse_strangers(client: &Client, options: &ClientOptions) -> Result<(), StoreError> {
    if options.hosts.len() < 2 {
        return Ok(());
    }
    let Some(ours) = hello(client).await else {
        return Ok(());
    };
    let Ok(name) = ours.get_str("setName") else {
        return Ok(());
    };
    let mut asking = JoinSet::new();
    for address in options.hosts.iter().filter(|address| !is_listed(&ours, address)) {
        let (address, options) = (address.clone(), options.clone());
        asking.spawn(async move {
            let told = ask(&address, &options).await?;
            Some((address, told))
        });
    }
    for (address, told) in asking.join_all().await.into_iter().flatten() {
        // A name leads to one server from here, whoever tells it.
        if members(&told).any(|member| is_named(&ours, member)) {
            continue;
        }
        let why = match told.get_str("setName") {
            Ok(set) if set != name && options.repl_set_name.is_none() => {
                format!("is of replica set \"{set}\"")
            }
            Ok(set) if set == name && is_another(client, primary_of(&told, options).await).await => {
                format!("is of another replica set \"{name}\"")
            }
            // The driver leaves a server that is of no set, or not of the set that is named, out by itself,
            // and so does every other process.
            Ok(_) | Err(_) => continue,
        };
        return Err(StoreError::not_applied(
            Fault::Invalid,
            format!(
                "the MongoDB URL names servers of different replica sets: {} {why}, and not of the set \"{name}\" of {}; each \
                 would have a leader of its own: name the members of one",
                hosts(&[address]),
                ours.get_str("primary").unwrap_or("the primary"),
            ),
        ));
    }
    Ok(())
}

/// Whether this process, a primary, is not our primary. Ours is asked afterwards: if there was an election,
/// it is the one.
async fn is_another(client: &Client, primary: Option<ObjectId>) -> bool {
    let ours = hello(client).await;
    let ours = ours.as_ref().and_then(process);
    primary.is_some() && ours.is_some() && primary != ours
}

/// Whether the set names this server, as one of those that it consists of.
fn is_listed(hello: &Document, address: &ServerAddress) -> bool {
    is_named(hello, &hosts(std::slice::from_ref(address)))
}

fn is_named(hello: &Document, host: &str) -> bool {
    members(hello).any(|member| member.eq_ignore_ascii_case(host))
}

/// Those that the set of who has told this consists of.
fn members(hello: &Document) -> impl Iterator<Item = &str> {
    let kinds = ["hosts", "passives", "arbiters"];
    let told = kinds.into_iter().filter_map(|kind| hello.get_array(kind).ok());
    told.flatten().filter_map(Bson::as_str)
}

/// The process that is the primary of the set of who has told this.
async fn primary_of(told: &Document, options: &ClientOptions) -> Option<ObjectId> {
    if told.get_bool("isWritablePrimary").unwrap_or(false) {
        return process(told);
    }
    let primary = ServerAddress::parse(told.get_str("primary").ok()?).ok()?;
    let told = ask(&primary, options).await?;
    let is_primary = told.get_bool("isWritablePrimary").unwrap_or(false);
    is_primary.then(|| process(&told)).flatten()
}

/// Each start of a server is another process, and no two servers have the same.
fn process(told: &Document) -> Option<ObjectId> {
    let version = told.get_document("topologyVersion").ok()?;
    version.get_object_id("processId").ok()
}

/// What one server says of itself, whatever set it is of.
async fn ask(address: &ServerAddress, options: &ClientOptions) -> Option<Document> {
    let mut options = options.clone();
    options.hosts = vec![address.clone()];
    options.direct_connection = Some(true);
    options.repl_set_name = None;
    // Another client's are none of ours.
    options.cmap_event_handler = None;
    options.sdam_event_handler = None;
    options.server_selection_timeout = Some(LOOK_TIME_MAX);
    hello(&Client::with_options(options).ok()?).await
}

async fn hello(client: &Client) -> Option<Document> {
    let admin = client.database("admin");
    let asked = admin.run_command(doc! { "hello": 1 }).into_future();
    tokio::time::timeout(LOOK_TIME_MAX, asked).await.ok()?.ok()
}
