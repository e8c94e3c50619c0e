use super::{bad, good, unknown, warning};
use crate::fault::Deed;
use crate::site::{Site, Topology};
use mongodb::bson::{Document, doc};
use tenure_core::Finding;

/// Members that a set needs so that a majority survives the loss of one.
const MEMBERS_MIN: usize = 3;

impl Site {
    /// What kind of deployment it is, how old, and whether it confirms and journals writes.
    pub(super) async fn examine_deployment(&self, hello: &Document) -> Vec<Finding> {
        vec![self.version().await, self.members(hello), self.durability().await]
    }

    async fn version(&self) -> Finding {
        match self.admin("its version", doc! { "buildInfo": 1 }).await {
            Ok(build) => good(
                "version",
                format!("MongoDB {}", build.get_str("version").unwrap_or("unknown")),
            ),
            Err(error) => unknown("version", &error),
        }
    }

    fn members(&self, hello: &Document) -> Finding {
        match &self.topology {
            Topology::Sharded => good("topology", "sharded cluster"),
            Topology::Standalone => warning(
                "topology",
                "standalone server: a crash stops every election until it is back, and waiting candidates are not woken",
                "make it a replica set: start it with --replSet rs, then rs.initiate()",
            ),
            Topology::ReplicaSet { name } => {
                let data = hello.get_array("hosts").map_or(0, Vec::len);
                let arbiters = hello.get_array("arbiters").map_or(0, Vec::len);
                let detail = format!("replica set \"{name}\", {data} members with data, {arbiters} arbiters");
                if data >= MEMBERS_MIN {
                    good(
                        "topology",
                        format!("{detail}; a majority survives the loss of one"),
                    )
                } else {
                    warning(
                        "topology",
                        format!("{detail}; the loss of one can stop every election"),
                        "add members until three hold data: rs.add(\"host:port\")",
                    )
                }
            }
        }
    }

    /// Asks for the very confirmation that every lease has, by an update that matches nothing.
    async fn durability(&self) -> Finding {
        let nothing = doc! { "_id": { "$in": [] } };
        let update = self.leases.update_one(nothing, doc! { "$set": { "owner": "" } });
        match self
            .within(Deed::Read, "a confirmed write", update.into_future())
            .await
        {
            Ok(_) => good(
                "durability",
                "writes are confirmed by a majority and journalled (w: majority, j: true)",
            ),
            Err(error) => bad(
                "durability",
                format!("no write confirmed by a majority and the journal: {error}"),
                "bring a majority of the members up, and let the user write to the collection",
            ),
        }
    }
}
