//! Connections, each replaced when it breaks. The driver's own pool waits for a silent one without end.

use crate::fault::{store_error, timed_out};
use crate::session::Session;
use crate::short::ShortWay;
use crate::url::{Encryption, StoreUrl};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, DriverError, Error, OptsBuilder, SslOpts};
use rustls::crypto::{CryptoProvider, ring};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::{Fault, StoreError};
use tenure_remote::Deed;
use tokio::net::lookup_host;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;

/// How long a connection that has just answered is believed to be there. After that it is asked before it is used: a write
/// on one that the server has closed would be uncertain for nothing.
const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// How long it may take to say that it is there.
const PING_TIME_MAX: Duration = Duration::from_secs(1);

/// After what silence the system asks whether the other side is still there.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);

/// Largest answer that is read, in bytes: more than the records of a batch have.
const PACKET_BYTES_MAX: usize = 64 << 20;

/// What the driver believes of the server's `wait_timeout`, in seconds; only its pool, which is not used, acts on it.
const WAIT_TIMEOUT_S: usize = 28_800;

/// How connections are made.
pub(crate) struct Dial {
    pub(crate) url: StoreUrl,
    /// For messages; it holds no secret.
    pub(crate) place: String,
    /// How long making a connection may take in all.
    pub(crate) time_max: Duration,
    /// Which of the host's addresses answered last.
    answered: Mutex<Option<IpAddr>>,
}

impl Dial {
    pub(crate) fn new(url: StoreUrl, time_max: Duration) -> Self {
        Self {
            place: url.place(),
            url,
            time_max,
            answered: Mutex::default(),
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// Not applied: nothing was asked yet.
    pub(crate) async fn open(&self, what: &str) -> Result<Conn, StoreError> {
        let began = Instant::now();
        let found = lookup_host((self.url.host.as_str(), self.url.port));
        let found = tokio::time::timeout(self.time_max, found)
            .await
            .map_err(|_late| timed_out(Deed::Read, what, &self.place, self.time_max))?
            .map_err(|error| store_error(&error.into(), Deed::Read, what, &self.place))?;
        let mut addresses: Vec<IpAddr> = found.map(|found| found.ip()).collect();
        let answered = *lock(&self.answered);
        addresses.sort_by_key(|address| answered != Some(*address));
        self.open_at(&addresses, self.time_max.saturating_sub(began.elapsed()), what)
            .await
    }

    /// Has the next dial begin with whichever address the name leads to first.
    pub(crate) fn forget(&self) {
        *lock(&self.answered) = None;
    }

    /// Connects to the first of these addresses at which somebody answers, each within its share of the time. The driver would
    /// wait at one that is dead, as those of a family that leads nowhere are, until none was left for the others.
    async fn open_at(
        &self,
        addresses: &[IpAddr],
        time_max: Duration,
        what: &str,
    ) -> Result<Conn, StoreError> {
        let share = time_max / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        let mut failed = StoreError::not_applied(
            Fault::Unreachable,
            format!("{what} at {}: the host has no address", self.place),
        );
        for address in addresses {
            match tokio::time::timeout(share, self.login(*address)).await {
                Ok(Ok(conn)) => {
                    *lock(&self.answered) = Some(*address);
                    return Ok(conn);
                }
                Ok(Err(error)) => {
                    failed = store_error(&error, Deed::Read, what, &self.place);
                    if matches!(error, Error::Server(_)) {
                        // It is the server that was looked for, and has said what is wrong.
                        return Err(failed);
                    }
                }
                Err(_late) => failed = timed_out(Deed::Read, what, &self.place, share),
            }
        }
        Err(failed)
    }

    async fn login(&self, address: IpAddr) -> Result<Conn, Error> {
        let at = |encryption| self.options(encryption).resolved_ips(Some(vec![address]));
        match Conn::new(at(self.url.encryption)).await {
            Err(Error::Driver(DriverError::NoClientSslFlagFromServer))
                if self.url.encryption == Encryption::Preferred =>
            {
                Conn::new(at(Encryption::Disabled)).await
            }
            answer => answer,
        }
    }

    /// Connects, and makes the session ready for the requests of these lanes: who is handed one out has no more to wait for than
    /// his own answer. What the server refuses of that leaves a session without the short way.
    ///
    /// # Errors
    /// Not applied: nothing was asked yet.
    async fn session(&self, sessions: Sessions, what: &str) -> Result<Session, StoreError> {
        let mut session = Session::new(self.open(what).await?);
        if sessions == Sessions::WithShortWay {
            session.short_way = tokio::time::timeout(self.time_max, ShortWay::open(session.conn()))
                .await
                .map_err(|_late| timed_out(Deed::Read, what, &self.place, self.time_max))?
                .map_err(|error| store_error(&error, Deed::Read, what, &self.place))?;
        }
        Ok(session)
    }

    fn options(&self, encryption: Encryption) -> OptsBuilder {
        OptsBuilder::default()
            .ip_or_hostname(self.url.host.as_str())
            .tcp_port(self.url.port)
            .user(self.url.user.as_deref())
            .pass(self.url.password.as_deref())
            .db_name(Some(self.url.database.as_str()))
            .ssl_opts(self.encryption(encryption))
            .tcp_keepalive(Some(KEEPALIVE_AFTER))
            // Each of these would be asked of the server when connecting, and on loopback it would move to its socket.
            .prefer_socket(false)
            .max_allowed_packet(Some(PACKET_BYTES_MAX))
            .wait_timeout(Some(WAIT_TIMEOUT_S))
            // Nothing is prepared but by name of the short way, which looks for a pooler before: that may give the next
            // statement another server connection.
            .stmt_cache_size(0)
    }

    fn encryption(&self, encryption: Encryption) -> Option<SslOpts> {
        let anybody = matches!(encryption, Encryption::Preferred | Encryption::Required);
        if encryption == Encryption::Disabled {
            return None;
        }
        // The driver takes the provider that the process has chosen, and panics where several are compiled in and none was.
        if CryptoProvider::get_default().is_none() {
            let _chosen_meanwhile = ring::default_provider().install_default();
        }
        let roots = self.url.roots.iter().map(|path| path.clone().into()).collect();
        Some(
            SslOpts::default()
                .with_root_certs(roots)
                .with_disable_built_in_roots(self.url.roots.is_some())
                .with_danger_accept_invalid_certs(anybody)
                .with_danger_skip_domain_validation(anybody),
        )
    }
}

/// What the sessions of some lanes are made ready for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sessions {
    Plain,
    WithShortWay,
}

/// A bounded number of connections for one purpose, each for one request at a time, made when they are needed.
pub(crate) struct Lanes {
    sessions: Sessions,
    places: Semaphore,
    idle: Mutex<Vec<Idle>>,
    /// A dial whose caller gave up. The engine's patience may be shorter than a login takes: a dial that ended with it would
    /// be begun anew by each caller, and none would ever have a connection.
    left: Mutex<Option<Dialling>>,
}

/// A dial under way, or one that ended when nobody waited for it.
type Dialling = JoinHandle<Result<Session, StoreError>>;

struct Idle {
    session: Session,
    /// When it answered last; `None` when it is not to be believed.
    answered_at: Option<Instant>,
}

impl Lanes {
    pub(crate) fn new(width: usize, sessions: Sessions) -> Self {
        Self {
            sessions,
            places: Semaphore::new(width),
            idle: Mutex::default(),
            left: Mutex::default(),
        }
    }

