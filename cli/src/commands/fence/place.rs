//! Where marks are, and what is opened there.

use super::{leases, refusal};
use crate::arguments::{FencePlaceArguments, variable};
use crate::exit::{Code, Failure};
use crate::place::{Credentials, Place, refuse_if_empty};
use std::path::Path;
use tenure::contract::Fault;
use tenure::tooling::refuse_blank_ends;
use tenure::{Fence, FenceError, FileSystemTrust, Leases, Watermark};

/// Whether a place without marks is made ready for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Making {
    /// Where they are missing.
    WhereMissing,
    /// Never. What is refused is counted all the same; but beside a service that has a watermark open it is
    /// only looked at.
    Never,
    /// Never, and nothing is decided: whoever looks changes nothing, and keeps nobody out meanwhile.
    OnlyLooks,
}

/// Where the marks are.
pub(crate) enum FencePlace {
    /// Where somebody said.
    Given(String),
    /// In the store of the leases.
    BesideLeases(Place),
}

/// A fence that was opened.
pub(crate) type Opened = Box<dyn Fence>;

/// Notes what was refused: this process ends now.
pub(crate) async fn close(fence: Opened) {
    fence.note_refusals().await;
}

impl FencePlace {
    /// The place that was given, or the store of the leases.
    ///
    /// # Errors
    /// As [`Place::find`]; and none was given, where the variable is empty.
    pub(crate) fn find(given: &FencePlaceArguments, store: Option<&str>) -> Result<Self, Failure> {
        if let Some(url) = &given.fence {
            refuse_blank_ends(url, "fence")?;
            return Ok(Self::Given(url.clone()));
        }
        // Marks beside the leases may protect nothing.
        refuse_if_empty("TENURE_FENCE", "the marks beside the leases")?;
        Place::find(store).map(Self::BesideLeases)
    }

    /// Where a command that is run finds them by itself: where its environment says, or in the store of its
    /// leases.
    pub(crate) fn of_work(leases: Place) -> Self {
        let given = variable("TENURE_FENCE").and_then(|url| url.into_string().ok());
        given.map_or(Self::BesideLeases(leases), Self::Given)
    }

    /// Whether other hosts may have the same marks.
    pub(crate) fn is_on_a_server(&self) -> bool {
        !["sqlite:", "file:"]
            .iter()
            .any(|file| self.url().starts_with(file))
    }

    /// Whether the marks are with the data, where a process that stays is in others' way: the last who closes
    /// an SQLite file moves its log into it, and a database with sessions is neither copied nor renamed.
    pub(crate) fn is_beside_data(&self) -> bool {
        matches!(self, Self::Given(_))
    }

    /// Whether they are in a file.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::Given(url) if url.starts_with("file:") || url.starts_with("sqlite:"))
    }

    /// Opens the fence of [these leases](Self::leases); `None` where there are no marks and none are to be
    /// made.
    ///
    /// # Errors
    /// What the fence says. No message holds a password.
    pub(crate) async fn open(&self, leases: Leases, making: Making) -> Result<Option<Opened>, Failure> {
        if let (Self::BesideLeases(place), Making::WhereMissing) = (self, making) {
            // Makes the file of the leases where there is none, and refuses one that is another program's.
            drop(place.open().await?);
        }
        let url = self.url();
        if let Some(path) = url.strip_prefix("file:") {
            return watermark(path, making);
        }
        Ok(Some(match url.split(':').next() {
            #[cfg(feature = "sqlite")]
            Some("sqlite") => match sqlite(&url, leases, making)? {
                Some(fence) => Box::new(fence),
                None => return Ok(None),
            },
            #[cfg(feature = "mongodb")]
            Some("mongodb" | "mongodb+srv") => {
                Box::new(tenure::mongodb::MongoFence::connect(&url, leases).await?)
            }
            #[cfg(feature = "redis")]
            Some(
                "redis" | "rediss" | "redis+sentinel" | "rediss+sentinel" | "redis+quorum" | "rediss+quorum",
            ) => Box::new(tenure::redis::RedisFence::connect(&url, leases).await?),
            #[cfg(feature = "nats")]
            Some("nats" | "nats+tls") => Box::new(tenure::nats::NatsFence::connect(&url, leases).await?),
            #[cfg(feature = "postgres")]
            Some("postgres" | "postgresql") => {
                Box::new(tenure::postgres::PostgresFence::connect(&url, leases).await?)
            }
            #[cfg(feature = "etcd")]
            Some("etcd" | "etcds") => Box::new(tenure::etcd::EtcdFence::connect(&url, leases).await?),
            #[cfg(feature = "mysql")]
            Some("mysql" | "mariadb") => Box::new(tenure::mysql::MysqlFence::connect(&url, leases).await?),
            _ => return Err(unknown()),
        }))
    }

    /// Where the leases are whose terms are meant: here if the marks are in their store. Nobody has said so
    /// of a place that was given without a store: what is known of leases there may be from before they went
    /// elsewhere. Nor is it so of one member of a quorum, which may lag behind.
    pub(crate) fn leases(&self, store: Option<&str>) -> Leases {
        // A command that `tenure run` has started is told its store without the password.
        let named = |url: &str| Place::Given(url.to_owned()).for_command(Credentials::Withheld);
        match self {
            Self::Given(url) if leases::named(store).is_none_or(|store| named(store) != named(url)) => {
                Leases::Elsewhere
            }
            Self::Given(_) | Self::BesideLeases(_) => Leases::Here,
        }
    }

    pub(super) fn url(&self) -> String {
        match self {
            Self::Given(url) => url.clone(),
            // Not passed on to anybody: the password stays in it.
            Self::BesideLeases(place) => place.for_command(Credentials::Shared),
        }
    }
}

