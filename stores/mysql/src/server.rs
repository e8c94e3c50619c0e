//! What a server says of itself, and whether it can keep the promises.

use crate::row::{number, text};
use crate::site::Site;
use mysql_async::Row;
use std::collections::BTreeMap;
use tenure_core::{Fault, StoreError};
use tenure_remote::Deed;

/// Oldest servers that have all that the statements use: checks, `SKIP LOCKED`, `JSON_TABLE`, and procedures
/// that are created only where they are missing.
const MYSQL_MIN: (u16, u16, u16) = (8, 0, 29);
pub(crate) const MARIADB_MIN: (u16, u16, u16) = (10, 6, 0);

/// What is asked of a server; none of it needs a privilege. Names that a server does not know are not
/// answered.
const SETTINGS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'read_only', 'innodb_read_only', 'autocommit', \
     'innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'innodb_flush_method', 'log_bin', 'sync_binlog', 'binlog_format', \
     'hostname', 'port', 'server_id', \
     'wsrep_on', 'group_replication_group_name', 'group_replication_single_primary_mode', \
     'group_replication_consistency', 'max_connections', 'max_allowed_packet', \
     'rpl_semi_sync_master_timeout', 'rpl_semi_sync_source_timeout', 'rpl_semi_sync_master_wait_point', \
     'rpl_semi_sync_source_wait_point', 'rpl_semi_sync_master_wait_no_slave', 'rpl_semi_sync_source_wait_no_replica')";
const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Slaves_connected', 'Slave_running', 'Slaves_running', \
     'Innodb_redo_log_enabled', 'Rpl_semi_sync_master_status', 'Rpl_semi_sync_source_status', 'Rpl_semi_sync_master_clients', \
     'Rpl_semi_sync_source_clients')";
/// Replicas that read the binary log; and, not zero for whoever has the privilege `PROCESS`, without which
/// MySQL shows none: then sessions of others are seen, or the privilege itself: the role's own, as whoever
/// may read `mysql.*` sees everybody's.
const REPLICAS: &str = "SELECT COUNT(IF(shown.COMMAND LIKE 'Binlog Dump%', 1, NULL)), \
     COUNT(IF(shown.USER <> SUBSTRING_INDEX(USER(), '@', 1), 1, NULL)) \
     + (SELECT COUNT(*) FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'PROCESS' AND GRANTEE = CONCAT('''', \
     REPLACE(LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1), \
     '''', ''''''), '''@''', SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')) \
     FROM information_schema.PROCESSLIST shown";
/// Servers that a newer MySQL follows, which has no status that says so: of a group, its members are no such.
/// Seen by who may read the table.
const FOLLOWED: &str = "SELECT COUNT(*) FROM performance_schema.replication_connection_status \
     WHERE SERVICE_STATE <> 'OFF' AND CHANNEL_NAME NOT LIKE 'group!_replication!_%' ESCAPE '!'";
/// What a server is in its group; nothing where it is in none. Seen by who may read the table.
const MEMBER: &str = "SELECT MAX(IF(MEMBER_ID = @@GLOBAL.server_uuid, CONCAT(MEMBER_STATE, ' ', MEMBER_ROLE), NULL)) \
     FROM performance_schema.replication_group_members";

/// Levels of `group_replication_consistency` at which a new primary takes nothing before it has applied all
/// that the one before it has confirmed. Of those that Oracle's manual names, all but `EVENTUAL`.
const WAITS_FOR_BACKLOG: [&str; 4] = [
    "BEFORE_ON_PRIMARY_FAILOVER",
    "BEFORE",
    "AFTER",
    "BEFORE_AND_AFTER",
];

/// A server's settings and state, by their names in small letters.
pub(crate) struct Server {
    said: BTreeMap<String, String>,
    pub(crate) replicas: i64,
    pub(crate) followed: i64,
    /// Whether this role is kept from seeing the one or the other.
    pub(crate) hidden: bool,
    /// Its state and its role, where it is set to be of a group.
    member: Option<String>,
}

