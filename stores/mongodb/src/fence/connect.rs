//! A fence of a URL: for the command, which has no client of its own.

use super::MongoFence;
use crate::builder::{CONNECT_TIME_MAX, bounded};
use crate::database::refuse_local;
use crate::driver::{driver_options, hosts, settle};
use crate::fault::Repeats;
use crate::identity::mark;
use crate::lone::refuse_lone_member;
use crate::site::collection;
use crate::strangers::refuse_strangers;
use crate::tied::{client_of_one_set, hello};
use crate::url::{COLLECTION, DATABASE, StoreUrl};
use mongodb::bson::Document;
use mongodb::{Client, Collection};
use tenure_core::{Fault, Leases, StoreError};

impl MongoFence {
    /// The fence in the database of a store's URL, in the collection `fences`. Servers that do not answer are
    /// told of by its first use (by a URL that is tied to one server: at once). A program uses the client of
    /// its own data instead ([`new`](Self::new)).
    ///
    /// # Errors
    /// [`Fault::Invalid`](tenure_core::Fault::Invalid) for a URL that cannot be read, without the password,
    /// or that names members of different replica sets, or the database `local`; what keeps a server that the
    /// URL is tied to from answering.
    pub async fn connect(url: &str, leases: Leases) -> Result<Self, StoreError> {
        let parsed = StoreUrl::parse(url)?;
        let mut options = driver_options(&parsed.driver).await?;
        settle(&mut options)?;
        let database = options.default_database.clone();
        let database = database.as_deref().unwrap_or(DATABASE);
        refuse_local(database)?;
        let place = hosts(&options.hosts);
        let client = client_of_one_set(&mut options, &place);
        let client = bounded(CONNECT_TIME_MAX, Some(&place), client).await?;
        refuse_strangers(&client, &options).await?;
        let collection_name = parsed.collection.as_deref().unwrap_or(COLLECTION);
        let database = client.database(database);
        let records = collection(&database, collection_name, CONNECT_TIME_MAX);
        refuse_lone(&client, &records, &place).await?;
        let fence = Self {
            // As `settle` has set it.
            repeats: Repeats::Nothing,
            ..Self::new(&database, leases)
        };
        Ok(match leases {
            Leases::Here => fence.leases_in(collection_name),
            Leases::Elsewhere => fence,
        })
    }
}

/// Refuses a member that stands alone. Of a server that does not tell what it is, the fence's first use says
/// so.
async fn refuse_lone(client: &Client, leases: &Collection<Document>, place: &str) -> Result<(), StoreError> {
    let looking = async {
        let told = hello(client, place).await?;
        let is_router = told.get_str("msg").is_ok_and(|message| message == "isdbgrid");
        if is_router || told.contains_key("setName") {
            return Ok(());
        }
        let mark = mark(leases).await.unwrap_or_default();
        refuse_lone_member(client, leases, mark.as_ref(), place).await
    };
    match tokio::time::timeout(CONNECT_TIME_MAX, looking).await {
        Ok(Err(error)) if error.fault == Fault::Unsupported => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}
