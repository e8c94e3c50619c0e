//! Connecting: what server this is, and whether the tables are those of this version.

use crate::SYSTEM;
use crate::dial::Dial;
use crate::row::{number, text};
use crate::schema::{ALL_ROWS, RECORD, TAKES_NO_WRITES, VERSION};
use crate::server::Server;
use crate::site::Site;
use crate::store::MysqlStore;
use crate::url::StoreUrl;
use mysql_async::Row;
use std::future::Future;
use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tenure_remote::{Deed, Remote};

/// How long connecting may take in all.
pub(crate) const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// How long one connection may take to be made: nearly all of a request, as there is one address.
const DIAL_TIME_MAX: Duration = Duration::from_secs(4);

/// How long one request may take: the store's own bound, beside the engine's. Longer than a claim waits.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);

impl MysqlStore {
    /// Opens the store of a URL: `mysql://user:password@host:port/database`, or the same with `mariadb://`.
    ///
    /// It knows the options `ssl-mode=`, `ssl-ca=`, `ssl-cert=` and `ssl-key=`; see the README. The tables
    /// must have been [set up](Self::init).
    ///
    /// # Errors
    /// [`StoreError`], not applied, after 5 s at most, and without the password: [`Fault::Invalid`] for a URL
    /// that cannot be read, or whose host has addresses of several stores, [`Fault::Unreachable`] or
    /// [`Fault::TimedOut`] if no server answers, [`Fault::Unauthenticated`], [`Fault::Forbidden`],
    /// [`Fault::ReadOnly`] for a server that takes no writes, [`Fault::Unsupported`] for one that is too old
    /// or shares its writes with others, and for tables that were not set up or are another program's.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let url = StoreUrl::parse(url)?;
        Ok(Self(Remote::open(SYSTEM, bounded(url.place(), open(url))).await?))
    }
}

/// Waits so long for the connection and no longer.
pub(crate) async fn bounded<T>(
    place: String,
    connecting: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let late = |_| {
        let message =
            format!("no MySQL answered at {place} within {CONNECT_TIME_MAX:?}; check host, port and network");
        StoreError::not_applied(Fault::Unreachable, message)
    };
    tokio::time::timeout(CONNECT_TIME_MAX, connecting)
        .await
        .map_err(late)?
}

/// A site that nothing is known of yet.
pub(crate) fn site(url: StoreUrl) -> Site {
    Site::new(Dial::new(url, DIAL_TIME_MAX), REQUEST_TIME_MAX)
}

/// A site whose server and tables are fit for leases.
pub(crate) async fn open(url: StoreUrl) -> Result<Site, StoreError> {
    let mut site = site(url);
    let server = site.recognise().await?;
    site.check_schema(&server).await?;
    site.check_engine().await?;
    site.dial.refuse_division().await?;
    site.prove_watch().await?;
    Ok(site)
}

impl Site {
    /// Makes sure that the tables are there, and of this version, and that what reads is answered by whom the
    /// settings are of.
    async fn check_schema(&self, server: &Server) -> Result<(), StoreError> {
        // With the columns of a record, of none: another program's table is found out as well.
        let asked = format!(
            "SELECT setup.version, {TAKES_NO_WRITES}, CAST(CONCAT_WS(' ', @@hostname, @@port, @@server_id) AS BINARY), {RECORD} \
             FROM tenure_setup setup JOIN (SELECT 0 AS moment) clock LEFT JOIN tenure_leases \
             lease ON FALSE WHERE setup.one = 1"
        );
        let version = match self.ask(Deed::Read, "the set-up", &asked).await {
            Ok(rows) => {
                if let Some(row) = rows.first() {
                    self.refuse_splitting(server, row)?;
                }
                rows.first().and_then(|row| number(row, 0))
            }
            Err(error) if error.fault == Fault::Unsupported => {
                return Err(self.unfit(
                    Fault::Unsupported,
                    "the database has not been set up yet, for leases or for a fence; run `tenure store init --store URL` with this very \
                     database once, as its owner",
                ));
            }
            Err(error) => return Err(error),
        };
        if version != Some(i64::from(VERSION)) {
            let found = version.map_or_else(|| "no number".to_owned(), |version| version.to_string());
            return Err(self.unfit(
                Fault::Unsupported,
                &format!(
                    "the tables are of set-up {found}, this is Tenure for {VERSION}; use the same version everywhere, then run \
                     `tenure store init`"
                ),
            ));
        }
        Ok(())
    }

    /// A proxy may send what reads to a replica, which may lag: looks would be refused one by one, and what
    /// was asked of the settings would be true of one of the two.
    fn refuse_splitting(&self, server: &Server, row: &Row) -> Result<(), StoreError> {
        if number(row, 1) == Some(0) && text(row, 2) == Some(server.name().as_str()) {
            return Ok(());
        }
        let why = format!(
            "two servers answer here (\"{}\", which takes writes, and \"{}\"), as where a proxy sends what reads to a replica, which may \
             lag; name the primary in the URL, or have the proxy send it all statements of this user (MySQL Router: the port that \
             reads and writes)",
            server.name(),
            text(row, 2).unwrap_or_default()
        );
        Err(self.unfit(Fault::ReadOnly, &why))
    }

    /// Makes sure that what is decided is decided in transactions. The set-up makes such tables and no
    /// others; a restore from elsewhere, or an owner, may have made others of them since.
    async fn check_engine(&self) -> Result<(), StoreError> {
        let asked = format!(
            "SELECT CAST(TABLE_NAME AS BINARY), CAST(COALESCE(ENGINE, 'none, as of a view') AS BINARY) FROM information_schema.TABLES WHERE TABLE_SCHEMA = \
             DATABASE() AND TABLE_NAME IN ('tenure_leases', 'tenure_fences') AND COALESCE(ENGINE, '') <> 'InnoDB' {ALL_ROWS}"
        );
        let others = self.ask(Deed::Read, "its tables", &asked).await?;
        let Some((table, engine)) = others
            .first()
            .and_then(|row| Some((text(row, 0)?, text(row, 1)?)))
        else {
            return Ok(());
        };
        let why = format!(
            "the engine of {table} is {engine}, in which nothing is locked until a transaction ends: a lease could be taken \
             twice, and a fence be passed; ALTER TABLE {table} ENGINE = InnoDB"
        );
        Err(self.unfit(Fault::Unsupported, &why))
    }
}