    /// A connection that works, as far as can be known; waits for one where all are in use.
    ///
    /// # Errors
    /// As [`Dial::open`].
    pub(crate) async fn enter<'a>(
        &'a self,
        dial: &Arc<Dial>,
        what: &str,
    ) -> Result<UnderWay<'a>, StoreError> {
        let place = self
            .places
            .acquire()
            .await
            .expect("the semaphore is never closed");
        let mut under_way = UnderWay {
            lanes: self,
            session: None,
            _place: place,
        };
        let latest = lock(&self.idle).pop();
        if let Some(Idle { session, answered_at }) = latest {
            under_way.session = Some(session);
            if answered_at.is_some_and(|at| at.elapsed() < TRUSTED_FOR) || under_way.answers().await {
                return Ok(under_way);
            }
            under_way.session = None;
            self.distrust();
        }
        under_way.session = self.left_behind().await;
        if under_way.session.is_some() && under_way.answers().await {
            return Ok(under_way);
        }
        under_way.session = None;
        under_way.session = Some(self.dialled(dial, what).await?);
        Ok(under_way)
    }

    /// The connection that a dial came to when nobody waited for it any more.
    async fn left_behind(&self) -> Option<Session> {
        let left = lock(&self.left).take_if(|left| left.is_finished())?;
        left.await.ok()?.ok()
    }

    /// A new connection: what a dial that another caller has left comes to, or one of the caller's own, whichever is there
    /// first. The earlier may wait for an answer that was lost; and for the later there may not be the time.
    async fn dialled(&self, dial: &Arc<Dial>, what: &str) -> Result<Session, StoreError> {
        let left = lock(&self.left).take();
        let (dial, what, sessions) = (Arc::clone(dial), what.to_owned(), self.sessions);
        let mut dials = Dials {
            lanes: self,
            left,
            own: Some(tokio::spawn(async move { dial.session(sessions, &what).await })),
        };
        let (left, own) = (&mut dials.left, &mut dials.own);
        if left.is_none() {
            return ended(own).await;
        }
        let session = tokio::select! {
            biased;
            earlier = ended(left) => match earlier {
                Ok(session) => session,
                Err(_) => ended(own).await?,
            },
            // Where both fail, this error is of this caller's subject.
            later = ended(own) => match later {
                Ok(session) => session,
                Err(error) => ended(left).await.map_err(|_| error)?,
            },
        };
        // The other one is needed no more.
        dials.abort();
        Ok(session)
    }

    /// Has every connection be asked before it is used: one has broken, and the others may have as well.
    pub(crate) fn distrust(&self) {
        for idle in lock(&self.idle).iter_mut() {
            idle.answered_at = None;
        }
    }

    /// Lets go of the connections that nobody uses.
    pub(crate) fn close(&self) {
        drop(std::mem::take(&mut *lock(&self.idle)));
        if let Some(left) = lock(&self.left).take() {
            left.abort();
        }
    }
}

