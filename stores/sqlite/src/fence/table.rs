//! A table that refuses stale tokens by itself, whoever writes to it.

use super::SqliteFence;
use super::mark::{kept, ruled};
use crate::patience::patiently_blocking;
use crate::trouble::Trouble;
use rusqlite::{Connection, ErrorCode, OptionalExtension};
use tenure_core::{Fault, FenceError, ResourceName, StoreError, Term};

/// What the triggers say, up to the name of the resource.
const REFUSAL: &str = "tenure fence: the row does not carry the token that has claimed ";

/// The table of the marks themselves.
const MARKS: &str = "tenure_fence";

/// A table whose rows carry the token of their writer in a column, checked by triggers.
///
/// For writers that know nothing of Tenure, in any language, but write the token with the row: the command
/// that `tenure run` started has it in `TENURE_TOKEN`.
///
/// ```
/// # use tenure_core::{Fence, FencingToken, LeaseName, Leases, ResourceName, Term};
/// # use tenure_sqlite::{FencedTable, SqliteFence};
/// # use rusqlite::Connection;
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// # let scratch = tempfile::tempdir()?;
/// # let path = scratch.path().join("ledger.db");
/// let ledger = ResourceName::new("ledger")?;
/// let connection = Connection::open(&path)?;
/// connection.execute_batch("CREATE TABLE account (id INTEGER PRIMARY KEY, cents INTEGER, fence INTEGER)")?;
/// SqliteFence::install(&connection)?;
/// FencedTable::new("account", &ledger).install(&connection)?; // the column "fence"
/// let term = Term::new(LeaseName::new("nightly")?, FencingToken::new(7)?);
/// SqliteFence::new(&path, Leases::Elsewhere)?.claim(&ledger, &term).await?;
/// connection.execute("INSERT INTO account VALUES (1, 100, 7)", [])?;
/// assert!(connection.execute("UPDATE account SET cents = 0, fence = 6", []).is_err());
/// connection.execute("UPDATE account SET cents = 90, fence = 7", [])?;
/// // A deletion carries the token by its negative, first.
/// connection.execute_batch("UPDATE account SET fence = -7; DELETE FROM account WHERE fence = -7")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Guarantee
/// A row is inserted or updated only with the token that holds the mark of the resource, and the check is
/// part of the transaction that writes, as with [`SqliteFence::enter`]. A row is deleted only if it was first
/// updated to the *negative* of that token: a plain `DELETE` cannot carry one, so it is refused.
///
/// # What it does not promise
/// - **Every `UPDATE` must set the column.** One that does not, repeats the token of the row's last writer:
///   it is refused after a later claim only until the later term has written that row itself. Such are those
///   of foreign keys (`SET NULL`, `SET DEFAULT`, `ON UPDATE CASCADE`): guard the table that they refer to as
///   well.
/// - What a blob handle writes (`sqlite3_blob_write`) fires no trigger. SQLite refuses one for a column that
///   an index has, also an index of no row: `CREATE INDEX … ON account (body) WHERE 0`.
/// - The lease of a token is not checked: a column holds a number. The claim checks it.
/// - It counts no refusal, since the statement is rolled back; [`refusal`](Self::refusal) does, for Rust.
/// - Whoever may drop a trigger, or write `tenure_fence`, is not held back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FencedTable {
    table: String,
    column: String,
    resource: ResourceName,
}

impl FencedTable {
    /// `table`, protected by the mark of `resource`, with the token in the column `fence`.
    #[must_use]
    pub fn new(table: &str, resource: &ResourceName) -> Self {
        Self {
            table: table.to_owned(),
            column: "fence".to_owned(),
            resource: resource.clone(),
        }
    }

    /// Names the column of the token. Default: `fence`.
    #[must_use]
    pub fn column(mut self, column: &str) -> Self {
        self.column = column.to_owned();
        self
    }

