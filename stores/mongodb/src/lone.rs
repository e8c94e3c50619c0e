//! A member of a replica set that was started without it: its set may have gone on, and has leaders of its
//! own.

use crate::fault::{Deed, line, server_code, store_error};
use crate::identity::{Mark, key};
use crate::shell::in_the_shell;
use mongodb::bson::{Document, doc};
use mongodb::options::ReadConcern;
use mongodb::{Client, Collection};
use tenure_core::{Fault, StoreError};

/// The collection of `local` in which each member keeps what its set consists of.
const CONFIGURATION: &str = "system.replset";

/// Refuses a server that is of no set now, and was a member when the leases in it were taken, as far as this
/// user may see. Who may not read the server's own data goes by the mark beside the leases.
///
/// # Errors
/// [`Fault::Unsupported`], not applied.
pub(crate) async fn refuse_lone_member(
    client: &Client,
    leases: &Collection<Document>,
    mark: Option<&Mark>,
    place: &str,
) -> Result<(), StoreError> {
    let set = configured_set(client, place).await?;
    let Some(of) = set.or_else(|| mark?.of.clone()) else {
        return Ok(());
    };
    let (leases, key) = (in_the_shell(leases.name()), key());
    Err(StoreError::not_applied(
        Fault::Unsupported,
        format!(
            "{place}: the server stands alone, and its leases are those of {of}, which may have gone on without it and has leaders of its \
             own; start it with --replSet again, or, if it shall stand alone from now on: db.getSiblingDB(\"local\").dropDatabase(), \
             then {leases}.updateOne({{_id: {key}}}, {{$unset: {{of: 1}}}})"
        ),
    ))
}

/// The set of which the server is a member when it is started as one; `None` also for who may not know.
async fn configured_set(client: &Client, place: &str) -> Result<Option<String>, StoreError> {
    let local = client.database("local").collection::<Document>(CONFIGURATION);
    let found = local.find_one(doc! {}).read_concern(ReadConcern::local()).await;
    match found {
        Ok(found) => {
            let name = found.as_ref().and_then(|found| found.get_str("_id").ok());
            Ok(name.map(|name| format!("the replica set \"{}\"", line(name))))
        }
        Err(error) if server_code(&error).is_some() => Ok(None),
        Err(error) => Err(store_error(&error, Deed::Read, "connecting", place)),
    }
}
