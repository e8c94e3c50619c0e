//! Tables that refuse whoever shows no term.

use super::MysqlFence;
use crate::fault::{store_error, timed_out};
use crate::row::{number, text};
use crate::schema::{ALL_ROWS, VERSION, WAIT_SHORTLY, literal, quoted};
use crate::session::farewell;
use crate::site::Site;
use mysql_async::prelude::Queryable as _;
use std::iter;
use tenure_core::{FenceError, ResourceName, StoreError};
use tenure_remote::{Deed, after_a_step};

/// What is guarded, each by a trigger of its own: the servers know none for several.
const DEEDS: [&str; 3] = ["INSERT", "UPDATE", "DELETE"];

/// The tables of the set-up itself, in whatever database.
const OWN_TABLES: [&str; 4] = [
    "tenure_leases",
    "tenure_fences",
    "tenure_refusals",
    "tenure_setup",
];

impl MysqlFence {
    /// Has `table` refuse every `INSERT`, `UPDATE`, `DELETE` and `REPLACE`, whoever sends it, unless its
    /// session shows the term that holds `resource`: by [`enter`](Self::enter), by the procedure
    /// `tenure_enter_1`, or by `SET @tenure_term = '<token> <lease>'`. For the table's owner.
    ///
    /// A stale term is refused, whatever its session shows. But a session shows what it has shown last until
    /// it ends, is reset or [commits](Self::commit) by the fence: on a connection that a pool hands on
    /// without resetting it, a program that does not enter at all may write while the term that entered there
    /// before still holds the resource. `TRUNCATE`, `ALTER TABLE` that exchanges, truncates or drops a
    /// partition, MariaDB's `DELETE HISTORY`, what a foreign key does to a table by itself, and what
    /// replication applies as rows fire no trigger. Where it applies [statements](Self::log_has_statements),
    /// the replica's own triggers judge.
    ///
    /// `table` is a name in the database of the fence, or `database.table`; each as it is, or in the server's
    /// quotes, as a name with a dot must be.
    ///
    /// A guard that was there stays in force until the new one is. Answers for which other resource that one
    /// was: whoever enters that alone is refused from now on.
    ///
    /// # Errors
    /// [`FenceError::Store`]: [`Fault::Busy`](tenure_core::Fault::Busy) where a transaction that has used the
    /// table stays open for 2 s; do it again.
    pub async fn guard(
        &self,
        table: &str,
        resource: &ResourceName,
    ) -> Result<Option<ResourceName>, FenceError> {
        let (table, resource) = (table.to_owned(), resource.clone());
        self.0
            .at_site(|site| async move {
                let table = site.table_named(&table).await?;
                if OWN_TABLES.contains(&table.name.to_ascii_lowercase().as_str()) {
                    // It would take no lease, or no claim, any more.
                    return Err(crate::url::invalid(&format!(
                        "table {} is Tenure's own, and not one of your data: guard those that are",
                        table.shown()
                    )));
                }
                let Triggers {
                    of_table: before,
                    others,
                    guarded_for,
                } = site.triggers(&table).await?;
                let replaced = guarded_for.into_iter().find(|other| *other != resource);
                let marks = &site.dial.url.database;
                let procedure = format!("{}.tenure_admit_{VERSION}", quoted(marks));
                let subject = format!("the triggers of table {}", table.shown());
                let mut now = Vec::with_capacity(DEEDS.len());
                let mut statements = Vec::new();
                let number = number_of([marks, &table.name, resource.as_str()]);
                for deed in DEEDS {
                    let trigger = free_name(deed, number, &others);
                    if !before.contains(&trigger) {
                        statements.push(format!(
                            "CREATE TRIGGER {} BEFORE {deed} ON {} FOR EACH ROW CALL {procedure}({})",
                            table.beside(&trigger),
                            table.beside(&table.name),
                            literal(resource.as_str())
                        ));
                    }
                    now.push(trigger);
                }
                for old in before.iter().filter(|old| !now.contains(old)) {
                    statements.push(dropping(&table, old));
                }
                site.alter(&subject, &statements).await?;
                Ok(replaced)
            })
            .await
    }

