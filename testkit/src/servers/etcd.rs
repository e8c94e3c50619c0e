//! An etcd, alone or a cluster of three, with its ports and its data.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::locate::etcd_program;
use crate::error::Error;
use crate::eventually::poll_until;
use crate::network::Network;
use crate::ports::free_port;
use crate::process::Process;
use crate::scratch::{ScratchDir, copy_folder};

/// How many members a cluster has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Members {
    /// One: nothing survives its end but its disk.
    #[default]
    One,
    /// Three: one may be down.
    Three,
}

/// How a cluster is started.
#[derive(Clone, Debug, Default)]
pub struct EtcdOptions {
    /// How many members.
    pub members: Members,
    /// Further words of each member's command line, such as `--quota-backend-bytes 2097152`.
    pub settings: Vec<String>,
    /// PEM files of a certificate and its key: clients then connect over TLS, and the kit cannot ask for
    /// them.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// What is between the members, where it can be cut.
    pub network: Option<Network>,
}

impl EtcdOptions {
    /// A cluster of three.
    #[must_use]
    pub fn three() -> EtcdOptions {
        EtcdOptions {
            members: Members::Three,
            ..EtcdOptions::default()
        }
    }

    /// The same with members that can be cut from each other.
    #[must_use]
    pub fn on(mut self, network: &Network) -> EtcdOptions {
        self.network = Some(network.clone());
        self
    }

    /// With these settings, as they stand on a command line.
    #[must_use]
    pub fn with(mut self, settings: &str) -> EtcdOptions {
        self.settings
            .extend(settings.split_whitespace().map(str::to_owned));
        self
    }
}

/// etcd on free loopback ports, killed and cleaned up on drop.
///
/// Heartbeats every 50 ms, elections after 500 ms: a killed leader is succeeded within a second, and the
/// shortest ttl that is granted is one second.
pub struct Etcd {
    options: EtcdOptions,
    members: Vec<Member>,
}

struct Member {
    name: String,
    client_port: u16,
    peer_port: u16,
    /// Where it tells its health, never over TLS.
    health_port: u16,
    // Before the folder: fields are dropped in this order, and a running server would write into the folder.
    process: Option<Process>,
    folder: ScratchDir,
    /// Further words of its command line: how it joined a cluster that ran already.
    joining: &'static [&'static str],
}

impl Member {
    fn new(number: usize, joining: &'static [&'static str]) -> Member {
        Member {
            name: format!("member-{number}"),
            client_port: free_port(),
            peer_port: free_port(),
            health_port: free_port(),
            process: None,
            folder: ScratchDir::new("etcd"),
            joining,
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }
}

