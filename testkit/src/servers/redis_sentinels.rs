//! A primary with a replica, and three sentinels that make the replica primary when the primary is gone.

use std::time::Duration;

use super::redis::{RedisOptions, RedisServer, Role};
use crate::error::Error;
use crate::eventually::poll_until;
use crate::network::Network;

/// A Redis primary, its replica, and three sentinels, killed and cleaned up on drop.
///
/// The sentinels take a server for gone after one second, so a machine that stalls for so long sees a
/// fail-over that nobody asked for.
pub struct RedisSentinels {
    servers: [RedisServer; 2],
    sentinels: [RedisServer; 3],
}

impl RedisSentinels {
    /// The name by which the sentinels know the primary.
    pub const PRIMARY: &str = "scratch";

    /// Starts all five. When this returns, the replica has caught up and every sentinel knows it and the
    /// others.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], or why a server did not start.
    pub async fn start() -> Result<RedisSentinels, Error> {
        RedisSentinels::launch(None).await
    }

    /// The same of five that can be cut from each other.
    ///
    /// # Errors
    /// As [`start`](RedisSentinels::start).
    pub async fn on(network: &Network) -> Result<RedisSentinels, Error> {
        RedisSentinels::launch(Some(network)).await
    }

    async fn launch(network: Option<&Network>) -> Result<RedisSentinels, Error> {
        let with = |settings: &str| RedisOptions {
            network: network.cloned(),
            ..RedisOptions::with(settings)
        };
        let primary = RedisServer::start(with("--repl-diskless-sync-delay 0")).await?;
        let of_primary = format!(
            "--replicaof 127.0.0.1 {} --repl-diskless-sync-delay 0",
            primary.port()
        );
        let replica = RedisServer::start(with(&of_primary)).await?;
        let sentinels = [
            sentinel(&primary, with("")).await?,
            sentinel(&primary, with("")).await?,
            sentinel(&primary, with("")).await?,
        ];
        let set = RedisSentinels {
            servers: [primary, replica],
            sentinels,
        };
        set.wait_until_complete().await?;
        Ok(set)
    }

    /// URL of a store that asks the sentinels.
    #[must_use]
    pub fn url(&self) -> String {
        let sentinels: Vec<String> = self.sentinels.iter().map(RedisServer::address).collect();
        format!(
            "redis+sentinel://{}?primary={}",
            sentinels.join(","),
            Self::PRIMARY
        )
    }

    /// The primary that was started as one, and its replica.
    #[must_use]
    pub fn servers(&mut self) -> &mut [RedisServer; 2] {
        &mut self.servers
    }

    /// Where the sentinels listen.
    #[must_use]
    pub fn sentinels(&self) -> [String; 3] {
        self.sentinels.each_ref().map(RedisServer::address)
    }

    async fn wait_until_complete(&self) -> Result<(), Error> {
        poll_until(
            COMPLETE_TIMEOUT,
            "sentinels that know each other and the replica",
            || async {
                if !self.servers[1]
                    .ask("ROLE")
                    .is_ok_and(|first| first.starts_with('*'))
                {
                    return Err("the replica does not answer".to_owned());
                }
                for sentinel in &self.sentinels {
                    // The first line of an array is its length.
                    let count = |what: &str| {
                        sentinel
                            .ask(&format!("SENTINEL {what} {}", Self::PRIMARY))
                            .unwrap_or_default()
                    };
                    let (replicas, others) = (count("REPLICAS"), count("SENTINELS"));
                    if replicas != "*1" || others != "*2" {
                        return Err(format!(
                            "a sentinel knows {replicas} replicas and {others} sentinels"
                        ));
                    }
                    let quorum = sentinel
                        .ask(&format!("SENTINEL CKQUORUM {}", Self::PRIMARY))
                        .unwrap_or_default();
                    if !quorum.starts_with("+OK") {
                        return Err(quorum);
                    }
                }
                Ok(())
            },
        )
        .await
    }
}

async fn sentinel(primary: &RedisServer, options: RedisOptions) -> Result<RedisServer, Error> {
    let name = RedisSentinels::PRIMARY;
    let configuration = format!(
        "sentinel monitor {name} 127.0.0.1 {} 2\nsentinel down-after-milliseconds {name} 1000\n\
         sentinel failover-timeout {name} 5000\n",
        primary.port()
    );
    RedisServer::start_as(Role::Sentinel { configuration }, options).await
}

/// They learn of each other by messages that are sent every two seconds.
const COMPLETE_TIMEOUT: Duration = Duration::from_secs(60);
