//! Tables that refuse whoever has not entered.

use super::PostgresFence;
use crate::fault::Deed;
use crate::schema::{TABLES, literal};
use crate::site::{Site, Typed};
use tenure_core::{FenceError, ResourceName, StoreError};
use tokio_postgres::types::Type;

/// Whoever uses the table waits behind a change of it that waits.
const SHORTLY: &str = "SET LOCAL lock_timeout = '2s';";

impl PostgresFence {
    /// Has `table` refuse every `INSERT`, `UPDATE`, `DELETE` and `TRUNCATE`, whoever sends it, unless its
    /// transaction has entered `resource`: by [`enter`](Self::enter), by the function `enter` of the schema,
    /// or by `SELECT set_config('tenure.term', '<token> <lease>', true)`. For the table's owner.
    ///
    /// `table` is a name as SQL writes it, with its schema where the search path does not find it. Of a
    /// partitioned table, each partition that is written by its own name needs its own. A partition, or
    /// another table that inherits, refuses what is written by its parent's name as well, and is asked about
    /// row by row; guard it again when it is attached later.
    ///
    /// A guard that was there is replaced. Answers for which other resource that one was: whoever enters that
    /// alone is refused from now on.
    ///
    /// # Errors
    /// [`FenceError::Store`]; nothing was changed.
    pub async fn guard(
        &self,
        table: &str,
        resource: &ResourceName,
    ) -> Result<Option<ResourceName>, FenceError> {
        let (table, resource) = (table.to_owned(), resource.clone());
        self.0
            .at_site(|site| async move {
                let Table {
                    name: table,
                    is_own,
                    descent,
                    dropping,
                    guarded_for,
                } = site.table_named(&table).await?;
                if is_own {
                    // It would take no lease, or no claim, any more.
                    return Err(crate::url::invalid(&format!(
                        "table {table} is Tenure's own, and not one of your data: guard those that are"
                    )));
                }
                let schema = site.schema();
                let replaced = guarded_for.into_iter().find(|other| *other != resource);
                let resource = literal(resource.as_str());
                // For each statement, and not for each row: the mark is the same for all of them.
                let mut statements = format!(
                    "BEGIN; {SHORTLY} {dropping} \
                 CREATE TRIGGER tenure_fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table} \
                 FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse_stale({resource}); "
                );
                // A statement that names the parent asks the parent's triggers for statements alone, and here
                // those for rows.
                if let Some(row) = descent.row_trigger() {
                    statements.push_str(&format!(
                        "CREATE TRIGGER {row} BEFORE INSERT OR UPDATE OR DELETE ON {table} \
                     FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_stale_row({resource}); "
                    ));
                }
                statements.push_str("COMMIT");
                site.run(&format!("the trigger on table {table}"), &statements)
                    .await?;
                Ok(replaced)
            })
            .await
    }

    /// Removes what [`guard`](Self::guard) has made, if it is there.
    ///
    /// # Errors
    /// [`FenceError::Store`]; nothing was changed.
    pub async fn unguard(&self, table: &str) -> Result<(), FenceError> {
        let table = table.to_owned();
        self.0
            .at_site(|site| async move {
                let Table {
                    name: table,
                    dropping,
                    ..
                } = site.table_named(&table).await?;
                let statements = format!("BEGIN; {SHORTLY} {dropping} COMMIT");
                site.run(&format!("the trigger on table {table}"), &statements)
                    .await
            })
            .await
    }
}

/// A table that a user named.
struct Table {
    /// As the server writes it, with its schema: quoted where it must be.
    name: String,
    /// It is of the leases or of the marks.
    is_own: bool,
    descent: Descent,
    /// What removes the triggers that it has of its own. Those that a part has from the table it is a part of
    /// go with them.
    dropping: String,
    /// The resources that these ask for.
    guarded_for: Vec<ResourceName>,
}

/// Whether statements that name another table may write this one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Descent {
    /// It stands for itself.
    Alone,
    /// It is a partition of another table, or inherits from one.
    Child,
    /// The same, and it is in partitions itself, by its number.
    Middle(u32),
}

