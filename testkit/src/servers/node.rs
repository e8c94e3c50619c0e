//! One `mongod` process with its port, its data and a client to talk to it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mongodb::Client;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ClientOptions;

use super::clock::ServerClock;
use super::locate::mongod_program;
use super::users::{User, connection_string};
use crate::error::Error;
use crate::eventually::poll_until;
use crate::network::Network;
use crate::ports::free_port;
use crate::process::Process;
use crate::runtime::on_runtime;
use crate::scratch::ScratchDir;

/// What distinguishes one node from another.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeOptions {
    /// Name of the replica set the node belongs to.
    pub(crate) replica_set: Option<String>,
    /// Whether clients must authenticate.
    pub(crate) authentication: bool,
    /// Whether it fails commands when it is told to (`configureFailPoint`), and looks every second what a TTL
    /// index removes.
    pub(crate) fail_points: bool,
    /// A clock of its own; without one it has this machine's.
    pub(crate) clock: Option<ServerClock>,
    /// Its certificate with its key, and the roots of its clients' certificates: who encrypts must show one.
    pub(crate) tls: Option<(String, String)>,
    /// What is between it and the others, where it can be cut.
    pub(crate) network: Option<Network>,
}

pub(crate) struct Node {
    options: NodeOptions,
    port: u16,
    // Before the folder: fields are dropped in this order, and a running server would write into the folder.
    process: Option<Process>,
    frozen: bool,
    folder: ScratchDir,
    user: Option<User>,
    client: Mutex<Option<Client>>,
}

