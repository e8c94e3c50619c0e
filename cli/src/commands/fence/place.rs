//! Where marks are, and what is opened there.

use super::refusal;
use crate::arguments::{FencePlaceArguments, TableArguments};
use crate::exit::{Code, Failure};
use crate::place::{Credentials, Place};
use std::path::PathBuf;
use tenure::{Fence, ResourceName, Watermark};

/// Whether a place without marks is made ready for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Making {
    /// Where they are missing.
    WhereMissing,
    /// Never: whoever looks changes nothing.
    Never,
}

/// Where the marks are.
pub(crate) enum FencePlace {
    /// Where somebody said.
    Given(String),
    /// In the store of the leases.
    BesideLeases(Place),
}

/// A fence that was opened.
pub(crate) enum Opened {
    #[cfg(feature = "sqlite")]
    Sqlite(tenure::sqlite::SqliteFence),
    #[cfg(feature = "mongodb")]
    Mongo(tenure::mongodb::MongoFence),
    #[cfg(feature = "redis")]
    Redis(tenure::redis::RedisFence),
    #[cfg(feature = "nats")]
    Nats(tenure::nats::NatsFence),
    #[cfg(feature = "postgres")]
    Postgres(tenure::postgres::PostgresFence),
    #[cfg(feature = "etcd")]
    Etcd(tenure::etcd::EtcdFence),
    #[cfg(feature = "mysql")]
    Mysql(tenure::mysql::MysqlFence),
    Watermark(Watermark),
}

impl FencePlace {
    /// The place that was given, or the store of the leases.
    ///
    /// # Errors
    /// As [`Place::find`].
    pub(crate) fn find(given: &FencePlaceArguments, store: Option<&str>) -> Result<Self, Failure> {
        match given.fence.as_deref().filter(|url| !url.is_empty()) {
            Some(url) => Ok(Self::Given(url.to_owned())),
            None => Place::find(store).map(Self::BesideLeases),
        }
    }

    /// Opens the fence; `None` where there are no marks and none are to be made.
    ///
    /// # Errors
    /// What the fence says. No message holds a password.
    pub(crate) async fn open(&self, making: Making) -> Result<Option<Opened>, Failure> {
        if let (Self::BesideLeases(place), Making::WhereMissing) = (self, making) {
            // Makes the file of the leases where there is none, and refuses one that is another program's.
            drop(place.open().await?);
        }
        let url = self.url();
        if let Some(path) = url.strip_prefix("file:") {
            return watermark(path.into(), making);
        }
        match url.split(':').next() {
            #[cfg(feature = "sqlite")]
            Some("sqlite") => sqlite(&url, making),
            #[cfg(feature = "mongodb")]
            Some("mongodb" | "mongodb+srv") => {
                let fence = tenure::mongodb::MongoFence::connect(&url).await?;
                Ok(Some(Opened::Mongo(fence)))
            }
            #[cfg(feature = "redis")]
            Some(
                "redis" | "rediss" | "redis+sentinel" | "rediss+sentinel" | "redis+quorum" | "rediss+quorum",
            ) => {
                let fence = tenure::redis::RedisFence::connect(&url).await?;
                Ok(Some(Opened::Redis(fence)))
            }
            #[cfg(feature = "nats")]
            Some("nats" | "nats+tls") => {
                let fence = tenure::nats::NatsFence::connect(&url).await?;
                Ok(Some(Opened::Nats(fence)))
            }
            #[cfg(feature = "postgres")]
            Some("postgres" | "postgresql") => Ok(Some(Opened::Postgres(postgres(&url).await?))),
            #[cfg(feature = "etcd")]
            Some("etcd" | "etcds") => Ok(Some(Opened::Etcd(tenure::etcd::EtcdFence::connect(&url).await?))),
            #[cfg(feature = "mysql")]
            Some("mysql" | "mariadb") => Ok(Some(Opened::Mysql(mysql(&url).await?))),
            _ => Err(unknown()),
        }
    }

    fn url(&self) -> String {
        match self {
            Self::Given(url) => url.clone(),
            // Not passed on to anybody: the password stays in it.
            Self::BesideLeases(place) => place.for_command(Credentials::Shared),
        }
    }

    /// Makes a table refuse stale writers; answers what it takes from now on.
    ///
    /// # Errors
    /// What the fence says.
    pub(crate) async fn guard(
        &self,
        resource: &ResourceName,
        table: &TableArguments,
    ) -> Result<Admits, Failure> {
        let url = self.table_url()?;
        match url.split(':').next() {
            #[cfg(feature = "sqlite")]
            Some("sqlite") => {
                let fenced = fenced_table(resource, table);
                match sqlite(&url, Making::WhereMissing)? {
                    Some(Opened::Sqlite(fence)) => fence.protect(&fenced).map_err(refusal)?,
                    _ => return Err(unknown()),
                }
                Ok(Admits::RowsWithTheToken)
            }
            #[cfg(feature = "postgres")]
            Some("postgres" | "postgresql") => {
                let fence = postgres(&url).await?;
                fence.guard(&table.table, resource).await.map_err(refusal)?;
                Ok(Admits::TransactionsThatEntered)
            }
            #[cfg(feature = "mysql")]
            Some("mysql" | "mariadb") => {
                let fence = mysql(&url).await?;
                fence.guard(&table.table, resource).await.map_err(refusal)?;
                Ok(Admits::SessionsThatShowTheTerm)
            }
            _ => Err(unguardable(resource.as_str(), table)),
        }
    }

