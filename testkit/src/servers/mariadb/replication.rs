//! A replica of a server: how it follows, catches up and is promoted.

use std::time::Duration;

use mysql_async::Row;
use mysql_async::prelude::{ColumnIndex, FromValue, Queryable as _};

use super::family::SqlFamily;
use super::server::{Mariadb, START_TIMEOUT};
use crate::error::Error;
use crate::eventually::poll_until;
use crate::ports::free_port;

impl Mariadb {
    /// Starts a server that can have [replicas](Self::replica), with these further settings.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn primary(settings: &[&str]) -> Result<Mariadb, Error> {
        Self::with_settings(&[PRIMARY, settings].concat()).await
    }

    /// The same that confirms what a [replica](Self::semi_synchronous_replica) has.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn semi_synchronous_primary() -> Result<Mariadb, Error> {
        let settings: &[&str] = match SqlFamily::installed()? {
            SqlFamily::Mariadb => &[
                "rpl-semi-sync-master-enabled=ON",
                "rpl-semi-sync-master-timeout=86400000",
                "rpl-semi-sync-master-wait-point=AFTER_SYNC",
            ],
            SqlFamily::Mysql => &[
                "plugin-load-add=semisync_source.so",
                "rpl-semi-sync-source-enabled=ON",
                "rpl-semi-sync-source-timeout=86400000",
                "rpl-semi-sync-source-wait-point=AFTER_SYNC",
            ],
        };
        Self::primary(settings).await
    }

    /// A [replica](Self::replica) that its primary waits for.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn semi_synchronous_replica(&self) -> Result<Mariadb, Error> {
        let settings: &[&str] = match self.family() {
            SqlFamily::Mariadb => &["rpl-semi-sync-slave-enabled=ON"],
            SqlFamily::Mysql => &[
                "plugin-load-add=semisync_replica.so",
                "rpl-semi-sync-replica-enabled=ON",
            ],
        };
        self.replica(settings).await
    }

    /// A replica of this [primary](Self::primary), which follows it from its first write on, and is
    /// `read_only`. It is asynchronous, unless both servers' settings say otherwise.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn replica(&self, settings: &[&str]) -> Result<Mariadb, Error> {
        let own: &[&str] = match self.family() {
            SqlFamily::Mariadb => &["log-slave-updates=ON"],
            SqlFamily::Mysql => &[],
        };
        let replica = Self::with_settings(&[REPLICA, own, settings].concat()).await?;
        let port = self.port();
        let follow = match self.family() {
            SqlFamily::Mariadb => format!(
                "SET GLOBAL read_only = ON; CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, \
                 MASTER_USER = 'root', MASTER_SSL = 0, MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1; START SLAVE"
            ),
            SqlFamily::Mysql => format!(
                "SET GLOBAL read_only = ON; CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, \
                 SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1, \
                 SOURCE_SSL = 0, GET_SOURCE_PUBLIC_KEY = 1; START REPLICA"
            ),
        };
        replica.execute(&follow).await?;
        // Of a primary that has written nothing there is nothing to catch up with: nobody would wait until it
        // is followed.
        self.execute("CREATE DATABASE IF NOT EXISTS testkit_followed")
            .await?;
        replica.catch_up(self).await?;
        Ok(replica)
    }

    /// Starts a MySQL that is a group of one, and its primary, with these further settings.
    ///
    /// # Errors
    /// As [`start`](Self::start); MariaDB has no such groups.
    pub async fn group_of_one(settings: &[&str]) -> Result<Mariadb, Error> {
        let address = format!("group-replication-local-address=127.0.0.1:{}", free_port());
        let server = Self::primary(&[GROUP, &[&address], settings].concat()).await?;
        let begin = "SET GLOBAL group_replication_bootstrap_group = ON; START GROUP_REPLICATION; \
                     SET GLOBAL group_replication_bootstrap_group = OFF";
        server.execute(begin).await?;
        let what = format!("a group of MySQL's on {}", server.address());
        poll_until(START_TIMEOUT, &what, || server.is_online()).await?;
        Ok(server)
    }

    async fn is_online(&self) -> Result<(), Error> {
        let question = "SELECT MEMBER_STATE FROM performance_schema.replication_group_members";
        match self.told::<String, _>(question, 0).await?.as_deref() {
            Some("ONLINE") => Ok(()),
            other => Err(Error::Query {
                doing: "asking for the state of a member".to_owned(),
                source: format!("it is {other:?}").into(),
            }),
        }
    }

    /// Waits until this replica has all that its primary has written.
    ///
    /// # Errors
    /// If it does not come so far, or one of them does not answer.
    pub async fn catch_up(&self, primary: &Mariadb) -> Result<(), Error> {
        let question = match self.family() {
            SqlFamily::Mariadb => "SELECT @@GLOBAL.gtid_binlog_pos",
            SqlFamily::Mysql => "SELECT @@GLOBAL.gtid_executed",
        };
        let written: Option<String> = primary.told(question, 0).await?;
        self.applied(&written.unwrap_or_default()).await
    }

    /// Ends that a replica follows: it keeps what it has.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn stop_following(&self) -> Result<(), Error> {
        self.execute(match self.family() {
            SqlFamily::Mariadb => "STOP SLAVE",
            SqlFamily::Mysql => "STOP REPLICA",
        })
        .await
    }

    /// Makes a replica the server that takes writes, once it has applied all that it has received.
    ///
    /// # Errors
    /// As [`catch_up`](Self::catch_up).
    pub async fn promote(&self) -> Result<(), Error> {
        let [hear_nothing, received, lead] = match self.family() {
            SqlFamily::Mariadb => [
                "STOP SLAVE IO_THREAD",
                "SHOW SLAVE STATUS",
                "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = OFF",
            ],
            SqlFamily::Mysql => [
                "STOP REPLICA IO_THREAD",
                "SELECT RECEIVED_TRANSACTION_SET FROM performance_schema.replication_connection_status",
                "STOP REPLICA; RESET REPLICA ALL; SET GLOBAL read_only = OFF",
            ],
        };
        self.execute(hear_nothing).await?;
        let received: Option<String> = match self.family() {
            SqlFamily::Mariadb => self.told(received, "Gtid_IO_Pos").await?,
            SqlFamily::Mysql => self.told(received, 0).await?,
        };
        self.applied(&received.unwrap_or_default()).await?;
        self.execute(lead).await
    }

    /// Waits until this replica has applied what comes before a position.
    async fn applied(&self, position: &str) -> Result<(), Error> {
        let wait = match self.family() {
            SqlFamily::Mariadb => "MASTER_GTID_WAIT",
            SqlFamily::Mysql => "WAIT_FOR_EXECUTED_GTID_SET",
        };
        let wait = format!("SELECT {wait}('{position}', {CATCH_UP_S_MAX})");
        match self.told::<i64, _>(&wait, 0).await? {
            Some(0) => Ok(()),
            _ => Err(Error::TimedOut {
                what: format!("replication to MariaDB on {}", self.address()),
                after: Duration::from_secs(CATCH_UP_S_MAX),
                last: format!("{position} is not applied"),
            }),
        }
    }

    /// One column of the one row that answers a question.
    async fn told<T, I>(&self, question: &str, column: I) -> Result<Option<T>, Error>
    where
        T: FromValue,
        I: ColumnIndex,
    {
        let mut client = Self::client(&self.uri_of("mysql")).await?;
        let row: Option<Row> = client.query_first(question).await.map_err(|error| Error::Query {
            doing: "a question to MariaDB".to_owned(),
            source: Box::new(error),
        })?;
        Ok(row.and_then(|row| row.get_opt(column)).and_then(Result::ok))
    }
}

const PRIMARY: &[&str] = &["log-bin=binlog", "server-id=1", "sync-binlog=1"];
/// It writes a binary log of its own, as it may be promoted.
const REPLICA: &[&str] = &["log-bin=binlog", "server-id=2", "sync-binlog=1"];
const GROUP: &[&str] = &[
    "plugin-load-add=group_replication.so",
    "loose-group-replication-group-name=6b8e2c58-1a3f-4f5d-9a53-0c7d6f1e2a10",
    "loose-group-replication-start-on-boot=OFF",
    // Members want to be able to encrypt, also where they need not.
    "tls-version=TLSv1.2,TLSv1.3",
];
/// Long, as a busy machine may need it.
const CATCH_UP_S_MAX: u64 = 60;
