//! Connecting to a member.

use crate::connection::Connection;
use crate::fault::Failure;
use crate::once::Once;
use crate::one_cluster::{OneCluster, cluster_of};
use crate::roll;
use crate::url::{Security, StoreUrl, invalid};
use crate::wire::cluster::{AuthenticateRequest, AuthenticateResponse};
use crate::wire::path;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::StoreError;
use tenure_remote::{RenewedFiles, TlsFiles, TlsParts, TlsWords, line};
use tokio::net::lookup_host;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// How long connecting to one member may take. A dial takes as long for each: a shorter bound would leave
/// those behind many that have vanished unasked.
pub(crate) const MEMBER_TIME_MAX: Duration = Duration::from_secs(1);

/// How long a member that has taken a connection may take beside that to say that it is well.
const LOOK_TIME_MAX: Duration = Duration::from_secs(2);

/// How long a login may take instead: the server compares the password with a hash that is slow on purpose,
/// and one after another.
pub(crate) const LOGIN_TIME_MAX: Duration = Duration::from_secs(3);

/// How often a connection with a call under way is asked whether it lives. Servers end a connection that asks
/// more often than every 5 s, which is their default.
const PING_EVERY: Duration = Duration::from_secs(6);

/// How long the answer may take.
const PING_TIME_MAX: Duration = Duration::from_secs(3);

const TLS: TlsWords = TlsWords {
    plain: "etcd:",
    roots: "ca=",
    own: "renew it, or name one by cert= and key=",
};

/// The members, and how to connect to each.
pub(crate) struct Members {
    /// Each without TLS, which is [added](Self::secured) when it is dialled.
    pub(crate) endpoints: Vec<(String, Endpoint)>,
    pub(crate) url: StoreUrl,
    files: RenewedFiles,
    pub(crate) cluster: OneCluster,
    /// The one to begin with: moved on when a member was of no use.
    first: AtomicUsize,
}

impl Members {
    /// Reads the files that the URL names. Sends nothing.
    ///
    /// # Errors
    /// [`Fault::Invalid`](tenure_core::Fault::Invalid), with the file.
    pub(crate) fn new(url: StoreUrl) -> Result<Self, StoreError> {
        let scheme = match url.security {
            Security::Plain => "http",
            Security::Tls(_) => "https",
        };
        let mut endpoints = Vec::new();
        for host in &url.hosts {
            let endpoint = Endpoint::from_shared(format!("{scheme}://{host}"))
                .map_err(|_| invalid("a host in the etcd URL is none"))?
                .http2_keep_alive_interval(PING_EVERY)
                .keep_alive_timeout(PING_TIME_MAX);
            endpoints.push((host.to_string(), endpoint));
        }
        let members = Self {
            endpoints,
            url,
            files: RenewedFiles::default(),
            cluster: OneCluster::default(),
            first: AtomicUsize::new(0),
        };
        for (_, endpoint) in &members.endpoints {
            members.secured(endpoint)?;
        }
        Ok(members)
    }

    /// The same member, by the files as they are now: they are replaced before they expire.
    fn secured(&self, endpoint: &Endpoint) -> Result<Endpoint, StoreError> {
        let endpoint = endpoint.clone();
        let Security::Tls(files) = &self.url.security else {
            return Ok(endpoint);
        };
        let secured = encryption(files).and_then(|tls| {
            endpoint
                .tls_config(tls)
                .map_err(|error| invalid(&format!("TLS cannot be set up: {}", line(error))))
        });
        secured.map_err(|error| self.files.wrong(error))
    }

    /// Connects to a member, and authenticates: to the one whose turn it is, or to the next that can be
    /// reached. Who gives this up has passed over the member that it waited for.
    ///
    /// # Errors
    /// Nothing was applied.
    pub(crate) async fn connect_to_any(&self) -> Result<Connection, Failure> {
        let first = self.first.load(Ordering::Relaxed);
        let mut failure = Failure::undialled("no member is named".to_owned());
        for offset in 0..self.endpoints.len() {
            let place = (first + offset) % self.endpoints.len();
            let mut trying = Trying {
                members: self,
                host: &self.endpoints[place].0,
                answered: false,
            };
            match self.connect(place).await {
                Ok(connection) => {
                    trying.answered = true;
                    self.first.store(place, Ordering::Relaxed);
                    return Ok(connection);
                }
                // What one member says of the credentials the others say, too.
                Err(failure @ Failure::Status(_)) if !failure.ends_connection() => {
                    trying.answered = true;
                    return Err(failure);
                }
                // That one is of another cluster says more than that others are away.
                Err(_) if matches!(failure, Failure::Stranger(_)) => {}
                Err(other) => failure = other,
            }
        }
        Err(failure)
    }

    /// Agrees with whoever answers on the cluster, where none is known yet: a member is connected to.
    ///
    /// # Errors
    /// [`Fault::Invalid`](tenure_core::Fault::Invalid): they are of several.
    pub(crate) async fn agree_on_cluster(&self, connection: &Connection) -> Result<(), StoreError> {
        if !self.cluster.is_known() {
            let all = roll::one_cluster(&roll::ask_each(self).await)?;
            self.cluster.is(all.or(connection.cluster));
        }
        let checked = self.cluster.check(&connection.host, connection.cluster);
        checked.map_err(Failure::of_dial)
    }

