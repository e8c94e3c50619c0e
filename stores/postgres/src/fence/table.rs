//! Tables that refuse whoever has not entered.

use super::PostgresFence;
use crate::fault::Deed;
use crate::schema::literal;
use crate::site::{Site, Typed};
use tenure_core::{FenceError, ResourceName, StoreError};
use tokio_postgres::types::Type;

/// Whoever uses the table waits behind a change of it that waits.
const SHORTLY: &str = "SET LOCAL lock_timeout = '2s';";

impl PostgresFence {
    /// Has `table` refuse every `INSERT`, `UPDATE`, `DELETE` and `TRUNCATE`, whoever sends it, unless its transaction has
    /// entered `resource`: by [`enter`](Self::enter), by the function `enter` of the schema, or by
    /// `SELECT set_config('tenure.term', '<token> <lease>', true)`. For the table's owner.
    ///
    /// `table` is a name as SQL writes it, with its schema where the search path does not find it. Of a partitioned
    /// table, each partition that is written by its own name needs its own. A partition, or another table that inherits,
    /// refuses what is written by its parent's name as well, and is asked about row by row; guard it again when it is
    /// attached later.
    ///
    /// # Errors
    /// [`FenceError::Store`]; nothing was changed.
    pub async fn guard(&self, table: &str, resource: &ResourceName) -> Result<(), FenceError> {
        let (table, resource) = (table.to_owned(), literal(resource.as_str()));
        self.at_site(|site| async move {
            let Table { name: table, descent } = site.table_named(&table).await?;
            let schema = site.schema();
            // For each statement, and not for each row: the mark is the same for all of them.
            let mut statements = format!(
                "BEGIN; {SHORTLY} DROP TRIGGER IF EXISTS tenure_fence ON {table}; DROP TRIGGER IF EXISTS tenure_fence_row ON {table}; \
                 CREATE TRIGGER tenure_fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table} \
                 FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse_stale({resource}); "
            );
            // A statement that names the parent asks the parent's triggers for statements alone, and here those for rows.
            if descent == Descent::Child {
                statements.push_str(&format!(
                    "CREATE TRIGGER tenure_fence_row BEFORE INSERT OR UPDATE OR DELETE ON {table} \
                     FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_stale_row({resource}); "
                ));
            }
            statements.push_str("COMMIT");
            site.run(&format!("the trigger on table {table}"), &statements).await
        })
        .await
    }

    /// Removes what [`guard`](Self::guard) has made, if it is there.
    ///
    /// # Errors
    /// [`FenceError::Store`]; nothing was changed.
    pub async fn unguard(&self, table: &str) -> Result<(), FenceError> {
        let table = table.to_owned();
        self.at_site(|site| async move {
            let table = site.table_named(&table).await?.name;
            let statements = format!(
                "BEGIN; {SHORTLY} DROP TRIGGER IF EXISTS tenure_fence ON {table}; DROP TRIGGER IF EXISTS tenure_fence_row ON {table}; \
                 COMMIT"
            );
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
    descent: Descent,
}

/// Whether statements that name another table may write this one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Descent {
    /// It stands for itself.
    Alone,
    /// It is a partition of another table, or inherits from one.
    Child,
}

impl Site {
    async fn table_named(&self, table: &str) -> Result<Table, StoreError> {
        let parameters: [Typed<'_>; 1] = [(&table, Type::TEXT)];
        let shown: String = table.chars().take(80).flat_map(char::escape_debug).collect();
        let found = self
            .ask(
                Deed::Read,
                &format!("table \"{shown}\""),
                // With its schema: the statement that changes it may be another session's behind a pooler, with another path.
                "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname), \
                 EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhrelid OPERATOR(pg_catalog.=) c.oid) \
                 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace \
                 WHERE c.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass($1)::oid",
                &parameters,
            )
            .await?;
        let named = found.first().and_then(|row| {
            Some(Table {
                name: row.try_get::<_, Option<String>>(0).ok()??,
                descent: match row.try_get(1).ok()? {
                    true => Descent::Child,
                    false => Descent::Alone,
                },
            })
        });
        named.ok_or_else(|| crate::url::invalid(&format!("there is no table \"{shown}\" at {}", self.place)))
    }
}
