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

type Opening<Store> = Pin<Box<dyn Future<Output = Result<Arc<Store>, StoreError>> + Send>>;
type Opener = Box<dyn Fn(String) -> Opening<dyn LeaseStore> + Send + Sync>;

/// Longest unknown scheme that a message shows, in characters: it may be a novel.
const SCHEME_CHARACTERS_MAX: usize = 40;

/// A kind of store that Tenure has.
struct Kind {
    feature: &'static str,
    schemes: &'static [&'static str],
    /// `None` where the feature is off.
    open: Option<fn(String) -> Opening<dyn LeasePurge>>,
}

/// Kinds of stores: of each its feature, its schemes, and what opens one of them.
macro_rules! kinds {
    ($($feature:tt: $($scheme:literal)|+ => $open:expr;)+) => {
        &[$(Kind {
            feature: $feature,
            schemes: &[$($scheme),+],
            #[cfg(feature = $feature)]
            open: Some(|url| Box::pin(async move {
                let store: SharedPurge = Arc::new($open(&url).await?);
                Ok(store)
            })),
            #[cfg(not(feature = $feature))]
            open: None,
        }),+]
    };
}

/// All that Tenure has. What elects, cleans up and names a feature goes by this list.
static KINDS: &[Kind] = kinds! {
    "sqlite": "sqlite" => async |url: &str| tenure_sqlite::SqliteStore::from_url(url);
    "mongodb": "mongodb" | "mongodb+srv" => tenure_mongodb::MongoStore::connect;
    "redis": "redis" | "rediss" | "redis+sentinel" | "rediss+sentinel" => tenure_redis::RedisStore::connect;
    "redis": "redis+quorum" | "rediss+quorum" => tenure_redis::QuorumStore::connect;
    "postgres": "postgres" | "postgresql" => tenure_postgres::PostgresStore::connect;
    "etcd": "etcd" | "etcds" => tenure_etcd::EtcdStore::connect;
    "mysql": "mysql" | "mariadb" => tenure_mysql::MysqlStore::connect;
    "nats": "nats" | "nats+tls" => tenure_nats::NatsStore::connect;
};

impl Kind {
    fn of(scheme: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.schemes.contains(&scheme))
    }
}

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
        let mut registry = Self::empty();
        for kind in KINDS {
            let Some(open) = kind.open else { continue };
            for scheme in kind.schemes {
                registry.register(*scheme, move |url| async move {
                    let store: SharedStore = open(url).await?;
                    Ok(store)
                });
            }
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
    /// As [`open`](Self::open).
    pub async fn connect_to_purge(url: &str) -> Result<SharedPurge, StoreError> {
        let registry = Self::compiled_in();
        let kind = Kind::of(registry.known(url)?);
        let open = kind.and_then(|kind| kind.open);
        open.expect("what is compiled in is a kind of Tenure's")(url.to_owned()).await
    }

    /// The known schemes, sorted.
    pub fn schemes(&self) -> impl Iterator<Item = &str> {
        self.openers.keys().map(String::as_str)
    }

    /// Opens the store of a URL.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for a text that is no URL, for one that begins or ends with a blank or a line
    /// break, and for an unknown scheme (the message lists the known ones); whatever the store says
    /// otherwise. Nothing was started. No message holds a password.
    pub async fn open(&self, url: &str) -> Result<SharedStore, StoreError> {
        self.openers[self.known(url)?](url.to_owned()).await
    }

    /// The scheme of a URL, if it is a known one.
    fn known<'a>(&self, url: &'a str) -> Result<&'a str, StoreError> {
        refuse_blank_ends(url, "store")?;
        let message = match url.split_once(':') {
            Some((scheme, _)) if self.openers.contains_key(scheme) => return Ok(scheme),
            Some((scheme, rest)) if is_surely_a_scheme(scheme, rest) => format!(
                "no store for scheme \"{scheme}\" is compiled in (known: {self}){}",
                self.way_to(scheme)
            ),
            Some(_) => format!(
                "the store URL has no scheme that is known, such as \"sqlite:/var/lib/app/leases.db\" (known: {self})"
            ),
            None => format!(
                "the store URL has no scheme; it looks like \"sqlite:/var/lib/app/leases.db\" (known: {self})"
            ),
        };
        Err(StoreError::not_applied(Fault::Invalid, message))
    }

    /// The way to the store of Tenure's that is meant: it was left out of the build, or is known by a name
    /// without a driver's, as other programs write it.
    fn way_to(&self, scheme: &str) -> String {
        let kind = scheme.split('+').next().unwrap_or(scheme);
        if self.openers.contains_key(kind) {
            return format!(
                "; what follows \"{kind}+\" is not known: write \"{kind}:\", or another of these"
            );
        }
        let Some(Kind { feature, .. }) = Kind::of(kind) else {
            return String::new();
        };
        format!("; it comes with the feature \"{feature}\": build with --features {feature}")
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

/// Refuses what stands around the URL of a store or a fence, as a file of variables or a secret keeps it:
/// some would take it for a part of a name, and so be another place than that of the same URL without it.
/// Every [`Registry`] asks it of its URLs; this is for whoever looks at a URL before, or has one of a fence.
///
/// `of` is what the URL is of, for the message: `"store"`.
///
/// # Errors
/// [`Fault::Invalid`]: it begins or ends with a blank, a line break or another control character.
pub fn refuse_blank_ends(url: &str, of: &str) -> Result<(), StoreError> {
    let is_blank = |c: char| c.is_whitespace() || c.is_control();
    if !url.starts_with(is_blank) && !url.ends_with(is_blank) {
        return Ok(());
    }
    let message = format!(
        "the {of}'s URL begins or ends with a blank or a line break; leave it out (in a name it is written as %20)"
    );
    Err(StoreError::not_applied(Fault::Invalid, message))
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