impl Node {
    /// Starts a server on a free port and waits until it answers.
    pub(crate) async fn start(options: NodeOptions) -> Result<Node, Error> {
        let mut attempt = 1;
        loop {
            let mut node = Node {
                options: options.clone(),
                port: free_port(),
                process: None,
                frozen: false,
                folder: ScratchDir::new("mongod"),
                user: None,
                client: Mutex::new(None),
            };
            match node.launch().await {
                Ok(()) => return Ok(node),
                // A stranger took the port between our look and the server's.
                Err(Error::Ended { tail, .. }) if tail.contains("in use") && attempt < PORT_ATTEMPTS => {
                    attempt += 1
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Starts the server on the node's port and data, and waits until it answers.
    pub(crate) async fn launch(&mut self) -> Result<(), Error> {
        let command = self.command()?;
        self.process = Some(Process::spawn(command)?);
        let address = self.address();
        poll_until(
            START_TIMEOUT,
            &format!("connection to mongod on {address}"),
            || async {
                if let Some(ended) = self.ended() {
                    return Ok(Err(ended));
                }
                std::net::TcpStream::connect(&address).map(|_| Ok(()))
            },
        )
        .await??;
        let hello = || self.command_on("admin", doc! { "hello": 1 }, PROBE_TIMEOUT);
        poll_until(START_TIMEOUT, &format!("answer of mongod on {address}"), hello).await?;
        Ok(())
    }

    /// The same, this once without the name of its replica set.
    pub(crate) async fn launch_alone(&mut self) -> Result<(), Error> {
        let name = self.options.replica_set.take();
        let launched = self.launch().await;
        self.options.replica_set = name;
        launched
    }

    fn command(&self) -> Result<Command, Error> {
        let mut command = Command::new(mongod_program()?);
        let data = self.folder.join("data");
        fs::create_dir_all(&data).map_err(Error::system("making a data folder"))?;
        command
            .arg("--dbpath")
            .arg(data)
            .arg("--logpath")
            .arg(self.log())
            .arg("--logappend");
        command.args(["--port", &self.port.to_string()]).args(FLAGS);
        if let Some(name) = &self.options.replica_set {
            command
                .args(["--replSet", name, "--oplogSize", "64"])
                .args(REPLICA_SET_FLAGS);
        }
        if self.options.fail_points {
            command.args(["--setParameter", "enableTestCommands=1"]);
            command.args(["--setParameter", "ttlMonitorSleepSecs=1"]);
        }
        if let Some(clock) = &self.options.clock {
            clock.give(&mut command);
        }
        if let Some((own, of_clients)) = &self.options.tls {
            // The kit's own client does not encrypt.
            command.args(["--tlsMode", "preferTLS", "--tlsCertificateKeyFile", own]);
            command.args(["--tlsCAFile", of_clients]);
        }
        match (self.options.authentication, &self.options.replica_set) {
            (true, Some(_)) => {
                command.arg("--keyFile").arg(self.key_file()?);
            }
            (true, None) => {
                command.arg("--auth");
            }
            (false, _) => {}
        }
        if let Some(network) = &self.options.network {
            network.join(&mut command, &[self.port])?;
        }
        Ok(command)
    }

    /// The secret by which the nodes of a set know each other. It guards scratch data on loopback.
    fn key_file(&self) -> Result<PathBuf, Error> {
        let path = self.folder.join("key");
        if !path.exists() {
            fs::write(&path, "tenureTestkitScratchKey").map_err(Error::system("writing a key file"))?;
            let private = fs::Permissions::from_mode(0o600);
            fs::set_permissions(&path, private).map_err(Error::system("writing a key file"))?;
        }
        Ok(path)
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    pub(crate) fn direct_uri(&self, user: Option<&User>) -> String {
        connection_string(user, &self.address(), "directConnection=true")
    }

    /// From now on the kit's own commands run as this user.
    pub(crate) fn act_as(&mut self, user: User) {
        self.user = Some(user);
        *self.client.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    pub(crate) fn freeze(&mut self) {
        self.running().freeze();
        self.frozen = true;
    }

    pub(crate) fn thaw(&mut self) {
        self.running().thaw();
        self.frozen = false;
    }

    /// Whether there is anybody to answer: asking a frozen node costs the whole bound of the question.
    pub(crate) fn can_answer(&self) -> bool {
        self.process.is_some() && !self.frozen
    }

    /// SIGKILL: a `mongod` that is asked politely lingers for up to 15 s.
    pub(crate) fn kill(&mut self) {
        self.process = None;
        self.frozen = false;
    }

    /// Removes the data of a node that was killed.
    pub(crate) fn empty(&mut self) -> Result<(), Error> {
        // What the client of before has met is another server.
        *self.client.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        fs::remove_dir_all(self.folder.join("data")).map_err(Error::system("removing a data folder"))
    }

    /// Runs a command on this very node, with a bound: the driver waits for a frozen server without end.
    pub(crate) async fn command_on(
        &self,
        database: &str,
        command: Document,
        limit: Duration,
    ) -> Result<Document, Error> {
        let what = format!("{} on mongod at {}", name_of(&command), self.address());
        let known = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let uri = self.direct_uri(self.user.as_ref());
        let database = database.to_owned();
        let (client, answer) = on_runtime(async move {
            let client = match known {
                Some(client) => client,
                None => match connect(&uri).await {
                    Ok(client) => client,
                    Err(error) => return (None, Ok(Err(error))),
                },
            };
            let answer = tokio::time::timeout(limit, client.database(&database).run_command(command)).await;
            (Some(client), answer)
        })
        .await;
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
        match answer {
            Ok(answer) => answer.map_err(Error::refused(what)),
            Err(_) => Err(Error::TimedOut {
                what,
                after: limit,
                last: "no answer".to_owned(),
            }),
        }
    }

    /// Creates a user of the `admin` database; `roles` are pairs of a role and the database it is for.
    pub(crate) async fn create_user(&self, user: &User, roles: &[(&str, &str)]) -> Result<(), Error> {
        let roles: Vec<Bson> = roles
            .iter()
            .map(|(role, db)| Bson::Document(doc! { "role": *role, "db": *db }))
            .collect();
        let command = doc! { "createUser": &user.name, "pwd": &user.password, "roles": roles };
        self.command_on("admin", command, COMMAND_TIMEOUT).await.map(drop)
    }

    fn running(&self) -> &Process {
        self.process
            .as_ref()
            .expect("the node runs: it was not killed, or was restarted since")
    }

    fn ended(&self) -> Option<Error> {
        let status = self.running().status()?;
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
        let wrote: Vec<String> = self.running().lines().into_iter().map(|line| line.text).collect();
        let what = format!("mongod on port {} ended while starting ({status})", self.port);
        Some(Error::Ended {
            what,
            tail: format!("{}\n{tail}", wrote.join("\n")),
        })
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }
}

async fn connect(uri: &str) -> Result<Client, mongodb::error::Error> {
    let mut options = ClientOptions::parse(uri).await?;
    options.connect_timeout = Some(PROBE_TIMEOUT);
    options.server_selection_timeout = Some(PROBE_TIMEOUT);
    Client::with_options(options)
}

fn name_of(command: &Document) -> &str {
    command.keys().next().map_or("nothing", String::as_str)
}

const FLAGS: &[&str] = &[
    "--bind_ip",
    "127.0.0.1",
    "--nounixsocket",
    // The smallest cache there is; three nodes of the default size would claim half the memory each.
    "--wiredTigerCacheSizeGB",
    "0.25",
    // Journal files are 100 MB each, three are made at once: 300 MB for an empty server. With this it is 8
    // MB. The engine takes the last group of that name whole, so the server's own values are repeated.
    "--wiredTigerEngineConfigString",
    "log=(enabled=true,remove=true,path=journal,compressor=snappy,file_max=8MB,prealloc=false)",
    "--setParameter",
    "diagnosticDataCollectionEnabled=false",
];
/// A secondary that reads from a frozen node waits up to 60 s before it turns to another, and the majority
/// waits with it. These bounds are in seconds.
const REPLICA_SET_FLAGS: &[&str] = &[
    "--setParameter",
    "oplogInitialFindMaxSeconds=2",
    "--setParameter",
    "oplogRetriedFindMaxSeconds=1",
    "--setParameter",
    "oplogNetworkTimeoutBufferSeconds=1",
];
const PORT_ATTEMPTS: u32 = 5;
const TAIL_LINES: usize = 10;
/// Long, as a busy machine may need it; nothing waits longer than the server does.
const START_TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
