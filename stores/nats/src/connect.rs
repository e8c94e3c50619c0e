//! Connecting to one of the servers.

use crate::dialled::Dialled;
use crate::fault;
use crate::keys::Keys;
use crate::login::Pass;
use crate::one_bucket::OneBucket;
use crate::url::{Host, Security, StoreUrl};
use async_nats::rustls::crypto::ring;
use async_nats::{AuthError, ConnectErrorKind, ConnectOptions, Event, ServerAddr, ServerError};
use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::{Deed, RenewedFiles, TlsWords, line, none_lets_in};
use tokio::net::lookup_host;
use tokio::sync::{broadcast, watch};

/// How long connecting to one server may take, its handshake included: where there is no other, or it is
/// known to be far away, or after all others.
pub(crate) const CONNECTION_TIME_MAX: Duration = Duration::from_secs(2);

/// How long one server may take, where another may be asked.
const SERVER_TIME_MAX: Duration = Duration::from_millis(700);

/// Addresses of one host that are waited for.
const ADDRESSES_MAX: usize = 9;

/// Refusals that may wait to be looked at by the requests under way.
const DENIALS_WAITING_MAX: usize = 64;

const TLS: TlsWords = TlsWords {
    plain: "nats:",
    roots: "ca=",
    own: "renew it, or name one by cert= and key=",
};

/// The servers, and how connections to them are made.
pub(crate) struct Servers {
    url: StoreUrl,
    /// For messages; it holds no secret.
    pub(crate) place: String,
    /// Where to begin: with the server that answered last. A place in the URL's list.
    first: AtomicUsize,
    /// Whether that one took longer to greet than it is given where there are others.
    is_far: AtomicBool,
    /// How many connections were made.
    made: AtomicU64,
    /// Whose servers these are.
    pub(crate) bucket: OneBucket,
    /// Those of the credentials, and for TLS.
    files: RenewedFiles,
}

impl Servers {
    pub(crate) fn new(url: StoreUrl, place: String) -> Self {
        Self {
            bucket: OneBucket::new(Keys::new(&url.bucket).stream()),
            url,
            place,
            first: AtomicUsize::new(0),
            is_far: AtomicBool::new(false),
            made: AtomicU64::new(0),
            files: RenewedFiles::default(),
        }
    }

    /// A new one begins with each connection that is made. A server that crashes may have lost what it had
    /// confirmed last, and gives other writes the numbers of those; and its connections have ended then. So
    /// what a number stands for is known to whoever sends over a connection that is older than the epoch in
    /// which the number was shown.
    pub(crate) fn epoch(&self) -> u64 {
        self.made.load(Ordering::SeqCst)
    }

    /// Connects to the first of the servers that answers and lets in. One that has another bucket than
    /// whoever was connected to first counts as away.
    ///
    /// # Errors
    /// Not applied: nothing of a request was sent. What it [comes to](none_lets_in).
    pub(crate) async fn connect(&self) -> Result<Dialled, StoreError> {
        let count = self.url.hosts.len();
        let first = self.first.load(Ordering::Relaxed);
        let is_far = self.is_far.load(Ordering::Relaxed);
        let mut failed = Vec::new();
        for step in 0..count {
            let is_alone = !self.are_several() || is_far && step == 0;
            let allowed = if is_alone {
                CONNECTION_TIME_MAX
            } else {
                SERVER_TIME_MAX
            };
            match self.connect_to_ours((first + step) % count, allowed).await {
                Ok(dialled) => {
                    self.is_far.store(is_far && step == 0, Ordering::Relaxed);
                    return Ok(dialled);
                }
                Err(error) => failed.push(error),
            }
        }
        // Those that can be had may be so far away that none greets in what one is given where there are
        // others: the first of them is given more, and the next one another time. Not the one that had as
        // much already.
        let is_late =
            |(step, error): (usize, &StoreError)| error.fault == Fault::TimedOut && !(is_far && step == 0);
        let late = failed.iter().enumerate().position(is_late);
        if let Some(step) = late.filter(|_| self.are_several()) {
            let server = (first + step) % count;
            match self.connect_to_ours(server, CONNECTION_TIME_MAX).await {
                Ok(dialled) => {
                    self.is_far.store(true, Ordering::Relaxed);
                    return Ok(dialled);
                }
                Err(error) => failed[step] = error,
            }
            self.first.store((server + 1) % count, Ordering::Relaxed);
        }
        // Nobody was reached, so nothing was learnt of how far away they are.
        Err(none_lets_in(failed))
    }

