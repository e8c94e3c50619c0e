//! One PostgreSQL server.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};

use super::super::clock::ServerClock;
use super::locate::{library_path, postgres_programs};
use super::{certificate, family, memory, unprivileged};
use crate::error::Error;
use crate::eventually::poll_until;
use crate::ports::free_port;
use crate::process::Process;
use crate::runtime::{on_runtime, runtime};
use crate::scratch::ScratchDir;

/// How clients prove who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Authentication {
    /// Not at all.
    Trust,
    /// By a password.
    Password,
    /// Not at all, but only over TLS.
    Encryption,
}

/// A PostgreSQL server on a free loopback port, killed and cleaned up on drop.
///
/// Run as root, the server is nobody's, as it refuses to be root's.
pub struct Postgres {
    port: u16,
    authentication: Authentication,
    settings: Vec<String>,
    clock: Option<ServerClock>,
    // Before the folder: fields are dropped in this order, and a running server would write into the folder.
    process: Option<Process>,
    folder: ScratchDir,
}

impl Postgres {
    /// Starts a server that lets everybody in as `postgres`, its superuser, and waits until it answers.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], or why the server did not start.
    pub async fn start() -> Result<Postgres, Error> {
        Self::start_as(Authentication::Trust, &[]).await
    }

    /// The same with settings of `postgresql.conf`, each as `name=value`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn with_settings(settings: &[&str]) -> Result<Postgres, Error> {
        Self::start_as(Authentication::Trust, settings).await
    }

    /// The same with a clock of its own.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn by(clock: &ServerClock) -> Result<Postgres, Error> {
        Self::start_with(Authentication::Trust, &[], Some(clock)).await
    }

    /// Starts a server that demands passwords, by SCRAM; the superuser's is in [`uri`](Self::uri).
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn with_passwords() -> Result<Postgres, Error> {
        Self::start_as(Authentication::Password, &[]).await
    }

    /// Starts a server that demands encryption, with a certificate for `localhost`; the root that signed it
    /// is in [`root_certificate`](Self::root_certificate).
    ///
    /// # Errors
    /// As [`start`](Self::start), and if the system has no `openssl`.
    pub async fn with_encryption() -> Result<Postgres, Error> {
        Self::start_as(Authentication::Encryption, &[]).await
    }

    /// The server that all tests of this process share; it ends with the process. Make a schema of your own.
    ///
    /// It does not wait for the disk (`fsync=off`): hundreds of tests on one disk would wait for nothing
    /// else.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn shared() -> &'static Postgres {
        static SHARED: OnceCell<Postgres> = OnceCell::const_new();
        SHARED
            .get_or_init(|| async {
                Postgres::with_settings(&["fsync=off"])
                    .await
                    .expect("the shared PostgreSQL starts")
            })
            .await
    }

    async fn start_as(authentication: Authentication, settings: &[&str]) -> Result<Postgres, Error> {
        Self::start_with(authentication, settings, None).await
    }

    async fn start_with(
        authentication: Authentication,
        settings: &[&str],
        clock: Option<&ServerClock>,
    ) -> Result<Postgres, Error> {
        let begin = || {
            let server = Postgres {
                port: free_port(),
                authentication,
                settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
                clock: clock.cloned(),
                process: None,
                folder: ScratchDir::new("postgres"),
            };
            server.initialise()?;
            Ok(server)
        };
        Self::launched(begin).await
    }

    /// A standby of this server, which follows it and takes no writes. It is synchronous if the server's
    /// `synchronous_standby_names` say so.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn standby(&self) -> Result<Postgres, Error> {
        let begin = || {
            let standby = Postgres {
                port: free_port(),
                authentication: self.authentication,
                settings: self.settings.clone(),
                clock: self.clock.clone(),
                process: None,
                folder: ScratchDir::new("postgres"),
            };
            let mut command = Command::new(postgres_programs()?.join("pg_basebackup"));
            command.arg("--pgdata").arg(standby.data()).args(COPY_FLAGS);
            command.arg(format!("--port={}", self.port));
            standby.fill_by(command)?;
            Ok(standby)
        };
        Self::launched(begin).await
    }

    /// Makes a standby the server that takes writes, and waits until it does.
    ///
    /// # Errors
    /// As [`client`](Self::client).
    pub async fn promote(&self) -> Result<(), Error> {
        self.execute("SELECT pg_promote(true, 60)").await
    }

    async fn launched(begin: impl Fn() -> Result<Postgres, Error>) -> Result<Postgres, Error> {
        let mut attempt = 1;
        loop {
            let mut server = begin()?;
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

    fn initialise(&self) -> Result<(), Error> {
        let mut command = Command::new(postgres_programs()?.join("initdb"));
        command.arg("--pgdata").arg(self.data()).args(INITDB_FLAGS);
        match self.authentication {
            Authentication::Trust | Authentication::Encryption => command.args(["--auth", "trust"]),
            Authentication::Password => {
                let file = self.folder.join("password");
                fs::write(&file, PASSWORD).map_err(Error::system("writing a password file"))?;
                command
                    .args(["--auth", "scram-sha-256"])
                    .arg("--pwfile")
                    .arg(file)
            }
        };
        self.fill_by(command)?;
        self.demand_encryption()
    }

    /// Has a program make the folder of the data.
    fn fill_by(&self, mut command: Command) -> Result<(), Error> {
        command.env("LD_LIBRARY_PATH", library_path());
        unprivileged::run_in(&mut command, self.folder.path())?;
        let what = command.get_program().display().to_string();
        let filling = Process::spawn(command)?;
        let status = filling.wait_for_exit(START_TIMEOUT)?;
        if status.success() {
            return Ok(());
        }
        let lines: Vec<String> = filling.lines().into_iter().map(|line| line.text).collect();
        Err(Error::Ended {
            what: format!("{what} ended with {status}"),
            tail: lines.join("\n"),
        })
    }

    fn demand_encryption(&self) -> Result<(), Error> {
        if self.authentication != Authentication::Encryption {
            return Ok(());
        }
        let folder = self.folder.path();
        certificate::write(folder)?;
        let mut nobody = Command::new("true");
        unprivileged::run_in(&mut nobody, &folder.join("server.key"))?;
        let rules = "hostssl all all 127.0.0.1/32 trust\n";
        fs::write(self.data().join("pg_hba.conf"), rules).map_err(Error::system("writing pg_hba.conf"))
    }

    async fn launch(&mut self) -> Result<(), Error> {
        let mut command = Command::new(postgres_programs()?.join("postgres"));
        command.arg("-D").arg(self.data());
        let own = [
            format!("port={}", self.port),
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".to_owned(),
            "shared_buffers=32MB".to_owned(),
            "max_connections=400".to_owned(),
            // In files of the server's folder: what is in memory outlives a server that is killed.
            "dynamic_shared_memory_type=mmap".to_owned(),
        ];
        let encryption = [
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", self.folder.join("server.crt").display()),
            format!("ssl_key_file={}", self.folder.join("server.key").display()),
        ];
        let encryption = match self.authentication {
            Authentication::Encryption => &encryption[..],
            Authentication::Trust | Authentication::Password => &[],
        };
        for setting in own.iter().chain(encryption).chain(&self.settings) {
            command.arg("-c").arg(setting);
        }
        command.env("LD_LIBRARY_PATH", library_path());
        if let Some(clock) = &self.clock {
            clock.give(&mut command);
        }
        unprivileged::run_in(&mut command, self.folder.path())?;
        self.process = Some(Process::spawn(command)?);
        let what = format!("answer of PostgreSQL on {}", self.address());
        let look = || async {
            if let Some(ended) = self.ended() {
                return Ok(Err(ended));
            }
            match self.authentication {
                // Whoever does not encrypt is refused: that is an answer, too.
                Authentication::Encryption => match self.execute("SELECT 1").await {
                    Err(error) if error.to_string().contains("pg_hba.conf") => Ok(Ok(())),
                    answer => answer.map(Ok),
                },
                Authentication::Trust | Authentication::Password => self.execute("SELECT 1").await.map(Ok),
            }
        };
        poll_until(START_TIMEOUT, &what, look).await?
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

    /// URL of the database `postgres`, as the superuser.
    #[must_use]
    pub fn uri(&self) -> String {
        self.uri_of("postgres")
    }

    /// URL of another database, as the superuser.
    #[must_use]
    pub fn uri_of(&self, database: &str) -> String {
        match self.authentication {
            Authentication::Trust | Authentication::Encryption => self.uri_as("postgres", None, database),
            Authentication::Password => self.uri_as("postgres", Some(PASSWORD), database),
        }
    }

    /// URL with these credentials, be they right or wrong; none has a character that a URL must encode.
    #[must_use]
    pub fn uri_as(&self, user: &str, password: Option<&str>, database: &str) -> String {
        let password = password
            .map(|password| format!(":{password}"))
            .unwrap_or_default();
        format!("postgres://{user}{password}@{}/{database}", self.address())
    }

    /// The file of the root that signed the certificate of a server that was started
    /// [`with_encryption`](Self::with_encryption).
    #[must_use]
    pub fn root_certificate(&self) -> PathBuf {
        self.folder.join("root.crt")
    }

    /// A client of the database at `uri`, on the kit's own runtime.
    ///
    /// # Errors
    /// [`Error::Query`] with the server's answer, [`Error::TimedOut`].
    pub async fn client(uri: &str) -> Result<Client, Error> {
        let (uri, what) = (uri.to_owned(), "connecting to PostgreSQL".to_owned());
        let connecting = on_runtime(async move {
            let connecting = tokio_postgres::connect(&uri, NoTls);
            let (client, connection) = tokio::time::timeout(PROBE_TIMEOUT, connecting).await??;
            // Ends when its client is dropped; what went wrong, the client is told as well.
            runtime().spawn(async { drop(connection.await) });
            Ok(client)
        });
        connecting
            .await
            .map_err(|source: Box<dyn std::error::Error + Send + Sync>| Error::Query { doing: what, source })
    }

    /// Runs statements in the database `postgres` as the superuser.
    ///
    /// # Errors
    /// As [`client`](Self::client).
    pub async fn execute(&self, statements: &str) -> Result<(), Error> {
        Self::execute_at(&self.uri(), statements).await
    }

    /// Runs statements in the database at `uri`.
    ///
    /// # Errors
    /// As [`client`](Self::client).
    pub async fn execute_at(uri: &str, statements: &str) -> Result<(), Error> {
        let client = Self::client(uri).await?;
        let answer = client.batch_execute(statements).await;
        answer.map_err(|error| Error::Query {
            doing: "a statement on PostgreSQL".to_owned(),
            source: Box::new(error),
        })
    }

    /// Process number, or nothing after [`kill`](Self::kill).
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// Stops the server and all its children with SIGSTOP: connections stay open, nothing is answered.
    ///
    /// # Panics
    /// When it was killed.
    pub fn freeze(&self) {
        family::freeze(self.pid().expect("a server that is to be frozen runs"));
    }

    /// Lets a frozen server go on.
    ///
    /// # Panics
    /// When it was killed.
    pub fn thaw(&self) {
        family::thaw(self.pid().expect("a server that is to be thawed runs"));
    }

    /// Lets no file of the server grow beyond so many bytes, or again as far as it likes: it finds its disk
    /// full.
    ///
    /// # Errors
    /// If the system refuses.
    ///
    /// # Panics
    /// When it was killed.
    pub fn limit_files(&self, bytes_max: Option<u64>) -> Result<(), Error> {
        let pid = self.pid().expect("a server that is to be limited runs");
        family::limit_files(pid, bytes_max)
    }

    /// Kills the server and all its children with SIGKILL. Its port and what it has confirmed stay.
    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            family::kill(process.pid());
            memory::remove(&self.data());
        }
    }

    /// Kills the server if it runs, starts it on the same port and data, and waits until it answers.
    ///
    /// # Errors
    /// Why it did not start.
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.kill();
        self.launch().await
    }

    pub(super) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn ended(&self) -> Option<Error> {
        let process = self.process.as_ref()?;
        let status = process.status()?;
        let lines: Vec<String> = process.lines().into_iter().map(|line| line.text).collect();
        Some(Error::Ended {
            what: format!("PostgreSQL on port {} ended while starting ({status})", self.port),
            tail: lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"),
        })
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

const INITDB_FLAGS: &[&str] = &[
    "--username",
    "postgres",
    "--no-sync",
    "--no-locale",
    "--encoding",
    "UTF8",
];
const COPY_FLAGS: &[&str] = &[
    "--host=127.0.0.1",
    "--username=postgres",
    "--checkpoint=fast",
    "--no-sync",
    "--write-recovery-conf",
];
/// It guards scratch data on loopback.
const PASSWORD: &str = "tenureTestkitScratch";
const PORT_ATTEMPTS: u32 = 5;
const TAIL_LINES: usize = 10;
/// Long, as a busy machine may need it; nothing waits longer than the server does.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
