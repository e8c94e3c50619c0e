//! Making a connection: to whichever host and address answers first, begun with one after the other.

use crate::direct::greeted_by;
use crate::fault::{Deed, line, store_error, timed_out};
use crate::lane::Live;
use crate::one_cluster::{OneCluster, Told, cluster_of};
use crate::password::{self, Origin};
use crate::tls::connector;
use crate::url::{StoreUrl, place};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::{RenewedFiles, none_lets_in};
use tokio::net::lookup_host;
use tokio::time::{sleep, timeout};
use tokio_postgres::config::{Host, LoadBalanceHosts};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long one host or address is left alone before the next is tried beside it. A term must outlast what
/// all that are dead cost together, where a host that had answered late is tried last; and who is live has
/// answered by then, so that few log in in vain.
const NEXT_AFTER: Duration = Duration::from_millis(200);

/// How connections are made.
pub(crate) struct Dial {
    pub(crate) url: StoreUrl,
    /// The file of the roots, if the URL names one.
    files: RenewedFiles,
    /// It is said once that a password file is ignored.
    ignores_passwords: Once,
    /// For messages; it holds no secret.
    pub(crate) place: String,
    /// How long one address may take, and what is asked on a connection that is being made.
    pub(crate) time_max: Duration,
    /// Where to begin: with the host that answered last. A place in the URL's list.
    first: AtomicUsize,
    /// With which the latest connection was made. A place in the URL's list.
    pub(crate) latest: AtomicUsize,
    /// The address of each host that answered last, by the place in the URL's list.
    answered: Mutex<HashMap<usize, IpAddr>>,
    pub(crate) cluster: OneCluster,
}

/// A connection that nobody drives yet.
pub(crate) struct Dialled {
    pub(crate) client: Client,
    pub(crate) connection: Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>,
    /// Its place in the URL's list.
    pub(crate) host: usize,
    pub(crate) told: Option<Told>,
}