    /// Makes the triggers, in one transaction; those of an earlier call are replaced. The table of the marks
    /// must be there ([`SqliteFence::install`]). Rows that are there already keep their column; the current
    /// term sets it with its first write.
    ///
    /// Answers for which other resource those were that it has replaced: rows with the token that has claimed
    /// that one are refused from now on.
    ///
    /// # Errors
    /// [`FenceError::Store`]; nothing was changed: the table or its column is missing, or the column is not
    /// declared as an integer.
    pub fn install(&self, connection: &Connection) -> Result<Option<ResourceName>, FenceError> {
        self.check(connection)?;
        let (table, column, resource) = (
            quoted(&self.table),
            quoted(&self.column),
            text(self.resource.as_str()),
        );
        // The message is a literal: an expression would need SQLite 3.47, and an older one could not read the
        // file.
        let refuse = format!(
            "BEGIN SELECT RAISE(ABORT, {}); END;",
            text(&format!("{REFUSAL}{}", self.resource))
        );
        let claimed_by = |token: &str| {
            format!(
                "(SELECT 1 FROM tenure_fence WHERE resource = {resource} AND lease <> '' AND token = {token})"
            )
        };
        let carried = [
            format!("NEW.{column}"),
            format!("abs(NEW.{column})"),
            format!("-OLD.{column}"),
        ];
        self.run(connection, || {
            let triggers = self.triggers(connection)?;
            let mut statements = triggers.dropping();
            for (deed, carried) in DEEDS.into_iter().zip(&carried) {
                statements.push_str(&format!(
                    "CREATE TRIGGER main.{} BEFORE {deed} ON {table} WHEN NOT EXISTS {} {refuse}",
                    quoted(&triggers.free_name(deed, &self.table)),
                    claimed_by(carried)
                ));
            }
            connection.execute_batch(&statements)?;
            let mut replaced = triggers.guarded_for.into_iter();
            Ok(replaced.find(|other| *other != self.resource))
        })
    }

    /// Removes the triggers, if they are there. The column stays.
    ///
    /// # Errors
    /// [`FenceError::Store`]; nothing was changed.
    pub fn remove(&self, connection: &Connection) -> Result<(), FenceError> {
        self.run(connection, || {
            connection.execute_batch(&self.triggers(connection)?.dropping())
        })
    }

    /// The refusal of a trigger in an error of SQLite's, counted beside the mark; `None` if it is another
    /// error.
    ///
    /// Waits up to 2 s for somebody who writes the file just now, to read the mark. Where it cannot be read,
    /// the refusal is [`FenceError::Store`]: the trigger refused, but which term has claimed is not known.
    #[must_use]
    pub fn refusal(&self, fence: &SqliteFence, term: &Term, error: &rusqlite::Error) -> Option<FenceError> {
        let rusqlite::Error::SqliteFailure(failure, Some(message)) = error else {
            return None;
        };
        let ours = failure.code == ErrorCode::ConstraintViolation
            && message.strip_prefix(REFUSAL) == Some(self.resource.as_str());
        if !ours {
            return None;
        }
        let look = || fence.with(|connection| kept(connection, &self.resource));
        let kept = match patiently_blocking(&fence.patience, &fence.shown, look) {
            Ok(kept) => kept,
            Err(unread) => return Some(unread.into()),
        };
        // The term holds the mark, but the row did not carry its token.
        let unclaimed = || FenceError::Unclaimed {
            resource: self.resource.clone(),
            token: term.token,
        };
        let refusal = ruled(&self.resource, term, kept.as_ref())
            .err()
            .unwrap_or_else(unclaimed);
        fence.noter.count(&refusal);
        Some(refusal)
    }

