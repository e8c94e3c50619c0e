//! Three NATS servers that keep streams together.

use std::time::Duration;

use serde_json::Value;

use super::nats::{NatsOptions, NatsServer, PORT_ATTEMPTS, START_TIMEOUT};
use crate::error::Error;
use crate::eventually::poll_until;
use crate::ports::free_port;
use crate::proxy::{Fault, FaultProxy};

/// A cluster of three servers, killed and cleaned up on drop.
///
/// A leader that falls silent is replaced after 4 to 10 s; the servers have no setting for it.
pub struct NatsCluster {
    servers: Vec<NatsServer>,
    /// Before the cluster's ports of all but the last server, which reaches them by no other way, and they it
    /// by none.
    ways: Vec<FaultProxy>,
}

impl NatsCluster {
    /// Starts three servers. When this returns, they know each other and streams can be made.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], or why a server did not start.
    pub async fn start(options: NatsOptions) -> Result<NatsCluster, Error> {
        let mut attempt = 1;
        loop {
            match NatsCluster::launch(&options).await {
                Ok(cluster) => return Ok(cluster),
                // A stranger took a port between our look and a server's.
                Err(Error::Ended { tail, .. }) if tail.contains("in use") && attempt < PORT_ATTEMPTS => {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn launch(options: &NatsOptions) -> Result<NatsCluster, Error> {
        let ports: Vec<u16> = (0..SERVERS).map(|_| free_port()).collect();
        let at = |port: &u16| format!("127.0.0.1:{port}");
        // Where the network between them is cut, nobody stands in their ways.
        let is_direct = options.network.is_some();
        let (together, last) = ports.split_at(if is_direct { SERVERS } else { SERVERS - 1 });
        let ways = match is_direct {
            true => Vec::new(),
            false => together
                .iter()
                .map(|port| FaultProxy::bytes(at(port)))
                .collect::<Result<Vec<_>, _>>()?,
        };
        let way_to = |place: usize| match is_direct {
            true => ports.get(place).map(at),
            false => ways.get(place).map(|way: &FaultProxy| way.address().to_string()),
        };
        let mut servers = Vec::new();
        for (place, port) in ports.iter().enumerate() {
            let listed = |addresses: Vec<String>| {
                let routes: Vec<String> = addresses
                    .iter()
                    .map(|address| format!("nats://{address}"))
                    .collect();
                routes.join(", ")
            };
            let is_last = last.contains(port);
            // The servers tell each other where they are found: the last is found nowhere, and comes to the
            // others itself.
            let (routes, found_at) = match is_last {
                true => (
                    listed((0..place).filter_map(way_to).collect()),
                    NOWHERE.to_owned(),
                ),
                false => (
                    listed(together.iter().map(at).collect()),
                    way_to(place).unwrap_or_default(),
                ),
            };
            let cluster = format!(
                "cluster {{ name: scratch, listen: {}, advertise: \"{found_at}\", routes: [{routes}] }}\n",
                at(port)
            );
            let settings = format!("{cluster}{}", options.settings);
            let mut server = NatsServer::new(&format!("scratch-{place}"), options.clone().with(&settings));
            server.cluster_port = Some(*port);
            server.spawn()?;
            servers.push(server);
        }
        let cluster = NatsCluster { servers, ways };
        cluster.wait_until_complete().await?;
        Ok(cluster)
    }

    /// URL that names all three.
    #[must_use]
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.servers.iter().map(NatsServer::address).collect();
        format!("nats://{}", addresses.join(","))
    }

    /// Where all three are looked at over HTTP, separated by commas.
    #[must_use]
    pub fn monitor_addresses(&self) -> String {
        let addresses: Vec<String> = self.servers.iter().map(NatsServer::monitor_address).collect();
        addresses.join(",")
    }

    /// The servers, dead ones included.
    #[must_use]
    pub fn servers(&mut self) -> &mut [NatsServer] {
        &mut self.servers
    }

    /// Cuts the last server off from the others, where they are on no [`Network`](crate::Network). Its
    /// clients reach it as ever.
    pub fn cut_off_the_last(&self) {
        for way in &self.ways {
            way.set(Fault::Refuse);
            way.cut_connections();
        }
    }

    /// Lets the last server reach the others again.
    pub fn join_the_last(&self) {
        self.ways.iter().for_each(FaultProxy::heal);
    }

    /// Waits until every server is well, and all agree on who leads.
    ///
    /// # Errors
    /// [`Error::TimedOut`], for sure while a server is dead or frozen.
    pub async fn wait_until_complete(&self) -> Result<(), Error> {
        poll_until(START_TIMEOUT, "a cluster of three", || async {
            for server in &self.servers {
                if let Some(ended) = server.ended() {
                    return Ok(Err(ended));
                }
                let look = |path: &str| server.look(path).map_err(|error| error.to_string());
                look("/healthz")?;
                let meta = &look("/jsz")?["meta_cluster"];
                if meta["leader"].as_str().is_none_or(str::is_empty) || meta["cluster_size"] != SERVERS {
                    return Err(format!("{} sees {meta}", server.name));
                }
            }
            Ok(Ok(()))
        })
        .await?
    }

    /// Which server leads a stream, waiting for an election if none does. Servers that were killed are not
    /// asked.
    ///
    /// # Errors
    /// [`Error::TimedOut`] when none is elected.
    pub async fn leader_of(&self, stream: &str) -> Result<usize, Error> {
        poll_until(ELECTION_TIMEOUT, &format!("a leader of {stream}"), || async {
            // A leader is asked what it thinks of itself: others may not know yet.
            let leads = |server: &NatsServer| {
                server.runs() && leader_as_told_by(server, stream).as_deref() == Some(server.name.as_str())
            };
            self.servers.iter().position(leads)
        })
        .await
    }
}

fn leader_as_told_by(server: &NatsServer, stream: &str) -> Option<String> {
    let told = server.look("/jsz?accounts=true&streams=true").ok()?;
    let accounts = told["account_details"].as_array()?;
    let streams = accounts
        .iter()
        .filter_map(|account| account["stream_detail"].as_array());
    let found = streams.flatten().find(|found: &&Value| found["name"] == stream)?;
    found["cluster"]["leader"].as_str().map(str::to_owned)
}

const SERVERS: usize = 3;
/// Where nobody listens.
const NOWHERE: &str = "127.0.0.1:1";
/// Several elections, as on a busy machine the first may fail.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(60);
