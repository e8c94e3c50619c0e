//! The one cluster that is asked, a primary with its standbys: each other would have leaders and marks of its own.

use crate::dial::Dial;
use crate::fault::ends_connection;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;
use tenure_core::{Fault, Finding, StoreError};
use tenure_remote::findings::{bad, good};
use tokio::time::timeout;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{Client, Connection, Error, Socket};

/// How long the hosts beside the one that is connected may take to say what they are of.
const LOOK_TIME_MAX: Duration = Duration::from_secs(1);

/// What `initdb` gave it: standbys have their primary's, through restarts and promotions.
const ASKED: &str = "SELECT system_identifier FROM pg_catalog.pg_control_system()";

const WAY_OUT: &str = "name a primary and its standbys in the PostgreSQL URL";

/// That of whoever was connected to first. A host of another cluster is none of ours, however late it comes: as one that was set up
/// anew, or an address that leads to another server since.
#[derive(Default)]
pub(crate) struct OneCluster(OnceLock<i64>);

impl OneCluster {
    /// Its number, if it is known.
    pub(crate) fn number(&self) -> Option<i64> {
        self.0.get().copied()
    }

    /// Whether a host may be of it, which is known from the first on that says so. Why not, otherwise. Who may not say it is not judged.
    pub(crate) fn check(&self, host: &str, told: Option<i64>) -> Result<(), String> {
        let Some(theirs) = told else {
            return Ok(());
        };
        let ours = *self.0.get_or_init(|| theirs);
        if ours == theirs {
            return Ok(());
        }
        Err(format!(
            "{host} is of cluster {theirs}, and whoever was connected to first is of {ours}: each would have a leader of its own; \
             {WAY_OUT}, and start this process anew if the cluster was upgraded or restored as another"
        ))
    }
}

/// Has a server say which cluster it is of, on a connection that nobody drives yet. Nothing, where the role may not ask it, or the
/// server does not know the question.
///
/// # Errors
/// The connection has ended, or it is not known whether the server would say it.
pub(crate) async fn cluster_of<T: TlsStream + Unpin>(
    client: &Client,
    connection: &mut Connection<Socket, T>,
) -> Result<Option<i64>, Error> {
    let mut asking = pin!(client.query_typed(ASKED, &[]));
    let answer = poll_fn(|context| {
        let driven = connection.poll_unpin(context);
        match (asking.as_mut().poll(context), driven) {
            // Also if the connection has ended with it: this says why.
            (refused @ Poll::Ready(Err(_)), _) => refused,
            (_, Poll::Ready(Err(ended))) => Poll::Ready(Err(ended)),
            (answer, _) => answer,
        }
    });
    match answer.await {
        // By its name: what a pooler has mixed up has none such.
        Ok(rows) => Ok(rows.first().and_then(|row| row.try_get("system_identifier").ok())),
        Err(error) if !ends_connection(&error) && keeps_it_back(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether it lacks the right, or the function (class 42), or has it for nobody (0A).
fn keeps_it_back(error: &Error) -> bool {
    let code = error.code().map_or("", |code| code.code());
    ["42", "0A"].iter().any(|class| code.starts_with(class))
}

impl Dial {
    /// What is said of each host of the URL that answers now, and is of another cluster than the one that is connected. Standbys are
    /// asked as well: they may be promoted.
    async fn strangers(&self) -> Vec<String> {
        let connected = self.latest.load(Ordering::Relaxed);
        let others = (0..self.url.hosts.len()).filter(|host| *host != connected);
        let looks = others.map(async |host| {
            let mut config = self.url.hosts[host].clone();
            config.target_session_attrs(TargetSessionAttrs::Any);
            let looked = timeout(LOOK_TIME_MAX, self.look_at(host, &config)).await;
            let told = looked.ok().and_then(Result::ok).flatten();
            self.cluster.check(&self.place_of(host), told).err()
        });
        join_all(looks).await.into_iter().flatten().collect()
    }

    /// # Errors
    /// [`Fault::Invalid`]: hosts of the URL that answer are of different clusters. Not applied.
    pub(crate) async fn refuse_strangers(&self) -> Result<(), StoreError> {
        let strangers = self.strangers().await;
        if strangers.is_empty() {
            return Ok(());
        }
        let message = format!("PostgreSQL at {}: {}", self.place, strangers.join("; "));
        Err(StoreError::not_applied(Fault::Invalid, message))
    }

    /// Nothing where the URL names one host.
    pub(crate) async fn examine_hosts(&self) -> Option<Finding> {
        if self.url.hosts.len() < 2 {
            return None;
        }
        let strangers = self.strangers().await;
        Some(match strangers.is_empty() {
            true => good("hosts", "those that answer and may say it are of one cluster"),
            false => bad("hosts", strangers.join("; "), WAY_OUT),
        })
    }
}