impl Etcd {
    /// Starts the members, and waits until each of them answers.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], or why a member did not start.
    pub async fn start(options: EtcdOptions) -> Result<Etcd, Error> {
        let mut attempt = 1;
        loop {
            let mut etcd = Etcd::planned(options.clone());
            match etcd.launch_all().await {
                Ok(()) => return Ok(etcd),
                // A stranger took a port between our look and the server's.
                Err(Error::Ended { tail, .. }) if tail.contains("in use") && attempt < PORT_ATTEMPTS => {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn planned(options: EtcdOptions) -> Etcd {
        let count = match options.members {
            Members::One => 1,
            Members::Three => 3,
        };
        Etcd {
            options,
            members: (0..count).map(|number| Member::new(number, &[])).collect(),
        }
    }

    async fn launch_all(&mut self) -> Result<(), Error> {
        for number in 0..self.members.len() {
            self.spawn(number)?;
        }
        for number in 0..self.members.len() {
            self.healthy(number).await?;
        }
        Ok(())
    }

    fn spawn(&mut self, number: usize) -> Result<(), Error> {
        let mut cluster: Vec<String> = Vec::new();
        for member in &self.members {
            cluster.push(format!("{}=http://127.0.0.1:{}", member.name, member.peer_port));
        }
        let member = &mut self.members[number];
        let scheme = if self.options.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let client = format!("{scheme}://127.0.0.1:{}", member.client_port);
        let health = format!("http://127.0.0.1:{}", member.health_port);
        let peer = format!("http://127.0.0.1:{}", member.peer_port);
        let mut command = Command::new(etcd_program()?);
        command.arg("--name").arg(&member.name);
        command.arg("--data-dir").arg(member.data());
        command.args([
            "--listen-client-urls",
            &client,
            "--advertise-client-urls",
            &client,
        ]);
        command.args([
            "--listen-peer-urls",
            &peer,
            "--initial-advertise-peer-urls",
            &peer,
        ]);
        command.args(["--initial-cluster", &cluster.join(",")]);
        command.args(["--listen-metrics-urls", &health]);
        if let Some((certificate, key)) = &self.options.tls {
            command
                .arg("--cert-file")
                .arg(certificate)
                .arg("--key-file")
                .arg(key);
        }
        command.args(["--heartbeat-interval", "50", "--election-timeout", "500"]);
        command.args(member.joining);
        command.args(&self.options.settings);
        if let Some(network) = &self.options.network {
            network.join(&mut command, &[member.client_port, member.peer_port])?;
        }
        member.process = Some(Process::spawn(command)?);
        Ok(())
    }

    /// Waits until a member answers, which it does when the cluster has a leader.
    async fn healthy(&self, number: usize) -> Result<(), Error> {
        let what = format!("answer of {}", self.address(number));
        poll_until(START_TIMEOUT, &what, || async {
            if let Some(ended) = self.ended(number) {
                return Ok(Err(ended));
            }
            match self.look(number, "/health") {
                Ok(answer) if answer.contains("\"true\"") => Ok(Ok(())),
                Ok(answer) => Err(answer),
                Err(error) => Err(error.to_string()),
            }
        })
        .await?
    }

    /// Adds a member without a vote, and waits until it answers. Its number.
    ///
    /// # Errors
    /// [`Error::System`], or why it did not start.
    pub async fn add_learner(&mut self) -> Result<usize, Error> {
        let number = self.size();
        let learner = Member::new(number, &["--initial-cluster-state", "existing"]);
        let peer = format!("http://127.0.0.1:{}", learner.peer_port);
        let body = format!("{{\"peerURLs\": [\"{peer}\"], \"isLearner\": true}}");
        let told = self.post(0, "/v3/cluster/member/add", &body)?;
        if !told.contains(&peer) {
            return Err(Error::system("adding a learner".to_owned())(
                std::io::Error::other(told),
            ));
        }
        self.members.push(learner);
        self.spawn(number)?;
        self.healthy(number).await?;
        Ok(number)
    }

    /// How many members there are, dead ones included.
    #[must_use]
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// `127.0.0.1:port` of a member.
    #[must_use]
    pub fn address(&self, number: usize) -> String {
        format!("127.0.0.1:{}", self.members[number].client_port)
    }

    /// Store URL that names every member, without a prefix.
    #[must_use]
    pub fn url(&self) -> String {
        let addresses: Vec<String> = (0..self.size()).map(|number| self.address(number)).collect();
        format!("etcd://{}", addresses.join(","))
    }

    /// Asks a member's JSON gateway, as `post(0, "/v3/kv/range", "{…}")`. Keys and values are in base64
    /// there.
    ///
    /// # Errors
    /// [`Error::System`] if there is no answer within twenty seconds.
    pub fn post(&self, number: usize, path: &str, body: &str) -> Result<String, Error> {
        let port = self.members[number].client_port;
        ask(port, "POST", path, body, ANSWER_TIMEOUT)
    }

    /// What a member has counted, as Prometheus reads it.
    ///
    /// # Errors
    /// [`Error::System`] if there is no answer within twenty seconds.
    pub fn metrics(&self, number: usize) -> Result<String, Error> {
        ask(
            self.members[number].health_port,
            "GET",
            "/metrics",
            "",
            ANSWER_TIMEOUT,
        )
    }

    /// What a member tells of itself, at once or not at all.
    fn look(&self, number: usize, path: &str) -> Result<String, Error> {
        ask(self.members[number].health_port, "GET", path, "", LOOK_TIMEOUT)
    }

    /// The member that leads now, if a living one says that it does. Between two leaders there is none, also
    /// on a busy machine.
    #[must_use]
    pub fn leader(&self) -> Option<usize> {
        (0..self.size()).find(|number| {
            self.members[*number].process.is_some()
                && self
                    .look(*number, "/metrics")
                    .is_ok_and(|metrics| metrics.lines().any(|line| line == "etcd_server_is_leader 1"))
        })
    }

    /// Process number of a member, or nothing after [`kill`](Etcd::kill).
    #[must_use]
    pub fn pid(&self, number: usize) -> Option<u32> {
        self.members[number].process.as_ref().map(Process::pid)
    }

    /// Stops a member with SIGSTOP: connections stay open, nothing is answered.
    ///
    /// # Panics
    /// When it was killed.
    pub fn freeze(&self, number: usize) {
        self.running(number).freeze();
    }

    /// Lets a frozen member go on.
    ///
    /// # Panics
    /// When it was killed.
    pub fn thaw(&self, number: usize) {
        self.running(number).thaw();
    }

    /// Kills a member with SIGKILL. Its ports stay, and its disk.
    pub fn kill(&mut self, number: usize) {
        self.members[number].process = None;
    }

    /// Kills a member if it runs, starts it on the same ports and data, and waits until it answers.
    ///
    /// # Errors
    /// Why it did not start.
    pub async fn restart(&mut self, number: usize) -> Result<(), Error> {
        self.kill(number);
        self.spawn(number)?;
        self.healthy(number).await
    }

    /// The same of every member, with other settings, or by certificates.
    ///
    /// # Errors
    /// Why one did not start.
    pub async fn restart_with(&mut self, options: EtcdOptions) -> Result<(), Error> {
        for number in 0..self.size() {
            self.kill(number);
        }
        self.options = options;
        self.launch_all().await
    }

    /// Copies the data of a killed member, to [`put_back`](Etcd::put_back) later.
    ///
    /// # Errors
    /// [`Error::System`].
    ///
    /// # Panics
    /// When it runs.
    pub fn backup(&self, number: usize) -> Result<ScratchDir, Error> {
        let backup = ScratchDir::new("etcd-backup");
        copy_folder(&self.killed(number).data(), &backup.join("data"))?;
        Ok(backup)
    }

    /// Gives a killed member the data that it had, as a restored snapshot does whose revisions are not
    /// bumped.
    ///
    /// # Errors
    /// [`Error::System`].
    ///
    /// # Panics
    /// When it runs.
    pub fn put_back(&self, number: usize, backup: &ScratchDir) -> Result<(), Error> {
        let data = self.killed(number).data();
        fs::remove_dir_all(&data).map_err(Error::system(format!("removing {}", data.display())))?;
        copy_folder(&backup.join("data"), &data)
    }

    fn killed(&self, number: usize) -> &Member {
        let member = &self.members[number];
        assert!(member.process.is_none(), "{} runs: kill it before", member.name);
        member
    }

    fn running(&self, number: usize) -> &Process {
        self.members[number]
            .process
            .as_ref()
            .expect("the member runs: it was not killed, or was restarted since")
    }

    fn ended(&self, number: usize) -> Option<Error> {
        let process = self.running(number);
        let status = process.status()?;
        let lines: Vec<String> = process.lines().into_iter().map(|line| line.text).collect();
        Some(Error::Ended {
            what: format!("etcd at {} ended while starting ({status})", self.address(number)),
            tail: lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"),
        })
    }
}

fn ask(port: u16, method: &str, path: &str, body: &str, patience: Duration) -> Result<String, Error> {
    let address = format!("127.0.0.1:{port}");
    let talk = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(&address)?;
        stream.set_read_timeout(Some(patience))?;
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer
            .split_once("\r\n\r\n")
            .map_or_else(String::new, |(_, body)| body.to_owned()))
    };
    talk().map_err(Error::system(format!("asking etcd at {address}")))
}

const PORT_ATTEMPTS: u32 = 5;
const TAIL_LINES: usize = 10;
/// Long, as a busy machine may need it; nothing waits longer than the server does.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Of what a test needs answered: a flush of a busy disk takes seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Of what is asked again and again, or of a member that may be frozen.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);
