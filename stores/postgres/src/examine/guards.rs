use super::{bad, unknown};
use crate::fault::Deed;
use crate::schema::literal;
use crate::site::Site;
use tenure_core::Finding;

/// Most tables that a finding names.
const SHOWN_MAX: usize = 10;

impl Site {
    /// Guarded tables that take writes by another table's name without being asked: a partition (or heir) that was guarded
    /// before there was a trigger for its rows, or was attached after.
    pub(super) async fn examine_guards(&self) -> Option<Finding> {
        const SUBJECT: &str = "guards";
        let function = |name: &str| {
            let function = format!("{}.{name}()", self.schema());
            format!("to_regprocedure({})", literal(&function))
        };
        let asked = format!(
            "SELECT guard.tgrelid::regclass::text FROM pg_catalog.pg_trigger guard WHERE guard.tgfoid = {} \
             AND EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhrelid = guard.tgrelid) \
             AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger rows WHERE rows.tgrelid = guard.tgrelid AND rows.tgfoid = {}) \
             ORDER BY 1",
            function("refuse_stale"),
            function("refuse_stale_row")
        );
        let rows = match self.ask(Deed::Read, "its guards", &asked, &[]).await {
            Ok(rows) => rows,
            Err(error) => return Some(unknown(SUBJECT, &error)),
        };
        // As SQL writes them, in one line.
        let names = rows.iter().filter_map(|row| row.try_get::<_, String>(0).ok());
        let tables: Vec<String> = names.map(|name| name.replace(char::is_control, "?")).collect();
        if tables.is_empty() {
            return None;
        }
        let more = match tables.len().saturating_sub(SHOWN_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = tables[..tables.len().min(SHOWN_MAX)].join(", ");
        Some(bad(
            SUBJECT,
            format!("written by their parents' names by whoever has not entered: {named}{more}"),
            "guard each again, as its owner: `tenure fence guard RESOURCE --table TABLE`",
        ))
    }
}
