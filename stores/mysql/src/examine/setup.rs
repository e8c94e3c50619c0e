use super::{bad, good, unknown, warning};
use crate::procedures::Likeness;
use crate::row::number;
use crate::schema::VERSION;
use crate::site::Site;
use tenure_core::Finding;
use tenure_remote::Deed;

/// Whether the column that came later is there; null where the role sees none of the table's.
const COLUMN: &str = "SELECT MAX(COLUMN_NAME = 'bumped_token') FROM information_schema.COLUMNS \
     WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'tenure_fences'";

impl Site {
    /// Whether the procedures, and the column that came later, are those that this program would make: a
    /// set-up of the same version may be older, and lack what was mended since.
    pub(super) async fn examine_setup(&self) -> Finding {
        const SUBJECT: &str = "set-up";
        const LACKING: &str = "tenure_fences has no column bumped_token";
        let columns = self.ask(Deed::Read, "its columns", COLUMN).await;
        let (compared, columns) = match (self.compared().await, columns) {
            (Ok(compared), Ok(columns)) => (compared, columns),
            (Err(error), _) | (_, Err(error)) => return unknown(SUBJECT, &error),
        };
        let is_lacking = columns.first().and_then(|row| number(row, 0)) == Some(0);
        let those = |wanted: Likeness| -> Vec<&str> {
            let those = compared.iter().filter(|(_, likeness)| *likeness == wanted);
            those.map(|(procedure, _)| procedure.name.as_str()).collect()
        };
        let (other, unseen) = (those(Likeness::Other), those(Likeness::Unseen));
        if !other.is_empty() {
            let lacking = if is_lacking {
                format!("; {LACKING}")
            } else {
                String::new()
            };
            return warning(
                SUBJECT,
                format!(
                    "not as this version of Tenure makes them: {}{lacking}",
                    other.join(", ")
                ),
                "run `tenure store init` of the latest Tenure that uses the database, as its owner: what was mended since the \
                 set-up is not there yet",
            );
        }
        if is_lacking {
            const REPAIR: &str = "run `tenure store init` as the owner";
            return match those(Likeness::Same).is_empty() {
                // They may be those of the earlier set-up, which need it not.
                true => warning(SUBJECT, LACKING, REPAIR),
                false => bad(SUBJECT, LACKING, REPAIR),
            };
        }
        if !unseen.is_empty() {
            return warning(
                SUBJECT,
                format!("missing, or not granted to this role: {}", unseen.join(", ")),
                "run `tenure store init` as the owner, or grant them",
            );
        }
        if !those(Likeness::Hidden).is_empty() {
            let detail = format!(
                "the procedures of set-up {VERSION} are there; whether they are those of this version of Tenure is seen by their \
                 owner alone"
            );
            return good(SUBJECT, detail);
        }
        good(
            SUBJECT,
            format!("the procedures of set-up {VERSION} are those of this version of Tenure"),
        )
    }
}
