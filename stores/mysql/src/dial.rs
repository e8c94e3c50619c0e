//! Making a connection: to the first of the host's addresses at which somebody answers.

use crate::fault::{store_error, timed_out};
use crate::greeting::{Greeted, greeted};
use crate::lane::{Sessions, lock};
use crate::one_store::OneStore;
use crate::session::{Session, farewell};
use crate::short::ShortWay;
use crate::url::{Encryption, StoreUrl};
use mysql_async::{ClientIdentity, Conn, DriverError, Error, OptsBuilder, SslOpts};
use rustls::crypto::{CryptoProvider, ring};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tenure_core::{Fault, StoreError};
use tenure_remote::{Deed, none_lets_in};
use tokio::net::lookup_host;

/// After what silence the system asks whether the other side is still there.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);

/// Largest answer that is read, in bytes: more than the records of a batch have.
const PACKET_BYTES_MAX: usize = 64 << 20;

/// What the driver believes of the server's `wait_timeout`, in seconds; only its pool, which is not used,
/// acts on it.
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
    pub(crate) store: OneStore,
}

impl Dial {
    pub(crate) fn new(url: StoreUrl, time_max: Duration) -> Self {
        Self {
            place: url.place(),
            url,
            time_max,
            answered: Mutex::default(),
            store: OneStore::default(),
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// As [`Dial::open_greeted`].
    pub(crate) async fn open(&self, what: &str) -> Result<Conn, StoreError> {
        Ok(self.open_greeted(what).await?.conn)
    }

    /// Connects, to nobody but the store that was connected to first.
    ///
    /// # Errors
    /// Not applied: nothing was asked yet.
    async fn open_greeted(&self, what: &str) -> Result<Greeted, StoreError> {
        let began = Instant::now();
        let mut addresses = self.addresses(what).await?;
        let answered = self.answered();
        addresses.sort_by_key(|address| answered != Some(*address));
        self.open_at(&addresses, self.time_max.saturating_sub(began.elapsed()), what)
            .await
    }

    /// The addresses of the host.
    ///
    /// # Errors
    /// As [`Dial::open_greeted`].
    pub(crate) async fn addresses(&self, what: &str) -> Result<Vec<IpAddr>, StoreError> {
        let found = lookup_host((self.url.host.as_str(), self.url.port));
        let found = tokio::time::timeout(self.time_max, found)
            .await
            .map_err(|_late| timed_out(Deed::Read, what, &self.place, self.time_max))?
            .map_err(|error| store_error(&error.into(), Deed::Read, what, &self.place))?;
        Ok(found.map(|found| found.ip()).collect())
    }

    /// Which of the addresses answered last.
    pub(crate) fn answered(&self) -> Option<IpAddr> {
        *lock(&self.answered)
    }

    /// Has the next dial begin with whichever address the name leads to first.
    pub(crate) fn forget(&self) {
        *lock(&self.answered) = None;
    }

    /// Connects to the first of these addresses at which somebody of the store answers, each within its share
    /// of the time. The driver would wait at one that is dead, as those of a family that leads nowhere are,
    /// until none was left for the others.
    pub(crate) async fn open_at(
        &self,
        addresses: &[IpAddr],
        time_max: Duration,
        what: &str,
    ) -> Result<Greeted, StoreError> {
        let share = time_max / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        let failed_by =
            |fault, why: String| StoreError::not_applied(fault, format!("{what} at {}: {why}", self.place));
        let mut failed = Vec::new();
        for address in addresses {
            match tokio::time::timeout(share, self.greet(*address)).await {
                Ok(Ok(greeted)) => match self.store.check(*address, greeted.store) {
                    Ok(()) => {
                        *lock(&self.answered) = Some(*address);
                        return Ok(greeted);
                    }
                    Err(why) => {
                        farewell(greeted.conn);
                        failed.push(failed_by(Fault::AnotherStore, why));
                    }
                },
                Ok(Err(error)) => {
                    let told = store_error(&error, Deed::Read, what, &self.place);
                    if matches!(error, Error::Server(_)) {
                        // It is the server that was looked for, and has said what is wrong.
                        return Err(told);
                    }
                    failed.push(told);
                }
                Err(_late) => failed.push(timed_out(Deed::Read, what, &self.place, share)),
            }
        }
        if failed.is_empty() {
            failed.push(failed_by(
                Fault::Unreachable,
                "the host has no address".to_owned(),
            ));
        }
        Err(none_lets_in(failed))
    }

    /// Connects, and has the server say whose tables it has before it is asked anything else.
    pub(crate) async fn greet(&self, address: IpAddr) -> Result<Greeted, Error> {
        let at = |encryption| self.options(encryption).resolved_ips(Some(vec![address]));
        let conn = match Conn::new(at(self.url.encryption)).await {
            Err(Error::Driver(DriverError::NoClientSslFlagFromServer))
                if self.url.encryption == Encryption::Preferred =>
            {
                Conn::new(at(Encryption::Disabled)).await?
            }
            answer => answer?,
        };
        greeted(conn).await
    }

    /// Connects, and makes the session ready for the requests of these lanes: who is handed one out has no
    /// more to wait for than his own answer. What the server refuses of that leaves a session without the
    /// short way.
    ///
    /// # Errors
    /// Not applied: nothing was asked yet.
    pub(crate) async fn session(&self, sessions: Sessions, what: &str) -> Result<Session, StoreError> {
        let Greeted { conn, is_fit, .. } = self.open_greeted(what).await?;
        let mut session = Session::new(conn);
        if is_fit && sessions == Sessions::WithShortWay {
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
            // Each of these would be asked of the server when connecting, and on loopback it would move to
            // its socket.
            .prefer_socket(false)
            .max_allowed_packet(Some(PACKET_BYTES_MAX))
            .wait_timeout(Some(WAIT_TIMEOUT_S))
            // Nothing is prepared but by name of the short way, which looks for a pooler before: that may
            // give the next statement another server connection.
            .stmt_cache_size(0)
    }

    fn encryption(&self, encryption: Encryption) -> Option<SslOpts> {
        let anybody = matches!(encryption, Encryption::Preferred | Encryption::Required);
        if encryption == Encryption::Disabled {
            return None;
        }
        // The driver takes the provider that the process has chosen, and panics where several are compiled in
        // and none was.
        if CryptoProvider::get_default().is_none() {
            let _chosen_meanwhile = ring::default_provider().install_default();
        }
        let files = &self.url.files;
        let file = |path: &Path| path.to_path_buf().into();
        let identity = files.identity();
        Some(
            SslOpts::default()
                .with_root_certs(files.roots().map(file).into_iter().collect())
                .with_disable_built_in_roots(files.roots().is_some())
                .with_client_identity(identity.map(|(own, key)| ClientIdentity::new(file(own), file(key))))
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
        assert!(opened.is_ok(), "{:?}", opened.err());
        assert_eq!(dial.answered(), Some(addresses[1]));
    }
}
