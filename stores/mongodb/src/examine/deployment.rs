use super::{bad, good, unknown, warning};
use crate::site::{Site, Topology};
use crate::tied::{TIED, UNTIE};
use mongodb::bson::{Bson, Document, doc};
use tenure_core::Finding;

impl Site {
    /// What kind of deployment it is, how old, and whether it confirms and journals writes.
    pub(super) async fn examine_deployment(&self, hello: &Document) -> Vec<Finding> {
        let topology = match self.is_tied_to_a_member() {
            true => warning("topology", TIED, UNTIE),
            false => members(&self.topology, &self.members(hello).await),
        };
        vec![self.version().await, topology, self.durability().await]
    }

    /// Whoever may not read the configuration goes by what every member shows.
    async fn members(&self, hello: &Document) -> Members {
        let asked = match self.topology {
            Topology::ReplicaSet { .. } => {
                self.admin("its configuration", doc! { "replSetGetConfig": 1 })
                    .await
            }
            Topology::Standalone | Topology::Sharded => return Members::shown(hello),
        };
        let configured = asked.as_ref().ok().and_then(Members::configured);
        configured.unwrap_or_else(|| Members::shown(hello))
    }

    async fn version(&self) -> Finding {
        let build = match self.admin("its version", doc! { "buildInfo": 1 }).await {
            Ok(build) => build,
            Err(error) => return unknown("version", &error),
        };
        let detail = format!("MongoDB {}", build.get_str("version").unwrap_or("unknown"));
        match imitation(&self.hosts, &build) {
            None => good("version", detail),
            Some(other) => warning(
                "version",
                format!(
                    "{detail}, as {other} says: it speaks MongoDB's protocol, and nobody has tried whether it promises what leases rest on"
                ),
                "keep leases on MongoDB's own server, or on Percona's",
            ),
        }
    }

