use super::{bad, good, unknown, warning};
use crate::fault::Deed;
use crate::identity;
use crate::indexes::{Indexes, TtlIndex, indexes, removal};
use crate::kind::{unfit, way_out};
use crate::record::understood;
use crate::shell::in_the_shell;
use crate::site::Site;
use crate::watch::Unwatchable;
use mongodb::bson::doc;
use tenure_core::{Fault, Finding, Scope};

/// Most unreadable records that are counted.
const UNREADABLE_COUNTED_MAX: u64 = 1000;

impl Site {
    /// What the collection is, what deletes from it, what is in it, and whether it can be watched.
    pub(super) async fn examine_collection(&self) -> Vec<Finding> {
        let mut findings = vec![self.kind().await];
        findings.extend(self.indexes().await);
        findings.push(self.records().await);
        findings.push(self.push().await);
        findings
    }

    async fn kind(&self) -> Finding {
        let name = self.leases.name();
        let described = match self.described().await {
            Ok(Some(described)) => described,
            Ok(None) => {
                return good(
                    "collection",
                    format!("{} does not exist yet; the first lease makes it", self.namespace),
                );
            }
            Err(error) if error.fault == Fault::Forbidden => {
                return match self.unfit_as_found().await {
                    Ok(None) => good(
                        "collection",
                        format!(
                            "{}, neither capped nor with a collation as far as it shows",
                            self.namespace
                        ),
                    ),
                    Ok(Some(why)) => bad("collection", format!("{} {why}", self.namespace), way_out(name)),
                    Err(error) => unknown("collection", &error),
                };
            }
            Err(error) => return unknown("collection", &error),
        };
        if let Some(why) = unfit(&described) {
            return bad("collection", format!("{} {why}", self.namespace), way_out(name));
        }
        let options = described.get_document("options");
        if options.is_ok_and(|options| options.contains_key("validator")) {
            let detail = format!("{} has a validator, which may refuse records", self.namespace);
            return warning(
                "collection",
                detail,
                format!("db.runCommand({{collMod: \"{name}\", validator: {{}}}})"),
            );
        }
        good("collection", self.namespace.clone())
    }

    async fn indexes(&self) -> Vec<Finding> {
        let found = match indexes(self).await {
            Ok(Some(found)) => found,
            Ok(None) => {
                let role = "grant listIndexes on the collection";
                return vec![warning("ttl index", "the user may not list indexes", role)];
            }
            Err(error) => return vec![unknown("ttl index", &error)],
        };
        let mut findings = self.ttl(&found);
        findings.extend(found.unique.iter().map(|name| {
            let detail =
                format!("index \"{name}\" is unique: the server refuses leases that are alike in it");
            bad("unique index", detail, removal(self.leases.name(), name))
        }));
        findings
    }

    fn ttl(&self, found: &Indexes) -> Vec<Finding> {
        let harmful = found.ttl.iter().filter(|index| index.is_harmful());
        let mut findings: Vec<Finding> = harmful
            .map(|index| {
                let detail = format!(
                    "index \"{}\" deletes records by \"{}\", and with them tokens and history",
                    index.name, index.field
                );
                bad("ttl index", detail, index.removal(self.leases.name()))
            })
            .collect();
        if findings.is_empty() {
            let purges = found.ttl.iter().any(TtlIndex::is_purging);
            findings.push(match (purges, self.purge_after) {
                (true, _) => good(
                    "ttl index",
                    "only on purgeAt: names that nobody uses are removed in time",
                ),
                (false, None) => good("ttl index", "none that concerns leases: nothing is ever removed"),
                (false, Some(_)) => {
                    let name = self.leases.name();
                    let in_the_way = found.plain_on_purge_at.iter();
                    let mut repairs: Vec<String> = in_the_way.map(|index| removal(name, index)).collect();
                    repairs.push(format!(
                        "{}.createIndex({{purgeAt: 1}}, {{expireAfterSeconds: 0}})",
                        in_the_shell(name)
                    ));
                    warning(
                        "ttl index",
                        "none on purgeAt, so nothing is ever removed",
                        repairs.join("; "),
                    )
                }
            });
        }
        findings
    }

    async fn records(&self) -> Finding {
        let count = self
            .leases
            .count_documents(doc! { "$nor": [understood(), { "_id": identity::key() }] })
            .limit(UNREADABLE_COUNTED_MAX)
            .max_time(self.time_max);
        match self
            .within(Deed::Read, "the count of unreadable records", count.into_future())
            .await
        {
            Ok(0) => good("records", "every record can be understood"),
            Ok(count) => bad(
                "records",
                format!(
                    "{count} records cannot be understood (counted up to {UNREADABLE_COUNTED_MAX}); their names cannot be led"
                ),
                "list them with `tenure status`, then mend or remove each",
            ),
            Err(error) => unknown("records", &error),
        }
    }

    async fn push(&self) -> Finding {
        if let Some(Unwatchable { what, way_out }) = self.unwatchable() {
            let detail = format!("{what} has no change streams: candidates wait for the remaining time");
            return warning("watch", detail, way_out);
        }
        match self.open_stream(&Scope::Prefix(String::new())).await {
            Ok(_stream) => good("watch", "change streams wake candidates"),
            Err(error) if error.fault == Fault::Forbidden => warning(
                "watch",
                format!("no change stream: {error}"),
                "grant changeStream and find on the collection",
            ),
            Err(error) => unknown("watch", &error),
        }
    }
}