    /// Removes what `guard` has made.
    ///
    /// # Errors
    /// What the fence says.
    pub(crate) async fn unguard(&self, table: &TableArguments) -> Result<(), Failure> {
        let url = self.table_url()?;
        match url.split(':').next() {
            #[cfg(feature = "sqlite")]
            Some("sqlite") => {
                let any = ResourceName::new("any").expect("this is a name");
                match sqlite(&url, Making::Never)? {
                    Some(Opened::Sqlite(fence)) => {
                        fence.unprotect(&fenced_table(&any, table)).map_err(refusal)
                    }
                    _ => Ok(()),
                }
            }
            #[cfg(feature = "postgres")]
            Some("postgres" | "postgresql") => {
                let fence = postgres(&url).await?;
                fence.unguard(&table.table).await.map_err(refusal)
            }
            #[cfg(feature = "mysql")]
            Some("mysql" | "mariadb") => {
                let fence = mysql(&url).await?;
                fence.unguard(&table.table).await.map_err(refusal)
            }
            _ => Err(unguardable("any", table)),
        }
    }

    /// The leases' own file has no table of the user's, so there a slip is more likely than a wish. A database may
    /// well hold both.
    fn table_url(&self) -> Result<String, Failure> {
        let url = self.url();
        let databases = ["postgres:", "postgresql:", "mysql:", "mariadb:"];
        let database = databases.iter().any(|scheme| url.starts_with(scheme));
        match self {
            Self::Given(_) if url.starts_with("sqlite:") => Ok(url),
            Self::Given(_) | Self::BesideLeases(_) if database => Ok(url),
            Self::Given(_) | Self::BesideLeases(_) => Err(Failure::new(
                Code::Usage,
                "only a table of an SQLite file, of PostgreSQL or of MySQL can be guarded; name it: --fence sqlite:PATH, --fence \
                 postgres://HOST/DATABASE or --fence mysql://HOST/DATABASE",
            )),
        }
    }
}

/// What a guarded table takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admits {
    /// Rows that carry the token that has claimed.
    #[cfg(feature = "sqlite")]
    RowsWithTheToken,
    /// Whatever is written in a transaction that has entered.
    #[cfg(feature = "postgres")]
    TransactionsThatEntered,
    /// Whatever is written in a session that shows the term.
    #[cfg(feature = "mysql")]
    SessionsThatShowTheTerm,
}

fn unguardable(resource: &str, table: &TableArguments) -> Failure {
    let message = format!(
        "resource \"{resource}\": the store of table \"{}\" is not compiled in",
        table.table
    );
    Failure::new(Code::Configuration, message)
}

#[cfg(feature = "postgres")]
async fn postgres(url: &str) -> Result<tenure::postgres::PostgresFence, Failure> {
    tenure::postgres::PostgresFence::connect(url)
        .await
        .map_err(refusal)
}

#[cfg(feature = "mysql")]
async fn mysql(url: &str) -> Result<tenure::mysql::MysqlFence, Failure> {
    tenure::mysql::MysqlFence::connect(url).await.map_err(refusal)
}

impl Opened {
    pub(crate) fn fence(&self) -> &dyn Fence {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(fence) => fence,
            #[cfg(feature = "mongodb")]
            Self::Mongo(fence) => fence,
            #[cfg(feature = "redis")]
            Self::Redis(fence) => fence,
            #[cfg(feature = "nats")]
            Self::Nats(fence) => fence,
            #[cfg(feature = "postgres")]
            Self::Postgres(fence) => fence,
            #[cfg(feature = "etcd")]
            Self::Etcd(fence) => fence,
            #[cfg(feature = "mysql")]
            Self::Mysql(fence) => fence,
            Self::Watermark(fence) => fence,
        }
    }

    /// Notes what was refused: this process ends now.
    pub(crate) async fn close(self) {
        #[cfg(feature = "mongodb")]
        if let Self::Mongo(fence) = &self {
            fence.note_refusals().await;
        }
        #[cfg(feature = "redis")]
        if let Self::Redis(fence) = &self {
            fence.note_refusals().await;
        }
        #[cfg(feature = "nats")]
        if let Self::Nats(fence) = &self {
            fence.note_refusals().await;
        }
        #[cfg(feature = "postgres")]
        if let Self::Postgres(fence) = &self {
            fence.note_refusals().await;
        }
        #[cfg(feature = "etcd")]
        if let Self::Etcd(fence) = &self {
            fence.note_refusals().await;
        }
        #[cfg(feature = "mysql")]
        if let Self::Mysql(fence) = &self {
            fence.note_refusals().await;
        }
    }
}

fn watermark(path: PathBuf, making: Making) -> Result<Option<Opened>, Failure> {
    if making == Making::Never && !path.exists() {
        return Ok(None);
    }
    let fence = Watermark::open(path).map_err(refusal)?;
    Ok(Some(Opened::Watermark(fence)))
}

#[cfg(feature = "sqlite")]
fn sqlite(url: &str, making: Making) -> Result<Option<Opened>, Failure> {
    use tenure::sqlite::SqliteFence;
    let path = SqliteFence::path_of(url).map_err(refusal)?;
    let fence = match making {
        Making::WhereMissing => SqliteFence::create(path).map(Some),
        Making::Never if !path.exists() => Ok(None),
        Making::Never => SqliteFence::find(path),
    };
    Ok(fence.map_err(refusal)?.map(Opened::Sqlite))
}

#[cfg(feature = "sqlite")]
fn fenced_table(resource: &ResourceName, table: &TableArguments) -> tenure::sqlite::FencedTable {
    tenure::sqlite::FencedTable::new(&table.table, resource).column(&table.column)
}

fn unknown() -> Failure {
    Failure::new(
        Code::Configuration,
        "the fence's URL has no scheme that is known here; write sqlite:PATH, postgres://HOST/DATABASE, \
         mysql://HOST/DATABASE, mongodb://HOST/DATABASE, redis://HOST, etcd://HOST, nats://HOST/BUCKET or file:PATH",
    )
}
