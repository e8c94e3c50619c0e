//! One NATS process with its ports and its data.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::locate::nats_program;
use super::small_disk::SmallDisk;
use crate::error::Error;
use crate::eventually::poll_until;
use crate::network::Network;
use crate::ports::free_port;
use crate::process::Process;
use crate::scratch::ScratchDir;

/// How a server is started.
#[derive(Clone, Debug)]
pub struct NatsOptions {
    /// What stands in the `jetstream` block beside the folder, such as `sync_interval: always`; none: no
    /// JetStream.
    pub jetstream: Option<String>,
    /// Further lines of its configuration, such as an `authorization` block.
    pub settings: String,
    /// The size of a disk of its own, in bytes; without one it is on the machine's.
    pub disk_bytes: Option<u64>,
    /// What is between it and the others of its cluster, where it can be cut.
    pub network: Option<Network>,
}

impl Default for NatsOptions {
    /// JetStream on disk, with the server's own settings: what it confirms is on disk within two minutes.
    fn default() -> NatsOptions {
        NatsOptions {
            jetstream: Some(String::new()),
            settings: String::new(),
            disk_bytes: None,
            network: None,
        }
    }
}

impl NatsOptions {
    /// Each write is on disk before it is confirmed.
    #[must_use]
    pub fn durable() -> NatsOptions {
        NatsOptions {
            jetstream: Some("sync_interval: always".to_owned()),
            ..NatsOptions::default()
        }
    }

    /// The same on a disk of its own, of so many bytes.
    #[must_use]
    pub fn on_a_disk_of(mut self, bytes: u64) -> NatsOptions {
        self.disk_bytes = Some(bytes);
        self
    }

    /// The same of servers that can be cut from each other.
    #[must_use]
    pub fn on(mut self, network: &Network) -> NatsOptions {
        self.network = Some(network.clone());
        self
    }

    /// The same with these further lines of configuration.
    #[must_use]
    pub fn with(mut self, settings: &str) -> NatsOptions {
        self.settings = settings.to_owned();
        self
    }
}

/// A NATS server on free loopback ports, killed and cleaned up on drop.
pub struct NatsServer {
    options: NatsOptions,
    pub(super) name: String,
    port: u16,
    /// Where the others of its cluster reach it.
    pub(super) cluster_port: Option<u16>,
    monitor_port: u16,
    // Before the folder: fields are dropped in this order, and a running server would write into the folder.
    process: Option<Process>,
    disk: Option<SmallDisk>,
    folder: ScratchDir,
}

