//! A replica set of real servers that can be killed, frozen and restarted.

mod shared;

use std::time::Duration;

use mongodb::bson::{Bson, Document, doc};

use super::clock::ServerClock;
use super::node::{COMMAND_TIMEOUT, Node, NodeOptions, PROBE_TIMEOUT};
use super::users::{User, connection_string};
use crate::error::Error;
use crate::eventually::poll_until;
use crate::network::Network;

/// How many nodes a replica set has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// One: has transactions and change streams, starts fast, survives nothing.
    One,
    /// Three: survives the loss of one.
    Three,
}

/// A replica set on free loopback ports, killed and cleaned up on drop.
///
/// A primary that falls silent is replaced after about 1 s (`electionTimeoutMillis`; the server's own value
/// is 10 s), so a machine that stalls that long sees an election nobody asked for. Clients must cope, and
/// tests must not assume that node 0 is the primary, nor that the primary stays. A
/// [`shared`](ReplicaSet::shared) set has the server's own patience.
///
/// What harms a set takes `&mut self`; a [`shared`](ReplicaSet::shared) one can therefore not be harmed.
///
/// Data folders of initiated sets are not kept for later runs, on purpose: a set's configuration holds the
/// ports of its members, parallel test processes cannot have the same ports, and moving a set to other ports
/// takes a forced reconfiguration on every node and an election all the same, which is most of what starting
/// afresh costs.
pub struct ReplicaSet {
    name: String,
    nodes: Vec<Node>,
}

impl ReplicaSet {
    /// Starts a set that lets everybody in. When this returns, a majority write went through the primary, and
    /// all other nodes are secondaries that could take over.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], or why the set did not start.
    pub async fn start(size: Size) -> Result<ReplicaSet, Error> {
        let set = ReplicaSet::launch(size, NodeOptions::default()).await?;
        set.wait_until_complete().await?;
        Ok(set)
    }

    /// As [`start`](ReplicaSet::start), of a set with a name of its own: all others have one name.
    ///
    /// # Errors
    /// As [`start`](ReplicaSet::start).
    pub async fn named(name: &str, size: Size) -> Result<ReplicaSet, Error> {
        let options = NodeOptions {
            replica_set: Some(name.to_owned()),
            ..NodeOptions::default()
        };
        let set = ReplicaSet::launch(size, options).await?;
        set.wait_until_complete().await?;
        Ok(set)
    }

    /// As [`start`](ReplicaSet::start), of servers that fail commands when they are told to, by
    /// `configureFailPoint`, and that look every second what a TTL index removes (of a minute).
    ///
    /// # Errors
    /// As [`start`](ReplicaSet::start).
    pub async fn with_fail_points(size: Size) -> Result<ReplicaSet, Error> {
        let options = NodeOptions {
            fail_points: true,
            ..NodeOptions::default()
        };
        let set = ReplicaSet::launch(size, options).await?;
        set.wait_until_complete().await?;
        Ok(set)
    }

    /// As [`start`](ReplicaSet::start), of three nodes that can be cut from each other.
    ///
    /// # Errors
    /// As [`start`](ReplicaSet::start).
    pub async fn on(network: &Network) -> Result<ReplicaSet, Error> {
        let options = NodeOptions {
            network: Some(network.clone()),
            ..NodeOptions::default()
        };
        let set = ReplicaSet::launch(Size::Three, options).await?;
        set.wait_until_complete().await?;
        Ok(set)
    }

    /// As [`start`](ReplicaSet::start), of one server with a clock of its own.
    ///
    /// # Errors
    /// As [`start`](ReplicaSet::start).
    pub async fn by(clock: &ServerClock) -> Result<ReplicaSet, Error> {
        let options = NodeOptions {
            clock: Some(clock.clone()),
            ..NodeOptions::default()
        };
        let set = ReplicaSet::launch(Size::One, options).await?;
        set.wait_until_complete().await?;
        Ok(set)
    }

