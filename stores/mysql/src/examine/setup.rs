use super::{bad, good, unknown, warning};
use crate::later::Lacking;
use crate::procedures::Likeness;
use crate::schema::VERSION;
use crate::site::Site;
use tenure_core::Finding;

impl Site {
    /// Whether the procedures, the tables' rules and the column that came later are those that this program
    /// would make: a set-up of the same version may be older, and lack what was mended since.
    pub(super) async fn examine_setup(&self) -> Finding {
        const SUBJECT: &str = "set-up";
        const LACKING: &str = "tenure_fences has no column bumped_token";
        let (compared, lacking) = match (self.compared().await, self.what_tables_lack().await) {
            (Ok(compared), Ok(lacking)) => (compared, lacking),
            (Err(error), _) | (_, Err(error)) => return unknown(SUBJECT, &error),
        };
        let is_lacking = lacking.contains(&Lacking::Column);
        let rules = lacking.iter().filter_map(|lacking| match lacking {
            Lacking::Rule(name) => Some(*name),
            Lacking::Column => None,
        });
        let those = |wanted: Likeness| -> Vec<&str> {
            let those = compared.iter().filter(|(_, likeness)| *likeness == wanted);
            those.map(|(procedure, _)| procedure.name.as_str()).collect()
        };
        let (procedures, unseen) = (those(Likeness::Other), those(Likeness::Unseen));
        if is_lacking && procedures.is_empty() {
            const REPAIR: &str = "run `tenure store init` as the owner";
            return match those(Likeness::Same).is_empty() {
                // They may be those of the earlier set-up, which need it not.
                true => warning(SUBJECT, LACKING, REPAIR),
                false => bad(SUBJECT, LACKING, REPAIR),
            };
        }
        let other: Vec<&str> = rules.chain(procedures).collect();
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