    /// Whether there is another to turn to.
    pub(crate) fn are_several(&self) -> bool {
        self.count() > 1
    }

    /// How many the URL names.
    pub(crate) fn count(&self) -> usize {
        self.url.hosts.len()
    }

    /// For messages: the one at this place in the URL's list.
    pub(crate) fn host(&self, server: usize) -> String {
        self.url.hosts[server].to_string()
    }

    /// Has the next connection be tried at the server after this one first.
    pub(crate) fn pass_over(&self, server: usize) {
        let next = (server + 1) % self.url.hosts.len();
        // Once, although both connections of a store leave it: of two servers, two steps on is the same one
        // again.
        let _left_before = self
            .first
            .compare_exchange(server, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    async fn connect_to_ours(&self, server: usize, allowed: Duration) -> Result<Dialled, StoreError> {
        let dialled = self.connect_to(server, allowed).await?;
        self.bucket.recognise(&dialled, &self.host(server)).await?;
        self.first.store(server, Ordering::Relaxed);
        Ok(dialled)
    }

    /// Connects to the one at this place in the URL's list, whatever bucket it has.
    ///
    /// # Errors
    /// Not applied.
    pub(crate) async fn connect_to(&self, server: usize, allowed: Duration) -> Result<Dialled, StoreError> {
        let host = &self.url.hosts[server];
        let each = time_for_each(allowed, addresses(host, allowed).await);
        let allowed = each.whole;
        let failed = |fault, why: String| {
            Deed::Read.error(fault, Certainty::NotApplied, "connecting", &host.to_string(), why)
        };
        let scheme = match self.url.security {
            Security::Plain => "nats",
            Security::Tls => "tls",
        };
        let address: ServerAddr = format!("{scheme}://{host}")
            .parse()
            .map_err(|error| failed(Fault::Invalid, line(error)))?;
        let (closed, ended) = watch::channel(false);
        let (denials, _) = broadcast::channel(DENIALS_WAITING_MAX);
        let is_made = Arc::new(AtomicBool::new(false));
        let pass = Pass::of(&self.url.login)
            .map_err(|why| failed(Fault::Invalid, why))
            // The driver reads them, too, and takes one with nothing in it.
            .and_then(|pass| self.url.tls.read().map(|_parts| pass))
            .map_err(|error| self.files.wrong(error))?;
        let options = self.options(each.address, pass, &is_made, closed, denials.clone());
        match tokio::time::timeout(allowed, options.connect(address)).await {
            Ok(Ok(client)) => {
                is_made.store(true, Ordering::SeqCst);
                self.files.are_of_use();
                Ok(Dialled {
                    client,
                    ended,
                    left: watch::Sender::new(false),
                    denials,
                    server,
                    // Not before it is there.
                    number: self.made.fetch_add(1, Ordering::SeqCst),
                    made_at: Instant::now(),
                })
            }
            Ok(Err(error)) => {
                let source = error.source().map_or_else(String::new, |source| {
                    format!(": {}{}", line(source), TLS.way_out(source))
                });
                let why = format!("{}{source}", error.kind());
                let (fault, why) = match error.kind() {
                    ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => (
                        Fault::Unauthenticated,
                        format!("{why}; {}", self.url.login.way_out()),
                    ),
                    ConnectErrorKind::TimedOut => (Fault::TimedOut, self.late(allowed)),
                    ConnectErrorKind::ServerParse => (Fault::Invalid, why),
                    ConnectErrorKind::Dns
                    | ConnectErrorKind::Tls
                    | ConnectErrorKind::Io
                    | ConnectErrorKind::MaxReconnects => (Fault::Unreachable, why),
                };
                Err(failed(fault, why))
            }
            Err(_late) => Err(failed(Fault::TimedOut, self.late(allowed))),
        }
    }

    fn late(&self, allowed: Duration) -> String {
        let why =
            format!("no greeting within {allowed:?}; check that a NATS server is there, and the network");
        match self.url.security {
            Security::Plain => why,
            // Such a one waits for us as we do for it.
            Security::Tls => format!(
                "{why}, and that the server has not `handshake_first: true`, which is not supported (`auto` is)"
            ),
        }
    }

    fn options(
        &self,
        allowed: Duration,
        pass: Pass,
        is_made: &Arc<AtomicBool>,
        closed: watch::Sender<bool>,
        denials: broadcast::Sender<Arc<str>>,
    ) -> ConnectOptions {
        // Refused if the program has chosen one before; then that one is used.
        let _chosen_before = ring::default_provider().install_default();
        let (pass, is_made) = (Arc::new(pass), Arc::clone(is_made));
        // Asked at each greeting: at that of each address of the host, until one lets in. Once it is made,
        // the driver would connect once more by itself, and send to a server that may have been started again
        // what was meant for the one before.
        let login = move |number: Vec<u8>| {
            let shown = match is_made.load(Ordering::SeqCst) {
                false => pass.shown(&number),
                true => Err(AuthError::new("the connection is over")),
            };
            std::future::ready(shown)
        };
        let mut options = ConnectOptions::with_auth_callback(login);
        if let Some(roots) = self.url.tls.roots() {
            options = options.add_root_certificates(roots.to_owned());
        }
        if let Some((certificate, key)) = self.url.tls.identity() {
            options = options.add_client_certificate(certificate.to_owned(), key.to_owned());
        }
        options
            .name("tenure")
            .connection_timeout(allowed)
            .request_timeout(None)
            .subscription_capacity(crate::watch::MESSAGES_WAITING_MAX)
            // Nobody waits for what the driver would repeat or hold back: a broken connection is replaced by
            // the next request. Fewer it does not know.
            .max_reconnects(1)
            .ignore_discovered_servers()
            .retain_servers_order()
            .event_callback(move |event| {
                match event {
                    Event::Disconnected | Event::Closed => {
                        closed.send_replace(true);
                    }
                    Event::ServerError(ServerError::Other(text)) => {
                        // An error only says that no request is under way.
                        drop(denials.send(text.into()));
                    }
                    _ => {}
                }
                async {}
            })
    }
}

/// How long a host may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Each {
    /// One of its addresses.
    address: Duration,
    /// All of them together.
    whole: Duration,
}

/// The driver tries a host's addresses one after the other. So that one behind which nobody greets leaves the
/// others their time, they share it; where that would be less than one of several servers has, each has as
/// much as a server.
fn time_for_each(allowed: Duration, addresses: u32) -> Each {
    let address = (allowed / addresses).max(SERVER_TIME_MAX.min(allowed));
    Each {
        address,
        whole: address * addresses,
    }
}

/// How many addresses a host has, as that of a service with several servers. One, where that cannot be found
/// out: the driver says why.
async fn addresses(host: &Host, allowed: Duration) -> u32 {
    let looked_up = tokio::time::timeout(allowed, lookup_host((host.name.as_str(), host.port))).await;
    let count = looked_up.ok().and_then(Result::ok).map_or(1, Iterator::count);
    u32::try_from(count.clamp(1, ADDRESSES_MAX)).unwrap_or(1)
}

/// What is to be done about a denial.
pub(crate) fn denied(
    deed: Deed,
    certainty: Certainty,
    subject: &str,
    place: &str,
    complaint: &str,
) -> StoreError {
    let why = format!(
        "{}; grant the rights in the README of tenure-nats",
        line(complaint)
    );
    deed.error(Fault::Forbidden, certainty, subject, place, why)
}

/// Nobody takes messages for this: the stream has no leader, or JetStream is not there.
pub(crate) fn nobody_there(deed: Deed, subject: &str, place: &str) -> StoreError {
    let why =
        "nobody takes requests there: the bucket's stream has no leader now, or is gone, or JetStream is off";
    deed.error(Fault::Unreachable, Certainty::NotApplied, subject, place, why)
}

/// What a refusal means to a request.
pub(crate) fn refused(deed: Deed, subject: &str, place: &str, refusal: &fault::Refusal) -> StoreError {
    let (fault, certainty, why) = refusal.judge();
    deed.error(fault, certainty, subject, place, why)
}

#[cfg(test)]
mod tests {
    use super::{CONNECTION_TIME_MAX, Each, Ordering, SERVER_TIME_MAX, Servers, time_for_each};
    use crate::url::StoreUrl;
    use std::time::Duration;
    use tenure_testkit::{Fault, FaultProxy, NatsOptions, NatsServer};
    use tokio::net::TcpListener;

