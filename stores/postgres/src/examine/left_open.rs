use super::{unknown, warning};
use crate::fault::{Deed, END_LISTENER, FREEZE};
use crate::schema::literal;
use crate::site::Site;
use tenure_core::{Finding, StoreError};
use tokio_postgres::Row;

/// So many old versions of records, and two of each, are worth a look: who asks for a record walks through
/// all of its own. One of each is usual.
const OLD_VERSIONS_MAX: i64 = 10_000;

/// The queue of notifications takes this much of its room with transactions that are over soon. It holds a
/// flood for a while.
const QUEUE_USED_MAX: f64 = 0.5;

/// From here on PostgreSQL freezes whole tables as they come, where it is not set otherwise.
const MULTIXACTS_MAX: i64 = 150_000_000;

/// From here on autovacuum works on multixacts whatever is set: half of the room that there is for their
/// members.
const MULTIXACT_MEMBERS_MAX: i64 = 1 << 31;

/// So many of the latest multixacts are looked into.
const MULTIXACTS_LOOKED_INTO: i64 = 10;

/// From here on, half of the room that there is for their numbers, transactions are too many whatever is set.
/// When all of it is taken, the server takes no writes.
const TRANSACTIONS_MAX: i64 = 1 << 30;

/// How far back the transactions go that are not frozen yet, in which database, and from where on PostgreSQL
/// freezes them by itself (`autovacuum_freeze_max_age`): twice as far, it does not keep up.
const TRANSACTIONS: &str = "SELECT age(datfrozenxid)::bigint, current_setting('autovacuum_freeze_max_age')::bigint, \
     quote_ident(datname) FROM pg_database WHERE datallowconn ORDER BY 1 DESC LIMIT 1";

/// How many multixacts are kept, how many their setting allows, and how many members the latest have on
/// average; nothing where these are too few. Numbers begin anew behind 2^32 - 1, with 1.
const MULTIXACTS: &str = "SELECT kept, allowed, ceil(avg(members))::bigint FROM ( \
     SELECT max(mxid_age(datminmxid))::bigint kept, \
     current_setting('autovacuum_multixact_freeze_max_age')::bigint allowed, \
     (array_agg(datminmxid::text::bigint + mxid_age(datminmxid)))[1] AS next \
     FROM pg_database WHERE datallowconn) multixacts \
     LEFT JOIN LATERAL (SELECT (next + 4294967296 - number) % 4294967296 AS multixact FROM generate_series(1, LOOKED_INTO) number \
     WHERE kept >= LOOKED_INTO) latest ON multixact > 0 \
     LEFT JOIN LATERAL (SELECT count(*) members FROM pg_get_multixact_members(multixact::text::xid)) each ON multixact IS NOT NULL \
     GROUP BY kept, allowed";

/// What keeps old versions in this database, the oldest first. Since when is shown of others' sessions to
/// `pg_monitor` alone. Who vacuums shows a snapshot, too, and keeps nothing by it.
const OLDEST: &str = "SELECT who, transactions::bigint FROM ( \
     SELECT greatest(age(backend_xmin), age(backend_xid)), format('process %s (%s)%s', pid, coalesce(usename, backend_type), \
     ', in a transaction since ' || date_trunc('second', xact_start)) FROM pg_stat_activity \
     WHERE pid <> pg_backend_pid() AND coalesce(datname = current_database(), true) \
     AND coalesce(leader_pid, pid) NOT IN (SELECT pid FROM pg_stat_progress_vacuum) \
     UNION ALL SELECT age(transaction), format('prepared transaction \"%s\", since %s', gid, date_trunc('second', prepared)) \
     FROM pg_prepared_xacts WHERE database = current_database() \
     UNION ALL SELECT age(xmin), format('replication slot \"%s\"', slot_name) FROM pg_replication_slots \
     ) left_open (transactions, who) WHERE transactions IS NOT NULL ORDER BY transactions DESC LIMIT 1";

impl Site {
    /// What piles up on the server behind a transaction that somebody leaves open.
    pub(super) async fn examine_left_open(&self) -> Vec<Finding> {
        let findings = [
            self.examine_old_versions().await,
            self.examine_notifications().await,
            self.examine_multixacts().await,
            self.examine_transactions().await,
        ];
        findings.into_iter().flatten().collect()
    }

