//! One MariaDB server.

use std::path::PathBuf;
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, OptsBuilder};
use tokio::sync::OnceCell;

use super::super::clock::ServerClock;
use super::family::{SqlFamily, server_command};
use super::locate::{initialised, mariadb_program};
use crate::error::Error;
use crate::eventually::poll_until;
use crate::fetch::initialise_mariadb;
use crate::ports::free_port;
use crate::process::Process;
use crate::runtime::on_runtime;
use crate::scratch::{ScratchDir, copy_folder};
use crate::servers::postgres::certificate;

/// Whether clients must encrypt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    /// As they like; the server cannot.
    Plain,
    /// The server can.
    Encryption,
}

/// A MariaDB server on a free loopback port, killed and cleaned up on drop. Its superuser is `root`, without
/// a password. Where `TESTKIT_MARIADB` names a `mysqld`, it is a MySQL: see [`family`](Self::family).
pub struct Mariadb {
    port: u16,
    family: SqlFamily,
    transport: Transport,
    settings: Vec<String>,
    clock: Option<ServerClock>,
    // Before the folder: fields are dropped in this order, and a running server would write into the folder.
    process: Option<Process>,
    folder: ScratchDir,
}

impl Mariadb {
    /// Starts a server, and waits until it answers.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], or why the server did not start.
    pub async fn start() -> Result<Mariadb, Error> {
        Self::start_as(Transport::Plain, &[]).await
    }