    /// Starts a set that demands credentials; [`administrator`](ReplicaSet::administrator) may do everything.
    ///
    /// # Errors
    /// As [`start`](ReplicaSet::start).
    pub async fn with_auth(size: Size) -> Result<ReplicaSet, Error> {
        let options = NodeOptions {
            authentication: true,
            ..NodeOptions::default()
        };
        let mut set = ReplicaSet::launch(size, options).await?;
        let administrator = User::administrator();
        let created = poll_until(START_TIMEOUT, "creation of the administrator", || async {
            let primary = set.find_primary().await?;
            // The server lets the first user be made without credentials, from loopback only.
            set.nodes[primary]
                .create_user(&administrator, &[("root", "admin")])
                .await
        });
        created.await?;
        for node in &mut set.nodes {
            node.act_as(administrator.clone());
        }
        set.wait_until_complete().await?;
        Ok(set)
    }

    /// Connection string of the set, with the administrator's credentials if it demands any.
    #[must_use]
    pub fn uri(&self) -> String {
        self.uri_of(self.administrator())
    }

    /// Connection string of the set with these credentials, be they right or wrong.
    #[must_use]
    pub fn uri_as(&self, user: &User) -> String {
        self.uri_of(Some(user))
    }

    /// Connection string of the set without credentials.
    #[must_use]
    pub fn uri_without_credentials(&self) -> String {
        self.uri_of(None)
    }

    /// Connection string of one node, for a client that talks to this node only.
    #[must_use]
    pub fn direct_uri(&self, node: usize) -> String {
        self.nodes[node].direct_uri(self.administrator())
    }

    /// `127.0.0.1:port` of one node.
    #[must_use]
    pub fn address(&self, node: usize) -> String {
        self.nodes[node].address()
    }

    /// How many nodes the set has, dead or alive.
    #[must_use]
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// Process number of a node, or nothing after it was killed.
    #[must_use]
    pub fn pid(&self, node: usize) -> Option<u32> {
        self.nodes[node].pid()
    }

    /// The administrator of a set that was started [`with_auth`](ReplicaSet::with_auth).
    #[must_use]
    pub fn administrator(&self) -> Option<&User> {
        self.nodes[0].user()
    }

    /// Creates a user of the `admin` database. `roles` are pairs of a role and the database it is for.
    ///
    /// # Errors
    /// [`Error::Refused`] with the server's answer.
    pub async fn create_user(
        &self,
        name: &str,
        password: &str,
        roles: &[(&str, &str)],
    ) -> Result<User, Error> {
        let user = User::new(name, password);
        let primary = self.primary().await?;
        self.nodes[primary].create_user(&user, roles).await?;
        Ok(user)
    }

    /// The node that is primary, waiting for an election if there is none.
    ///
    /// While a thawed primary has not noticed that it was replaced, the one of the latest election counts.
    ///
    /// # Errors
    /// [`Error::TimedOut`] when no primary is elected.
    pub async fn primary(&self) -> Result<usize, Error> {
        poll_until(ELECTION_TIMEOUT, "a primary", || self.find_primary()).await
    }

    /// Waits until a write that a majority must confirm goes through, and returns the primary that took it.
    ///
    /// # Errors
    /// [`Error::TimedOut`] when none goes through.
    pub async fn wait_until_writable(&self) -> Result<usize, Error> {
        poll_until(STALL_TIMEOUT, "a majority write", || async {
            let primary = self.find_primary().await?;
            let write = doc! {
                "update": "testkit_ready",
                "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "writes": 1 } }, "upsert": true }],
                "writeConcern": { "w": "majority", "wtimeout": 5_000 },
            };
            let answer = self.nodes[primary]
                .command_on("testkit", write, COMMAND_TIMEOUT)
                .await?;
            match answer.get("writeErrors").or(answer.get("writeConcernError")) {
                Some(refusal) => Err(Error::NotYet(refusal.to_string())),
                None => Ok(primary),
            }
        })
        .await
    }

