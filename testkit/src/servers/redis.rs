//! One Redis or Valkey process with its port and its data.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::clock::ServerClock;
use super::locate::redis_program;
use crate::error::Error;
use crate::eventually::poll_until;
use crate::network::Network;
use crate::ports::{free_port, free_port_with};
use crate::process::Process;
use crate::scratch::ScratchDir;

/// Which of the two servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RedisBuild {
    /// Redis, as the system's packages have it.
    #[default]
    Redis,
    /// Valkey 9.1.
    Valkey,
}

/// How a server is started.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    /// Which server.
    pub build: RedisBuild,
    /// Further words of its command line, such as `--appendonly yes`. Without any it keeps nothing on disk.
    pub settings: Vec<String>,
    /// The password of the user `default`; without one everybody is let in.
    pub password: Option<String>,
    /// A clock of its own, for [`Valkey`](RedisBuild::Valkey) alone; without one it has this machine's.
    pub clock: Option<ServerClock>,
    /// What is between it and others, where it can be cut.
    pub network: Option<Network>,
}

impl RedisOptions {
    /// With these settings, as they stand on a command line.
    #[must_use]
    pub fn with(settings: &str) -> RedisOptions {
        RedisOptions {
            settings: settings.split_whitespace().map(str::to_owned).collect(),
            ..RedisOptions::default()
        }
    }

    /// Each write is on disk before it is confirmed.
    #[must_use]
    pub fn durable() -> RedisOptions {
        RedisOptions::with("--appendonly yes --appendfsync always")
    }

    /// The same of a server that can be cut from others on this network.
    #[must_use]
    pub fn on(mut self, network: &Network) -> RedisOptions {
        self.network = Some(network.clone());
        self
    }

    /// The same with another server.
    #[must_use]
    pub fn of(mut self, build: RedisBuild) -> RedisOptions {
        self.build = build;
        self
    }

    /// Whether it talks to other members of a cluster.
    fn is_member(&self) -> bool {
        self.settings.iter().any(|setting| setting == "--cluster-enabled")
    }

    /// Valkey with this clock: with the allocator that Debian links to Redis, libfaketime waits for ever.
    #[must_use]
    pub fn by(mut self, clock: &ServerClock) -> RedisOptions {
        self.build = RedisBuild::Valkey;
        self.clock = Some(clock.clone());
        self
    }
}

/// A Redis or Valkey server on a free loopback port, killed and cleaned up on drop.
pub struct RedisServer {
    options: RedisOptions,
    port: u16,
    // Before the folder: fields are dropped in this order, and a running server would write into the folder.
    process: Option<Process>,
    folder: ScratchDir,
}

impl RedisServer {
    /// Starts a server, and waits until it answers.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], or why the server did not start.
    pub async fn start(options: RedisOptions) -> Result<RedisServer, Error> {
        RedisServer::start_as(Role::Server, options).await
    }