impl Site {
    /// Asks the server what it is.
    ///
    /// # Errors
    /// If it does not answer.
    pub(crate) async fn server(&self) -> Result<Server, StoreError> {
        let mut said = BTreeMap::new();
        for question in [SETTINGS, STATUS] {
            for row in self.ask(Deed::Read, "connecting", question).await? {
                if let (Some(name), Some(value)) = (text(&row, 0), text(&row, 1)) {
                    said.insert(name.to_ascii_lowercase(), value.to_owned());
                }
            }
        }
        let mut server = Server {
            said,
            replicas: 0,
            followed: 0,
            hidden: false,
            member: None,
        };
        // Without a binary log nobody follows.
        if server.is_on("log_bin") {
            let seen = self.seen(REPLICAS).await?;
            let counted = |column| seen.as_ref().and_then(|row| number(row, column)).unwrap_or(0);
            server.replicas = counted(0).max(server.number("slaves_connected").unwrap_or(0));
            server.hidden = !server.is_mariadb() && counted(1) == 0;
        }
        if server.word("slave_running").is_empty() {
            let followed = self.seen(FOLLOWED).await?.and_then(|row| number(&row, 0));
            server.followed = followed.unwrap_or(0);
            server.hidden |= followed.is_none();
        }
        if server.is_in_group() {
            let member = self.seen(MEMBER).await?;
            server.hidden |= member.is_none();
            server.member = member.map(|row| text(&row, 0).unwrap_or("OFFLINE").to_owned());
        }
        Ok(server)
    }

    /// The row that answers; none where this server keeps it elsewhere, or shows it to others.
    ///
    /// # Errors
    /// If it does not answer: what was not heard is not none.
    async fn seen(&self, question: &str) -> Result<Option<Row>, StoreError> {
        match self.ask(Deed::Read, "connecting", question).await {
            Ok(rows) => Ok(rows.into_iter().next()),
            Err(error) if matches!(error.fault, Fault::Unreachable | Fault::TimedOut) => Err(error),
            Err(_refused) => Ok(None),
        }
    }

    /// Finds out what server this is, and refuses one that cannot keep leases.
    pub(crate) async fn recognise(&mut self) -> Result<Server, StoreError> {
        let server = self.server().await?;
        if let Some((fault, why)) = server.unfit() {
            return Err(self.unfit(fault, &why));
        }
        self.durability = server.durability();
        Ok(server)
    }

    pub(crate) fn unfit(&self, fault: Fault, why: &str) -> StoreError {
        StoreError::not_applied(fault, format!("MySQL at {}: {why}", self.place()))
    }
}

impl Server {
    pub(crate) fn word(&self, name: &str) -> &str {
        self.said.get(name).map_or("", String::as_str)
    }

    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.word(name).parse().ok()
    }

    pub(crate) fn is_on(&self, name: &str) -> bool {
        matches!(self.word(name).to_ascii_uppercase().as_str(), "1" | "ON" | "YES")
    }

    pub(crate) fn is_mariadb(&self) -> bool {
        self.word("version").contains("MariaDB")
    }

    /// What it is known by among others.
    pub(crate) fn name(&self) -> String {
        ["hostname", "port", "server_id"]
            .map(|name| self.word(name))
            .join(" ")
    }

    /// Whether it is set to be of a group.
    fn is_in_group(&self) -> bool {
        !self.word("group_replication_group_name").is_empty()
    }

    /// Whether what changes rows may be logged as it was said, by which replicas run triggers of their own.
    pub(crate) fn logs_statements(&self) -> bool {
        self.is_on("log_bin") && !self.word("binlog_format").eq_ignore_ascii_case("ROW")
    }

    /// Why it cannot keep leases at all.
    fn unfit(&self) -> Option<(Fault, String)> {
        let version = self.word("version");
        let min = if self.is_mariadb() { MARIADB_MIN } else { MYSQL_MIN };
        if numbers(version).is_none_or(|found| found < min) {
            let shown = tenure_remote::line(version);
            let why =
                format!("its version is \"{shown}\"; MariaDB 10.6 or MySQL 8.0.29, or later, is needed");
            return Some((Fault::Unsupported, why));
        }
        if self.is_on("read_only")
            || self.is_on("innodb_read_only")
            || self.word("read_only").starts_with("NO_LOCK")
        {
            let why = "this server takes no writes (read_only), as a replica does, and may lag; name the primary in the URL";
            return Some((Fault::ReadOnly, why.to_owned()));
        }
        let in_group = self.is_in_group();
        let several = in_group && !self.is_on("group_replication_single_primary_mode");
        if self.is_on("wsrep_on") || several {
            let why = "several servers take writes here (Galera, or group replication without a single primary), and a lock on one \
                       is none on another: a fence could be passed; use one primary, or another store";
            return Some((Fault::Unsupported, why.to_owned()));
        }
        if in_group && !WAITS_FOR_BACKLOG.contains(&self.word("group_replication_consistency")) {
            let why = "group_replication_consistency is EVENTUAL, so a new primary takes writes before it has applied what was \
                       confirmed before: a fence could be passed, and a lease be taken twice; set it to \
                       BEFORE_ON_PRIMARY_FAILOVER on every server of the group";
            return Some((Fault::Unsupported, why.to_owned()));
        }
        // As after a crash, where it does not begin by itself: it takes writes, and the others may have a
        // primary of their own.
        if let Some(member) = self
            .member
            .as_deref()
            .filter(|member| *member != "ONLINE PRIMARY")
        {
            let why = format!(
                "this server is set to be of a group, and is not its primary ({}): another may be, and leases that are taken at both \
                 are two leases; START GROUP_REPLICATION, or take the group's settings away",
                tenure_remote::line(member)
            );
            return Some((Fault::ReadOnly, why));
        }
        if !self.is_on("autocommit") {
            let why = "autocommit is off for new sessions, so a read could answer from long ago; SET GLOBAL autocommit = 1";
            return Some((Fault::Unsupported, why.to_owned()));
        }
        None
    }
}

