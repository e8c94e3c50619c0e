//! The procedures of the set-up, and whether those of a database are the same.

use crate::row::text;
use crate::schema::{ALL_ROWS, procedures};
use crate::site::Site;
use tenure_core::StoreError;
use tenure_remote::Deed;

/// A procedure as this version of Tenure makes it.
pub(crate) struct Procedure {
    pub(crate) name: String,
    /// The statement that makes it where there is none.
    pub(crate) create: String,
}

impl Procedure {
    /// The statement that puts it in place of another, without a moment in which there is none: MariaDB's.
    /// MySQL has none.
    pub(crate) fn replace(&self) -> String {
        let [missing, any] = ["CREATE PROCEDURE IF NOT EXISTS", "CREATE OR REPLACE PROCEDURE"];
        self.create.replacen(missing, any, 1)
    }

    fn body(&self) -> &str {
        self.create
            .find("\nBEGIN")
            .map_or("", |begin| &self.create[begin..])
    }
}

/// How a procedure of a database is to that of this version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Likeness {
    Same,
    Other,
    /// It is there; its text is shown to its owner, and to who may read every procedure.
    Hidden,
    /// It is missing, or this role may not call it: then it is not shown either.
    Unseen,
}

impl Site {
    /// Every procedure of the set-up, beside what the database has of it.
    pub(crate) async fn compared(&self) -> Result<Vec<(Procedure, Likeness)>, StoreError> {
        let found = format!(
            "SELECT ROUTINE_NAME, ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() AND \
             ROUTINE_TYPE = 'PROCEDURE' {ALL_ROWS}"
        );
        let rows = self.ask(Deed::Read, "its procedures", &found).await?;
        let likeness = |procedure: &Procedure| {
            let found = rows.iter().find(|row| text(row, 0) == Some(&procedure.name));
            match found.map(|row| text(row, 1)) {
                None => Likeness::Unseen,
                Some(None) => Likeness::Hidden,
                Some(Some(body)) if words(body) == words(procedure.body()) => Likeness::Same,
                Some(Some(_)) => Likeness::Other,
            }
        };
        Ok(procedures()
            .map(|procedure| {
                let likeness = likeness(&procedure);
                (procedure, likeness)
            })
            .collect())
    }
}

/// What a text says without its comments and its white space: the command-line client leaves comments out of
/// what is printed.
fn words(body: &str) -> Vec<&str> {
    let code = body.lines().map(|line| line.split("-- ").next().unwrap_or(line));
    code.flat_map(str::split_whitespace).collect()
}

#[cfg(test)]
mod tests {
    use super::words;
    use crate::schema::procedures;

    #[test]
    fn every_procedure_has_a_body_and_a_statement_that_replaces_it() {
        for procedure in procedures() {
            assert_eq!(
                words(procedure.body()).first(),
                Some(&"BEGIN"),
                "{}",
                procedure.name
            );
            assert!(
                procedure
                    .replace()
                    .contains("CREATE OR REPLACE PROCEDURE tenure_")
            );
            assert!(procedure.name.ends_with("_1") && procedure.name.starts_with("tenure_"));
        }
        assert_eq!(procedures().count(), 9);
    }
}