    #[test]
    fn address_at_which_nobody_greets_leaves_the_others_of_its_host_their_time() {
        let shared = |allowed, addresses| {
            let Each { address, whole } = time_for_each(allowed, addresses);
            (address.as_millis(), whole.as_millis())
        };
        assert_eq!(shared(CONNECTION_TIME_MAX, 1), (2_000, 2_000));
        assert_eq!(shared(CONNECTION_TIME_MAX, 2), (1_000, 2_000));
        assert_eq!(shared(CONNECTION_TIME_MAX, 5), (700, 3_500));
        assert_eq!(shared(SERVER_TIME_MAX, 2), (700, 1_400));
        assert_eq!(shared(Duration::from_millis(100), 3), (100, 300));
    }

    #[test]
    fn server_that_both_connections_leave_is_left_once() {
        let url = StoreUrl::parse("nats://a,b").expect("a URL");
        let servers = Servers::new(url, "a and b".to_owned());
        for _connection in 0..2 {
            servers.pass_over(0);
            assert_eq!(servers.first.load(Ordering::Relaxed), 1);
        }
        servers.pass_over(1);
        assert_eq!(
            servers.first.load(Ordering::Relaxed),
            0,
            "after the last comes the first"
        );
    }

    /// One that greets takes longer than one server has where there are others.
    const AWAY: Duration = Duration::from_millis(250);