    /// Waits until a majority write goes through and every node is primary or secondary.
    ///
    /// # Errors
    /// [`Error::TimedOut`], for sure while a node is dead or frozen.
    pub async fn wait_until_complete(&self) -> Result<usize, Error> {
        for (index, node) in self.nodes.iter().enumerate() {
            poll_until(
                START_TIMEOUT,
                &format!("node {index} as primary or secondary"),
                || async {
                    let hello = node
                        .command_on("admin", doc! { "hello": 1 }, PROBE_TIMEOUT)
                        .await?;
                    let serves = is_true(&hello, "isWritablePrimary") || is_true(&hello, "secondary");
                    if serves {
                        Ok(())
                    } else {
                        Err(Error::NotYet(hello.to_string()))
                    }
                },
            )
            .await?;
        }
        self.wait_until_writable().await
    }

    /// Kills a node with SIGKILL. Its port and its data stay.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].kill();
    }

    /// Stops a node with SIGSTOP: connections stay open, nothing is answered.
    ///
    /// When it is the primary, another is elected after about 2 s, but majority writes may stall for 30 s and
    /// more: a secondary that reports its progress to the frozen node waits that long for the answer, and the
    /// server has no setting for it. [`freeze_primary`](ReplicaSet::freeze_primary) avoids the stall.
    ///
    /// # Panics
    /// When it was killed.
    pub fn freeze(&mut self, node: usize) {
        self.nodes[node].freeze();
    }

    /// Stops the primary of a complete set of three with SIGSTOP, and returns which node that is.
    ///
    /// Before, one secondary is made to follow the other instead of the primary, and not to stand for
    /// election. So the one that is elected has a follower that never waits for the frozen node, and majority
    /// writes go on after the election.
    ///
    /// # Errors
    /// Why the secondaries could not be prepared; nothing is frozen then.
    ///
    /// # Panics
    /// When the set has one node.
    pub async fn freeze_primary(&mut self) -> Result<usize, Error> {
        assert_eq!(
            self.nodes.len(),
            3,
            "a set of one has no node that could take over"
        );
        let primary = poll_until(ELECTION_TIMEOUT, "a chain of secondaries", || async {
            let primary = self.find_primary().await?;
            let (heir, follower) = (&self.nodes[(primary + 1) % 3], &self.nodes[(primary + 2) % 3]);
            let follow = doc! { "replSetSyncFrom": heir.address() };
            follower.command_on("admin", follow, PROBE_TIMEOUT).await?;
            // In seconds: longer than an election, and soon forgotten.
            follower
                .command_on("admin", doc! { "replSetFreeze": 20 }, PROBE_TIMEOUT)
                .await?;
            poll_until(PROBE_TIMEOUT, "a secondary that follows the other", || async {
                let status = follower
                    .command_on("admin", doc! { "replSetGetStatus": 1 }, PROBE_TIMEOUT)
                    .await?;
                let source = status.get_str("syncSourceHost").unwrap_or_default();
                if source == heir.address() {
                    Ok(primary)
                } else {
                    Err(Error::NotYet(source.to_owned()))
                }
            })
            .await
        })
        .await?;
        self.nodes[primary].freeze();
        Ok(primary)
    }

    /// Lets a frozen node go on.
    ///
    /// # Panics
    /// When it was killed.
    pub fn thaw(&mut self, node: usize) {
        self.nodes[node].thaw();
    }

    /// Kills a node if it runs, starts it on the same port and data, and waits until it answers.
    ///
    /// It may still have to catch up: [`wait_until_complete`](ReplicaSet::wait_until_complete) waits for
    /// that.
    ///
    /// # Errors
    /// Why it did not start.
    pub async fn restart(&mut self, node: usize) -> Result<(), Error> {
        self.nodes[node].kill();
        self.nodes[node].launch().await
    }

    /// Kills a node if it runs, and starts it on the same port and data without its set's name, as for
    /// maintenance: it stands alone, and takes writes. [`restart`](ReplicaSet::restart) puts it back.
    ///
    /// # Errors
    /// Why it did not start.
    pub async fn restart_alone(&mut self, node: usize) -> Result<(), Error> {
        // What was not written to the data files a server that stands alone does not have: it leaves the
        // set's log alone.
        let flush = doc! { "fsync": 1 };
        self.nodes[node]
            .command_on("admin", flush, COMMAND_TIMEOUT)
            .await?;
        self.nodes[node].kill();
        self.nodes[node].launch_alone().await
    }

    /// Kills the nodes, empties their data folders, and initiates a set of the same name and ports.
    ///
    /// # Errors
    /// Why it did not start.
    pub async fn make_anew(&mut self) -> Result<(), Error> {
        for node in &mut self.nodes {
            node.kill();
            node.empty()?;
            node.launch().await?;
        }
        self.initiate().await?;
        self.wait_until_complete().await.map(drop)
    }

    /// Has the primary step down, and returns which node that was.
    ///
    /// Of three nodes another takes over at once; a single one is without primary for about 2 s.
    ///
    /// # Errors
    /// [`Error::TimedOut`] when no primary agrees to, as none of the others has caught up.
    pub async fn step_down(&mut self) -> Result<usize, Error> {
        // Without another node to hand over to, only force makes a primary step down.
        let (seconds, force) = if self.nodes.len() == 1 {
            (2, true)
        } else {
            (10, false)
        };
        let command = doc! {
            "replSetStepDown": seconds,
            "secondaryCatchUpPeriodSecs": if force { 0 } else { 5 },
            "force": force,
        };
        poll_until(ELECTION_TIMEOUT, "a primary that steps down", || async {
            let primary = self.find_primary().await?;
            self.nodes[primary]
                .command_on("admin", command.clone(), COMMAND_TIMEOUT)
                .await?;
            Ok::<_, Error>(primary)
        })
        .await
    }

    /// Starts and initiates the nodes; who is primary is open when this returns.
    async fn launch(size: Size, options: NodeOptions) -> Result<ReplicaSet, Error> {
        let name = options.replica_set.unwrap_or_else(|| "tenure".to_owned());
        let options = NodeOptions {
            replica_set: Some(name.clone()),
            ..options
        };
        let start = || Node::start(options.clone());
        let nodes = match size {
            Size::One => vec![start().await?],
            Size::Three => {
                let (first, second, third) = tokio::try_join!(start(), start(), start())?;
                vec![first, second, third]
            }
        };
        let set = ReplicaSet { name, nodes };
        set.initiate().await?;
        Ok(set)
    }

    async fn initiate(&self) -> Result<(), Error> {
        let members: Vec<Bson> = (0i32..)
            .zip(&self.nodes)
            .map(|(id, node)| Bson::Document(doc! { "_id": id, "host": node.address() }))
            .collect();
        let configuration = doc! {
            "_id": &self.name,
            "members": members,
            "settings": {
                "electionTimeoutMillis": 1_000,
                "heartbeatIntervalMillis": 500,
                // Of 10 s: until it is over, a frozen node passes for one that can be read from.
                "heartbeatTimeoutSecs": 2,
            },
        };
        let command = doc! { "replSetInitiate": configuration };
        let initiated = self.nodes[0].command_on("admin", command, COMMAND_TIMEOUT);
        initiated.await.map(drop)
    }

    /// One look for the primary.
    async fn find_primary(&self) -> Result<usize, Error> {
        let hello = |index: usize| async move {
            let node = self.nodes.get(index).filter(|node| node.can_answer())?;
            let hello = node
                .command_on("admin", doc! { "hello": 1 }, PROBE_TIMEOUT)
                .await
                .ok()?;
            is_true(&hello, "isWritablePrimary").then(|| (hello.get_object_id("electionId").ok(), index))
        };
        let (first, second, third) = tokio::join!(hello(0), hello(1), hello(2));
        let latest = [first, second, third].into_iter().flatten().max();
        latest
            .map(|(_, index)| index)
            .ok_or_else(|| Error::NotYet("no node says it is primary".to_owned()))
    }

    fn uri_of(&self, user: Option<&User>) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(Node::address).collect();
        connection_string(user, &hosts.join(","), &format!("replicaSet={}", self.name))
    }
}

fn is_true(hello: &Document, field: &str) -> bool {
    hello.get_bool(field).unwrap_or(false)
}

const START_TIMEOUT: Duration = Duration::from_secs(90);
const ELECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// Of writes behind a node that was frozen: more than two of the [stalls](ReplicaSet::freeze), which may
/// follow each other.
const STALL_TIMEOUT: Duration = Duration::from_secs(150);
