//! From a URL to a store.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tenure_core::{Fault, LeasePurge, LeaseStore, StoreError};

/// A store behind the contract, shared by everything that uses it.
pub type SharedStore = Arc<dyn LeaseStore>;

/// A store whose unused records can be removed.
pub type SharedPurge = Arc<dyn LeasePurge>;

type Opening = Pin<Box<dyn Future<Output = Result<SharedStore, StoreError>> + Send>>;
type Opener = Box<dyn Fn(String) -> Opening + Send + Sync>;

/// Longest unknown scheme that a message shows, in characters: it may be a novel.
const SCHEME_CHARACTERS_MAX: usize = 40;

/// Which URL schemes are known, and how each is opened.
pub struct Registry {
    openers: BTreeMap<String, Opener>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.openers.keys()).finish()
    }
}

impl Registry {
    /// A registry without any scheme.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            openers: BTreeMap::new(),
        }
    }

    /// The schemes of the stores that this crate's features have compiled in.
    #[must_use]
    pub fn compiled_in() -> Self {
        #[allow(unused_mut, reason = "without any store feature nothing is registered")]
        let mut registry = Self::empty();
        #[cfg(feature = "sqlite")]
        registry.register("sqlite", |url| async move {
            let store: SharedStore = Arc::new(tenure_sqlite::SqliteStore::from_url(&url)?);
            Ok(store)
        });
        #[cfg(feature = "mongodb")]
        for scheme in ["mongodb", "mongodb+srv"] {
            registry.register(scheme, |url| async move {
                let store: SharedStore = Arc::new(tenure_mongodb::MongoStore::connect(&url).await?);
                Ok(store)
            });
        }
        #[cfg(feature = "redis")]
        for scheme in ["redis", "rediss", "redis+sentinel", "rediss+sentinel"] {
            registry.register(scheme, |url| async move {
                let store: SharedStore = Arc::new(tenure_redis::RedisStore::connect(&url).await?);
                Ok(store)
            });
        }
        #[cfg(feature = "redis")]
        for scheme in ["redis+quorum", "rediss+quorum"] {
            registry.register(scheme, |url| async move {
                let store: SharedStore = Arc::new(tenure_redis::QuorumStore::connect(&url).await?);
                Ok(store)
            });
        }
        #[cfg(feature = "postgres")]
        for scheme in ["postgres", "postgresql"] {
            registry.register(scheme, |url| async move {
                let store: SharedStore = Arc::new(tenure_postgres::PostgresStore::connect(&url).await?);
                Ok(store)
            });
        }
        #[cfg(feature = "etcd")]
        for scheme in ["etcd", "etcds"] {
            registry.register(scheme, |url| async move {
                let store: SharedStore = Arc::new(tenure_etcd::EtcdStore::connect(&url).await?);
                Ok(store)
            });
        }
        #[cfg(feature = "mysql")]
        for scheme in ["mysql", "mariadb"] {
            registry.register(scheme, |url| async move {
                let store: SharedStore = Arc::new(tenure_mysql::MysqlStore::connect(&url).await?);
                Ok(store)
            });
        }
        #[cfg(feature = "nats")]
        for scheme in ["nats", "nats+tls"] {
            registry.register(scheme, |url| async move {
                let store: SharedStore = Arc::new(tenure_nats::NatsStore::connect(&url).await?);
                Ok(store)
            });
        }
        registry
    }

    /// Adds a scheme, or replaces it. `open` gets the whole URL.
    pub fn register<Open, Opened>(&mut self, scheme: impl Into<String>, open: Open)
    where
        Open: Fn(String) -> Opened + Send + Sync + 'static,
        Opened: Future<Output = Result<SharedStore, StoreError>> + Send + 'static,
    {
        self.openers
            .insert(scheme.into(), Box::new(move |url| Box::pin(open(url))));
    }

    /// Opens the store of a URL for cleaning up, with the schemes that are [compiled in](Self::compiled_in).
    ///
    /// # Errors
    /// [`Fault::Unsupported`] for a store that is known and cannot do it; else as [`open`](Self::open).
    pub async fn connect_to_purge(url: &str) -> Result<SharedPurge, StoreError> {
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        match scheme {
            #[cfg(feature = "sqlite")]
            "sqlite" => Ok(Arc::new(tenure_sqlite::SqliteStore::from_url(url)?)),
            #[cfg(feature = "mongodb")]
            "mongodb" | "mongodb+srv" => Ok(Arc::new(tenure_mongodb::MongoStore::connect(url).await?)),
            #[cfg(feature = "redis")]
            "redis" | "rediss" | "redis+sentinel" | "rediss+sentinel" => {
                Ok(Arc::new(tenure_redis::RedisStore::connect(url).await?))
            }
            #[cfg(feature = "redis")]
            "redis+quorum" | "rediss+quorum" => Ok(Arc::new(tenure_redis::QuorumStore::connect(url).await?)),
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => Ok(Arc::new(tenure_postgres::PostgresStore::connect(url).await?)),
            #[cfg(feature = "mysql")]
            "mysql" | "mariadb" => Ok(Arc::new(tenure_mysql::MysqlStore::connect(url).await?)),
            #[cfg(feature = "etcd")]
            "etcd" | "etcds" => Ok(Arc::new(tenure_etcd::EtcdStore::connect(url).await?)),
            #[cfg(feature = "nats")]
            "nats" | "nats+tls" => Ok(Arc::new(tenure_nats::NatsStore::connect(url).await?)),
            _ => {
                // An error of the URL comes first.
                let kind = Self::connect(url).await?.traits().kind;
                let message = format!("Tenure does not know how to clean up leases in this store ({kind})");
                Err(StoreError::not_applied(Fault::Unsupported, message))
            }
        }
    }

    /// The known schemes, sorted.
    pub fn schemes(&self) -> impl Iterator<Item = &str> {
        self.openers.keys().map(String::as_str)
    }

    /// Opens the store of a URL.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for a text that is no URL and for an unknown scheme (the message lists the known
    /// ones); whatever the store says otherwise. Nothing was started. No message holds a password.
    pub async fn open(&self, url: &str) -> Result<SharedStore, StoreError> {
        let Some((scheme, rest)) = url.split_once(':') else {
            let message = format!(
                "the store URL has no scheme; it looks like \"sqlite:/var/lib/app/leases.db\" (known: {self})"
            );
            return Err(StoreError::not_applied(Fault::Invalid, message));
        };
        let Some(open) = self.openers.get(scheme) else {
            let message = match is_surely_a_scheme(scheme, rest) {
                true => format!(
                    "no store for scheme \"{scheme}\" is compiled in (known: {self}){}",
                    way_to(scheme)
                ),
                false => format!(
                    "the store URL has no scheme that is known, such as \"sqlite:/var/lib/app/leases.db\" (known: {self})"
                ),
            };
            return Err(StoreError::not_applied(Fault::Invalid, message));
        };
        open(url.to_owned()).await
    }

    /// Opens the store of a URL with the schemes that are [compiled in](Self::compiled_in).
    ///
    /// # Errors
    /// As [`open`](Self::open). A store on a server that does not answer at this moment is one:
    /// [`connect_within`](Self::connect_within) waits for it. Once it is open, what is away is waited for.
    pub async fn connect(url: &str) -> Result<SharedStore, StoreError> {
        Self::compiled_in().open(url).await
    }
}

/// The way to a store of Tenure's that was left out of the build.
fn way_to(scheme: &str) -> String {
    let kind = scheme.split('+').next().unwrap_or(scheme);
    let feature = match kind {
        "sqlite" | "mongodb" | "redis" | "postgres" | "etcd" | "mysql" | "nats" => kind,
        "rediss" => "redis",
        "postgresql" => "postgres",
        "etcds" => "etcd",
        "mariadb" => "mysql",
        _ => return String::new(),
    };
    format!("; it comes with the feature \"{feature}\": build with --features {feature}")
}

/// Whether a message may show it: what stands before a colon may be a password, or a token, too.
fn is_surely_a_scheme(scheme: &str, rest: &str) -> bool {
    let is_of_a_scheme = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
    scheme.chars().all(is_of_a_scheme)
        && scheme.len() <= SCHEME_CHARACTERS_MAX
        && (rest.starts_with("//") || scheme == "sqlite")
}

impl fmt::Display for Registry {
    /// The known schemes, separated by commas.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.openers.is_empty() {
            return f.write_str("none");
        }
        f.write_str(&self.schemes().collect::<Vec<_>>().join(", "))
    }
}
