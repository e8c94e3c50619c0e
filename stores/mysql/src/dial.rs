//! Making a connection: to the first of the host's addresses at which somebody answers.

use crate::fault::{store_error, timed_out};
use crate::lane::{Sessions, lock};
use crate::session::Session;
use crate::short::ShortWay;
use crate::url::{Encryption, StoreUrl};
use mysql_async::{Conn, DriverError, Error, OptsBuilder, SslOpts};
use rustls::crypto::{CryptoProvider, ring};
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tenure_core::{Fault, StoreError};
use tenure_remote::Deed;
use tokio::net::lookup_host;

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
    pub(crate) async fn session(&self, sessions: Sessions, what: &str) -> Result<Session, StoreError> {
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