/// Behind the path of a watermark on a file system that a program serves, as behind that of an SQLite file.
const TRUSTED: &str = "?filesystem=trusted";

fn watermark(location: &str, making: Making) -> Result<Option<Opened>, Failure> {
    let (path, trust) = match location.strip_suffix(TRUSTED) {
        Some(path) => (Path::new(path), FileSystemTrust::Trusted),
        None => (Path::new(location), FileSystemTrust::LocalOnly),
    };
    let look = || {
        let view = Watermark::look(path).map_err(refusal)?;
        Ok(view.map(|view| Box::new(view) as Opened))
    };
    let opened = match making {
        Making::OnlyLooks if !path.as_os_str().is_empty() => return look(),
        Making::Never if is_missing(path) => return Ok(None),
        // What was left out is no place without marks.
        Making::Never | Making::OnlyLooks => Watermark::try_open_on(path, trust),
        // Another command may have it for a moment.
        Making::WhereMissing => Watermark::open_on(path, trust),
    };
    match opened {
        Ok(fence) => Ok(Some(Box::new(fence))),
        // A service has it open: whoever only looks need not wait for its end.
        Err(FenceError::Store(error)) if making == Making::Never && error.fault == Fault::Busy => look(),
        Err(error) => Err(refusal(error)),
    }
}

/// Whether there is surely nothing. A place that may not be looked into is not one without marks: opening it
/// says why.
fn is_missing(path: &Path) -> bool {
    !path.as_os_str().is_empty() && matches!(path.try_exists(), Ok(false))
}

#[cfg(feature = "sqlite")]
pub(super) fn sqlite(
    url: &str,
    leases: Leases,
    making: Making,
) -> Result<Option<tenure::sqlite::SqliteFence>, tenure::StoreError> {
    use tenure::sqlite::{SqliteFence, SqliteOptions};
    let options = SqliteOptions::from_url(url)?;
    match making {
        Making::WhereMissing => SqliteFence::create(&options, leases).map(Some),
        Making::Never | Making::OnlyLooks if is_missing(options.path()) => Ok(None),
        Making::Never | Making::OnlyLooks => SqliteFence::find(&options, leases),
    }
}

fn unknown() -> Failure {
    Failure::new(
        Code::Configuration,
        "the fence's URL has no scheme that is known here; write sqlite:PATH, postgres://HOST/DATABASE, \
         mysql://HOST/DATABASE, mongodb://HOST/DATABASE, redis://HOST, etcd://HOST, nats://HOST/BUCKET or file:PATH",
    )
}

#[cfg(test)]
mod tests {
    use super::FencePlace;
    use tenure::Leases;

    /// A command that `tenure run` has started is told its store without the password.
    #[test]
    fn marks_are_beside_the_leases_of_the_same_url_whatever_is_said_of_the_password() {
        let fence = FencePlace::Given("postgres://app:secret@db/bank".to_owned());
        for store in ["postgres://app:secret@db/bank", "postgres://app@db/bank"] {
            assert_eq!(fence.leases(Some(store)), Leases::Here, "{store}");
        }
        for store in [Some("postgres://app:secret@db/other"), Some(""), None] {
            assert_eq!(fence.leases(store), Leases::Elsewhere, "{store:?}");
        }
    }
}
