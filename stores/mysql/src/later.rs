//! What the tables of an earlier set-up lack, and what they have in another way.

use crate::row::number;
use crate::rules::rules;
use crate::site::Site;
use tenure_core::StoreError;
use tenure_remote::Deed;

/// What a table may lack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lacking {
    /// The column that came later.
    Column,
    /// This rule, as it is now.
    Rule(&'static str),
}

/// Something that a table of an earlier set-up may lack.
pub(crate) struct Lack {
    table: &'static str,
    lacking: Lacking,
    /// Whether it does, as an expression; null where there is no such table, or the role is not shown it.
    does: String,
    /// What mends it, of a statement that alters the table.
    mending: String,
}

/// All that may be lacking.
fn lacks() -> Vec<Lack> {
    let column = Lack {
        table: "tenure_fences",
        lacking: Lacking::Column,
        does: "(SELECT MAX(COLUMN_NAME = 'bumped_token') = 0 FROM information_schema.COLUMNS \
               WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'tenure_fences')"
            .to_owned(),
        // MariaDB alone knows the words in the comment, by which two set-ups at once do not meet.
        mending: "ADD COLUMN /*M! IF NOT EXISTS */ bumped_token BIGINT NULL".to_owned(),
    };
    let of_rules = rules().into_iter().map(|rule| Lack {
        table: rule.table,
        lacking: Lacking::Rule(rule.name),
        // By `\x`, which no rule has any more. MySQL shows quotes with backslashes, too. MariaDB, which skips
        // comments of these versions of MySQL's, keeps to what a rule was made as, whatever mode a session
        // has: its tables need no copying. Nor is it to be asked: for this view it opens every table of the
        // database.
        does: format!(
            "/*!80000 (SELECT MAX(LOCATE(0x5c78, CHECK_CLAUSE) > 0) FROM information_schema.CHECK_CONSTRAINTS \
             WHERE CONSTRAINT_SCHEMA = DATABASE() AND CONSTRAINT_NAME = '{}') OR */ FALSE",
            rule.name
        ),
        mending: format!(
            "DROP CONSTRAINT {name}, ADD CONSTRAINT {name} CHECK ({check})",
            name = rule.name,
            check = rule.check
        ),
    });
    [column].into_iter().chain(of_rules).collect()
}

/// What a table may lack. All is mended by one statement: MySQL holds the rows to the rules that stay, and
/// those may be the ones that refuse sound names.
pub(crate) struct Mend {
    table: &'static str,
    lacks: Vec<Lack>,
}

impl Mend {
    pub(crate) fn of(table: &'static str) -> Self {
        let lacks = lacks().into_iter().filter(|lack| lack.table == table);
        Self {
            table,
            lacks: lacks.collect(),
        }
    }

    /// The statement that mends this, where it is anything of the table's.
    pub(crate) fn statement(&self, lacking: &[Lacking]) -> Option<String> {
        let wanted = self.lacks.iter().filter(|lack| lacking.contains(&lack.lacking));
        let mending: Vec<&str> = wanted.map(|lack| lack.mending.as_str()).collect();
        (!mending.is_empty()).then(|| format!("ALTER TABLE {} {}", self.table, mending.join(", ")))
    }

    /// The statements that look for it, and mend it only then: to look by changing the table would wait for
    /// who is inside. Several that are sent as one, as the servers have no one that both know.
    pub(crate) fn printed(&self) -> String {
        let each = |lack: &Lack| format!("IF({}, '{}', NULL)", lack.does, lack.mending.replace('\'', "''"));
        let each: Vec<String> = self.lacks.iter().map(each).collect();
        include_str!("sql/later.sql")
            .replace("{table}", self.table)
            .replace("{each}", &each.join(",\n    "))
            .trim_end()
            .trim_end_matches(';')
            .to_owned()
    }
}

impl Site {
    /// What the tables of this database lack, as far as the role is shown them.
    pub(crate) async fn what_tables_lack(&self) -> Result<Vec<Lacking>, StoreError> {
        let all = lacks();
        let asked: Vec<&str> = all.iter().map(|lack| lack.does.as_str()).collect();
        let asked = format!("SELECT {}", asked.join(", "));
        let found = self.ask(Deed::Read, "its tables", &asked).await?;
        let does = |column| found.first().and_then(|row| number(row, column)) == Some(1);
        let lacking = all.into_iter().enumerate().filter(|(column, _)| does(*column));
        Ok(lacking.map(|(_, lack)| lack.lacking).collect())
    }
}
