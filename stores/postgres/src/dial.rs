//! Making a connection: one host after the other, each within a bound of its own.

use crate::direct::greeted_by;
use crate::fault::{Deed, line, store_error, timed_out};
use crate::lane::Live;
use crate::url::{StoreUrl, place};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::{Certainty, Fault, StoreError};
use tokio::net::lookup_host;
use tokio::time::timeout;
use tokio_postgres::config::{Host, LoadBalanceHosts};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How connections are made.
pub(crate) struct Dial {
    pub(crate) url: StoreUrl,
    connector: MakeRustlsConnect,
    /// For messages; it holds no secret.
    pub(crate) place: String,
    /// How long making a connection may take in all, where all hosts but one are dead.
    pub(crate) time_max: Duration,
    /// Where to begin: with the host that answered last. A place in the URL's list.
    first: AtomicUsize,
    /// With which the latest connection was made. A place in the URL's list.
    latest: AtomicUsize,
}

/// A connection that nobody drives yet.
pub(crate) struct Dialled {
    pub(crate) client: Client,
    pub(crate) connection: Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>,
    /// Its place in the URL's list.
    pub(crate) host: usize,
}

impl Dial {
    pub(crate) fn new(url: StoreUrl, connector: MakeRustlsConnect, time_max: Duration) -> Self {
        Self {
            connector,
            place: url.place(),
            time_max,
            first: AtomicUsize::new(beginning(&url.config, url.hosts.len())),
            latest: AtomicUsize::default(),
            url,
        }
    }

    /// Connects, and drives the connection on the calling runtime.
    ///
    /// # Errors
    /// As [`Dial::connect`].
    pub(crate) async fn open(self: &Arc<Self>) -> Result<Arc<Live>, StoreError> {
        let Dialled {
            client,
            connection,
            host,
        } = self.connect().await?;
        // What goes wrong on it, its requests are told.
        let driver = tokio::spawn(async move { drop(connection.await) });
        let backend = greeted_by(&client).await;
        Ok(Arc::new(Live::new(
            client,
            backend,
            driver.abort_handle(),
            self,
            host,
        )))
    }

    /// Connects to the first of the hosts that answers and is what the URL asks for.
    ///
    /// # Errors
    /// Not applied: nothing was asked yet. What each host said, to be put behind what was to be done, by [`about`]; the fault is
    /// the last one's.
    pub(crate) async fn connect(&self) -> Result<Dialled, StoreError> {
        let count = self.url.hosts.len();
        let first = self.first.load(Ordering::Relaxed);
        let (mut fault, mut said) = (Fault::Invalid, Vec::new());
        for host in (0..count).map(|step| (first + step) % count) {
            match self.connect_to(host).await {
                Ok(dialled) => {
                    self.first.store(host, Ordering::Relaxed);
                    self.latest.store(host, Ordering::Relaxed);
                    return Ok(dialled);
                }
                Err(error) => {
                    fault = error.fault;
                    said.push(error.message);
                }
            }
        }
        Err(StoreError::not_applied(fault, said.join(";")))
    }

    /// Has the next connection be tried at the host after this one first: it may greet, and answer nothing.
    pub(crate) fn leave(&self, host: usize) {
        let next = (host + 1) % self.url.hosts.len();
        // Once, although several connections of a store leave it: of two hosts, two steps on is the same one again.
        let _left_before = self
            .first
            .compare_exchange(host, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether connections are made with another host by now. To begin with another the next time is not to have left this one: a
    /// request may be given up for what it waits for, and the others go on.
    pub(crate) fn has_left(&self, host: usize) -> bool {
        self.latest.load(Ordering::Relaxed) != host
    }

    /// One address of the host after the other.
    async fn connect_to(&self, host: usize) -> Result<Dialled, StoreError> {
        let config = &self.url.hosts[host];
        let place = place(config, &self.url.schema);
        let unreachable =
            |why: String| Deed::Read.error(Fault::Unreachable, Certainty::NotApplied, "", &place, why);
        let allowed = self.allowed();
        let addresses = timeout(allowed, addresses(config))
            .await
            .map_err(|_late| timed_out(Deed::Read, "", &place, allowed))?
            .map_err(|error| unreachable(format!("the connection failed: {}", line(error))))?;
        let mut last = unreachable("the host has no address".to_owned());
        for address in addresses {
            // The driver's own bound is for the socket: a frozen server's system takes connections, and nobody greets.
            match timeout(allowed, address.connect(self.connector.clone())).await {
                Ok(Ok((client, connection))) => {
                    return Ok(Dialled {
                        client,
                        connection,
                        host,
                    });
                }
                Ok(Err(error)) => last = store_error(&error, Deed::Read, "", &place),
                Err(_late) => last = timed_out(Deed::Read, "", &place, allowed),
            }
        }
        Err(last)
    }

    /// How long one host's address may take, greeting and login included: as the URL says, but so short that all hosts but
    /// one may be dead, and connecting still comes to its end in time.
    fn allowed(&self) -> Duration {
        let hosts = u32::try_from(self.url.hosts.len()).unwrap_or(u32::MAX);
        let share = if hosts > 1 {
            self.time_max / hosts.saturating_add(1)
        } else {
            self.time_max
        };
        let asked = self.url.config.get_connect_timeout();
        asked.map_or(share, |asked| share.min(*asked))
    }
}

/// Puts what was to be done before what the hosts said of it.
pub(crate) fn about(what: &str) -> impl Fn(StoreError) -> StoreError {
    move |error| StoreError {
        message: format!("{what}{}", error.message),
        ..error
    }
}

/// The addresses behind a host, each as the driver takes it: with the name, which a certificate is checked for.
async fn addresses(config: &Config) -> io::Result<Vec<Config>> {
    let (Some(Host::Tcp(name)), []) = (config.get_hosts().first(), config.get_hostaddrs()) else {
        return Ok(vec![config.clone()]);
    };
    let found = lookup_host((name.as_str(), 0)).await?;
    let mut addresses: Vec<Config> = found
        .map(|address| {
            let mut config = config.clone();
            config.hostaddr(address.ip());
            config
        })
        .collect();
    let first = beginning(config, addresses.len());
    addresses.rotate_left(first);
    Ok(addresses)
}

/// With which of so many to begin: the first, or any, if the URL says `load_balance_hosts=random`.
fn beginning(config: &Config, count: usize) -> usize {
    if config.get_load_balance_hosts() != LoadBalanceHosts::Random || count == 0 {
        return 0;
    }
    let [any, ..] = RandomState::new().build_hasher().finish().to_le_bytes();
    usize::from(any) % count
}
