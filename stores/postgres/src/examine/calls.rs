use super::{bad, unknown, warning};
use crate::fault::Deed;
use crate::schema::{QUICK, functions};
use crate::site::{Site, Typed};
use tenure_core::Finding;
use tokio_postgres::types::Type;

/// The functions that nobody needs but who fences.
const OF_MARKS: [&str; 5] = ["admit", "bump", "claim", "enter", "hold"];

/// What a role may not call; a trigger calls its own by itself.
const REFUSED: &str = "SELECT p.proname::text, current_user::text FROM pg_catalog.pg_proc p \
     JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = $1 \
     AND p.prorettype <> 'trigger'::regtype AND NOT has_function_privilege(p.oid, 'EXECUTE') ORDER BY 1";

impl Site {
    /// Whether the role may call the functions without which something cannot be done, of which the two that
    /// answer in one value are none. Everybody may, unless somebody has taken that back.
    pub(super) async fn examine_calls(&self) -> Vec<Finding> {
        const SUBJECT: &str = "functions";
        let schema = &self.dial.url.schema;
        let parameters: [Typed<'_>; 1] = [(schema, Type::TEXT)];
        let rows = match self.ask(Deed::Read, "its functions", REFUSED, &parameters).await {
            Ok(rows) => rows,
            Err(error) => return vec![unknown(SUBJECT, &error)],
        };
        let Some(refused) = rows.first() else {
            return Vec::new();
        };
        let role: String = refused.try_get(1).unwrap_or_default();
        let names = rows.iter().filter_map(|row| row.try_get::<_, String>(0).ok());
        let is_needed = |name: &String| {
            let is_quick = QUICK.iter().any(|(quick, _)| quick == name);
            !is_quick && functions(schema).any(|(made, _)| made == name)
        };
        let (of_marks, of_leases): (Vec<String>, Vec<String>) = names
            .filter(is_needed)
            .partition(|name| OF_MARKS.contains(&name.as_str()));
        let told = |names: &[String]| {
            format!(
                "role \"{role}\" may not call {} of schema {schema}",
                names.join(", ")
            )
        };
        let repair = format!(
            "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {} TO \"{role}\"",
            self.schema()
        );
        let mut findings = Vec::new();
        if !of_leases.is_empty() {
            findings.push(bad(SUBJECT, told(&of_leases), repair.clone()));
        }
        if !of_marks.is_empty() {
            findings.push(warning(SUBJECT, told(&of_marks), repair));
        }
        findings
    }
}
