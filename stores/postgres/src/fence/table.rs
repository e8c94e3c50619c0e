//! Tables that refuse whoever has not entered.

use super::PostgresFence;
use crate::fault::Deed;
use crate::schema::literal;
use crate::site::{Site, Typed};
use tenure_core::{FenceError, ResourceName, StoreError};
use tokio_postgres::types::Type;

impl PostgresFence {
    /// Has `table` refuse every `INSERT`, `UPDATE`, `DELETE` and `TRUNCATE`, whoever sends it, unless its transaction has
    /// entered `resource`: by [`enter`](Self::enter), by the function `enter` of the schema, or by
    /// `SELECT set_config('tenure.term', '<token> <lease>', true)`. For the table's owner.
    ///
    /// `table` is a name as SQL writes it, with its schema where the search path does not find it. Of a partitioned
    /// table, each partition that is written by its own name needs its own.
    ///
    /// # Errors
    /// [`FenceError::Store`]; nothing was changed.
    pub async fn guard(&self, table: &str, resource: &ResourceName) -> Result<(), FenceError> {
        let (table, resource) = (table.to_owned(), literal(resource.as_str()));
        self.at_site(|site| async move {
            let table = site.table_named(&table).await?;
            let schema = site.schema();
            // One trigger for each statement, and not for each row: the mark is the same for all of them.
            let statements = format!(
                "BEGIN; DROP TRIGGER IF EXISTS tenure_fence ON {table}; CREATE TRIGGER tenure_fence BEFORE INSERT OR UPDATE \
                 OR DELETE OR TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse_stale({resource}); \
                 COMMIT"
            );
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
            let table = site.table_named(&table).await?;
            let statement = format!("DROP TRIGGER IF EXISTS tenure_fence ON {table}");
            site.run(&format!("the trigger on table {table}"), &statement)
                .await
        })
        .await
    }
}

impl Site {
    /// The table as the server writes it: quoted where it must be.
    async fn table_named(&self, table: &str) -> Result<String, StoreError> {
        let parameters: [Typed<'_>; 1] = [(&table, Type::TEXT)];
        let shown: String = table.chars().take(80).flat_map(char::escape_debug).collect();
        let found = self
            .ask(
                Deed::Read,
                &format!("table \"{shown}\""),
                "SELECT to_regclass($1)::text",
                &parameters,
            )
            .await?;
        let named = found
            .first()
            .and_then(|row| row.try_get::<_, Option<String>>(0).ok().flatten());
        named.ok_or_else(|| crate::url::invalid(&format!("there is no table \"{shown}\" at {}", self.place)))
    }
}