    pub(super) async fn start_as(role: Role, options: RedisOptions) -> Result<RedisServer, Error> {
        let mut attempt = 1;
        loop {
            let mut server = RedisServer {
                options: options.clone(),
                port: match options.is_member() {
                    true => free_port_with(TO_CLUSTER_PORT),
                    false => free_port(),
                },
                process: None,
                folder: ScratchDir::new("redis"),
            };
            match server.launch(&role).await {
                Ok(()) => return Ok(server),
                // A stranger took the port between our look and the server's.
                Err(Error::Ended { tail, .. }) if attempt < PORT_ATTEMPTS && tail.contains("in use") => {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn launch(&mut self, role: &Role) -> Result<(), Error> {
        self.process = Some(Process::spawn(self.command(role)?)?);
        let address = self.address();
        poll_until(START_TIMEOUT, &format!("answer of {address}"), || async {
            if let Some(ended) = self.ended() {
                return Ok(Err(ended));
            }
            // A server that demands a password answers, too; one that loads its data does not yet.
            match self.ask_within("PING", LOOK_TIMEOUT) {
                Ok(answer) if answer.starts_with("+PONG") || answer.starts_with("-NOAUTH") => Ok(Ok(())),
                Ok(answer) => Err(answer),
                Err(error) => Err(error.to_string()),
            }
        })
        .await?
    }

    fn command(&self, role: &Role) -> Result<Command, Error> {
        let program = redis_program(self.options.build)?;
        let mut command = Command::new(&program);
        if let Some(libraries) = libraries(&program) {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        if let Some(clock) = &self.options.clock {
            clock.give(&mut command);
        }
        if let Role::Sentinel { configuration } = role {
            let file = self.folder.join("sentinel.conf");
            std::fs::write(&file, configuration)
                .map_err(Error::system("writing a sentinel's configuration"))?;
            command.arg(file).arg("--sentinel");
        } else {
            command.args(["--save", "", "--appendonly", "no"]);
        }
        command.args([
            "--port",
            &self.port.to_string(),
            "--bind",
            "127.0.0.1",
            "--protected-mode",
            "no",
        ]);
        command.arg("--dir").arg(self.folder.path());
        if let Some(password) = &self.options.password {
            command.args(["--requirepass", password]);
        }
        command.args(&self.options.settings);
        if let Some(network) = &self.options.network {
            network.join(&mut command, &[self.port])?;
        }
        Ok(command)
    }

    /// `127.0.0.1:port`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// URL, with the password if the server demands one.
    #[must_use]
    pub fn url(&self) -> String {
        match &self.options.password {
            Some(password) => format!("redis://:{password}@{}", self.address()),
            None => format!("redis://{}", self.address()),
        }
    }

    /// Process number, or nothing after [`kill`](RedisServer::kill).
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// Sends a command, words separated by spaces, and returns the first line of the answer. Not
    /// authenticated.
    ///
    /// # Errors
    /// [`Error::System`] if there is no answer within ten seconds.
    pub fn ask(&self, command: &str) -> Result<String, Error> {
        self.ask_within(command, ANSWER_TIMEOUT)
    }

    /// The same of a command whose answer is one text of any length.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn ask_all(&self, command: &str) -> Result<String, Error> {
        let talk = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(self.address())?;
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            stream.write_all(format!("{command}\r\n").as_bytes())?;
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let length = line
                .trim_end()
                .strip_prefix('$')
                .and_then(|length| length.parse().ok());
            let mut text = vec![0; length.ok_or_else(|| std::io::Error::other(line.clone()))?];
            reader.read_exact(&mut text)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        };
        talk().map_err(Error::system(format!("asking redis at {}", self.address())))
    }

    fn ask_within(&self, command: &str, patience: Duration) -> Result<String, Error> {
        let talk = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(self.address())?;
            stream.set_read_timeout(Some(patience))?;
            stream.write_all(format!("{command}\r\n").as_bytes())?;
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line)?;
            Ok(line.trim_end().to_owned())
        };
        talk().map_err(Error::system(format!("asking redis at {}", self.address())))
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

    /// Kills the server with SIGKILL. Its port stays, and what it had on disk.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Kills the server if it runs, starts it on the same port and data, and waits until it answers.
    ///
    /// # Errors
    /// Why it did not start.
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.kill();
        self.launch(&Role::Server).await
    }

    /// Takes away the disk's room, as far as a server that keeps a log of its writes can tell: it goes on
    /// with a new file, which is `/dev/full`.
    ///
    /// # Errors
    /// [`Error::System`] if that file cannot be made, or the server does not begin it.
    pub async fn fill_disk(&self) -> Result<(), Error> {
        let now = self.logs()?;
        symlink("/dev/full", self.log_file(now + 1)).map_err(Error::system("making a full log file"))?;
        self.begin_log_after(now).await
    }

    /// Gives the room back: another new file, an ordinary one.
    ///
    /// # Errors
    /// As [`fill_disk`](Self::fill_disk).
    pub async fn free_disk(&self) -> Result<(), Error> {
        self.begin_log_after(self.logs()?).await
    }

    /// Has the server go on with a new file, and waits until the old one is gone.
    async fn begin_log_after(&self, before: u32) -> Result<(), Error> {
        poll_until(START_TIMEOUT, "a new log file", || async {
            let answer = self.ask("BGREWRITEAOF").map_err(|error| error.to_string())?;
            match answer.starts_with('+') {
                true => Ok(()),
                false => Err(answer),
            }
        })
        .await?;
        poll_until(START_TIMEOUT, "the end of the old log file", || async {
            let now = self.logs().map_err(|error| error.to_string())?;
            let old = self.log_file(before);
            match now > before && !old.exists() && !old.is_symlink() {
                true => Ok(()),
                false => Err(format!("the log is at file {now}")),
            }
        })
        .await
    }

    /// The number of the log's newest file.
    fn logs(&self) -> Result<u32, Error> {
        let files = std::fs::read_dir(self.folder.join("appendonlydir"));
        let files = files.map_err(Error::system("looking for the server's log"))?;
        let number = |name: &str| {
            name.strip_prefix("appendonly.aof.")?
                .strip_suffix(".incr.aof")?
                .parse()
                .ok()
        };
        let numbers = files
            .flatten()
            .filter_map(|file| number(file.file_name().to_str()?));
        Ok(numbers.max().unwrap_or(0))
    }

    fn log_file(&self, number: u32) -> PathBuf {
        self.folder
            .join(format!("appendonlydir/appendonly.aof.{number}.incr.aof"))
    }

    fn running(&self) -> &Process {
        self.process
            .as_ref()
            .expect("the server runs: it was not killed, or was restarted since")
    }

    fn ended(&self) -> Option<Error> {
        let status = self.running().status()?;
        let lines: Vec<String> = self.running().lines().into_iter().map(|line| line.text).collect();
        Some(Error::Ended {
            what: format!("redis on port {} ended while starting ({status})", self.port),
            tail: lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"),
        })
    }
}

/// What a process is.
pub(super) enum Role {
    Server,
    /// A sentinel, which writes into its configuration.
    Sentinel {
        configuration: String,
    },
}

/// The folder of the libraries that were unpacked with the program.
pub(crate) fn libraries(program: &Path) -> Option<PathBuf> {
    let usr = program.parent()?.parent()?;
    let folders = std::fs::read_dir(usr.join("lib")).ok()?;
    let holds = |folder: &PathBuf| folder.join("liblzf.so.1").exists();
    // The system's own are found without help.
    folders
        .flatten()
        .map(|entry| entry.path())
        .find(holds)
        .filter(|_| usr != Path::new("/usr"))
}

const PORT_ATTEMPTS: u32 = 5;
/// How much higher the port is on which members of a cluster talk to each other.
const TO_CLUSTER_PORT: u16 = 10_000;
const TAIL_LINES: usize = 10;
/// Long, as a busy machine may need it; nothing waits longer than the server does.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Of what a test needs answered: a flush of a busy disk takes seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Of what is asked again and again, while a server starts.
const LOOK_TIMEOUT: Duration = Duration::from_secs(1);