/// The dials that one caller waits for. Who gives up leaves the earlier one to the next.
struct Dials<'a> {
    lanes: &'a Lanes,
    left: Option<Dialling>,
    own: Option<Dialling>,
}

impl Dials<'_> {
    fn abort(&mut self) {
        for dialling in [self.left.take(), self.own.take()].into_iter().flatten() {
            dialling.abort();
        }
    }
}

impl Drop for Dials<'_> {
    fn drop(&mut self) {
        for dialling in [self.left.take(), self.own.take()].into_iter().flatten() {
            let mut place = lock(&self.lanes.left);
            if place.is_none() {
                *place = Some(dialling);
            } else {
                dialling.abort();
            }
        }
    }
}

/// Waits for a dial, and forgets it when it has ended and not before.
async fn ended(dialling: &mut Option<Dialling>) -> Result<Session, StoreError> {
    let ended = dialling.as_mut().expect("a dial is under way").await;
    *dialling = None;
    let broken = |_| StoreError::not_applied(Fault::Internal, "connecting to MySQL broke off; ask again");
    ended.map_err(broken)?
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request under way. Dropped without an answer, it closes its connection: the other side may be gone without a word, or
/// its answer may still come.
pub(crate) struct UnderWay<'a> {
    lanes: &'a Lanes,
    session: Option<Session>,
    _place: SemaphorePermit<'a>,
}

impl UnderWay<'_> {
    pub(crate) fn session(&mut self) -> &mut Session {
        self.session
            .as_mut()
            .expect("a request under way has a connection")
    }

    /// The connection may be used again.
    pub(crate) fn answered(mut self) {
        if let Some(session) = self.session.take() {
            let answered_at = Some(Instant::now());
            lock(&self.lanes.idle).push(Idle { session, answered_at });
        }
    }

    async fn answers(&mut self) -> bool {
        let asked = tokio::time::timeout(PING_TIME_MAX, self.session().conn().ping()).await;
        matches!(asked, Ok(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::Dial;
    use crate::url::StoreUrl;
    use std::net::{IpAddr, Ipv4Addr, TcpListener};
    use std::time::Duration;
    use tenure_testkit::Mariadb;

    /// Half of it goes by at the address that is dead.
    const TIME_MAX: Duration = Duration::from_secs(10);

    /// A host may have two addresses, as of both families, of which one leads nowhere.
    #[tokio::test]
    async fn dead_address_of_a_host_of_mysql_is_passed_by() {
        let server = Mariadb::shared().await;
        let dead = Ipv4Addr::new(127, 0, 0, 2);
        // It greets nobody.
        let _silent = TcpListener::bind((dead, server.port())).expect("the port is another address's");
        let url = StoreUrl::parse(&server.uri_of("mysql")).unwrap_or_else(|error| panic!("{error}"));
        let dial = Dial::new(url, TIME_MAX);
        let addresses = [IpAddr::V4(dead), IpAddr::V4(Ipv4Addr::LOCALHOST)];
        let opened = dial.open_at(&addresses, TIME_MAX, "a dial").await;
        assert!(opened.is_ok(), "{opened:?}");
        assert_eq!(*super::lock(&dial.answered), Some(addresses[1]));
    }
}