    /// Whether the binary log may have statements, as it has by MariaDB's default (`binlog_format = MIXED`).
    /// Whoever applies one runs the triggers of his own [guards](Self::guard), which judge as here: for that
    /// a replica needs the database of the fence, its procedures and the account that has guarded the table,
    /// as well as the table, or its replication ends there.
    ///
    /// # Errors
    /// [`FenceError::Store`]: the server does not answer.
    pub async fn log_has_statements(&self) -> Result<bool, FenceError> {
        self.0
            .at_site(|site| async move { Ok(site.server().await?.logs_statements()) })
            .await
    }

    /// Removes what [`guard`](Self::guard) has made, if it is there.
    ///
    /// # Errors
    /// [`FenceError::Store`], as [`guard`](Self::guard).
    pub async fn unguard(&self, table: &str) -> Result<(), FenceError> {
        let table = table.to_owned();
        self.0
            .at_site(|site| async move {
                let table = site.table_named(&table).await?;
                let subject = format!("the triggers of table {}", table.shown());
                let triggers = site.triggers(&table).await?.of_table;
                let statements: Vec<String> =
                    triggers.iter().map(|trigger| dropping(&table, trigger)).collect();
                site.alter(&subject, &statements).await
            })
            .await
    }
}

/// What tells the triggers of a guard: of whose marks, of which table, of which resource. FNV-1a, the same
/// for ever.
fn number_of(names: [&str; 3]) -> u64 {
    let bytes = names.into_iter().flat_map(|name| name.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325_u64, |number, byte| {
        (number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The name of a trigger. Names are one for the whole database and no longer than 64 characters, so it holds
/// a number; the next one where a table that was renamed has kept the name.
fn free_name(deed: &str, number: u64, others: &[String]) -> String {
    let mut number = number;
    loop {
        let name = format!("tenure_{}_{number:016x}", deed.to_ascii_lowercase());
        // Ends: there are more numbers than others.
        if !others.contains(&name) {
            return name;
        }
        number = number.wrapping_add(1);
    }
}

/// The resource that a trigger asks for, of its statement: the server keeps the [literal] as it was sent.
fn only_argument(statement: &str) -> Option<ResourceName> {
    let (_, digits) = statement.rsplit_once("X'")?;
    let (digits, _) = digits.split_once('\'')?;
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
    ResourceName::new(String::from_utf8(bytes?).ok()?).ok()
}

fn dropping(table: &Table, trigger: &str) -> String {
    format!("DROP TRIGGER IF EXISTS {}", table.beside(trigger))
}

/// The database, where one is named, and the table.
fn names(named: &str) -> Option<(Option<String>, String)> {
    let (first, rest) = first_name(named)?;
    let Some(table) = rest.strip_prefix('.') else {
        return rest.is_empty().then_some((None, first));
    };
    if !table.starts_with('`') {
        // Whatever dots it has: there is nothing below a table.
        return Some((Some(first), table.to_owned()));
    }
    let (table, rest) = first_name(table)?;
    rest.is_empty().then_some((Some(first), table))
}

/// The name with which a text begins, and what follows it: up to a dot as it stands, or in the server's
/// quotes.
fn first_name(text: &str) -> Option<(String, &str)> {
    let Some(mut rest) = text.strip_prefix('`') else {
        let (name, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
        return Some((name.to_owned(), rest));
    };
    let mut name = String::new();
    loop {
        let (part, after) = rest.split_once('`')?;
        name.push_str(part);
        match after.strip_prefix('`') {
            Some(further) => {
                name.push('`');
                rest = further;
            }
            None => return Some((name, after)),
        }
    }
}

/// The triggers of guards in a database.
#[derive(Default)]
struct Triggers {
    /// Those on the table, whatever it was called when they were made: they go with it when it is renamed.
    of_table: Vec<String>,
    others: Vec<String>,
    /// The resources that those on the table ask for.
    guarded_for: Vec<ResourceName>,
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
    /// The triggers of guards in a table's database.
    async fn triggers(&self, table: &Table) -> Result<Triggers, StoreError> {
        // The catalogue's own comparison takes `account` and `ACCOUNT`, and letters with and without their
        // accents, for the same also where they are two tables: guarding one would take the other's guard.
        let known =
            |name: &str| format!("CAST(IF(@@lower_case_table_names = 0, {name}, LOWER({name})) AS BINARY)");
        // By their names as well: a trigger of the user's own may call the procedure, too, and is not ours to
        // drop.
        let asked = format!(
            "SELECT TRIGGER_NAME, {} = {}, CAST(ACTION_STATEMENT AS BINARY) FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = {} \
             AND TRIGGER_NAME REGEXP '^tenure_(insert|update|delete)_[0-9a-f]{{16}}$' \
             AND LOCATE('tenure_admit_', ACTION_STATEMENT) > 0 {ALL_ROWS}",
            known("EVENT_OBJECT_TABLE"),
            known(&literal(&table.name)),
            literal(&table.database)
        );
        let mut triggers = Triggers::default();
        for row in self.ask(Deed::Read, "the triggers", &asked).await? {
            let Some(name) = text(&row, 0).map(str::to_owned) else {
                continue;
            };
            match number(&row, 1) {
                Some(0) | None => triggers.others.push(name),
                Some(_) => {
                    triggers.of_table.push(name);
                    triggers.guarded_for.extend(text(&row, 2).and_then(only_argument));
                }
            }
        }
        Ok(triggers)
    }

    /// Changes triggers, one after the other, giving way to open transactions. On a connection of its own, as
    /// that takes a setting of the session.
    async fn alter(&self, subject: &str, statements: &[String]) -> Result<(), StoreError> {
        if statements.is_empty() {
            return Ok(());
        }
        let place = self.place();
        let mut conn = self.dial.open(subject).await?;
        let mut outcome = Ok(());
        let shortly = iter::once(WAIT_SHORTLY);
        for (step, statement) in shortly.chain(statements.iter().map(String::as_str)).enumerate() {
            let answer = tokio::time::timeout(self.time_max, conn.query_drop(statement)).await;
            let done = match answer {
                Ok(answer) => answer.map_err(|error| store_error(&error, Deed::Write, subject, place)),
                Err(_late) => Err(timed_out(Deed::Write, subject, place, self.time_max)),
            };
            if let Err(error) = done {
                // After the setting and the first trigger, something has been changed.
                outcome = Err(if step > 1 { after_a_step(error) } else { error });
                break;
            }
        }
        farewell(conn);
        outcome
    }

    /// The table as the server knows it.
    async fn table_named(&self, named: &str) -> Result<Table, StoreError> {
        let shown: String = named.chars().take(80).flat_map(char::escape_debug).collect();
        let missing = || crate::url::invalid(&format!("there is no table \"{shown}\" at {}", self.place()));
        let (database, name) = names(named).ok_or_else(missing)?;
        let asked = format!(
            "SELECT CAST(TABLE_SCHEMA AS BINARY), CAST(TABLE_NAME AS BINARY) FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} AND \
             TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')",
            literal(database.as_ref().unwrap_or(&self.dial.url.database)),
            literal(&name)
        );
        let found = self
            .ask(Deed::Read, &format!("table \"{shown}\""), &asked)
            .await?;
        let found = found.first().and_then(|row| Some((text(row, 0)?, text(row, 1)?)));
        let (database, name) = found.ok_or_else(missing)?;
        Ok(Table {
            database: database.to_owned(),
            name: name.to_owned(),
        })
    }
}
