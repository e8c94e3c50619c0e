use super::{good, unknown, warning};
use crate::fault::Deed;
use crate::site::Site;
use tenure_core::Finding;
use tenure_remote::clock::{Ahead, finding};

/// A statement that may not take so long would be cut while it waits for a row, or for transactions that have
/// entered.
const TIMEOUT_MIN_MS: i64 = 5_000;

/// What is asked; none of it needs a privilege.
const SETTINGS: &str = "SELECT current_setting('server_version'), current_setting('default_transaction_isolation'), \
     current_setting('synchronous_commit'), (SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout'), \
     (SELECT setting FROM pg_settings WHERE name = 'max_connections'), \
     (SELECT setting::bigint FROM pg_settings WHERE name = 'transaction_timeout')";

/// What its clock shows, in milliseconds since 1970.
const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

impl Site {
    /// The settings that change how leases behave.
    pub(super) async fn examine_settings(&self) -> Vec<Finding> {
        let rows = match self.ask(Deed::Read, "its settings", SETTINGS, &[]).await {
            Ok(rows) => rows,
            Err(error) => return vec![unknown("settings", &error)],
        };
        let Some(row) = rows.first() else {
            return Vec::new();
        };
        let text = |index| row.try_get::<_, String>(index).unwrap_or_default();
        let number = |index| row.try_get::<_, i64>(index).unwrap_or_default();
        let (isolation, commit) = (text(1), text(2));
        // To be compared with what is said by who was connected to another one.
        let cluster = self.dial.cluster.number();
        let cluster = cluster.map_or_else(String::new, |number| format!(", cluster {number}"));
        let mut findings = vec![good(
            "server",
            format!("PostgreSQL {}, {} connections at most{cluster}", text(0), text(4)),
        )];
        findings.push(match commit.as_str() {
            "off" | "local" | "remote_write" => good(
                "synchronous commit",
                format!("\"{commit}\" by default, but acquiring, renewing and claiming wait as with \"on\""),
            ),
            _ => good(
                "synchronous commit",
                format!("\"{commit}\"; a release alone does not wait"),
            ),
        });
        if isolation != "read committed" {
            findings.push(warning(
                "isolation",
                format!(
                    "\"{isolation}\" by default: requests that meet at one lease, or with \"serializable\" at any two, fail as \
                     busy, and are repeated"
                ),
                "ALTER ROLE … SET default_transaction_isolation = 'read committed' for Tenure's role",
            ));
        }
        let waits = "what waits for a row (2.5 s), or for transactions that have entered (4 s),";
        if (1..TIMEOUT_MIN_MS).contains(&number(3)) {
            findings.push(warning(
                "statement timeout",
                format!("{} ms: {waits} is cut before its own bound", number(3)),
                "ALTER ROLE … SET statement_timeout = '5s' for Tenure's role",
            ));
        }
        // From PostgreSQL 17 on.
        if (1..TIMEOUT_MIN_MS).contains(&number(5)) {
            findings.push(warning(
                "transaction timeout",
                format!(
                    "{} ms: {waits} loses its connection before its own bound, and then nobody knows whether it was done",
                    number(5)
                ),
                "ALTER ROLE … SET transaction_timeout = '10s' for Tenure's role",
            ));
        }
        findings.push(self.examine_clock().await);
        findings
    }

    async fn examine_clock(&self) -> Finding {
        let ask = || async {
            let rows = self.ask(Deed::Read, "its clock", CLOCK, &[]).await?;
            let told = rows.first().and_then(|row| row.try_get(0).ok());
            Ok(told.unwrap_or_default())
        };
        match Ahead::asked(ask).await {
            Ok(clock) => finding(
                clock,
                "a fail-over to a standby with another clock shifts every expiry by the difference",
            ),
            Err(error) => unknown("clock", &error),
        }
    }
}
