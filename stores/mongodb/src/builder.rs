use crate::SYSTEM;
use crate::fault::{Deed, Repeats, store_error};
use crate::indexes::{ensure_purge_index, warn_of_expiry_index};
use crate::kind::refuse_unfit;
use crate::release::RELEASES_AT_ONCE;
use crate::renew::PARTS_AT_ONCE;
use crate::site::{Site, Topology, collection};
use crate::store::MongoStore;
use crate::strangers::refuse_strangers;
use crate::tls_files;
use crate::url::{
    COLLECTION, DATABASE, LOCKS_COLLECTION, LOCKS_DATABASE, StoreUrl, collection_name, invalid, purge_wait,
};
use crate::watch::WATCHES_MAX;
use mongodb::bson::doc;
use mongodb::options::{Acknowledgment, ClientOptions, ServerAddress, WriteConcern};
use mongodb::{Client, Database};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tenure_remote::{Remote, WatchPlaces};
use tokio::sync::Semaphore;

/// Longest name of a database that the server takes, in bytes. One that is longer would stand in every message.
const DATABASE_BYTES_MAX: usize = 63;

/// How long a request waits for a primary to be found, unless the URL has `serverSelectionTimeoutMS`. The
/// driver's own 30 s would be the whole lease.
const SELECTION_TIME_MAX: Duration = Duration::from_secs(2);

/// How long the driver waits for a connection, unless the URL has `connectTimeoutMS`; together with the
/// heartbeat it is how long a frozen server goes unnoticed. The driver's own is 10 s.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(2);

/// How often the driver looks at servers that do not push their state, unless the URL has
/// `heartbeatFrequencyMS`. The driver's own is 10 s.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Connections beyond those of the watches, so that no number of watches can make a renewal wait. They are
/// made when they are needed. A smaller `maxPoolSize` of the URL is raised to the sum.
const CONNECTIONS_FOR_REQUESTS: usize = 16;

/// How long one request may take beyond finding a primary: the store's own bound, beside the engine's.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(3);

/// How long connecting may take in all.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// Oldest server that knows `$$NOW` wherever it stands, and whose change streams tell what an update has changed: MongoDB 5.0. By 4.4
/// no lease could be cleaned up, and each renewal would wake all who wait.
const WIRE_VERSION_MIN: i32 = 13;

/// Settings of a [`MongoStore`].
///
/// Whatever URL or client say: writes are confirmed by a majority and journalled, reads go to the primary,
/// and a client that the store makes itself repeats nothing on its own (`retryWrites` and `retryReads` are
/// off): attempts resolve a lost answer, and a replayed one would lack the server's clock.
#[derive(Clone, Debug)]
pub struct MongoStoreBuilder {
    /// Where the URL names none.
    database: &'static str,
    default_collection: &'static str,
    collection: Option<String>,
    purge_after: Option<Duration>,
    connect_time_max: Duration,
}

impl MongoStoreBuilder {
    pub(crate) fn new() -> Self {
        Self {
            database: DATABASE,
            default_collection: COLLECTION,
            collection: None,
            purge_after: None,
            connect_time_max: CONNECT_TIME_MAX,
        }
    }

    /// The preset for locks.
    pub(crate) fn for_locks() -> Self {
        Self {
            database: LOCKS_DATABASE,
            default_collection: LOCKS_COLLECTION,
            ..Self::new()
        }
    }

    /// The collection. Default: the URL's `collection=`, else `job_leases`, or `pessimisticLocks` in
    /// the [preset for locks](MongoStore::for_locks).
    #[must_use]
    pub fn collection(mut self, name: &str) -> Self {
        self.collection = Some(name.to_owned());
        self
    }

    /// Lets MongoDB remove names that nobody used for so long, 1 d to 36,500 d, by a TTL index on `purgeAt`.
    /// Never less than ten ttls. Default: the URL's `purgeAfter=`, else nothing is ever removed.
    ///
    /// Tokens still rise afterwards: the server's clock is their floor.
    #[must_use]
    pub fn purge_after(mut self, unused: Duration) -> Self {
        self.purge_after = Some(unused);
        self
    }

    /// How long connecting may take in all. Default: 5 s.
    #[must_use]
    pub fn connect_time_max(mut self, time: Duration) -> Self {
        self.connect_time_max = time;
        self
    }

