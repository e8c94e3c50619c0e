use super::{bad, good, unknown, warning};
use crate::fault::Deed;
use crate::site::Site;
use tenure_core::Finding;

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
        let leases = lacking(0);
        findings.push(match leases.is_empty() {
            true => good(
                "privileges",
                format!("role \"{role}\" may select, insert and update leases"),
            ),
            false => bad(
                "privileges",
                format!(
                    "role \"{role}\" may not {} leases",
                    leases.join(", ").to_lowercase()
                ),
                grant("leases"),
            ),
        });
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
}
