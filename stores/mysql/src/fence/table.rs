//! Tables that refuse whoever shows no term.

use super::MysqlFence;
use crate::row::text;
use crate::schema::{VERSION, literal, quoted};
use crate::site::Site;
use tenure_core::{FenceError, ResourceName, StoreError};
use tenure_remote::Deed;

/// What is guarded, each by a trigger of its own: the servers know none for several.
const DEEDS: [&str; 3] = ["INSERT", "UPDATE", "DELETE"];

impl MysqlFence {
    /// Has `table` refuse every `INSERT`, `UPDATE`, `DELETE` and `REPLACE`, whoever sends it, unless its session shows the
    /// term that holds `resource`: by [`enter`](Self::enter), by the procedure `tenure_enter_1`, or by
    /// `SET @tenure_term = '<token> <lease>'`. For the table's owner.
    ///
    /// A stale term is refused, whatever its session shows. But a session shows what it has shown last until it ends or is
    /// reset: on a connection that a pool hands on without resetting it, a program that does not enter at all may write
    /// while the term that entered there before still holds the resource. `TRUNCATE`, and what a foreign key does to a
    /// table by itself, fire no trigger.
    ///
    /// `table` is a name in the database of the fence, or `database.table`.
    ///
    /// # Errors
    /// [`FenceError::Store`]. A guard that was there stays in force until the new one is.
    pub async fn guard(&self, table: &str, resource: &ResourceName) -> Result<(), FenceError> {
        let (table, resource) = (table.to_owned(), resource.clone());
        self.at_site(|site| async move {
            let table = site.table_named(&table).await?;
            let before = site.triggers(&table).await?;
            let procedure = format!("{}.tenure_admit_{VERSION}", quoted(&site.dial.url.database));
            let subject = format!("the triggers of table {}", table.shown());
            let mut now = Vec::with_capacity(DEEDS.len());
            for deed in DEEDS {
                let trigger = trigger(deed, &table.name, &resource);
                if !before.contains(&trigger) {
                    let made = format!(
                        "CREATE TRIGGER {} BEFORE {deed} ON {} FOR EACH ROW CALL {procedure}({})",
                        table.beside(&trigger),
                        table.beside(&table.name),
                        literal(resource.as_str())
                    );
                    site.ask(Deed::Write, &subject, &made).await?;
                }
                now.push(trigger);
            }
            for old in before.iter().filter(|old| !now.contains(old)) {
                site.ask(
                    Deed::Write,
                    &subject,
                    &format!("DROP TRIGGER IF EXISTS {}", table.beside(old)),
                )
                .await?;
            }
            Ok(())
        })
        .await
    }

    /// Removes what [`guard`](Self::guard) has made, if it is there.
    ///
    /// # Errors
    /// [`FenceError::Store`].
    pub async fn unguard(&self, table: &str) -> Result<(), FenceError> {
        let table = table.to_owned();
        self.at_site(|site| async move {
            let table = site.table_named(&table).await?;
            for trigger in site.triggers(&table).await? {
                let subject = format!("the triggers of table {}", table.shown());
                let drop = format!("DROP TRIGGER IF EXISTS {}", table.beside(&trigger));
                site.ask(Deed::Write, &subject, &drop).await?;
            }
            Ok(())
        })
        .await
    }
}

/// The name of a trigger. Names are one for the whole database and no longer than 64 characters, so it holds a number of
/// table and resource: FNV-1a, the same for ever.
fn trigger(deed: &str, table: &str, resource: &ResourceName) -> String {
    let bytes = table.bytes().chain([0]).chain(resource.as_str().bytes());
    let number = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |number, byte| {
        (number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("tenure_{}_{number:016x}", deed.to_ascii_lowercase())
}

/// A table that exists.
struct Table {
    database: String,
    name: String,
}

impl Table {
    fn shown(&self) -> String {
        format!("{}.{}", self.database, self.name)
    }

    /// Something of the table's database.
    fn beside(&self, name: &str) -> String {
        format!("{}.{}", quoted(&self.database), quoted(name))
    }
}

impl Site {
    /// The triggers of guards on a table.
    async fn triggers(&self, table: &Table) -> Result<Vec<String>, StoreError> {
        let asked = format!(
            "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = {} AND EVENT_OBJECT_TABLE = {} \
             AND LOCATE('tenure_admit_', ACTION_STATEMENT) > 0",
            literal(&table.database),
            literal(&table.name)
        );
        let found = self.ask(Deed::Read, "the triggers", &asked).await?;
        Ok(found
            .iter()
            .filter_map(|row| text(row, 0).map(str::to_owned))
            .collect())
    }

    /// The table as the server knows it.
    async fn table_named(&self, named: &str) -> Result<Table, StoreError> {
        let (database, name) = named.split_once('.').unwrap_or((&self.dial.url.database, named));
        let shown: String = named.chars().take(80).flat_map(char::escape_debug).collect();
        let asked = format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} AND \
             TABLE_TYPE = 'BASE TABLE'",
            literal(database),
            literal(name)
        );
        let found = self
            .ask(Deed::Read, &format!("table \"{shown}\""), &asked)
            .await?;
        let found = found.first().and_then(|row| Some((text(row, 0)?, text(row, 1)?)));
        let (database, name) = found.ok_or_else(|| {
            crate::url::invalid(&format!("there is no table \"{shown}\" at {}", self.place()))
        })?;
        Ok(Table {
            database: database.to_owned(),
            name: name.to_owned(),
        })
    }
}
