//! The one cluster that is asked, a primary with its standbys: each other would have leaders and marks of its
//! own.

use crate::dial::{Dial, addresses};
use crate::fault::ends_connection;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::OnceLock;
use std::task::Poll;
use std::time::Duration;
use tenure_core::{Fault, Finding, StoreError};
use tenure_remote::findings::{bad, good, warning};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{Client, Config, Connection, Error, Socket};

/// How long the addresses beside the one that is connected may take to say what they are of.
const LOOK_TIME_MAX: Duration = Duration::from_secs(1);

/// What `initdb` gave it: standbys have their primary's, through restarts and promotions. And the process
/// that says so, and whether it is a standby.
const ASKED: &str = "SELECT system_identifier, pg_catalog.pg_backend_pid() AS process, pg_catalog.pg_is_in_recovery() AS is_standby \
                     FROM pg_catalog.pg_control_system()";

/// What a statement says, before the number, that was to be of another cluster.
const IS_OF_ANOTHER: &str = "another cluster: ";

const WAY_OUT: &str = "name a primary and its standbys in the PostgreSQL URL";

const GRANT: &str = "GRANT EXECUTE ON FUNCTION pg_control_system() to this role";

/// That of whoever was connected to first. A host of another cluster is none of ours, however late it comes:
/// as one that was set up anew, or an address that leads to another server since.
#[derive(Default)]
pub(crate) struct OneCluster(OnceLock<i64>);

impl OneCluster {
    /// Its number, if it is known.
    pub(crate) fn number(&self) -> Option<i64> {
        self.0.get().copied()
    }

    /// Whether a connection may be used that has just been made: where the number is known, each host has to
    /// say its own. All servers of a cluster have the same rights, so that one of ours says it as the first
    /// one did. The first that says it is ours.
    pub(crate) fn admit(&self, host: &str, told: Option<Told>) -> Result<(), String> {
        if let Some(told) = told {
            let _known_before = self.0.get_or_init(|| told.cluster);
        }
        self.check(host, told.map(|told| told.cluster))
    }

    /// Whether a host may be of it, by what it has said, of whom nothing is learned. Why not, otherwise.
    pub(crate) fn check(&self, host: &str, theirs: Option<i64>) -> Result<(), String> {
        match (self.number(), theirs) {
            (Some(ours), None) => Err(format!(
                "{host} does not say which cluster it is of, and whoever was connected to first is of {ours}: another would have a \
                 leader of its own; {WAY_OUT}, and {GRANT} where it was revoked"
            )),
            (Some(ours), Some(theirs)) if ours != theirs => Err(format!(
                "{host} is of cluster {theirs}, and whoever was connected to first is of {ours}: each would have a leader of its own; \
                 {WAY_OUT}, and start this process anew if the cluster was upgraded or restored as another"
            )),
            _ => Ok(()),
        }
    }

    /// What is said of hosts that nobody is connected to, by what each has said. Nothing is learned of them:
    /// who is connected may be of another cluster than they.
    fn strangers(&self, hosts: &[(String, Option<Told>)]) -> Vec<String> {
        if self.number().is_some() {
            let checked = hosts
                .iter()
                .map(|(host, told)| self.check(host, told.map(|told| told.cluster)));
            return checked.filter_map(Result::err).collect();
        }
        let told: Vec<(&str, Told)> = hosts
            .iter()
            .filter_map(|(host, told)| Some((host.as_str(), (*told)?)))
            .collect();
        let one = told.first().map(|(_, first)| first.cluster);
        let are_one = told.iter().all(|(_, told)| Some(told.cluster) == one);
        // A standby may say it still where its primary does not any more: it has not met the REVOKE yet, and
        // has no leader.
        told.iter()
            .filter(|(_, told)| !are_one || !told.is_standby)
            .map(|(host, Told { cluster, .. })| {
                format!(
                    "{host} is of cluster {cluster}, and whoever was connected to first does not say which one it is of: if of \
                     another, each would have a leader of its own; {WAY_OUT}, and {GRANT} on each of them"
                )
            })
            .collect()
    }
}

/// What a server says of itself.
#[derive(Clone, Copy)]
pub(crate) struct Told {
    pub(crate) cluster: i64,
    /// The process that has said so, which is not the one that greeted where a pooler stands between.
    pub(crate) process: Option<i32>,
    /// Whether it follows another, and takes no writes.
    is_standby: bool,
}

