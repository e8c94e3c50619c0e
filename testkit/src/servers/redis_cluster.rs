//! A Redis Cluster: primaries that share the slots, each with a replica.

use std::time::Duration;

use super::redis::{RedisBuild, RedisOptions, RedisServer};
use crate::error::Error;
use crate::eventually::poll_until;

/// Three primaries, each with a replica, killed and cleaned up on drop.
///
pub struct RedisCluster {
    members: Vec<RedisServer>,
}

impl RedisCluster {
    /// How many have slots.
    pub const PRIMARIES: usize = 3;

    /// Starts all six. When this returns, all know each other, the slots are given away, and the replicas
    /// have caught up.
    ///
    /// A member takes another for gone after two seconds, so a machine that stalls for so long sees a
    /// fail-over that nobody asked for.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], or why a server did not start.
    pub async fn start(build: RedisBuild) -> Result<RedisCluster, Error> {
        Self::start_with(build, Duration::from_secs(2)).await
    }

    /// The same, where a member takes another for gone after `silence`, in whole milliseconds.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_with(build: RedisBuild, silence: Duration) -> Result<RedisCluster, Error> {
        let silence_ms = silence.as_millis();
        let settings =
            format!("--cluster-enabled yes --cluster-node-timeout {silence_ms} --repl-diskless-sync-delay 0");
        let mut members = Vec::new();
        for _member in 0..2 * Self::PRIMARIES {
            members.push(RedisServer::start(RedisOptions::with(&settings).of(build)).await?);
        }
        let cluster = RedisCluster { members };
        cluster.give_slots_away()?;
        cluster.wait_until_all_know("cluster_known_nodes:6").await?;
        for place in 0..Self::PRIMARIES {
            cluster.make_replica(place).await?;
        }
        cluster.wait_until_all_know("cluster_state:ok").await?;
        for replica in &cluster.members[Self::PRIMARIES..] {
            poll_until(COMPLETE_TIMEOUT, "a replica that has caught up", || async {
                match replica.ask_all("INFO replication") {
                    Ok(told) if told.contains("master_link_status:up") => Ok(()),
                    told => Err(format!("{told:?}")),
                }
            })
            .await?;
        }
        Ok(cluster)
    }

    /// All members: those that were started as primaries first, then the replica of each in the same order.
    #[must_use]
    pub fn members(&self) -> &[RedisServer] {
        &self.members
    }

    /// Kills one of them with SIGKILL.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn kill(&mut self, place: usize) {
        self.members[place].kill();
    }

    /// URL of a store that is told of all members.
    #[must_use]
    pub fn url(&self) -> String {
        let members: Vec<String> = self.members.iter().map(RedisServer::address).collect();
        format!("redis://{}", members.join(","))
    }

    fn give_slots_away(&self) -> Result<(), Error> {
        let each = SLOTS / Self::PRIMARIES;
        for (place, member) in self.members.iter().enumerate() {
            // Two that begin with the same epoch would have to agree on it first.
            member.ask(&format!("CLUSTER SET-CONFIG-EPOCH {}", place + 1))?;
            if place < Self::PRIMARIES {
                let last = if place + 1 == Self::PRIMARIES {
                    SLOTS
                } else {
                    (place + 1) * each
                } - 1;
                // Each by its number: 6.2 knows no ranges.
                let slots: Vec<String> = (place * each..=last).map(|slot| slot.to_string()).collect();
                member.ask(&format!("CLUSTER ADDSLOTS {}", slots.join(" ")))?;
            }
            self.members[0].ask(&format!("CLUSTER MEET 127.0.0.1 {}", member.port()))?;
        }
        Ok(())
    }

    async fn make_replica(&self, place: usize) -> Result<(), Error> {
        let primary = self.members[place].ask_all("CLUSTER MYID")?;
        let replica = &self.members[place + Self::PRIMARIES];
        poll_until(COMPLETE_TIMEOUT, "a replica of a cluster", || async {
            match replica.ask(&format!("CLUSTER REPLICATE {}", primary.trim())) {
                Ok(answer) if answer == "+OK" => Ok(()),
                answer => Err(format!("{answer:?}")),
            }
        })
        .await
    }

    async fn wait_until_all_know(&self, what: &str) -> Result<(), Error> {
        poll_until(COMPLETE_TIMEOUT, &format!("{what} in every member"), || async {
            for member in &self.members {
                let told = member
                    .ask_all("CLUSTER INFO")
                    .map_err(|error| error.to_string())?;
                if !told.contains(what) {
                    return Err(told);
                }
            }
            Ok(())
        })
        .await
    }
}

const SLOTS: usize = 16_384;

/// They learn of each other by what they tell each other every second.
const COMPLETE_TIMEOUT: Duration = Duration::from_secs(60);