    async fn examine_old_versions(&self) -> Option<Finding> {
        const SUBJECT: &str = "old versions";
        let leases = format!("{}.leases", self.schema());
        let asked = format!(
            "SELECT n_dead_tup, n_live_tup, transactions, who FROM pg_stat_all_tables LEFT JOIN ({OLDEST}) oldest ON true \
             WHERE relid = to_regclass({})",
            literal(&leases)
        );
        let found = match self.row_of(&asked).await {
            Ok(row) => row?,
            Err(error) => return Some(unknown(SUBJECT, &error)),
        };
        let number = |index| found.try_get::<_, i64>(index).unwrap_or_default();
        // Without a snapshot there is no age.
        let (old, records, age) = (number(0), number(1), number(2));
        if old <= OLD_VERSIONS_MAX.max(2 * records) {
            return None;
        }
        let vacuum = format!("VACUUM {leases}, and see that autovacuum runs");
        let piled =
            format!("{old} beside {records} records: who asks for one walks through all that are left of it");
        Some(match found.try_get::<_, Option<String>>(3).ok().flatten() {
            Some(who) => {
                let who = who.replace(char::is_control, "?");
                // How old is too old depends on the server: a report of a minute may be many transactions
                // ago.
                warning(
                    SUBJECT,
                    format!("{piled}; the oldest snapshot is of {age} transactions ago, that of {who}"),
                    format!(
                        "{vacuum}; where that changes nothing, end what is left open for so long (pg_terminate_backend, ROLLBACK \
                         PREPARED, pg_drop_replication_slot), or have it run on a standby without hot_standby_feedback"
                    ),
                )
            }
            None => warning(
                SUBJECT,
                format!("{piled}; no snapshot keeps them any more"),
                vacuum,
            ),
        })
    }

    async fn examine_notifications(&self) -> Option<Finding> {
        const SUBJECT: &str = "notifications";
        let used: f64 = match self.row_of("SELECT pg_notification_queue_usage()").await {
            Ok(row) => row?.try_get(0).unwrap_or_default(),
            Err(error) => return Some(unknown(SUBJECT, &error)),
        };
        (used > QUEUE_USED_MAX).then(|| {
            warning(
                SUBJECT,
                format!(
                    "their queue is {:.0} % full: when it is full, nothing is given back",
                    used * 100.0
                ),
                END_LISTENER,
            )
        })
    }

    async fn examine_multixacts(&self) -> Option<Finding> {
        const SUBJECT: &str = "multixacts";
        let asked = MULTIXACTS.replace("LOOKED_INTO", &MULTIXACTS_LOOKED_INTO.to_string());
        let found = match self.row_of(&asked).await {
            Ok(row) => row?,
            Err(error) => return Some(unknown(SUBJECT, &error)),
        };
        let number = |index| found.try_get::<_, i64>(index).unwrap_or_default();
        let (kept, allowed, members) = (number(0), number(1), number(2));
        (kept > multixacts_max(members).min(allowed)).then(|| {
            warning(
                SUBJECT,
                format!(
                    "{kept} are kept, the latest of {members} members each, and transactions that enter beside others make more: \
                     without room for them, no row is locked by a second one beside the first"
                ),
                FREEZE,
            )
        })
    }

    async fn examine_transactions(&self) -> Option<Finding> {
        const SUBJECT: &str = "transactions";
        let found = match self.row_of(TRANSACTIONS).await {
            Ok(row) => row?,
            Err(error) => return Some(unknown(SUBJECT, &error)),
        };
        let number = |index| found.try_get::<_, i64>(index).unwrap_or_default();
        let (age, frozen_from) = (number(0), number(1));
        (age > TRANSACTIONS_MAX.min(2 * frozen_from)).then(|| {
            let database: String = found.try_get(2).unwrap_or_default();
            warning(
                SUBJECT,
                format!(
                    "those of the last {age} are not frozen in database {}, and every acquisition, renewal and release is one more: where \
                     there is no room for another, no lease is taken or kept",
                    database.replace(char::is_control, "?")
                ),
                FREEZE,
            )
        })
    }

    async fn row_of(&self, asked: &str) -> Result<Option<Row>, StoreError> {
        let rows = self.ask(Deed::Read, "what is left open", asked, &[]).await?;
        Ok(rows.into_iter().next())
    }
}

/// How many multixacts of so many members are too many: they share the room for members.
fn multixacts_max(members: i64) -> i64 {
    MULTIXACTS_MAX.min(MULTIXACT_MEMBERS_MAX / members.max(1))
}

#[cfg(test)]
mod tests {
    use super::{MULTIXACTS_MAX, multixacts_max};

    /// The room for members: when it is full, no row is locked by a second one beside the first.
    const ROOM: i64 = 1 << 32;

    #[test]
    fn multixacts_are_told_of_while_there_is_room_for_as_many_members_again() {
        for members in [0, 1, 2, 14] {
            assert_eq!(multixacts_max(members), MULTIXACTS_MAX, "{members} members");
        }
        for members in [15, 35, 100, 10_000] {
            let taken = multixacts_max(members) * members;
            assert!(
                (ROOM / 2 - members..=ROOM / 2).contains(&taken),
                "{members} members: {taken}"
            );
        }
    }
}
