//! What a server's settings and state make of what it has confirmed.

use crate::server::Server;
use tenure_core::Durability;

/// Semi-synchronous replication goes on without its replicas after this time-out; a day is for ever.
const SEMI_SYNC_TIMEOUT_MIN_MS: i64 = 24 * 60 * 60 * 1_000;

impl Server {
    /// What an acknowledged write survives.
    pub(crate) fn durability(&self) -> Durability {
        // 3 does what 1 does, in the order of older servers.
        if !matches!(self.number("innodb_flush_log_at_trx_commit"), Some(1 | 3)) {
            return Durability::FenceOnly(
                "innodb_flush_log_at_trx_commit is not 1: a crash can take acknowledged leases back, and two may lead",
            );
        }
        if self.is_on("log_bin") && self.number("sync_binlog") != Some(1) {
            return Durability::FenceOnly(
                "there is a binary log and sync_binlog is not 1: a crash can take acknowledged leases back, and two may lead",
            );
        }
        // Only a MySQL can be told to write none, and says so.
        if self.word("innodb_redo_log_enabled").eq_ignore_ascii_case("OFF") {
            return Durability::FenceOnly(
                "the redo log is off: a crash can take back or damage acknowledged leases, and two may lead; ALTER INSTANCE ENABLE \
                 INNODB REDO_LOG",
            );
        }
        let doublewrite = self.word("innodb_doublewrite").to_ascii_uppercase();
        let whole = matches!(doublewrite.as_str(), "1" | "ON" | "FAST" | "DETECT_AND_RECOVER");
        let method = self.word("innodb_flush_method").to_ascii_lowercase();
        if !whole || ["nosync", "littlesync"].contains(&method.as_str()) {
            return Durability::FenceOnly(
                "innodb_doublewrite is off, or innodb_flush_method is nosync or littlesync: a crash can damage or take back acknowledged \
                 leases, and two may lead",
            );
        }
        if self.replicas > 0 && !self.waits_for_replicas() {
            return Durability::FenceOnly(
                "a replica follows asynchronously, or semi-synchronously for a time only: a fail-over to it can take acknowledged \
                 leases back, and two may lead; use semi-synchronous replication for each, with AFTER_SYNC, a time-out of a day, \
                 and waiting also while there is no replica",
            );
        }
        // The one is of a single connection, and off also while whom it follows is away; the other counts
        // those that apply, of all.
        let applies = self.is_on("slave_running") || self.number("slaves_running") > Some(0);
        if applies || self.followed > 0 {
            return Durability::FenceOnly(
                "this server follows another and takes writes as well: leases that are taken at both are two leases",
            );
        }
        if self.hidden {
            return Durability::FenceOnly(
                "this role is not shown whether a replica follows asynchronously, whom the server follows, or what it is in its group: then \
                 two may lead after a fail-over; GRANT PROCESS ON *.*, and SELECT ON performance_schema.replication_connection_status and \
                 replication_group_members",
            );
        }
        Durability::Safe
    }

    /// Whether what is confirmed is at a replica, and none follows that it need not be at.
    fn waits_for_replicas(&self) -> bool {
        [("master", "slave"), ("source", "replica")]
            .iter()
            .any(|(role, other)| {
                self.is_on(&format!("rpl_semi_sync_{role}_status"))
                    && self.number(&format!("rpl_semi_sync_{role}_clients")) >= Some(self.replicas)
                    && self.is_on(&format!("rpl_semi_sync_{role}_wait_no_{other}"))
                    && self.word(&format!("rpl_semi_sync_{role}_wait_point")) == "AFTER_SYNC"
                    && self.number(&format!("rpl_semi_sync_{role}_timeout")) >= Some(SEMI_SYNC_TIMEOUT_MIN_MS)
            })
    }
}

#[cfg(test)]
mod tests {
    use crate::server::Server;
    use tenure_core::Durability;

    /// What is said of a server that is sound but for this.
    fn durability(said: &[(&'static str, &'static str)]) -> Durability {
        let sound = [
            ("innodb_flush_log_at_trx_commit", "1"),
            ("innodb_doublewrite", "ON"),
        ];
        Server::saying(&[&sound[..], said].concat()).durability()
    }

    #[test]
    fn mysql_that_keeps_its_writes_from_the_disk_is_for_the_fence_alone() {
        for sound in [&[][..], &[("innodb_redo_log_enabled", "ON")]] {
            assert_eq!(durability(sound), Durability::Safe);
        }
        let durability_of = |setting, value| durability(&[(setting, value)]);
        for (off, said) in [
            (durability_of("innodb_redo_log_enabled", "OFF"), "redo log"),
            (durability_of("innodb_flush_method", "nosync"), "nosync"),
            (durability_of("innodb_flush_method", "littlesync"), "littlesync"),
        ] {
            assert!(
                matches!(off, Durability::FenceOnly(why) if why.contains(said)),
                "{off:?}"
            );
        }
    }

    #[test]
    fn mysql_that_follows_another_is_for_the_fence_alone() {
        let off = ("slave_running", "OFF");
        assert_eq!(durability(&[off, ("slaves_running", "0")]), Durability::Safe);
        for running in [
            &[("slave_running", "ON")][..],
            // By a connection that has a name, or whose other end is away.
            &[off, ("slaves_running", "1")],
        ] {
            let told = durability(running);
            assert!(
                matches!(told, Durability::FenceOnly(why) if why.contains("follows another")),
                "{told:?}"
            );
        }
    }
}
