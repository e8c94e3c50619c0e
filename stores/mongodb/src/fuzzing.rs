//! Doors for the fuzz targets in `fuzz/targets`, and for nobody else: no part of the API, and free to change.

use crate::builder::MongoStoreBuilder;
use crate::driver::{driver_options, hosts};
use crate::record;
use crate::url::StoreUrl;
use mongodb::bson::Document;
use mongodb::bson::oid::ObjectId;
use std::time::Duration;
use tenure_core::{Lease, Predecessor, StoreError};

/// What was understood of a document.
#[derive(Clone, PartialEq, Debug)]
pub struct Understood {
    /// As the contract shows it.
    pub lease: Lease,
    /// The term before.
    pub previous: Option<Predecessor>,
    /// Which batch extended it last.
    pub renewal: Option<ObjectId>,
    /// Whether it was extended since its term began.
    pub extended: bool,
}

/// Reads a record as the store does.
///
/// # Errors
/// What the store says of a record that it cannot understand.
pub fn decode(document: &Document) -> Result<Understood, StoreError> {
    record::decode(document, "tenure.job_leases").map(|record| Understood {
        lease: record.lease,
        previous: record.previous,
        renewal: record.renewal,
        extended: record.extended,
    })
}

/// What a URL and a builder say, before anything is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled {
    /// The collection.
    pub collection: String,
    /// After what time unused names are removed.
    pub purge_after: Option<Duration>,
    /// Hosts and database as messages show them; `None` of a `mongodb+srv:` URL, which only the DNS knows.
    pub place: Option<String>,
}

/// Reads a URL as connecting does, up to where it would send something. Ready when it is first polled.
///
/// # Errors
/// What connecting says of a URL that it does not take.
pub async fn settle(url: &str, builder: MongoStoreBuilder) -> Result<Settled, StoreError> {
    let parsed = StoreUrl::parse(url)?;
    let settings = builder.merged(&parsed)?;
    let place = if parsed.driver.starts_with("mongodb+srv:") {
        None
    } else {
        let options = driver_options(&parsed.driver).await?;
        let database = options.default_database.unwrap_or_default();
        Some(format!("{}/{database}", hosts(&options.hosts)))
    };
    Ok(Settled {
        collection: settings.collection,
        purge_after: settings.purge_after,
        place,
    })
}
