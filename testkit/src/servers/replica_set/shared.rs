//! The sets that all tests of a process share.

use super::{COMMAND_TIMEOUT, ELECTION_TIMEOUT, ReplicaSet, Size};
use crate::error::Error;
use crate::eventually::poll_until;
use mongodb::bson::doc;
use tokio::sync::OnceCell;

impl ReplicaSet {
    /// The set of three nodes that all tests of this process share, started by the first that asks.
    ///
    /// # Panics
    /// When it does not start, with the reason.
    pub async fn shared() -> &'static ReplicaSet {
        static SET: OnceCell<ReplicaSet> = OnceCell::const_new();
        shared(&SET, Size::Three).await
    }

    /// The set of one node that all tests of this process share: faster to start and to write to.
    ///
    /// # Panics
    /// When it does not start, with the reason.
    pub async fn shared_single() -> &'static ReplicaSet {
        static SET: OnceCell<ReplicaSet> = OnceCell::const_new();
        shared(&SET, Size::One).await
    }

    /// Has the set wait as long for a silent primary as servers do by themselves. Where nobody harms the
    /// primary, as in a shared set, an election is the work of a machine that stalled, and fails a test that
    /// is about something else.
    ///
    /// It starts without: servers that are so patient elect their first primary that much later.
    ///
    /// # Errors
    /// If it has no primary, or does not take the change.
    pub async fn become_patient(&self) -> Result<(), Error> {
        poll_until(ELECTION_TIMEOUT, "a patient set", || async {
            let primary = &self.nodes[self.find_primary().await?];
            let command = doc! { "replSetGetConfig": 1 };
            let told = primary.command_on("admin", command, COMMAND_TIMEOUT).await?;
            let unexpected = |_| Error::NotYet(format!("the answer has no configuration: {told}"));
            let mut configuration = told.get_document("config").map_err(unexpected)?.clone();
            let version = configuration.get_i32("version").map_err(unexpected)?;
            configuration.insert("version", version + 1);
            let settings = configuration.get_document_mut("settings").map_err(unexpected)?;
            settings.insert("electionTimeoutMillis", 10_000);
            settings.insert("heartbeatTimeoutSecs", 10);
            let command = doc! { "replSetReconfig": configuration };
            primary.command_on("admin", command, COMMAND_TIMEOUT).await
        })
        .await?;
        self.wait_until_complete().await.map(drop)
    }
}

async fn shared(cell: &'static OnceCell<ReplicaSet>, size: Size) -> &'static ReplicaSet {
    let start = || async {
        let set = ReplicaSet::start(size).await?;
        set.become_patient().await?;
        Ok::<_, Error>(set)
    };
    match cell.get_or_try_init(start).await {
        Ok(set) => set,
        Err(error) => panic!("the shared replica set did not start: {error}"),
    }
}
