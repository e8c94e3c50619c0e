use super::{bad, good, unknown, warning};
use crate::schema::{VERSION, call};
use crate::site::Site;
use tenure_core::{Fault, Finding};
use tenure_remote::Deed;

/// What a candidate does, each as a statement that touches no row: a privilege is looked at before.
const OF_LEASES: [(&str, &str); 3] = [
    ("select", "SELECT 1 FROM tenure_leases LIMIT 0"),
    ("update", "UPDATE tenure_leases SET ttl_ms = ttl_ms WHERE FALSE"),
    (
        "insert",
        "INSERT INTO tenure_leases SELECT * FROM tenure_leases WHERE FALSE",
    ),
];
const OF_MARKS: [(&str, &str); 4] = [
    ("select", "SELECT 1 FROM tenure_fences LIMIT 0"),
    ("update", "UPDATE tenure_fences SET token = token WHERE FALSE"),
    (
        "insert",
        "INSERT INTO tenure_fences SELECT * FROM tenure_fences WHERE FALSE",
    ),
    (
        "count refusals of",
        "INSERT INTO tenure_refusals SELECT * FROM tenure_refusals WHERE FALSE",
    ),
];

impl Site {
    /// Whether the role may do what the store does.
    pub(super) async fn examine_privileges(&self) -> Vec<Finding> {
        let database = &self.dial.url.database;
        let user = self.dial.url.user.as_deref().unwrap_or("?");
        let mut findings = Vec::new();
        match self.lacking(&OF_LEASES).await {
            Err(finding) => findings.push(finding),
            Ok(lacking) => {
                // A batch of none writes nothing, and needs what every other needs.
                let batch = call("renew", &["'[]'".to_owned()]);
                let asked = self.ask(Deed::Read, "its privileges", &batch).await;
                findings.push(match (lacking.as_slice(), asked) {
                    ([], Ok(_)) => good(
                        "privileges",
                        format!("\"{user}\" may select, insert and update leases"),
                    ),
                    ([], Err(error)) if error.fault == Fault::Forbidden => bad(
                        "privileges",
                        format!("\"{user}\" may not call the procedures of set-up {VERSION}"),
                        format!("GRANT EXECUTE ON `{database}`.* TO \"{user}\""),
                    ),
                    // As after tables were restored without their procedures.
                    ([], Err(error)) if error.fault == Fault::Unsupported => bad(
                        "privileges",
                        format!("no lease can be renewed: {}", error.message),
                        "run `tenure store init` as the owner",
                    ),
                    ([], Err(error)) => bad(
                        "privileges",
                        format!("no lease can be renewed: {}", error.message),
                        "mend what the server says, then examine it again",
                    ),
                    (lacking, _) => bad(
                        "privileges",
                        format!("\"{user}\" may not {} leases", lacking.join(", ")),
                        format!("GRANT SELECT, INSERT, UPDATE ON `{database}`.tenure_leases TO \"{user}\""),
                    ),
                });
            }
        }
        match self.lacking(&OF_MARKS).await {
            Err(finding) => findings.push(finding),
            Ok(lacking) if !lacking.is_empty() => findings.push(warning(
                "fences",
                format!("\"{user}\" may not {} marks", lacking.join(", ")),
                format!(
                    "GRANT SELECT, INSERT, UPDATE ON `{database}`.tenure_fences TO \"{user}\"; the same on tenure_refusals"
                ),
            )),
            Ok(_) => {}
        }
        findings
    }

    async fn lacking(&self, deeds: &[(&'static str, &str)]) -> Result<Vec<&'static str>, Finding> {
        let mut lacking = Vec::new();
        for (deed, statement) in deeds {
            match self.ask(Deed::Read, "its privileges", statement).await {
                Ok(_) => {}
                Err(error) if error.fault == Fault::Forbidden => lacking.push(*deed),
                Err(error) => return Err(unknown("privileges", &error)),
            }
        }
        Ok(lacking)
    }
}
