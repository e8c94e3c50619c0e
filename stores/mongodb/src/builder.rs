use crate::SYSTEM;
use crate::database::refuse_local;
use crate::driver::{SELECTION_TIME_MAX, driver_options, hosts, settle};
use crate::fault::{Deed, Repeats};
use crate::heard::Heard;
use crate::identity::{Identity, mark};
use crate::indexes::{ensure_purge_index, indexes, warn_of_expiry_indexes};
use crate::kind::refuse_unfit;
use crate::lines::Lines;
use crate::login::Login;
use crate::lone::refuse_lone_member;
use crate::release::RELEASES_AT_ONCE;
use crate::renew::PARTS_AT_ONCE;
use crate::site::{Site, Topology, collection};
use crate::store::MongoStore;
use crate::strangers::refuse_strangers;
use crate::tied::{client_of_one_set, hello, tied};
use crate::url::{
    COLLECTION, DATABASE, LOCKS_COLLECTION, LOCKS_DATABASE, StoreUrl, collection_name, purge_wait,
};
use crate::watch::WATCHES_MAX;
use mongodb::{Client, Database};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tenure_remote::{Remote, WatchPlaces};
use tokio::sync::Semaphore;

/// How long one request may take beyond finding a primary: the store's own bound, beside the engine's.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(3);

/// How long connecting may take in all.
pub(crate) const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// Oldest server that knows `$$NOW` wherever it stands, and whose change streams tell what an update has
/// changed: MongoDB 5.0. By 4.4 no lease could be cleaned up, and each renewal would wake all who wait.
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
    /// for less than majority and journal or names the database `local`, [`Fault::Unreachable`] or
    /// [`Fault::TimedOut`] if no primary answers, [`Fault::Unauthenticated`], [`Fault::Forbidden`],
    /// [`Fault::Unsupported`] for a server or a collection that cannot keep the promises.
    pub async fn connect(self, url: &str) -> Result<MongoStore, StoreError> {
        let parsed = StoreUrl::parse(url)?;
        let settings = self.merged(&parsed)?;
        let time_max = settings.connect_time_max;
        let default_database = self.database;
        let opening = async move {
            bounded(time_max, None, async move {
                let mut options = driver_options(&parsed.driver).await?;
                let selection = settle(&mut options)?;
                let heard = Heard::of(&mut options);
                let database = options
                    .default_database
                    .clone()
                    .unwrap_or_else(|| default_database.to_owned());
                let hosts = hosts(&options.hosts);
                let place = settings.place(&hosts, &database);
                let opened = async {
                    let client = client_of_one_set(&mut options, &place).await?;
                    let database = client.database(&database);
                    let bound = selection + REQUEST_TIME_MAX;
                    let client = (client, Whose::Ours(heard, Login::of(&options)));
                    settings.open(client, database, hosts, bound).await
                };
                let site = bounded(time_max, Some(&place), opened).await;
                let site = tied(site, &options)?;
                refuse_strangers(&site.client, &options).await?;
                Ok(Lines::of_our_own(site, options))
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
            let place = settings.place(&hosts, database.name());
            let time_max = settings.connect_time_max;
            let opened = settings.open(
                (client, Whose::Users),
                database,
                hosts,
                SELECTION_TIME_MAX + REQUEST_TIME_MAX,
            );
            bounded(time_max, Some(&place), opened)
                .await
                .map(Lines::of_a_given_client)
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

/// Whose a client is.
enum Whose {
    /// The store has made it.
    Ours(Arc<Heard>, Arc<Login>),
    /// It was given.
    Users,
}

impl Settings {
    fn place(&self, hosts: &str, database: &str) -> String {
        format!("{hosts}/{database}.{}", self.collection)
    }

    async fn open(
        self,
        (client, whose): (Client, Whose),
        database: Database,
        hosts: String,
        time_max: Duration,
    ) -> Result<Site, StoreError> {
        refuse_local(database.name())?;
        let place = self.place(&hosts, database.name());
        let (repeats, heard, login) = match whose {
            Whose::Ours(heard, login) => (Repeats::Nothing, Some(heard), Some(login)),
            Whose::Users => (Repeats::Writes, None, None),
        };
        let site = Site {
            leases: collection(&database, &self.collection, time_max),
            namespace: format!("{}.{}", database.name(), self.collection),
            topology: topology(&client, &place).await?,
            is_tied: false,
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
            identity: Arc::new(Identity::new(heard)),
            login,
            releases: Arc::new(Semaphore::new(RELEASES_AT_ONCE)),
            first_release: Arc::new(AtomicUsize::new(0)),
            watches: WatchPlaces::new(WATCHES_MAX),
        };
        let mark = match site.within(Deed::Read, "connecting", mark(&site.leases)).await {
            // Who may not read may connect, too.
            Err(error) if error.fault == Fault::Forbidden => None,
            mark => mark?,
        };
        if site.topology == Topology::Standalone {
            refuse_lone_member(&site.client, &site.leases, mark.as_ref(), &site.place).await?;
        }
        site.meets(mark.as_ref());
        refuse_unfit(&site).await?;
        let may_write = proves_concern(&site).await?;
        site.warn_if_internal();
        let indexes = indexes(&site).await?;
        warn_of_expiry_indexes(&site, indexes.as_ref());
        if may_write {
            ensure_purge_index(&site, indexes.as_ref()).await;
        }
        Ok(site)
    }
}

/// Waits so long for the connection and no longer.
pub(crate) async fn bounded<T>(
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

/// Asks the primary what it is.
async fn topology(client: &Client, place: &str) -> Result<Topology, StoreError> {
    let hello = hello(client, place).await?;
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

/// Proves that the server honours majority and journal; `false` for who may not write, or not now.
async fn proves_concern(site: &Site) -> Result<bool, StoreError> {
    match site.confirms().await {
        Ok(()) => Ok(true),
        // Who may only read may connect, to look. Acquiring will say what is missing.
        Err(error) if matches!(error.fault, Fault::Forbidden | Fault::Busy) => Ok(false),
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