    /// Connects, and makes sure that there is a server which can keep the promises.
    ///
    /// # Errors
    /// Not applied, and without the password: [`Fault::Invalid`] for a URL that cannot be read or that asks
    /// for less than majority and journal, [`Fault::Unreachable`] or [`Fault::TimedOut`] if no primary
    /// answers, [`Fault::Unauthenticated`], [`Fault::Forbidden`], [`Fault::Unsupported`] for a server or a collection
    /// that cannot keep the promises.
    pub async fn connect(self, url: &str) -> Result<MongoStore, StoreError> {
        let parsed = StoreUrl::parse(url)?;
        let settings = self.merged(&parsed)?;
        let time_max = settings.connect_time_max;
        let default_database = self.database;
        let opening = async move {
            bounded(time_max, None, async move {
                let mut options = driver_options(&parsed.driver).await?;
                let selection = settle(&mut options);
                let database = options
                    .default_database
                    .clone()
                    .unwrap_or_else(|| default_database.to_owned());
                let hosts = hosts(&options.hosts);
                let client = Client::with_options(options.clone())
                    .map_err(|_quotes_the_url| StoreUrl::unreadable())?;
                let database = client.database(&database);
                let place = settings.place(&hosts, &database);
                let opened = settings.open(
                    (client, Repeats::Nothing),
                    database,
                    hosts,
                    selection + REQUEST_TIME_MAX,
                );
                let site = bounded(time_max, Some(&place), opened).await?;
                refuse_strangers(&site.client, &options).await?;
                Ok(site)
            })
            .await
        };
        Ok(MongoStore(Remote::open(SYSTEM, opening).await?))
    }

    /// Uses a client that exists; see [`MongoStore::with_client`].
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn attach(self, client: Client, database: &str) -> Result<MongoStore, StoreError> {
        let settings = self.merged(&StoreUrl::parse("mongodb://-")?)?;
        let database = client.database(database);
        let opening = async move {
            // The driver does not tell where a client is connected to.
            let hosts = "the given client".to_owned();
            let place = settings.place(&hosts, &database);
            let time_max = settings.connect_time_max;
            bounded(
                time_max,
                Some(&place),
                settings.open(
                    (client, Repeats::Writes),
                    database,
                    hosts,
                    SELECTION_TIME_MAX + REQUEST_TIME_MAX,
                ),
            )
            .await
        };
        Ok(MongoStore(Remote::open(SYSTEM, opening).await?))
    }

    pub(crate) fn merged(&self, url: &StoreUrl) -> Result<Settings, StoreError> {
        let collection = self.collection.clone().or_else(|| url.collection.clone());
        Ok(Settings {
            collection: collection_name(collection.as_deref().unwrap_or(self.default_collection))?,
            purge_after: self.purge_after.or(url.purge_after).map(purge_wait).transpose()?,
            connect_time_max: self.connect_time_max,
        })
    }
}

pub(crate) struct Settings {
    pub(crate) collection: String,
    pub(crate) purge_after: Option<Duration>,
    connect_time_max: Duration,
}

impl Settings {
    fn place(&self, hosts: &str, database: &Database) -> String {
        format!("{hosts}/{}.{}", database.name(), self.collection)
    }

    async fn open(
        self,
        (client, repeats): (Client, Repeats),
        database: Database,
        hosts: String,
        time_max: Duration,
    ) -> Result<Site, StoreError> {
        let place = self.place(&hosts, &database);
        let site = Site {
            leases: collection(&database, &self.collection, time_max),
            namespace: format!("{}.{}", database.name(), self.collection),
            topology: topology(&client, &place).await?,
            hosts: match repeats {
                Repeats::Nothing => hosts.split(',').map(str::to_owned).collect(),
                Repeats::Writes => Vec::new(),
            },
            client,
            repeats,
            database,
            place,
            purge_after: self.purge_after,
            time_max,
            parts: Arc::new(Semaphore::new(PARTS_AT_ONCE)),
            stuck: Arc::default(),
            seen: Arc::default(),
            releases: Arc::new(Semaphore::new(RELEASES_AT_ONCE)),
            first_release: Arc::new(AtomicUsize::new(0)),
            watches: WatchPlaces::new(WATCHES_MAX),
        };
        refuse_unfit(&site).await?;
        let may_write = proves_concern(&site).await?;
        warn_of_expiry_index(&site).await?;
        if may_write {
            ensure_purge_index(&site).await?;
        }
        Ok(site)
    }
}

/// Reads the driver's part of the URL; of a `mongodb+srv:` one, by asking the DNS.
pub(crate) async fn driver_options(url: &str) -> Result<ClientOptions, StoreError> {
    // The driver cuts a text two bytes after each % of user and password. Within a character that panics, and
    // the panic quotes what it cut: the password.
    let cut_within_a_character = |rest: &str| rest.len() >= 2 && !rest.is_char_boundary(2);
    if url.split('%').skip(1).any(cut_within_a_character) {
        return Err(StoreUrl::unreadable());
    }
    let options = ClientOptions::parse(url)
        .await
        .map_err(|error| match &*error.kind {
            mongodb::error::ErrorKind::DnsResolve { .. } => {
                store_error(&error, Deed::Read, "the host of the MongoDB URL", "DNS")
            }
            _ => StoreUrl::unreadable(),
        })?;
    // Both stand in every message, which is one line.
    let shown = hosts(&options.hosts) + options.default_database.as_deref().unwrap_or_default();
    if shown.contains(char::is_control) {
        return Err(StoreUrl::unreadable());
    }
    let database = options.default_database.as_deref().unwrap_or_default();
    if database.len() > DATABASE_BYTES_MAX {
        return Err(invalid(&format!(
            "the database in the MongoDB URL has a name of {} bytes; {DATABASE_BYTES_MAX} are the most that MongoDB takes",
            database.len()
        )));
    }
    refuse_weak(options.write_concern.as_ref())?;
    tls_files::check(&options)?;
    Ok(options)
}

