use super::{bad, good, unknown, warning};
use crate::site::Site;
use mongodb::bson::{Bson, Document, doc};
use tenure_core::Finding;

/// What holding leases needs on the collection.
const NEEDED: [&str; 3] = ["find", "insert", "update"];

impl Site {
    /// Whether the user may do what the store does, by what the server says of the user; nothing is tried.
    pub(super) async fn examine_privileges(&self) -> Vec<Finding> {
        let status = self
            .admin(
                "its privileges",
                doc! { "connectionStatus": 1, "showPrivileges": true },
            )
            .await;
        let status = match &status {
            Ok(status) => status.get_document("authInfo"),
            Err(error) => return vec![unknown("privileges", error)],
        };
        let Ok(info) = status else {
            return vec![good("privileges", "the server does not tell any")];
        };
        if info.get_array("authenticatedUsers").map_or(0, Vec::len) == 0 {
            return vec![warning(
                "privileges",
                "not authenticated: everybody who reaches the server may take and break every lease",
                "enable authentication and give each service a user of its own",
            )];
        }
        let lacking = |actions: &[&'static str]| -> Vec<&'static str> {
            let lacks = |action: &&'static str| !self.allows(info, action);
            actions.iter().copied().filter(lacks).collect()
        };
        let grant = |actions: &[&str]| {
            format!(
                "db.getSiblingDB(\"admin\").createRole({{role: \"tenure\", roles: [], privileges: [{{resource: {{db: \"{}\", \
                 collection: \"{}\"}}, actions: [\"find\", \"insert\", \"update\", \"changeStream\", \"listIndexes\"]}}]}}) and \
                 grant it; lacking: {}",
                self.database.name(),
                self.leases.name(),
                actions.join(", ")
            )
        };
        let mut findings = Vec::new();
        let needed = lacking(&NEEDED);
        findings.push(match needed.is_empty() {
            true => good("privileges", "the user may find, insert and update"),
            false => bad(
                "privileges",
                format!("the user may not {} on {}", needed.join(", "), self.namespace),
                grant(&needed),
            ),
        });
        let mut wanted = vec!["listIndexes"];
        if self.unwatchable().is_none() {
            wanted.push("changeStream");
        }
        if self.purge_after.is_some() {
            wanted.push("createIndex");
        }
        let wished = lacking(&wanted);
        if !wished.is_empty() {
            let detail = format!("the user may not {} on {}", wished.join(", "), self.namespace);
            findings.push(warning("privileges", detail, grant(&wished)));
        }
        findings
    }

    fn allows(&self, info: &Document, action: &str) -> bool {
        let privileges = info
            .get_array("authenticatedUserPrivileges")
            .into_iter()
            .flatten();
        privileges.filter_map(Bson::as_document).any(|privilege| {
            let actions = privilege.get_array("actions").into_iter().flatten();
            let mut actions = actions.filter_map(Bson::as_str);
            privilege
                .get_document("resource")
                .is_ok_and(|resource| self.is_covered(resource))
                && actions.any(|allowed| allowed == action || allowed == "anyAction")
        })
    }

    fn is_covered(&self, resource: &Document) -> bool {
        if resource.get_bool("anyResource").unwrap_or(false) {
            return true;
        }
        let covers = |field: &str, wanted: &str| {
            resource
                .get_str(field)
                .is_ok_and(|named| named.is_empty() || named == wanted)
        };
        covers("db", self.database.name()) && covers("collection", self.leases.name())
    }
}
