//! A MariaDB that is a cluster of Galera's.

use mysql_async::prelude::Queryable as _;

use super::super::locate::galera_library;
use super::server::{Mariadb, START_TIMEOUT};
use crate::error::Error;
use crate::eventually::poll_until;
use crate::ports::free_port;

impl Mariadb {
    /// Starts a MariaDB that is the one member of a Galera cluster, and takes writes. It is not to be
    /// restarted: what was killed does not know whether it was the last member.
    ///
    /// # Errors
    /// As [`start`](Self::start), and where Galera is not installed; MySQL has none.
    pub async fn galera_of_one() -> Result<Mariadb, Error> {
        let provider = format!("wsrep-provider={}", galera_library()?.display());
        let port = free_port();
        let node = format!("wsrep-node-address=127.0.0.1:{port}");
        // By itself it would listen on every address.
        let listening =
            format!("wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{port};gcache.size=4M");
        let server = Self::with_settings(&[GALERA, &[&provider, &node, &listening]].concat()).await?;
        let what = format!("a Galera cluster on {}", server.address());
        poll_until(START_TIMEOUT, &what, || server.in_sync()).await?;
        Ok(server)
    }

    async fn in_sync(&self) -> Result<(), Error> {
        let question = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
             WHERE VARIABLE_NAME = 'wsrep_local_state_comment'";
        let failed = |source| Error::Query {
            doing: "asking for the state of Galera".to_owned(),
            source,
        };
        let mut client = Self::client(&self.uri_of("mysql")).await?;
        let state: Option<String> = client
            .query_first(question)
            .await
            .map_err(|error| failed(Box::new(error)))?;
        match state.as_deref() {
            Some("Synced") => Ok(()),
            other => Err(failed(format!("it is {other:?}").into())),
        }
    }
}

const GALERA: &[&str] = &[
    "wsrep-on=ON",
    // An address of nobody: a new cluster.
    "wsrep-cluster-address=gcomm://",
    "binlog-format=ROW",
    "innodb-autoinc-lock-mode=2",
];