impl Dial {
    /// Reads the file of the roots. Sends nothing.
    ///
    /// # Errors
    /// [`Fault::Invalid`]: it is of no use.
    pub(crate) fn new(url: StoreUrl, time_max: Duration) -> Result<Self, StoreError> {
        drop(connector(&url.trust)?);
        Ok(Self {
            files: RenewedFiles::default(),
            ignores_passwords: Once::new(),
            place: url.place(),
            time_max,
            first: AtomicUsize::new(beginning(&url.config, url.hosts.len())),
            latest: AtomicUsize::default(),
            answered: Mutex::default(),
            cluster: OneCluster::default(),
            url,
        })
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
            told,
        } = self.connect().await?;
        // What goes wrong on it, its requests are told.
        let driver = tokio::spawn(async move { drop(connection.await) });
        let backend = greeted_by(&client).await;
        let pooled = told.filter(|told| backend.is_none() || told.process != backend);
        let bound_to = pooled.map(|told| told.cluster);
        Ok(Arc::new(Live::new(
            client,
            backend,
            bound_to,
            driver.abort_handle(),
            self,
            host,
        )))
    }

    /// Connects to the first of the hosts that answers, is what the URL asks for, and of the cluster that was
    /// connected to first.
    ///
    /// # Errors
    /// Not applied: nothing was asked yet. What each host said, to be put behind what was to be done, by
    /// [`about`]; the fault is what it [comes to](none_lets_in).
    pub(crate) async fn connect(&self) -> Result<Dialled, StoreError> {
        let count = self.url.hosts.len();
        let first = self.first.load(Ordering::Relaxed);
        let hosts = (0..count).map(|step| (first + step) % count);
        match first_of(hosts.map(|host| self.connect_to(host))).await {
            Ok(dialled) => {
                self.first.store(dialled.host, Ordering::Relaxed);
                self.latest.store(dialled.host, Ordering::Relaxed);
                Ok(dialled)
            }
            Err(failed) => Err(none_lets_in(failed)),
        }
    }

    /// Has the next connection be tried at the host after this one first: it may greet, and answer nothing.
    pub(crate) fn leave(&self, host: usize) {
        let next = (host + 1) % self.url.hosts.len();
        // Once, although several connections of a store leave it: of two hosts, two steps on is the same one
        // again.
        let _left_before = self
            .first
            .compare_exchange(host, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether connections are made with another host by now. To begin with another the next time is not to
    /// have left this one: a request may be given up for what it waits for, and the others go on.
    pub(crate) fn has_left(&self, host: usize) -> bool {
        self.latest.load(Ordering::Relaxed) != host
    }

    /// Connects to the first of the host's addresses that answers.
    async fn connect_to(&self, host: usize) -> Result<Dialled, StoreError> {
        let config = &self.url.hosts[host];
        let allowed = self.allowed();
        let failed = |why: String| self.unreachable(host, why);
        let addresses = timeout(allowed, addresses(config))
            .await
            .map_err(|_late| timed_out(Deed::Read, "", &self.place_of(host), allowed))?
            .map_err(|error| failed(format!("the connection failed: {}", line(error))))?;
        self.connect_at(host, addresses).await
    }

    /// Connects to the first of these addresses of a host that answers, beginning with the one that did so
    /// last.
    pub(crate) async fn connect_at(
        &self,
        host: usize,
        mut addresses: Vec<Config>,
    ) -> Result<Dialled, StoreError> {
        let answered = self.answered().get(&host).copied();
        addresses.sort_by_key(|config| answered.is_none() || address_of(config) != answered);
        match first_of(addresses.into_iter().map(|config| self.log_in(host, config))).await {
            Ok((dialled, address)) => {
                address.map(|address| self.answered().insert(host, address));
                Ok(dialled)
            }
            Err(none) if none.is_empty() => Err(self.unreachable(host, "the host has no address".to_owned())),
            Err(failed) => Err(none_lets_in(failed)),
        }
    }

    /// Passes by an address of another cluster.
    async fn log_in(&self, host: usize, config: Config) -> Result<(Dialled, Option<IpAddr>), StoreError> {
        let dialled = self.greet(host, &config).await?;
        let checked = self.cluster.admit(&self.place_at(host, &config), dialled.told);
        checked.map_err(|why| self.failed(Fault::AnotherStore, host, why))?;
        Ok((dialled, address_of(&config)))
    }

    /// Connects to an address of a host, and has it say which cluster it is of before it is asked anything
    /// else.
    pub(crate) async fn greet(&self, host: usize, config: &Config) -> Result<Dialled, StoreError> {
        let allowed = self.allowed();
        // As the file is now: it is replaced before what it holds expires.
        let connector = connector(&self.url.trust).map_err(|error| self.files.wrong(error))?;
        let (config, origin) = password::completed(config);
        if let Origin::Ignored(..) = origin {
            let place = &self.place;
            self.ignores_passwords
                .call_once(|| tracing::warn!(%place, "{origin}"));
        }
        let greeting = async {
            let (client, mut connection) = config.connect(connector).await?;
            let told = cluster_of(&client, &mut connection).await?;
            Ok((client, connection, told))
        };
        // The driver's own bound is for the socket: a frozen server's system takes connections, and nobody
        // greets.
        match timeout(allowed, greeting).await {
            Ok(Ok((client, connection, told))) => {
                self.files.are_of_use();
                Ok(Dialled {
                    client,
                    connection,
                    host,
                    told,
                })
            }
            Ok(Err(error)) => {
                let mut failed = store_error(&error, Deed::Read, "", &self.place_of(host));
                if failed.fault == Fault::Unauthenticated && origin != Origin::Url {
                    failed.message += &format!("; {origin}");
                }
                Err(failed)
            }
            Err(_late) => Err(timed_out(Deed::Read, "", &self.place_of(host), allowed)),
        }
    }

    fn unreachable(&self, host: usize, why: String) -> StoreError {
        self.failed(Fault::Unreachable, host, why)
    }

    fn failed(&self, fault: Fault, host: usize, why: String) -> StoreError {
        Deed::Read.error(fault, Certainty::NotApplied, "", &self.place_of(host), why)
    }

    pub(crate) fn place_of(&self, host: usize) -> String {
        place(&self.url.hosts[host], &self.url.schema)
    }

    /// A host at one of its addresses, for people.
    pub(crate) fn place_at(&self, host: usize, config: &Config) -> String {
        let place = self.place_of(host);
        match (config.get_hosts().first(), address_of(config)) {
            (Some(Host::Tcp(name)), Some(address)) if name.parse() != Ok(address) => {
                format!("{place} at {address}")
            }
            _ => place,
        }
    }

    /// Whether the latest connection was made with this address of a host.
    pub(crate) fn is_latest(&self, host: usize, config: &Config) -> bool {
        host == self.latest.load(Ordering::Relaxed)
            && self.answered().get(&host).copied() == address_of(config)
    }

    fn answered(&self) -> MutexGuard<'_, HashMap<usize, IpAddr>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long one address may take, greeting and login included: as the URL says.
    fn allowed(&self) -> Duration {
        let asked = self.url.config.get_connect_timeout();
        asked.map_or(self.time_max, |asked| self.time_max.min(*asked))
    }
}

/// What the first of these attempts has made that makes anything. Each is begun when the one before it has
/// failed, or has had [`NEXT_AFTER`]; those that are not needed any more are let go of.
///
/// # Errors
/// Each one's, in the order of the attempts.
async fn first_of<T, A>(attempts: impl Iterator<Item = A>) -> Result<T, Vec<StoreError>>
where
    A: Future<Output = Result<T, StoreError>>,
{
    let mut attempts = attempts.enumerate().peekable();
    let (mut under_way, mut failed) = (FuturesUnordered::new(), Vec::new());
    loop {
        if let Some((place, attempt)) = attempts.next() {
            under_way.push(async move { (place, attempt.await) });
        }
        tokio::select! {
            ended = under_way.next() => match ended {
                Some((_, Ok(made))) => return Ok(made),
                Some((place, Err(error))) => failed.push((place, error)),
                None => break,
            },
            () = sleep(NEXT_AFTER), if attempts.peek().is_some() => {}
        }
    }
    failed.sort_by_key(|(place, _)| *place);
    Err(failed.into_iter().map(|(_, error)| error).collect())
}

/// Puts what was to be done before what the hosts said of it.
pub(crate) fn about(what: &str) -> impl Fn(StoreError) -> StoreError {
    move |error| StoreError {
        message: format!("{what} {}", error.message),
        ..error
    }
}

/// The one that the driver is to connect to, where it is not a socket's path.
fn address_of(config: &Config) -> Option<IpAddr> {
    config.get_hostaddrs().first().copied()
}

/// The addresses behind a host, each as the driver takes it: with the name, which a certificate is checked
/// for.
pub(crate) async fn addresses(config: &Config) -> io::Result<Vec<Config>> {
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

#[cfg(test)]
mod tests {
    use super::Dial;
    use crate::connect::site;
    use crate::url::StoreUrl;
    use std::net::{IpAddr, Ipv4Addr, TcpListener};
    use std::sync::Arc;
    use tenure_testkit::Postgres;
    use tokio::time::timeout;

    /// How often a machine may be too slow for what is looked for.
    const ROUNDS_MAX: u32 = 10;

    /// A name may lead to many, as of both families, of which all but the last lead nowhere.
    #[tokio::test]
    async fn dead_addresses_of_a_host_of_postgres_are_passed_by_and_not_tried_again() {
        let server = Postgres::shared().await;
        let dead = [2, 3, 4].map(|last| Ipv4Addr::new(127, 0, 0, last));
        // They greet nobody.
        let silent = dead.map(|address| {
            let silent = TcpListener::bind((address, server.port())).expect("the port is another address's");
            silent.set_nonblocking(true).expect("set");
            silent
        });
        let dialled = || {
            silent
                .iter()
                .map(|silent| silent.accept().is_ok())
                .collect::<Vec<_>>()
        };
        let url = StoreUrl::parse(&server.uri()).unwrap_or_else(|error| panic!("{error}"));
        let dial: Arc<Dial> = site(url).unwrap_or_else(|error| panic!("{error}")).dial;
        let at = |address: Ipv4Addr| {
            let mut config = dial.url.hosts[0].clone();
            config.hostaddr(IpAddr::V4(address));
            config
        };
        let addresses = || dead.into_iter().chain([Ipv4Addr::LOCALHOST]).map(at).collect();
        let first = timeout(dial.time_max, dial.connect_at(0, addresses())).await;
        assert!(first.expect("passed by in the time of one").is_ok());
        assert_eq!(dialled(), [true; 3]);
        // A login that takes long has the next address tried beside it: on such a machine, once more.
        for _round in 0..ROUNDS_MAX {
            assert!(dial.connect_at(0, addresses()).await.is_ok());
            if dialled() == [false; 3] {
                return;
            }
        }
        panic!("dead addresses were tried in each of {ROUNDS_MAX} rounds");
    }
}