    /// The same with settings of the server's command line, each as `name=value`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn with_settings(settings: &[&str]) -> Result<Mariadb, Error> {
        Self::start_as(Transport::Plain, settings).await
    }

    /// The same with a clock of its own.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn by(clock: &ServerClock) -> Result<Mariadb, Error> {
        Self::start_with(Transport::Plain, &[], Some(clock)).await
    }

    /// Starts a server that can encrypt, with a certificate for `localhost`; the root that signed it is in
    /// [`root_certificate`](Self::root_certificate).
    ///
    /// # Errors
    /// As [`start`](Self::start), and if the system has no `openssl`.
    pub async fn with_encryption() -> Result<Mariadb, Error> {
        Self::start_as(Transport::Encryption, &[]).await
    }

    /// The server that all tests of this process share; it ends with the process. Make a database of your
    /// own.
    ///
    /// It does not wait for the disk: hundreds of tests on one disk would wait for nothing else.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn shared() -> &'static Mariadb {
        static SHARED: OnceCell<Mariadb> = OnceCell::const_new();
        SHARED
            .get_or_init(|| async {
                Mariadb::with_settings(&["innodb-flush-log-at-trx-commit=0"])
                    .await
                    .expect("the shared MariaDB starts")
            })
            .await
    }

    async fn start_as(transport: Transport, settings: &[&str]) -> Result<Mariadb, Error> {
        Self::start_with(transport, settings, None).await
    }

    async fn start_with(
        transport: Transport,
        settings: &[&str],
        clock: Option<&ServerClock>,
    ) -> Result<Mariadb, Error> {
        let mut attempt = 1;
        loop {
            let program = mariadb_program()?;
            let mut server = Mariadb {
                port: free_port(),
                family: SqlFamily::of(&program)?,
                transport,
                settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
                clock: clock.cloned(),
                process: None,
                folder: ScratchDir::new("mariadb"),
            };
            initialise_mariadb(&program)?;
            copy_folder(&initialised(&program)?, &server.data())?;
            if transport == Transport::Encryption {
                certificate::write(server.folder.path())?;
            }
            match server.launch().await {
                Ok(()) => return Ok(server),
                // A stranger took the port between our look and the server's.
                Err(Error::Ended { tail, .. }) if tail.contains("in use") && attempt < PORT_ATTEMPTS => {
                    attempt += 1
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn launch(&mut self) -> Result<(), Error> {
        let mut command = server_command(&mariadb_program()?);
        command.args(FLAGS).args(self.family.flags());
        command.arg(format!("--datadir={}", self.data().display()));
        // In the one that all share, a server that starts removes what the others have there.
        command.arg(format!("--tmpdir={}", self.folder.path().display()));
        command.arg(format!("--port={}", self.port));
        if self.transport == Transport::Encryption {
            for (option, file) in [
                ("ssl-cert", "server.crt"),
                ("ssl-key", "server.key"),
                ("ssl-ca", "root.crt"),
            ] {
                command.arg(format!("--{option}={}", self.folder.join(file).display()));
            }
        } else {
            command.args(self.family.without_encryption());
        }
        for setting in &self.settings {
            command.arg(format!("--{setting}"));
        }
        if let Some(clock) = &self.clock {
            clock.give(&mut command);
        }
        self.process = Some(Process::spawn(command)?);
        let what = format!("answer of MariaDB on {}", self.address());
        let look = || async {
            match self.ended() {
                Some(ended) => Ok(Err(ended)),
                None => self.execute("SELECT 1").await.map(Ok),
            }
        };
        poll_until(START_TIMEOUT, &what, look).await?
    }

    /// Whose server it is: tests are the same for both, but for what they set up in words that one of them
    /// does not know.
    #[must_use]
    pub fn family(&self) -> SqlFamily {
        self.family
    }

    /// `127.0.0.1:port`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// URL of a database, as the superuser. The database `mysql` is always there.
    #[must_use]
    pub fn uri_of(&self, database: &str) -> String {
        format!("mysql://root@{}/{database}", self.address())
    }

    /// URL with these credentials, be they right or wrong; none has a character that a URL must encode.
    #[must_use]
    pub fn uri_as(&self, user: &str, password: &str, database: &str) -> String {
        format!("mysql://{user}:{password}@{}/{database}", self.address())
    }

    /// The file of the root that signed the certificate of a server that was started
    /// [`with_encryption`](Self::with_encryption).
    #[must_use]
    pub fn root_certificate(&self) -> PathBuf {
        self.folder.join("root.crt")
    }

    /// A client of the database at `uri`, which must have no options.
    ///
    /// # Errors
    /// [`Error::Query`] with the server's answer.
    pub async fn client(uri: &str) -> Result<Conn, Error> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::Query {
            doing: "connecting to MariaDB".to_owned(),
            source,
        };
        let options = Opts::from_url(uri).map_err(|error| failed(Box::new(error)))?;
        // It would look for the server's own socket otherwise.
        let options = OptsBuilder::from_opts(options).prefer_socket(false);
        let connecting = async move { tokio::time::timeout(PROBE_TIMEOUT, Conn::new(options)).await };
        let connected = on_runtime(connecting)
            .await
            .map_err(|late| failed(Box::new(late)))?;
        connected.map_err(|error| failed(Box::new(error)))
    }

    /// Runs statements as the superuser, in the database `mysql`.
    ///
    /// # Errors
    /// As [`client`](Self::client).
    pub async fn execute(&self, statements: &str) -> Result<(), Error> {
        Self::execute_at(&self.uri_of("mysql"), statements).await
    }

    /// Runs statements in the database at `uri`.
    ///
    /// # Errors
    /// As [`client`](Self::client).
    pub async fn execute_at(uri: &str, statements: &str) -> Result<(), Error> {
        let mut client = Self::client(uri).await?;
        let answer = client.query_drop(statements).await;
        answer.map_err(|error| Error::Query {
            doing: "a statement on MariaDB".to_owned(),
            source: Box::new(error),
        })
    }

    /// Process number, or nothing after [`kill`](Self::kill).
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// Stops the server with SIGSTOP: connections stay open, nothing is answered.
    ///
    /// # Panics
    /// When it was killed.
    pub fn freeze(&self) {
        self.running().freeze();
    }

    /// Lets a frozen server go on.
    ///
    /// # Panics
    /// When it was killed.
    pub fn thaw(&self) {
        self.running().thaw();
    }

    /// Kills the server with SIGKILL. Its port and what it has confirmed stay.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Kills the server if it runs, starts it on the same port and data, and waits until it answers.
    ///
    /// # Errors
    /// Why it did not start.
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.kill();
        self.launch().await
    }

    /// The same with other settings than it was started with.
    ///
    /// # Errors
    /// Why it did not start.
    pub async fn restart_with(&mut self, settings: &[&str]) -> Result<(), Error> {
        self.settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        self.restart().await
    }

    fn running(&self) -> &Process {
        self.process
            .as_ref()
            .expect("the server runs: it was not killed, or was restarted since")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn ended(&self) -> Option<Error> {
        let process = self.process.as_ref()?;
        let status = process.status()?;
        let lines: Vec<String> = process.lines().into_iter().map(|line| line.text).collect();
        Some(Error::Ended {
            what: format!("MariaDB on port {} ended while starting ({status})", self.port),
            tail: lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"),
        })
    }
}

/// Small, quiet, and reached by its port alone; the socket's path is relative to the data, as it must be
/// short.
const FLAGS: &[&str] = &[
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--socket=socket",
    "--innodb-buffer-pool-size=32M",
    "--max-connections=400",
    "--pid-file=pid",
];
const PORT_ATTEMPTS: u32 = 5;
const TAIL_LINES: usize = 15;
/// Long, as a busy machine may need it; nothing waits longer than the server does.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(180);
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