impl NatsServer {
    /// Starts a server, and waits until it answers, JetStream included.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], or why the server did not start.
    pub async fn start(options: NatsOptions) -> Result<NatsServer, Error> {
        let mut attempt = 1;
        loop {
            let mut server = NatsServer::new("scratch", options.clone());
            match server.launch().await {
                Ok(()) => return Ok(server),
                // A stranger took a port between our look and the server's.
                Err(Error::Ended { tail, .. }) if tail.contains("in use") && attempt < PORT_ATTEMPTS => {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn new(name: &str, options: NatsOptions) -> NatsServer {
        NatsServer {
            options,
            name: name.to_owned(),
            port: free_port(),
            cluster_port: None,
            monitor_port: free_port(),
            process: None,
            disk: None,
            folder: ScratchDir::new("nats"),
        }
    }

    async fn launch(&mut self) -> Result<(), Error> {
        if let (Some(bytes), None) = (self.options.disk_bytes, &self.disk) {
            let data = self.data();
            std::fs::create_dir(&data).map_err(Error::system("making a folder"))?;
            self.disk = Some(SmallDisk::at(&data, bytes).await?);
        }
        self.spawn()?;
        let what = format!("answer of nats at {}", self.address());
        poll_until(START_TIMEOUT, &what, || async {
            if let Some(ended) = self.ended() {
                return Ok(Err(ended));
            }
            self.look("/healthz")
                .map(|_healthy| Ok(()))
                .map_err(|error| error.to_string())
        })
        .await?
    }

    /// Starts the process, and waits for nothing.
    pub(super) fn spawn(&mut self) -> Result<(), Error> {
        let file = self.write_configuration()?;
        let program = nats_program()?;
        let mut command = match &self.disk {
            Some(disk) => disk.command(&program),
            None => Command::new(program),
        };
        command.arg("--config").arg(file);
        if let Some(network) = &self.options.network {
            let ports: Vec<u16> = [self.port].into_iter().chain(self.cluster_port).collect();
            network.join(&mut command, &ports)?;
        }
        self.process = Some(Process::spawn(command)?);
        Ok(())
    }

    /// Has the running server read other further lines of configuration, and waits for nothing.
    ///
    /// # Errors
    /// [`Error::System`].
    ///
    /// # Panics
    /// When it was killed.
    pub fn reload(&mut self, settings: &str) -> Result<(), Error> {
        self.options.settings = settings.to_owned();
        self.write_configuration()?;
        let pid = self.running().pid().to_string();
        let told = Command::new("kill").arg("-HUP").arg(pid).status();
        told.map(drop)
            .map_err(Error::system("having nats read its configuration"))
    }

    fn write_configuration(&self) -> Result<PathBuf, Error> {
        let mut text = format!(
            "listen: 127.0.0.1:{}\nhttp: 127.0.0.1:{}\nserver_name: {}\n",
            self.port, self.monitor_port, self.name
        );
        if let Some(jetstream) = &self.options.jetstream {
            text += &format!(
                "jetstream {{ store_dir: \"{}\"\n{jetstream} }}\n",
                self.data().display()
            );
        }
        text += &self.options.settings;
        let file = self.folder.join("nats.conf");
        std::fs::write(&file, text).map_err(Error::system("writing nats.conf"))?;
        Ok(file)
    }

    /// `127.0.0.1:port`, where clients connect to.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `127.0.0.1:port`, where it is looked at over HTTP.
    #[must_use]
    pub fn monitor_address(&self) -> String {
        format!("127.0.0.1:{}", self.monitor_port)
    }

    /// URL without credentials.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://{}", self.address())
    }

    /// Process number, or nothing after [`kill`](NatsServer::kill).
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// What the server tells of itself under a path, such as `/jsz`.
    ///
    /// # Errors
    /// [`Error::System`] if there is no answer within a second, [`Error::NotYet`] with one that is no
    /// success.
    pub fn look(&self, path: &str) -> Result<Value, Error> {
        let address = self.monitor_address();
        let talk = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(&address)?;
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = talk().map_err(Error::system(format!("asking nats at {address}")))?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        match serde_json::from_str(body) {
            Ok(value) if head.contains(" 200 ") => Ok(value),
            _ => Err(Error::NotYet(body.to_owned())),
        }
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

    /// Kills the server with SIGKILL. Its ports stay, and what it had on disk.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Kills the server if it runs, starts it on the same ports and data, and waits until it answers.
    ///
    /// # Errors
    /// Why it did not start.
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.kill();
        self.launch().await
    }

    /// Leaves no byte free on the disk of its own.
    ///
    /// # Errors
    /// [`Error::System`].
    ///
    /// # Panics
    /// When it has none.
    pub fn fill_disk(&self) -> Result<(), Error> {
        self.own_disk().fill()
    }

    /// Gives the room back.
    ///
    /// # Errors
    /// [`Error::System`].
    ///
    /// # Panics
    /// When it has no disk of its own.
    pub fn free_disk(&self) -> Result<(), Error> {
        self.own_disk().free()
    }

    fn own_disk(&self) -> &SmallDisk {
        let disk = self.disk.as_ref();
        disk.expect("the server was started on a disk of its own")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Keeps a copy of what a killed server has on disk.
    ///
    /// # Errors
    /// [`Error::System`].
    ///
    /// # Panics
    /// While it runs.
    pub fn keep_data(&self) -> Result<(), Error> {
        self.copy(&self.data(), &self.folder.join("kept"))
    }

    /// Has a killed server lose all that came after [`keep_data`](NatsServer::keep_data), as the crash of a
    /// machine may.
    ///
    /// # Errors
    /// [`Error::System`], also where nothing was kept.
    ///
    /// # Panics
    /// While it runs.
    pub fn put_back_data(&self) -> Result<(), Error> {
        self.copy(&self.folder.join("kept"), &self.data())
    }

    /// Has a killed server have what another that was killed has on disk, as the clone of a machine does.
    ///
    /// # Errors
    /// [`Error::System`].
    ///
    /// # Panics
    /// While either runs.
    pub fn clone_data_of(&self, other: &NatsServer) -> Result<(), Error> {
        assert!(!other.runs(), "a running server writes there");
        self.copy(&other.data(), &self.data())
    }

    fn copy(&self, from: &Path, to: &Path) -> Result<(), Error> {
        assert!(!self.runs(), "a running server writes there");
        let failed = |doing: &str| Error::system(format!("{doing} {}", to.display()));
        if to.exists() {
            std::fs::remove_dir_all(to).map_err(failed("clearing"))?;
        }
        let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
        match copied.map_err(failed("copying to"))? {
            status if status.success() => Ok(()),
            status => Err(failed("copying to")(std::io::Error::other(status.to_string()))),
        }
    }

    /// Starts a killed server on the same ports and data, and waits for nothing: a member of a cluster is
    /// well only once the cluster has a majority.
    ///
    /// # Errors
    /// Why it did not start.
    pub fn start_again(&mut self) -> Result<(), Error> {
        self.kill();
        self.spawn()
    }

    /// Whether it was not killed.
    pub(super) fn runs(&self) -> bool {
        self.process.is_some()
    }

    fn running(&self) -> &Process {
        self.process
            .as_ref()
            .expect("the server runs: it was not killed, or was restarted since")
    }

    pub(super) fn ended(&self) -> Option<Error> {
        let status = self.running().status()?;
        let lines: Vec<String> = self.running().lines().into_iter().map(|line| line.text).collect();
        Some(Error::Ended {
            what: format!("nats on port {} ended while starting ({status})", self.port),
            tail: lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"),
        })
    }
}

pub(super) const PORT_ATTEMPTS: u32 = 5;
const TAIL_LINES: usize = 10;
/// Long, as a busy machine may need it; nothing waits longer than the server does.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(60);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
