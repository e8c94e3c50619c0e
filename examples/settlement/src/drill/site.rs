//! What a drill runs on: a scratch folder, and for MongoDB a replica set of its own.

use crate::Outcome;
use crate::arguments::LedgerKind;
use std::path::PathBuf;
use tempfile::TempDir;

/// All of it is gone when this is dropped.
pub struct Site {
    folder: TempDir,
    #[cfg(feature = "mongodb")]
    servers: Option<tenure_testkit::ReplicaSet>,
}

impl Site {
    /// Prepares what the ledger needs.
    pub async fn prepare(ledger: LedgerKind) -> Outcome<Self> {
        let folder = tempfile::Builder::new().prefix("settlement-").tempdir()?;
        #[cfg(feature = "mongodb")]
        let servers = match ledger {
            LedgerKind::Sqlite => None,
            LedgerKind::Mongodb => {
                Some(tenure_testkit::ReplicaSet::start(tenure_testkit::Size::Three).await?)
            }
        };
        #[cfg(not(feature = "mongodb"))]
        if ledger == LedgerKind::Mongodb {
            return Err(crate::ledger::WITHOUT_MONGODB.into());
        }
        Ok(Self {
            folder,
            #[cfg(feature = "mongodb")]
            servers,
        })
    }

    /// Where the payments go.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("payments.csv")
    }

    /// The URL of the leases.
    pub fn store(&self) -> String {
        self.database()
            .unwrap_or_else(|| format!("sqlite:{}", self.folder.path().join("leases.db").display()))
    }

    /// The place of the ledger.
    pub fn ledger(&self) -> String {
        self.database()
            .unwrap_or_else(|| self.folder.path().join("ledger.db").display().to_string())
    }

    #[cfg(feature = "mongodb")]
    fn database(&self) -> Option<String> {
        let uri = self.servers.as_ref()?.uri();
        Some(uri.replacen("/?", "/settlement?", 1))
    }

    #[cfg(not(feature = "mongodb"))]
    fn database(&self) -> Option<String> {
        None
    }

    /// Has the primary of the replica set step down, and answers which server that was.
    #[cfg(feature = "mongodb")]
    pub async fn step_down(&mut self) -> Outcome<String> {
        let servers = self.servers.as_mut().ok_or(NO_PRIMARY)?;
        let before = servers.step_down().await?;
        let after = servers.primary().await?;
        if after == before {
            return Err(
                "the primary that was to step down was elected again at once; run the drill again".into(),
            );
        }
        Ok(servers.address(before))
    }

    /// There is no replica set.
    #[cfg(not(feature = "mongodb"))]
    pub async fn step_down(&mut self) -> Outcome<String> {
        Err(NO_PRIMARY.into())
    }
}

/// Why SQLite has no such fault.
pub const NO_PRIMARY: &str = "the fault stepdown needs --ledger mongodb: SQLite has no primary";