    async fn durability(&self) -> Finding {
        let engine = doc! { "serverStatus": 1, "repl": 0, "metrics": 0, "locks": 0 };
        // For who may not ask: as its documents say, it keeps what it confirms.
        let told = self.admin("its storage engine", engine).await.unwrap_or_default();
        if let Some(engine) = forgetful(&told) {
            return bad(
                "durability",
                format!(
                    "the storage engine {engine} keeps nothing on a disk, and confirms all the same: a restart forgets leases"
                ),
                "keep leases on a server with the engine wiredTiger",
            );
        }
        match self.confirms().await {
            Ok(()) => good(
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

/// Of what a replica set consists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Members {
    /// Those with data that may become primary.
    electable: usize,
    /// Those with data and a vote, which confirm writes.
    data: usize,
    arbiters: usize,
    /// Those without a vote, which confirm nothing; `None` where nobody knows which these are.
    voteless: Option<usize>,
}

impl Members {
    /// As the set is configured; `None` where the answer holds no configuration.
    fn configured(answer: &Document) -> Option<Self> {
        let members = answer.get_document("config").ok()?.get_array("members").ok()?;
        let mut found = Self {
            electable: 0,
            data: 0,
            arbiters: 0,
            voteless: Some(0),
        };
        for member in members {
            let member = member.as_document()?;
            let is_arbiter = member.get_bool("arbiterOnly").unwrap_or(false);
            match (is_some_number(member, "votes"), is_arbiter) {
                (true, true) => found.arbiters += 1,
                (true, false) => {
                    found.data += 1;
                    found.electable += usize::from(is_some_number(member, "priority"));
                }
                (false, _) => found.voteless = found.voteless.map(|count| count + 1),
            }
        }
        Some(found)
    }

    /// As a member shows it: hidden ones are not in it, and nobody knows who votes.
    fn shown(hello: &Document) -> Self {
        let count = |kind: &str| hello.get_array(kind).map_or(0, Vec::len);
        // Passive are those whose priority of 0 keeps them from being primary.
        Self {
            electable: count("hosts"),
            data: count("hosts") + count("passives"),
            arbiters: count("arbiters"),
            voteless: None,
        }
    }
}

/// Whether a number of a member's is not 0. One that is not there is 1.
fn is_some_number(member: &Document, field: &str) -> bool {
    match member.get(field) {
        Some(Bson::Int32(number)) => *number != 0,
        Some(Bson::Int64(number)) => *number != 0,
        Some(Bson::Double(number)) => *number != 0.0,
        Some(_) | None => true,
    }
}

fn members(topology: &Topology, members: &Members) -> Finding {
    match topology {
        Topology::Sharded => good("topology", "sharded cluster"),
        Topology::Standalone => warning(
            "topology",
            "standalone server: a crash stops every election until it is back, waiting candidates are not woken, and there are no \
             transactions: of the fences only the one per document works",
            "make it a replica set: start it with --replSet rs, then rs.initiate(), then start the processes anew",
        ),
        Topology::ReplicaSet { name } => {
            let Members {
                electable,
                data,
                arbiters,
                voteless,
            } = *members;
            let of_others = match voteless {
                Some(0) => "",
                Some(_) => ", not counting those without a vote, which confirm nothing",
                None => ", if all of them vote: this user may not read the set's configuration",
            };
            let detail =
                format!("replica set \"{name}\", {data} members with data, {arbiters} arbiters{of_others}");
            let survives = survives_a_loss(data, arbiters);
            match (survives, electable, arbiters) {
                (true, 2.., _) => good(
                    "topology",
                    format!("{detail}; a majority survives the loss of one"),
                ),
                (true, ..) => warning(
                    "topology",
                    format!(
                        "{detail}; the loss of the primary stops every election: no other has a priority above 0"
                    ),
                    "give another one a priority with rs.reconfig()",
                ),
                (false, _, 0) => warning(
                    "topology",
                    format!("{detail}; the loss of one can stop every election"),
                    "add members until three hold data: rs.add(\"host:port\")",
                ),
                (false, ..) => warning(
                    "topology",
                    format!(
                        "{detail}; the loss of one with data can stop every election: arbiters count for the majority, and confirm \
                         nothing"
                    ),
                    "remove the arbiters, rs.remove(\"host:port\"), and add members until three hold data: rs.add(\"host:port\")",
                ),
            }
        }
    }
}

/// The storage engine that keeps what it confirms in memory alone, if the server has told that.
fn forgetful(status: &Document) -> Option<&str> {
    let engine = status.get_document("storageEngine").ok()?;
    let is_kept = engine.get_bool("persistent").unwrap_or(true);
    (!is_kept).then(|| engine.get_str("name").unwrap_or("of this server"))
}

/// Which other system answers in MongoDB's place, as far as hosts or answer show it: a majority that it
/// confirms may be none.
fn imitation(hosts: &[String], build: &Document) -> Option<&'static str> {
    let any_host = |holds: &dyn Fn(&str) -> bool| hosts.iter().any(|host| holds(&host.to_ascii_lowercase()));
    if build.keys().any(|key| key.starts_with("ferretdb")) {
        Some("FerretDB")
    } else if any_host(&|host| host.contains(".docdb") && host.contains(".amazonaws.com")) {
        Some("Amazon DocumentDB")
    } else if any_host(&|host| host.contains(".cosmos.azure.")) {
        Some("Azure Cosmos DB")
    } else {
        None
    }
}

/// Whether writes are still confirmed without one of the members that hold data. As many must confirm a write
/// as are a majority of all who vote, or else all that hold data.
fn survives_a_loss(data: usize, arbiters: usize) -> bool {
    let majority = (data + arbiters) / 2 + 1;
    data > majority.min(data)
}

#[cfg(test)]
mod tests {
    use super::{Document, Members, Topology, doc, forgetful, imitation, members};
    use tenure_core::Verdict;

    #[test]
    fn arbiters_are_no_members_that_could_confirm_a_write() {
        let set = Topology::ReplicaSet {
            name: "rs".to_owned(),
        };
        let verdict = |data: usize, arbiters: usize| {
            let named = |count| vec!["h:1"; count];
            let hello = doc! { "hosts": named(data), "arbiters": named(arbiters) };
            members(&set, &Members::shown(&hello)).verdict
        };
        for (data, arbiters) in [(3, 0), (5, 0), (5, 1), (4, 1), (7, 0)] {
            assert_eq!(verdict(data, arbiters), Verdict::Good, "{data} and {arbiters}");
        }
        // Of four who vote three must confirm, and of three with data one is lost.
        for (data, arbiters) in [(1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (4, 3)] {
            assert_eq!(verdict(data, arbiters), Verdict::Warning, "{data} and {arbiters}");
        }
    }

    /// They are among the passive ones that a member shows, and hidden ones, which may vote, are not.
    #[test]
    fn members_without_a_vote_are_no_members_that_could_confirm_a_write() {
        let set = Topology::ReplicaSet {
            name: "rs".to_owned(),
        };
        let told = |others: &[Document]| {
            let mut all = vec![
                doc! { "votes": 1, "priority": 1.0 },
                doc! { "votes": 1, "priority": 1.0 },
            ];
            all.extend_from_slice(others);
            let answer = doc! { "config": { "members": all } };
            members(&set, &Members::configured(&answer).expect("a configuration"))
        };
        let (idle, arbiter) = (
            doc! { "votes": 0, "priority": 0.0 },
            doc! { "votes": 1, "priority": 0.0, "arbiterOnly": true },
        );
        let found = told(std::slice::from_ref(&idle));
        assert_eq!(found.verdict, Verdict::Warning, "{found:?}");
        assert!(found.detail.contains("2 members with data") && found.detail.contains("without a vote"));
        assert_eq!(told(&[arbiter, idle.clone(), idle]).verdict, Verdict::Warning);
        let hidden = doc! { "votes": 1_i64, "priority": 0.0, "hidden": true };
        let found = told(&[hidden]);
        assert_eq!(found.verdict, Verdict::Good, "{found:?}");
        assert!(!found.detail.contains("vote"), "{found:?}");
        // Who may not know says so.
        let hello = doc! { "hosts": ["h:1", "h:2"], "passives": ["h:3"] };
        let found = members(&set, &Members::shown(&hello));
        assert!(found.detail.contains("if all of them vote"), "{found:?}");
        assert_eq!(Members::configured(&doc! { "ok": 1 }), None);
    }

    #[test]
    fn storage_engine_that_keeps_nothing_on_a_disk_is_told_by_its_name() {
        let told = |engine: &str, persistent: bool| doc! { "storageEngine": { "name": engine, "persistent": persistent } };
        assert_eq!(forgetful(&told("inMemory", false)), Some("inMemory"));
        assert_eq!(forgetful(&told("wiredTiger", true)), None);
        // Who may not ask is told nothing.
        assert_eq!(forgetful(&doc! {}), None);
    }

    #[test]
    fn system_that_only_speaks_the_protocol_of_mongodb_is_told_by_its_name() {
        let build = doc! { "version": "7.0.42", "gitVersion": "abc" };
        for (host, name) in [
            ("db1:27017", None),
            ("shard-00-00.abcde.mongodb.net:27017", None),
            (
                "leases.cluster-abc.eu-west-1.docdb.amazonaws.com:27017",
                Some("Amazon DocumentDB"),
            ),
            (
                "leases-1.eu-west-1.docdb-elastic.amazonaws.com:27017",
                Some("Amazon DocumentDB"),
            ),
            ("Leases.mongo.Cosmos.azure.com:10255", Some("Azure Cosmos DB")),
            (
                "fc-1-000.global.mongocluster.cosmos.azure.com:10260",
                Some("Azure Cosmos DB"),
            ),
        ] {
            assert_eq!(
                imitation(&["db0:27017".to_owned(), host.to_owned()], &build),
                name,
                "{host}"
            );
        }
        for told in ["ferretdbVersion", "ferretdb"] {
            let mut build = build.clone();
            build.insert(told, "v2.0.0");
            assert_eq!(imitation(&[], &build), Some("FerretDB"));
        }
    }

    #[test]
    fn set_in_which_one_alone_may_be_primary_is_warned_of() {
        let set = Topology::ReplicaSet {
            name: "rs".to_owned(),
        };
        let told = |hosts: usize, passives: usize| {
            let named = |count| vec!["h:1"; count];
            let hello = doc! { "hosts": named(hosts), "passives": named(passives) };
            members(&set, &Members::shown(&hello))
        };
        assert_eq!(told(2, 1).verdict, Verdict::Good);
        let alone = told(1, 2);
        assert_eq!(alone.verdict, Verdict::Warning);
        assert!(alone.detail.contains("3 members with data"), "{alone:?}");
        assert!(alone.repair.is_some_and(|repair| repair.contains("priority")));
    }
}