impl Descent {
    /// What the trigger for rows is called, where there is to be one. A table in partitions hands it on to
    /// them, by its name, which must be none that they have.
    fn row_trigger(self) -> Option<String> {
        match self {
            Self::Alone => None,
            Self::Child => Some("tenure_fence_row".to_owned()),
            Self::Middle(number) => Some(format!("tenure_fence_row_{number}")),
        }
    }
}

/// The resource that a trigger asks for, of the bytes of its arguments: each ends with a zero.
fn only_argument(bytes: &[u8]) -> Option<ResourceName> {
    let name = std::str::from_utf8(bytes.strip_suffix(&[0])?).ok()?;
    ResourceName::new(name).ok()
}

impl Site {
    async fn table_named(&self, table: &str) -> Result<Table, StoreError> {
        let parameters: [Typed<'_>; 1] = [(&table, Type::TEXT)];
        let shown: String = table.chars().take(80).flat_map(char::escape_debug).collect();
        let found = self
            .ask(
                Deed::Read,
                &format!("table \"{shown}\""),
                // With its schema: the statement that changes it may be another session's behind a pooler,
                // with another path.
                "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname), \
                 EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhrelid OPERATOR(pg_catalog.=) c.oid), \
                 CASE WHEN c.relkind::text OPERATOR(pg_catalog.=) 'p'::text THEN c.oid END, \
                 own.triggers, c.relkind::text, n.nspname::text, c.relname::text, own.arguments \
                 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace, \
                 LATERAL (SELECT COALESCE(pg_catalog.array_agg(t.tgname::text), '{}'::text[]) AS triggers, \
                 COALESCE(pg_catalog.array_agg(t.tgargs), '{}'::bytea[]) AS arguments \
                 FROM pg_catalog.pg_trigger t WHERE t.tgrelid OPERATOR(pg_catalog.=) c.oid \
                 AND t.tgname::text OPERATOR(pg_catalog.~) '^tenure_fence(_row(_[0-9]+)?)?$'::text AND NOT EXISTS ( \
                 SELECT FROM pg_catalog.pg_depend d WHERE d.classid OPERATOR(pg_catalog.=) t.tableoid \
                 AND d.objid OPERATOR(pg_catalog.=) t.oid AND d.refclassid OPERATOR(pg_catalog.=) t.tableoid)) own \
                 WHERE c.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass($1)::oid",
                &parameters,
            )
            .await?;
        let missing = || crate::url::invalid(&format!("there is no table \"{shown}\" at {}", self.place));
        let row = found.first().ok_or_else(missing)?;
        let word = |index| row.try_get::<_, String>(index).unwrap_or_default();
        let kind = word(4);
        if ["v", "m"].contains(&kind.as_str()) {
            return Err(crate::url::invalid(&format!(
                "\"{shown}\" is a view, and no table: guard the tables behind it"
            )));
        }
        if !["r", "p", "f"].contains(&kind.as_str()) {
            return Err(missing());
        }
        let named = || {
            let name: String = row.try_get::<_, Option<String>>(0).ok()??;
            let descent = match (row.try_get(1).ok()?, row.try_get(2).ok()?) {
                (false, _) => Descent::Alone,
                (true, None) => Descent::Child,
                (true, Some(number)) => Descent::Middle(number),
            };
            let triggers: Vec<String> = row.try_get(3).ok()?;
            let arguments: Vec<Vec<u8>> = row.try_get(7).ok()?;
            let drop = |trigger: &String| format!("DROP TRIGGER IF EXISTS {trigger} ON {name};");
            Some(Table {
                dropping: triggers.iter().map(drop).collect(),
                guarded_for: arguments
                    .iter()
                    .filter_map(|bytes| only_argument(bytes))
                    .collect(),
                is_own: word(5) == self.dial.url.schema && TABLES.contains(&word(6).as_str()),
                name,
                descent,
            })
        };
        named().ok_or_else(missing)
    }
}