/// The numbers at the begin of a version.
fn numbers(version: &str) -> Option<(u16, u16, u16)> {
    let plain = version.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    let mut parts = plain.split('.').map(|part| part.parse().ok());
    Some((
        parts.next()??,
        parts.next()??,
        parts.next().flatten().unwrap_or(0),
    ))
}

#[cfg(test)]
impl Server {
    /// A MySQL that will do, but for these settings.
    pub(crate) fn saying(settings: &[(&str, &str)]) -> Self {
        let sound = [("version", "8.0.36"), ("autocommit", "ON"), ("read_only", "OFF")];
        let said = sound.iter().chain(settings);
        Self {
            said: said
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            replicas: 0,
            followed: 0,
            hidden: false,
            member: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Server, WAITS_FOR_BACKLOG};
    use tenure_core::Fault;

    #[test]
    fn member_of_a_group_that_is_not_its_primary_is_refused() {
        let member = |member: Option<&str>| {
            let group = Server::saying(&[
                ("group_replication_group_name", "of one"),
                ("group_replication_single_primary_mode", "ON"),
                ("group_replication_consistency", WAITS_FOR_BACKLOG[0]),
            ]);
            Server {
                member: member.map(str::to_owned),
                ..group
            }
            .unfit()
        };
        // Who may not see it goes by the settings.
        for sound in [None, Some("ONLINE PRIMARY")] {
            assert_eq!(member(sound), None);
        }
        for other in ["OFFLINE", "OFFLINE ", "ONLINE SECONDARY", "RECOVERING PRIMARY"] {
            let (fault, why) = member(Some(other)).expect(other);
            assert_eq!(fault, Fault::ReadOnly);
            assert!(why.contains("START GROUP_REPLICATION"), "{why}");
        }
    }

    #[test]
    fn mysql_that_is_too_old_is_refused_by_its_version() {
        let unfit = |version| Server::saying(&[("version", version)]).unfit();
        for version in [
            "8.0.29",
            "8.4.0",
            "9.7.4-2",
            "10.6.0-MariaDB",
            "10.11.19-MariaDB-0+deb12u1",
            "12.1.2-MariaDB-log",
        ] {
            assert_eq!(unfit(version), None, "{version}");
        }
        for version in [
            "8.0.28",
            "5.7.44-log",
            "10.5.29-MariaDB-log",
            "5.5.68-MariaDB",
            "",
            "of old",
        ] {
            let (fault, why) = unfit(version).expect(version);
            assert_eq!(fault, Fault::Unsupported);
            assert!(why.contains("MariaDB 10.6 or MySQL 8.0.29"), "{why}");
        }
    }

    #[test]
    fn group_whose_new_primary_does_not_wait_for_its_backlog_is_refused() {
        assert_eq!(Server::saying(&[]).unfit(), None);
        let group = |mode, consistency| {
            let group = Server::saying(&[
                (
                    "group_replication_group_name",
                    "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa",
                ),
                ("group_replication_single_primary_mode", mode),
                ("group_replication_consistency", consistency),
            ]);
            group.unfit()
        };
        for level in WAITS_FOR_BACKLOG {
            assert_eq!(group("ON", level), None, "{level}");
            assert!(group("OFF", level).is_some(), "{level} with several primaries");
        }
        for level in ["EVENTUAL", "", "LATER_PERHAPS"] {
            let (fault, why) = group("ON", level).expect(level);
            assert_eq!(fault, Fault::Unsupported);
            assert!(why.contains("BEFORE_ON_PRIMARY_FAILOVER"), "{why}");
        }
    }
}