/// Waits so long for the connection and no longer.
async fn bounded<T>(
    time_max: Duration,
    place: Option<&str>,
    connecting: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let late = |_| {
        StoreError::not_applied(
            Fault::Unreachable,
            format!(
                "no MongoDB primary answered at {} within {time_max:?}; check host, port and the replica set's state",
                place.unwrap_or("the URL's hosts")
            ),
        )
    };
    tokio::time::timeout(time_max, connecting).await.map_err(late)?
}

/// Sets what the store needs of the driver; answers how long a primary is looked for.
pub(crate) fn settle(options: &mut ClientOptions) -> Duration {
    options.retry_writes = Some(false);
    options.retry_reads = Some(false);
    options.connect_timeout.get_or_insert(CONNECTION_TIME_MAX);
    options.heartbeat_freq.get_or_insert(HEARTBEAT);
    let connections = WATCHES_MAX + CONNECTIONS_FOR_REQUESTS;
    let connections = u32::try_from(connections).expect("a small sum");
    options.max_pool_size = Some(options.max_pool_size.unwrap_or(0).max(connections));
    options.app_name.get_or_insert_with(|| "tenure".to_owned());
    *options.server_selection_timeout.get_or_insert(SELECTION_TIME_MAX)
}

/// A URL that asks for less than we promise is a misunderstanding that must not pass in silence.
fn refuse_weak(concern: Option<&WriteConcern>) -> Result<(), StoreError> {
    let Some(concern) = concern else {
        return Ok(());
    };
    let asked = match &concern.w {
        None | Some(Acknowledgment::Majority) => None,
        Some(Acknowledgment::Nodes(count)) => Some(format!("w={count}")),
        // Not its name: in a URL whose password has an unescaped question mark it is a part of that.
        Some(_tag) => Some("w by the name of a tag".to_owned()),
    };
    if let Some(asked) = asked {
        return Err(invalid(&format!(
            "the MongoDB URL asks for {asked}; leases need w=majority, or a fail-over takes them back: remove the option"
        )));
    }
    match concern.journal {
        Some(false) => Err(invalid(
            "the MongoDB URL asks for journal=false; leases need the journal, or a crash takes them back: remove the option",
        )),
        Some(true) | None => Ok(()),
    }
}

pub(crate) fn hosts(addresses: &[ServerAddress]) -> String {
    let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    shown.join(",")
}

/// Asks the primary what it is.
async fn topology(client: &Client, place: &str) -> Result<Topology, StoreError> {
    let hello = client
        .database("admin")
        .run_command(doc! { "hello": 1 })
        .await
        .map_err(|error| store_error(&error, Deed::Read, "connecting", place))?;
    refuse_older(hello.get_i32("maxWireVersion").unwrap_or(0), place)?;
    if hello.get_str("msg").is_ok_and(|message| message == "isdbgrid") {
        return Ok(Topology::Sharded);
    }
    Ok(match hello.get_str("setName") {
        Ok(name) => Topology::ReplicaSet {
            name: name.to_owned(),
        },
        Err(_) => Topology::Standalone,
    })
}

fn refuse_older(wire_version: i32, place: &str) -> Result<(), StoreError> {
    if wire_version >= WIRE_VERSION_MIN {
        return Ok(());
    }
    let message =
        format!("the MongoDB at {place} is too old (wire version {wire_version}); 5.0 or later is needed");
    Err(StoreError::not_applied(Fault::Unsupported, message))
}

/// Proves that the server honours majority and journal; `false` for who may not write.
async fn proves_concern(site: &Site) -> Result<bool, StoreError> {
    match site.confirms().await {
        Ok(()) => Ok(true),
        // Who may only read may connect, to look. Acquiring will say what is missing.
        Err(error) if matches!(error.fault, Fault::Forbidden | Fault::ReadOnly) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_before_5_0_is_refused() {
        assert_eq!(refuse_older(13, "here"), Ok(()));
        let error = refuse_older(9, "here").expect_err("4.4");
        assert_eq!(error.fault, Fault::Unsupported);
        assert!(error.message.contains("5.0 or later"), "{error}");
    }
}