    fn check(&self, connection: &Connection) -> Result<(), FenceError> {
        let (table, column) = (&self.table, &self.column);
        let failed = |error| self.failed(connection, Trouble::Statement(error));
        let declared: Option<(String, String)> = connection
            .query_row(
                "SELECT upper(info.type), list.type FROM pragma_table_info(?1, 'main') AS info, pragma_table_list AS list \
                 WHERE lower(info.name) = lower(?2) AND list.schema = 'main' AND lower(list.name) = lower(?1)",
                [table, column],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()
            .map_err(&failed)?;
        let message = match declared {
            // Guarded, it would take no claim, and so admit nobody any more.
            Some(_)
                if table.eq_ignore_ascii_case(MARKS) || table.to_ascii_lowercase().starts_with("sqlite_") =>
            {
                format!("table \"{table}\" is not one of your data: guard those that are")
            }
            Some((_, kind)) if kind != "table" => {
                format!(
                    "\"{table}\" is no table of its own, but a {kind}, which refuses nothing: guard the tables behind it"
                )
            }
            Some((declared, _)) if declared.contains("INT") => return Ok(()),
            Some((declared, _)) => format!(
                "column \"{column}\" of table \"{table}\" is declared as \"{declared}\"; a token is compared as a \
                 number: declare it INTEGER"
            ),
            None if is_there(connection, table).map_err(&failed)? => format!(
                "table \"{table}\" has no column \"{column}\"; add it: ALTER TABLE {} ADD COLUMN {} INTEGER",
                quoted(table),
                quoted(column)
            ),
            None => format!(
                "there is no table \"{table}\"; make it first, with a column \"{column}\" INTEGER for the token of who writes"
            ),
        };
        Err(self.failed(
            connection,
            Trouble::Told(StoreError::not_applied(Fault::Invalid, message)),
        ))
    }

    /// Changes all or nothing.
    fn run<T>(
        &self,
        connection: &Connection,
        change: impl FnOnce() -> Result<T, rusqlite::Error>,
    ) -> Result<T, FenceError> {
        let changed = connection
            .execute_batch("SAVEPOINT tenure_fence")
            .and_then(|()| change())
            .and_then(|outcome| {
                connection.execute_batch("RELEASE tenure_fence")?;
                Ok(outcome)
            });
        changed.map_err(|error| {
            // Fails where the savepoint itself could not be opened.
            drop(connection.execute_batch("ROLLBACK TO tenure_fence; RELEASE tenure_fence;"));
            self.failed(connection, Trouble::Statement(error))
        })
    }

    fn failed(&self, connection: &Connection, trouble: Trouble) -> FenceError {
        let subject = format!("the triggers on table \"{}\"", self.table);
        FenceError::Store(trouble.into_error(&subject, connection.path().unwrap_or_default()))
    }

    /// The triggers that there are: of this file alone, as a connection may know others with a table of this
    /// name.
    fn triggers(&self, connection: &Connection) -> Result<Triggers, rusqlite::Error> {
        let asked =
            "SELECT name, tbl_name = ?1 COLLATE NOCASE, sql FROM main.sqlite_schema WHERE type = 'trigger'";
        let mut triggers = Triggers::default();
        let mut statement = connection.prepare(asked)?;
        let mut rows = statement.query([&self.table])?;
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            let is_guards = DEEDS.iter().any(|deed| name.starts_with(&beginning(deed)));
            match row.get(1)? {
                true if is_guards => {
                    triggers.of_table.push(name);
                    let statement: String = row.get(2)?;
                    triggers.guarded_for.extend(refused_for(&statement));
                }
                _ => triggers.others.push(name),
            }
        }
        Ok(triggers)
    }
}

/// What the triggers are for, each for one.
const DEEDS: [&str; 3] = ["INSERT", "UPDATE", "DELETE"];

/// The triggers of a file.
#[derive(Default)]
struct Triggers {
    /// Those that guard the table, whatever it was called when they were made: they go with it when it is
    /// renamed.
    of_table: Vec<String>,
    others: Vec<String>,
    /// The resources that those on the table ask for.
    guarded_for: Vec<ResourceName>,
}

impl Triggers {
    fn dropping(&self) -> String {
        let drop = |name: &String| format!("DROP TRIGGER main.{};", quoted(name));
        self.of_table.iter().map(drop).collect()
    }

    /// A name for a trigger, which one of a table that was renamed may have kept.
    fn free_name(&self, deed: &str, table: &str) -> String {
        let mut name = format!("{}{table}", beginning(deed));
        while self.others.iter().any(|other| other.eq_ignore_ascii_case(&name)) {
            name.push('_');
        }
        name
    }
}

/// The resource that a trigger asks for, of its statement: by what it says when it refuses.
fn refused_for(statement: &str) -> Option<ResourceName> {
    let (_, named) = statement.rsplit_once(REFUSAL)?;
    let (name, _) = named.rsplit_once('\'')?;
    ResourceName::new(name.replace("''", "'")).ok()
}

/// What the names of the triggers begin with.
fn beginning(deed: &str) -> String {
    format!("tenure_fence_{}_", deed.to_ascii_lowercase())
}

/// Whether there is such a table, of whatever columns.
fn is_there(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM pragma_table_list WHERE schema = 'main' AND lower(name) = lower(?1))",
        [table],
        |row| row.get(0),
    )
}

/// A name of SQLite's, whatever it holds.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text of SQLite's, whatever it holds.
fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}