/// Has a server say which cluster it is of, on a connection that nobody drives yet. Nothing, where the role
/// may not ask it, or the server does not know the question.
///
/// # Errors
/// The connection has ended, or it is not known whether the server would say it.
pub(crate) async fn cluster_of<T: TlsStream + Unpin>(
    client: &Client,
    connection: &mut Connection<Socket, T>,
) -> Result<Option<Told>, Error> {
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
        Ok(rows) => Ok(rows.first().and_then(|row| {
            Some(Told {
                cluster: row.try_get("system_identifier").ok()?,
                process: row.try_get("process").ok(),
                is_standby: row.try_get("is_standby").unwrap_or_default(),
            })
        })),
        Err(error) if !ends_connection(&error) && keeps_it_back(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The same statement, which fails where it comes to a server of another cluster: behind a pooler each may
/// come to another than the one before. It does nothing there, as the condition is looked at first and its
/// failure takes back what was done.
pub(crate) fn bound_to(cluster: i64, statement: &str) -> String {
    format!(
        "WITH answer AS ({statement}) SELECT answer.* FROM answer WHERE (SELECT CASE WHEN system_identifier \
         OPERATOR(pg_catalog.=) '{cluster}'::bigint THEN true ELSE ('{IS_OF_ANOTHER}'::pg_catalog.text OPERATOR(pg_catalog.||) \
         system_identifier::pg_catalog.text)::boolean END FROM pg_catalog.pg_control_system())"
    )
}

/// Which cluster has failed a statement that is [bound](bound_to) to ours.
pub(crate) fn elsewhere(error: &Error) -> Option<i64> {
    let answer = error.as_db_error()?;
    if *answer.code() != SqlState::INVALID_TEXT_REPRESENTATION {
        return None;
    }
    // The server's words may be in any language, around what was no truth value.
    let (_, number) = answer.message().split_once(IS_OF_ANOTHER)?;
    let end = number.find(|character: char| !(character.is_ascii_digit() || character == '-'));
    number[..end.unwrap_or(number.len())].parse().ok()
}

/// Whether it lacks the right, or the function (class 42), or has it for nobody (0A).
fn keeps_it_back(error: &Error) -> bool {
    let code = error.code().map_or("", |code| code.code());
    ["42", "0A"].iter().any(|class| code.starts_with(class))
}

impl Dial {
    /// Each address of the URL's hosts, with its host's place in the list. Standbys are asked as well: they
    /// may be promoted.
    async fn addresses(&self, until: Instant) -> Vec<(usize, Config)> {
        let looks = self.url.hosts.iter().enumerate().map(async |(host, config)| {
            let mut config = config.clone();
            config.target_session_attrs(TargetSessionAttrs::Any);
            let found = timeout_at(until, addresses(&config)).await;
            let found = found.ok().and_then(Result::ok).unwrap_or_default();
            found.into_iter().map(|config| (host, config)).collect::<Vec<_>>()
        });
        join_all(looks).await.into_iter().flatten().collect()
    }

    /// What is said of each of these addresses that answers by then, and is of another cluster than the one
    /// that is connected, or may be and takes writes.
    async fn strangers(&self, addresses: &[(usize, Config)], until: Instant) -> Vec<String> {
        let others = addresses
            .iter()
            .filter(|(host, config)| !self.is_latest(*host, config));
        let looks = others.map(async |(host, config)| {
            let greeted = timeout_at(until, self.greet(*host, config)).await;
            Some((self.place_at(*host, config), greeted.ok()?.ok()?.told))
        });
        let answered: Vec<_> = join_all(looks).await.into_iter().flatten().collect();
        self.cluster.strangers(&answered)
    }

    /// Nothing where the server has said it.
    pub(crate) fn examine_cluster(&self) -> Option<Finding> {
        let detail = "the role may not ask which one it is: another at this address would not be noticed";
        let is_hidden = self.cluster.number().is_none();
        is_hidden.then(|| warning("cluster", detail, GRANT))
    }

    /// # Errors
    /// [`Fault::Invalid`]: addresses of the URL that answer are of different clusters. Not applied.
    pub(crate) async fn refuse_strangers(&self) -> Result<(), StoreError> {
        let until = Instant::now() + LOOK_TIME_MAX;
        let strangers = self.strangers(&self.addresses(until).await, until).await;
        if strangers.is_empty() {
            return Ok(());
        }
        let message = format!("PostgreSQL at {}: {}", self.place, strangers.join("; "));
        Err(StoreError::not_applied(Fault::Invalid, message))
    }

    /// Nothing where the URL names one host, which has one address.
    pub(crate) async fn examine_hosts(&self) -> Option<Finding> {
        let until = Instant::now() + LOOK_TIME_MAX;
        let addresses = self.addresses(until).await;
        if self.url.hosts.len() < 2 && addresses.len() < 2 {
            return None;
        }
        let strangers = self.strangers(&addresses, until).await;
        Some(match strangers.is_empty() {
            true => good("hosts", "those that answer and may say it are of one cluster"),
            false => bad("hosts", strangers.join("; "), WAY_OUT),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{LOOK_TIME_MAX, OneCluster, Told};
    use crate::connect::site;
    use crate::dial::Dial;
    use crate::url::StoreUrl;
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;
    use std::time::Duration;
    use tenure_core::Fault;
    use tenure_testkit::{FaultProxy, Postgres, eventually_async};
    use tokio::time::Instant;
    use tokio_postgres::Config;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Another address of the same host.
    const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);

    fn dial(uri: &str) -> Arc<Dial> {
        let url = StoreUrl::parse(uri).unwrap_or_else(|error| panic!("{error}"));
        site(url).unwrap_or_else(|error| panic!("{error}")).dial
    }

    /// A server of this URI as the driver takes it where a name leads to this address.
    fn at(uri: &str, address: Ipv4Addr) -> Config {
        let mut config = dial(uri).url.hosts[0].clone();
        config.hostaddr(IpAddr::V4(address));
        config
    }

    /// Where the connected one keeps it back, a standby of the same cluster may say it still.
    #[test]
    fn hosts_of_postgres_that_nobody_is_connected_to_are_compared_and_teach_nothing() {
        let told = |cluster, is_standby| {
            let told = Told {
                cluster,
                process: None,
                is_standby,
            };
            ("a host".to_owned(), Some(told))
        };
        let (primary, standby, silent) = (told(7, false), told(7, true), ("another".to_owned(), None));
        let known = OneCluster::default();
        known.admit("ours", primary.1).expect("the first");
        let unknown = OneCluster::default();
        for (hosts, of_known, of_unknown) in [
            (vec![silent.clone()], 1, 0),
            (vec![standby.clone(), silent.clone()], 1, 0),
            (vec![standby.clone(), standby.clone()], 0, 0),
            (vec![primary.clone()], 0, 1),
            (vec![standby.clone(), primary.clone()], 0, 1),
            (vec![standby.clone(), told(8, true)], 1, 2),
        ] {
            assert_eq!(
                known.strangers(&hosts).len(),
                of_known,
                "{:?}",
                known.strangers(&hosts)
            );
            assert_eq!(
                unknown.strangers(&hosts).len(),
                of_unknown,
                "{:?}",
                unknown.strangers(&hosts)
            );
            assert_eq!(unknown.number(), None);
        }
    }

    /// Each process would lead at whichever it was connected to, as where names are looked up in turn.
    #[tokio::test]
    async fn addresses_of_one_host_of_postgres_of_different_clusters_are_seen() {
        let ours = Postgres::shared().await;
        let both = format!("listen_addresses=127.0.0.1,{OTHER}");
        let strange = Postgres::with_settings(&[&both]).await.expect("it starts");
        let dial = dial(&ours.uri());
        let here = at(&ours.uri(), Ipv4Addr::LOCALHOST);
        let connected = dial.connect_at(0, vec![here.clone()]).await;
        drop(connected.unwrap_or_else(|error| panic!("{error}")));
        let strangers = async |addresses: &[(usize, Config)]| {
            dial.strangers(addresses, Instant::now() + LOOK_TIME_MAX).await
        };
        let addresses = [(0, here.clone()), (0, at(&strange.uri(), OTHER))];
        let told = eventually_async(PATIENCE, "what it is of", async || {
            strangers(&addresses).await.pop()
        })
        .await;
        assert!(told.contains(&format!("at {OTHER} is of cluster")), "{told}");
        assert_eq!(strangers(&[(0, here)]).await, Vec::<String>::new());
    }

    /// The one that answered is tried first, so that the others' failures come after.
    #[tokio::test]
    async fn stranger_at_one_address_of_a_host_of_postgres_is_told_beside_another_that_is_dead() {
        let strange = Postgres::start().await.expect("it starts");
        let proxy = FaultProxy::postgres(Postgres::shared().await.address()).expect("a proxy");
        let uri = format!("postgres://postgres@{}/postgres", proxy.address());
        let dial = dial(&uri);
        let addresses = || vec![at(&uri, OTHER), at(&uri, Ipv4Addr::LOCALHOST)];
        let connected = dial.connect_at(0, addresses()).await;
        drop(connected.unwrap_or_else(|error| panic!("{error}")));
        proxy.lead_to(strange.address());
        let refused = async || dial.connect_at(0, addresses()).await.err();
        let error = eventually_async(PATIENCE, "a stranger", async || {
            refused().await.filter(|error| error.fault == Fault::AnotherStore)
        })
        .await;
        assert!(error.message.contains("is of cluster"), "{error}");
        assert!(error.message.contains("Connection refused"), "{error}");
    }
}
