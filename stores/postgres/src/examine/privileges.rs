use super::{bad, good, unknown, warning};
use crate::fault::Deed;
use crate::schema::{QUICK, functions};
use crate::site::{Site, Typed};
use tenure_core::{Finding, StoreError};
use tokio_postgres::types::Type;

/// The functions that nobody needs but who fences.
const OF_MARKS: [&str; 5] = ["admit", "bump", "claim", "enter", "hold"];

impl Site {
    /// Whether the role may do what the store does, by what the server says of the role; nothing is tried.
    pub(super) async fn examine_privileges(&self) -> Vec<Finding> {
        let schema = self.schema();
        let may =
            |table: &str, privilege: &str| format!("has_table_privilege('{schema}.{table}', '{privilege}')");
        let asked = format!(
            "SELECT {}, {}, {}, {}, {}, {}, {}, {}, {}, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user), \
             has_schema_privilege('{}', 'CREATE'), current_user::text",
            may("leases", "SELECT"),
            may("leases", "INSERT"),
            may("leases", "UPDATE"),
            may("fences", "SELECT"),
            may("fences", "INSERT"),
            may("fences", "UPDATE"),
            may("refusals", "SELECT"),
            may("refusals", "INSERT"),
            may("refusals", "UPDATE"),
            self.dial.url.schema
        );
        let rows = match self.ask(Deed::Read, "its privileges", &asked, &[]).await {
            Ok(rows) => rows,
            Err(error) => return vec![unknown("privileges", &error)],
        };
        let Some(row) = rows.first() else {
            return Vec::new();
        };
        let is = |index: usize| row.try_get::<_, bool>(index).unwrap_or(false);
        let role: String = row.try_get(11).unwrap_or_default();
        let deeds = ["SELECT", "INSERT", "UPDATE"];
        let lacking = |first: usize| -> Vec<&str> {
            let lacks = |(index, _): &(usize, &&str)| !is(first + index);
            deeds
                .iter()
                .enumerate()
                .filter(lacks)
                .map(|(_, deed)| *deed)
                .collect()
        };
        let grant = |table: &str| format!("GRANT SELECT, INSERT, UPDATE ON {schema}.{table} TO \"{role}\"");
        let mut findings = Vec::new();
        let (of_leases, of_marks) = match self.not_callable().await {
            Ok(functions) => functions
                .into_iter()
                .partition(|name| !OF_MARKS.contains(&name.as_str())),
            Err(error) => return vec![unknown("privileges", &error)],
        };
        let (of_leases, of_marks): (Vec<String>, Vec<String>) = (of_leases, of_marks);
        let calling = format!("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO \"{role}\"");
        let may_not_call = |functions: &[String]| {
            format!(
                "role \"{role}\" may not call {} of schema {}",
                functions.join(", "),
                self.dial.url.schema
            )
        };
        let leases = lacking(0);
        findings.push(match (leases.is_empty(), of_leases.is_empty()) {
            (true, true) => good(
                "privileges",
                format!("role \"{role}\" may select, insert and update leases"),
            ),
            (true, false) => bad("privileges", may_not_call(&of_leases), calling.clone()),
            (false, _) => bad(
                "privileges",
                format!(
                    "role \"{role}\" may not {} leases",
                    leases.join(", ").to_lowercase()
                ),
                grant("leases"),
            ),
        });
        if !of_marks.is_empty() {
            findings.push(warning("fences", may_not_call(&of_marks), calling));
        }
        for (first, table, what) in [
            (3, "fences", "marks"),
            (6, "refusals", "refusals: what a fence refuses is counted nowhere"),
        ] {
            let lacks = lacking(first);
            if !lacks.is_empty() {
                let detail = format!(
                    "role \"{role}\" may not {} {what}",
                    lacks.join(", ").to_lowercase()
                );
                findings.push(warning("fences", detail, grant(table)));
            }
        }
        if is(9) || is(10) {
            findings.push(warning(
                "role",
                format!("role \"{role}\" may change the schema itself, which no candidate needs"),
                "give each service a role of its own, with the grants that the store's README names",
            ));
        }
        findings
    }

    /// The functions that the role may not call, of those without which something cannot be done. The two that answer in one value
    /// are no such, and a trigger calls its own by itself.
    async fn not_callable(&self) -> Result<Vec<String>, StoreError> {
        const CALLABLE: &str = "SELECT p.proname::text FROM pg_catalog.pg_proc p \
             JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = $1 \
             AND p.prorettype <> 'trigger'::regtype AND NOT has_function_privilege(p.oid, 'EXECUTE') ORDER BY 1";
        let parameters: [Typed<'_>; 1] = [(&self.dial.url.schema, Type::TEXT)];
        let rows = self
            .ask(Deed::Read, "its privileges", CALLABLE, &parameters)
            .await?;
        let names = rows.iter().filter_map(|row| row.try_get::<_, String>(0).ok());
        let needed = |name: &String| {
            functions(&self.dial.url.schema).any(|(made, _)| made == name)
                && !QUICK.iter().any(|(quick, _)| quick == name)
        };
        Ok(names.filter(needed).collect())
    }
}
