use super::{bad, named, unknown, warning};
use crate::fault::Deed;
use crate::schema::literal;
use crate::site::Site;
use tenure_core::{Finding, StoreError};

const SUBJECT: &str = "guards";

/// Guarded tables that take writes by another table's name without being asked: a partition (or heir) that
/// was guarded before there was a trigger for its rows, or was attached after.
const UNASKED: &str = "SELECT guard.tgrelid::regclass::text FROM pg_trigger guard WHERE guard.tgfoid = STATEMENTS \
     AND EXISTS (SELECT FROM pg_inherits WHERE inhrelid = guard.tgrelid) \
     AND NOT EXISTS (SELECT FROM pg_trigger rows WHERE rows.tgrelid = guard.tgrelid AND rows.tgfoid = ROWS) ORDER BY 1";

/// Guarded tables with a trigger that does not act.
const OFF: &str = "SELECT DISTINCT format('%s (%s)', tgrelid::regclass, tgname) FROM pg_trigger \
     WHERE tgfoid IN (STATEMENTS, ROWS) AND tgenabled NOT IN ('O', 'A') ORDER BY 1";

/// Whose sessions no trigger of a guard acts in: this one's, and those of whom the server's catalog has the
/// setting of, where there is a guard at all. What every session begins with is this one's as well.
const UNGUARDED: &str = "SELECT who FROM (SELECT 'this session' WHERE current_setting('session_replication_role') = 'replica' \
     UNION ALL SELECT coalesce('role ' || quote_ident(r.rolname), 'every role') FROM pg_db_role_setting s \
     LEFT JOIN pg_roles r ON r.oid = s.setrole LEFT JOIN pg_database d ON d.oid = s.setdatabase \
     WHERE coalesce(d.datname = current_database(), true) \
     AND EXISTS (SELECT FROM unnest(s.setconfig) one WHERE lower(one) = 'session_replication_role=replica') \
     ) sessions (who) WHERE EXISTS (SELECT FROM pg_trigger WHERE tgfoid IN (STATEMENTS, ROWS)) ORDER BY 1";

/// Owners of guarded tables into which a foreign key cascades, who may not do what the trigger does then: a
/// cascade is its table's owner's.
const POWERLESS: &str = "SELECT DISTINCT quote_ident(pg_get_userbyid(c.relowner)) FROM pg_trigger guard \
     JOIN pg_class c ON c.oid = guard.tgrelid WHERE guard.tgfoid IN (STATEMENTS, ROWS) \
     AND EXISTS (SELECT FROM pg_constraint WHERE conrelid = c.oid AND contype = 'f' \
     AND (confdeltype IN ('c', 'n', 'd') OR confupdtype IN ('c', 'n', 'd'))) \
     AND NOT (has_schema_privilege(c.relowner, SCHEMA, 'USAGE') AND has_table_privilege(c.relowner, FENCES, 'SELECT') \
     AND has_table_privilege(c.relowner, FENCES, 'UPDATE')) ORDER BY 1";

impl Site {
    /// Guarded tables that whoever has not entered gets into, and those that keep out who has.
    pub(super) async fn examine_guards(&self) -> Vec<Finding> {
        let schema = self.schema();
        let asked = [
            (UNASKED, unasked as fn(&str, &str) -> Finding),
            (OFF, off),
            (UNGUARDED, unguarded),
            (POWERLESS, powerless),
        ];
        let mut findings = Vec::new();
        for (statement, told) in asked {
            match self.names_of(statement).await {
                Ok(names) => findings.extend(named(&names).map(|names| told(&names, &schema))),
                Err(error) => findings.push(unknown(SUBJECT, &error)),
            }
        }
        findings
    }

    /// What a question about guards is answered with.
    async fn names_of(&self, statement: &str) -> Result<Vec<String>, StoreError> {
        let schema = self.schema();
        let function = |name: &str| format!("to_regprocedure({})", literal(&format!("{schema}.{name}()")));
        let statement = statement
            .replace("STATEMENTS", &function("refuse_stale"))
            .replace("ROWS", &function("refuse_stale_row"))
            .replace("FENCES", &literal(&format!("{schema}.fences")))
            .replace("SCHEMA", &literal(&self.dial.url.schema));
        let rows = self.ask(Deed::Read, "its guards", &statement, &[]).await?;
        Ok(rows.iter().filter_map(|row| row.try_get(0).ok()).collect())
    }
}

fn unasked(tables: &str, _schema: &str) -> Finding {
    bad(
        SUBJECT,
        format!("written by their parents' names by whoever has not entered: {tables}"),
        "guard each again, as its owner: `tenure fence guard RESOURCE --table TABLE`",
    )
}

fn off(tables: &str, _schema: &str) -> Finding {
    bad(
        SUBJECT,
        format!("switched off, so that whoever has not entered writes: {tables}"),
        "ALTER TABLE … ENABLE TRIGGER …, as the table's owner",
    )
}

fn unguarded(whose: &str, _schema: &str) -> Finding {
    warning(
        SUBJECT,
        format!("session_replication_role is \"replica\", which gets past every one of them, for {whose}"),
        "ALTER ROLE or ALTER DATABASE … RESET session_replication_role, but for who replicates",
    )
}

fn powerless(owners: &str, schema: &str) -> Finding {
    warning(
        SUBJECT,
        format!(
            "a foreign key cascades into guarded tables as their owner, who may not enter: {owners}; whoever causes that is refused, \
             whatever was entered"
        ),
        format!(
            "GRANT USAGE ON SCHEMA {schema} TO {owners}; GRANT SELECT, UPDATE ON {schema}.fences TO {owners}"
        ),
    )
}