    /// Connects to one that does what members of the cluster do, and authenticates, each in bounded time. A
    /// login shows it; without one it is asked: the host of a member that is frozen takes connections, too.
    async fn connect(&self, place: usize) -> Result<Connection, Failure> {
        let host = &self.endpoints[place].0;
        let mut connection = self.reach(place, None).await?;
        if self.url.credentials.is_none() {
            let looking = tokio::time::timeout(LOOK_TIME_MAX, look(&connection)).await;
            let looked = looking.map_err(|_late| silent(host, LOOK_TIME_MAX))?;
            connection.cluster = looked.map_err(|failure| self.not_greeted(host, failure))?;
        }
        // It could be of any, and what it says of a lease would be believed.
        if connection.cluster.is_none() {
            return Err(Failure::undialled(format!(
                "{host} does not say of which cluster it is"
            )));
        }
        self.cluster.check(host, connection.cluster)?;
        Ok(connection)
    }

    /// Where its name leads to.
    pub(crate) async fn addresses(&self, place: usize) -> Result<Vec<SocketAddr>, Failure> {
        let member = &self.url.hosts[place];
        let found = lookup_host((member.name.as_str(), member.port)).await;
        Ok(found
            .map_err(|error| out_of_reach(&member.to_string(), &error))?
            .collect())
    }

    /// Connects to one, at this address or at whichever of its own takes the connection, and authenticates,
    /// each in bounded time.
    pub(crate) async fn reach(&self, place: usize, at: Option<SocketAddr>) -> Result<Connection, Failure> {
        let (host, endpoint) = &self.endpoints[place];
        let endpoint = self.secured(endpoint).map_err(Failure::Undialled)?;
        let dialling = async {
            let addresses = match at {
                Some(address) => vec![address],
                None => self.addresses(place).await?,
            };
            let once = Once::new(addresses, MEMBER_TIME_MAX, PING_EVERY);
            let connecting = endpoint.connect_with_connector(once).await;
            connecting.map_err(|error| out_of_reach(host, &error))
        };
        let connecting = tokio::time::timeout(MEMBER_TIME_MAX, dialling).await;
        let channel = connecting.map_err(|_late| silent(host, MEMBER_TIME_MAX))??;
        self.files.are_of_use();
        let mut connection = Connection {
            channel,
            token: None,
            cluster: None,
            host: host.to_owned(),
        };
        let Some(credentials) = &self.url.credentials else {
            return Ok(connection);
        };
        let request = AuthenticateRequest {
            name: credentials.user.clone(),
            password: credentials.password.clone(),
        };
        let asking = connection.unary(path::AUTHENTICATE, request);
        let answer = tokio::time::timeout(LOGIN_TIME_MAX, asking).await;
        let answer = answer.map_err(|_late| silent(host, LOGIN_TIME_MAX))?;
        let answer: AuthenticateResponse =
            answer.map_err(|status| self.not_greeted(host, Failure::Status(status)))?;
        let token = MetadataValue::try_from(answer.token)
            .map_err(|_| Failure::undialled(format!("{host} gave a token that cannot be sent back")))?;
        connection.token = Some(token);
        connection.cluster = cluster_of(answer.header);
        Ok(connection)
    }

    /// What is said where the first call was not answered. A member that waits for a TLS handshake takes the
    /// connection, and ends it upon a call: so it is no dial that has failed.
    fn not_greeted(&self, host: &str, failure: Failure) -> Failure {
        match self.url.security {
            Security::Plain if failure.is_of_the_way() => Failure::undialled(format!(
                "{host} cannot be spoken to: {}; if it speaks TLS at this port, say etcds:",
                failure.of_dial().message
            )),
            Security::Plain | Security::Tls(_) => failure,
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.endpoints.len()
    }

    /// The next dial begins with another member.
    pub(crate) fn pass_over(&self, host: &str) {
        let count = self.endpoints.len();
        let first = self.first.load(Ordering::Relaxed) % count;
        if self.endpoints[first].0 == host {
            self.first.store((first + 1) % count, Ordering::Relaxed);
        }
    }
}

/// Connecting to a member, under way. Callers have often less time than one member that has vanished takes:
/// were the next dial to begin with it again, the others would never be asked.
struct Trying<'a> {
    members: &'a Members,
    host: &'a str,
    answered: bool,
}

impl Drop for Trying<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.members.pass_over(self.host);
        }
    }
}

/// Of which cluster a member is, if it has a vote.
async fn look(connection: &Connection) -> Result<Option<u64>, Failure> {
    match connection.status().await {
        Ok(status) if status.is_learner => {
            Err(Failure::undialled(format!("{} is a learner", connection.host)))
        }
        Ok(status) => Ok(cluster_of(status.header)),
        Err(failure) if failure.ends_connection() => Err(failure),
        Err(_denied) => connection.told_to_anybody().await,
    }
}

fn silent(host: &str, allowed: Duration) -> Failure {
    Failure::undialled(format!(
        "{host} did not answer within {allowed:?}; check the network"
    ))
}

fn out_of_reach(host: &str, error: &dyn std::error::Error) -> Failure {
    let cause = error.source().map_or_else(|| error.to_string(), root);
    let way_out = TLS.way_out(&cause);
    Failure::undialled(format!("{host} cannot be reached: {}{way_out}", line(cause)))
}

/// The last cause of an error: it says most.
fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(next) = last.source() {
        last = next;
    }
    last.to_string()
}

fn encryption(files: &TlsFiles) -> Result<ClientTlsConfig, StoreError> {
    let TlsParts { roots, identity } = files.read()?;
    let mut tls = ClientTlsConfig::new();
    tls = match roots {
        Some(roots) => tls.ca_certificate(Certificate::from_pem(roots)),
        None => tls.with_webpki_roots(),
    };
    if let Some((certificate, key)) = identity {
        tls = tls.identity(Identity::from_pem(certificate, key));
    }
    Ok(tls)
}
