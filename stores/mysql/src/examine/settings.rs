use super::{good, unknown, warning};
use crate::row::number;
use crate::schema::NOW_US;
use crate::server::Server;
use crate::site::Site;
use tenure_core::Finding;
use tenure_remote::Deed;
use tenure_remote::clock::{Ahead, finding};

/// A statement that may not take so long would be cut while it waits for a row, or for transactions that have
/// entered.
const STATEMENT_TIMEOUT_MIN_MS: i64 = 5_000;

/// A whole batch of renewals of leases with long names, and something more.
const PACKET_BYTES_MIN: i64 = 2 << 20;

/// Longest wait for a table that leaves few sessions behind, in seconds.
const TABLE_WAIT_MAX_S: i64 = 10;

impl Site {
    /// The settings that change how leases behave.
    pub(super) async fn examine_settings(&self, server: &Server) -> Vec<Finding> {
        let store = self.dial.store.number();
        let mut findings = vec![good(
            "server",
            format!(
                "{}, {} connections at most{}",
                server.word("version"),
                server.word("max_connections"),
                store.map_or_else(String::new, |number| format!(", store {number}"))
            ),
        )];
        if store.is_none() {
            findings.push(warning(
                "store number",
                "the tables have none, as an earlier Tenure has made them: another server at this address is not told from this one",
                "run `tenure store init` as the owner, and start the candidates anew",
            ));
        }
        if server.word("binlog_format") == "STATEMENT" {
            findings.push(warning(
                "binary log",
                "binlog_format is STATEMENT: where there is a binary log, no lease can be written",
                "set binlog_format to ROW or MIXED",
            ));
        }
        if server.number("max_allowed_packet") < Some(PACKET_BYTES_MIN) {
            findings.push(warning(
                "packets",
                format!(
                    "max_allowed_packet is {}: a renewal of many leases may be 1.5 MB, and fails each time where it is larger",
                    server.word("max_allowed_packet")
                ),
                "set max_allowed_packet to 2M or more",
            ));
        }
        if server.logs_statements() {
            findings.extend(self.examine_guards().await);
        }
        if server.is_mariadb() {
            findings.extend(self.examine_statement_timeout().await);
        }
        findings.extend(self.examine_table_locks().await);
        findings.push(self.examine_clock().await);
        findings
    }

    /// What guards do where a replica applies statements; nothing where no guard is seen.
    async fn examine_guards(&self) -> Option<Finding> {
        let asked = "SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE LOCATE('tenure_admit_', ACTION_STATEMENT) > 0";
        match self.ask(Deed::Read, "its guards", asked).await {
            Ok(rows) => (rows.first().and_then(|row| number(row, 0)) > Some(0)).then(|| {
                warning(
                    "guards",
                    "the binary log may have statements (binlog_format), and a replica that applies one runs its own triggers: where it \
                     has not this database, its procedures or the definer, replication ends at the first write to a guarded table",
                    "set binlog_format to ROW, or see to it that each replica has all of them",
                )
            }),
            Err(error) => Some(unknown("guards", &error)),
        }
    }

    /// How long a request waits for a table that somebody keeps locked: a moment where the session is this
    /// program's own, and otherwise as the server says.
    async fn examine_table_locks(&self) -> Option<Finding> {
        const SUBJECT: &str = "table locks";
        let asked = "SELECT @@SESSION.lock_wait_timeout";
        let wait_s = match self.ask(Deed::Read, "its limit on waits", asked).await {
            Ok(rows) => rows.first().and_then(|row| number(row, 0)).unwrap_or_default(),
            Err(error) => return Some(unknown(SUBJECT, &error)),
        };
        (wait_s > TABLE_WAIT_MAX_S).then(|| {
            warning(
                SUBJECT,
                format!(
                    "sessions are shared out here, and wait for a locked table for {wait_s} s (lock_wait_timeout): while a dump or ALTER \
                     TABLE keeps one locked, each request that is given up leaves a session that waits on, and may be done later"
                ),
                "set lock_wait_timeout to 2 for Tenure's user (init_connect, or the pooler), and give it MAX_USER_CONNECTIONS",
            )
        })
    }

    async fn examine_clock(&self) -> Finding {
        let asked = format!("SELECT {NOW_US}");
        let ask = || async {
            let rows = self.ask(Deed::Read, "its clock", &asked).await?;
            let told_us = rows.first().and_then(|row| number(row, 0));
            Ok(told_us.unwrap_or_default() / 1_000)
        };
        match Ahead::asked(ask).await {
            Ok(clock) => finding(
                clock,
                "a fail-over to a replica with another clock shifts every expiry by the difference",
            ),
            Err(error) => unknown("clock", &error),
        }
    }

    /// MariaDB's limit on each statement, also on those of procedures; MySQL's is on reading ones outside
    /// them alone.
    async fn examine_statement_timeout(&self) -> Option<Finding> {
        const SUBJECT: &str = "statement timeout";
        let asked = "SELECT CAST(@@SESSION.max_statement_time * 1000 AS SIGNED)";
        let limit_ms = match self.ask(Deed::Read, "its limit on statements", asked).await {
            Ok(rows) => rows.first().and_then(|row| number(row, 0)).unwrap_or_default(),
            Err(error) => return Some(unknown(SUBJECT, &error)),
        };
        (1..STATEMENT_TIMEOUT_MIN_MS).contains(&limit_ms).then(|| {
            warning(
                SUBJECT,
                format!(
                    "{limit_ms} ms (max_statement_time): what waits for a row (2 s), or for transactions that have entered (3 s), \
                     is cut before its own bound, and then nobody knows whether it was done"
                ),
                "ALTER USER … WITH MAX_STATEMENT_TIME 5 for Tenure's user",
            )
        })
    }
}