    #[tokio::test]
    async fn of_far_servers_one_that_falls_silent_costs_its_time_once_and_the_distance_is_known_on() {
        let server = NatsServer::start(NatsOptions::default()).await.expect("a server");
        let far = || {
            let proxy = FaultProxy::nats(server.address()).expect("a proxy");
            let (to_server, to_client) = (AWAY, AWAY);
            proxy.set(Fault::Delay { to_server, to_client });
            proxy
        };
        let (one, other) = (far(), far());
        // The kernel accepts, and nobody ever greets.
        let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let silent = silent.local_addr().expect("an address");
        let to = |others: &str| {
            let url = StoreUrl::parse(&format!("nats://{silent},{others}")).expect("a URL");
            let servers = Servers::new(url, "here".to_owned());
            servers.is_far.store(true, Ordering::Relaxed);
            servers
        };
        let servers = to(&format!("{},{}", one.address(), other.address()));
        // The one after it is the first that is given more.
        let dialled = servers.connect().await;
        assert!(dialled.is_ok(), "{:?}", dialled.err());
        assert_eq!(servers.first.load(Ordering::Relaxed), 1);
        assert!(servers.is_far.load(Ordering::Relaxed));

        let nobody = to(&silent.to_string());
        assert!(nobody.connect().await.is_err());
        assert!(nobody.is_far.load(Ordering::Relaxed), "nothing was learnt");
    }
}
