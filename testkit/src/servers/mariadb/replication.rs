//! A replica of a server: how it follows, catches up and is promoted.

use std::time::Duration;

use mysql_async::Row;
use mysql_async::prelude::{ColumnIndex, FromValue, Queryable as _};

use super::server::Mariadb;
use crate::error::Error;

impl Mariadb {
    /// Starts a server that can have [replicas](Self::replica), with these further settings.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn primary(settings: &[&str]) -> Result<Mariadb, Error> {
        Self::with_settings(&[PRIMARY, settings].concat()).await
    }

    /// A replica of this [primary](Self::primary), which follows it from its first write on, and is `read_only`. It is
    /// asynchronous, unless both servers' settings say otherwise.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn replica(&self, settings: &[&str]) -> Result<Mariadb, Error> {
        let replica = Self::with_settings(&[REPLICA, settings].concat()).await?;
        let follow = format!(
            "SET GLOBAL read_only = ON; CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'root', \
             MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1; START SLAVE",
            self.port()
        );
        replica.execute(&follow).await?;
        replica.catch_up(self).await?;
        Ok(replica)
    }

    /// Waits until this replica has all that its primary has written.
    ///
    /// # Errors
    /// If it does not come so far, or one of them does not answer.
    pub async fn catch_up(&self, primary: &Mariadb) -> Result<(), Error> {
        let written: Option<String> = primary.told("SELECT @@GLOBAL.gtid_binlog_pos", 0).await?;
        self.applied(&written.unwrap_or_default()).await
    }

    /// Makes a replica the server that takes writes, once it has applied all that it has received.
    ///
    /// # Errors
    /// As [`catch_up`](Self::catch_up).
    pub async fn promote(&self) -> Result<(), Error> {
        self.execute("STOP SLAVE IO_THREAD").await?;
        let received: Option<String> = self.told("SHOW SLAVE STATUS", "Gtid_IO_Pos").await?;
        self.applied(&received.unwrap_or_default()).await?;
        self.execute("STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = OFF")
            .await
    }

    /// Waits until this replica has applied what comes before a position.
    async fn applied(&self, position: &str) -> Result<(), Error> {
        let wait = format!("SELECT MASTER_GTID_WAIT('{position}', {CATCH_UP_S_MAX})");
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
const REPLICA: &[&str] = &[
    "log-bin=binlog",
    "server-id=2",
    "sync-binlog=1",
    "log-slave-updates=ON",
];
/// Long, as a busy machine may need it.
const CATCH_UP_S_MAX: u64 = 60;
