//! Connecting: what server this is, and whether it can keep the promises.

use crate::SYSTEM;
use crate::dial::Dial;
use crate::fault::Deed;
use crate::schema::{QUICK, VERSION, literal};
use crate::site::Site;
use crate::store::PostgresStore;
use crate::url::{Listening, StoreUrl};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::{Durability, Fault, StoreError};
use tenure_remote::Remote;
use tokio_postgres::Row;

/// How long connecting may take in all.
pub(crate) const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// How long one request may take: the store's own bound, beside the engine's.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);

/// Oldest server on which all tests were run. In 12 no table in partitions can have the trigger for rows that
/// parts of parts need.
const SERVER_VERSION_MIN: i32 = 130_000;

/// What is asked of a server once; none of it needs a privilege, but how a standby follows is shown to
/// `pg_monitor` alone (null). Who makes a copy, keeps the log (known by the name that its program gives
/// itself), or reads a logical stream, will not be promoted, and is no standby.
const SERVER: &str = "SELECT current_setting('server_version_num')::int, pg_is_in_recovery(), \
     current_setting('transaction_read_only'), current_setting('server_encoding'), current_setting('fsync'), \
     current_setting('full_page_writes'), current_setting('synchronous_standby_names'), standbys.followers, standbys.asynchronous, \
     pg_catalog.version(), standbys.hidden FROM \
     (SELECT count(*) AS followers, count(*) FILTER (WHERE sync_state = 'async') AS asynchronous, \
      count(*) FILTER (WHERE sync_state IS NULL) AS hidden FROM pg_stat_replication r \
      WHERE coalesce(state IN ('startup', 'catchup', 'streaming'), true) \
      AND coalesce(application_name NOT IN ('pg_receivewal', 'pg_basebackup', 'barman_receive_wal'), true) \
      AND NOT EXISTS (SELECT FROM pg_replication_slots WHERE active_pid = r.pid AND slot_type = 'logical')) standbys";

impl PostgresStore {
    /// Opens the store of a URL: `postgres://user:password@host:port/database`, several hosts separated by
    /// commas.
    ///
    /// Beside libpq's options it knows `schema=` (default `tenure`) and `listen=off`. The schema must have
    /// been [set up](Self::init). See the README for all options.
    ///
    /// # Errors
    /// [`StoreError`], not applied, after 5 s at most, and without the password: [`Fault::Invalid`] for a URL
    /// that cannot be read or hosts of different clusters, [`Fault::Unreachable`] or [`Fault::TimedOut`] if
    /// no server answers, [`Fault::Unauthenticated`], [`Fault::Forbidden`], [`Fault::ReadOnly`] for a
    /// replica, [`Fault::Unsupported`] for a server that is too old or only speaks PostgreSQL's protocol, or
    /// a schema that was not set up, is another program's, or has marks that a subscription writes to.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let url = StoreUrl::parse(url)?;
        Ok(Self(Remote::open(SYSTEM, bounded(url.place(), open(url))).await?))
    }
}

/// Waits so long for the connection and no longer.
pub(crate) async fn bounded<T>(
    place: String,
    connecting: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let late = |_| {
        let message = format!(
            "no PostgreSQL answered at {place} within {CONNECT_TIME_MAX:?}; check host, port and network"
        );
        StoreError::not_applied(Fault::Unreachable, message)
    };
    tokio::time::timeout(CONNECT_TIME_MAX, connecting)
        .await
        .map_err(late)?
}

/// A site that nothing is known of yet.
pub(crate) fn site(url: StoreUrl) -> Result<Site, StoreError> {
    let dial = Dial::new(url, CONNECT_TIME_MAX)?;
    Ok(Site::new(dial, REQUEST_TIME_MAX))
}

async fn open(url: StoreUrl) -> Result<Site, StoreError> {
    let listening = url.listening;
    let until = Instant::now() + CONNECT_TIME_MAX;
    let mut site = site(url)?;
    site.recognise().await?;
    let dial = Arc::clone(&site.dial);
    let rest = async {
        site.check_schema().await?;
        match listening {
            Listening::WhereItWorks => site.prove_watch(until).await,
            Listening::Off => Ok(()),
        }
    };
    tokio::try_join!(dial.refuse_strangers(), rest)?;
    Ok(site)
}

impl Site {
    /// Asks the server what it is.
    ///
    /// # Errors
    /// If it cannot keep leases.
    pub(crate) async fn recognise(&mut self) -> Result<(), StoreError> {
        let rows = self.ask(Deed::Read, "connecting", SERVER, &[]).await?;
        let server = rows.first().and_then(Server::read);
        let Some(server) = server else {
            return Err(self.unfit(
                Fault::Unsupported,
                "the server does not say what it is; PostgreSQL 13 or later is needed",
            ));
        };
        if let Some(other) = imitation(&server.words) {
            return Err(self.unfit(
                Fault::Unsupported,
                &format!(
                    "this is {other}, which speaks PostgreSQL's protocol: each of its nodes takes writes by a clock of its own, and \
                     two would lead; keep leases in PostgreSQL's own server"
                ),
            ));
        }
        if server.version < SERVER_VERSION_MIN {
            return Err(self.unfit(
                Fault::Unsupported,
                "the server is too old; PostgreSQL 13 or later is needed",
            ));
        }
        if server.is_replica {
            return Err(self.unfit(
                Fault::ReadOnly,
                "this server is a replica, which takes no writes and may lag; name the primary in the URL, or all hosts",
            ));
        }
        if server.encoding != "UTF8" {
            return Err(self.unfit(
                Fault::Unsupported,
                "the database is not encoded in UTF8, so names could be changed on the way; create one that is",
            ));
        }
        self.read_only = server.read_only;
        self.durability = server.durability();
        Ok(())
    }

    /// Makes sure that the schema is there, of this version, and has a table of leases.
    pub(crate) async fn check_schema(&mut self) -> Result<(), StoreError> {
        let may_call = QUICK.map(|(name, arguments)| {
            let function = literal(&format!("{}.{name}({arguments})", self.schema()));
            format!(
                "coalesce(pg_catalog.has_function_privilege(pg_catalog.to_regprocedure({function}), 'EXECUTE'), false)"
            )
        });
        let asked = format!(
            "SELECT {}.version(), {}, {}",
            self.schema(),
            may_call.join(" AND "),
            ["leases", "fences"]
                .map(|table| flaws(&self.schema(), table))
                .join(", ")
        );
        let (version, [leases, marks]) = match self.ask(Deed::Read, "the schema", &asked, &[]).await {
            Ok(rows) => {
                let row = rows.first();
                let is = |index| row.is_some_and(|row| row.try_get(index).unwrap_or(false));
                self.quick = is(1);
                let version = row.and_then(|row| row.try_get::<_, i32>(0).ok());
                let flaw = |unlogged| match (is(unlogged), is(unlogged + 1)) {
                    (true, _) => Some(Flaw::Unlogged),
                    (_, true) => Some(Flaw::Subscribed),
                    _ => None,
                };
                (version, [flaw(2), flaw(4)])
            }
            Err(error) if error.fault == Fault::Unsupported => {
                return Err(self.unfit(
                    Fault::Unsupported,
                    "the schema has not been set up yet, for leases or for a fence; run `tenure store init --store URL` with this very \
                     schema once, as its owner",
                ));
            }
            Err(error) => return Err(error),
        };
        if version != Some(VERSION) {
            let found = version.map_or_else(|| "no number".to_owned(), |version| version.to_string());
            return Err(self.unfit(
                Fault::Unsupported,
                &format!(
                    "the schema is of set-up {found}, this is Tenure for {VERSION}; use the same version everywhere, then run \
                     `tenure store init`"
                ),
            ));
        }
        if let Some(flaw) = marks {
            let table = format!("{}.fences", self.dial.url.schema);
            let why = match flaw {
                Flaw::Unlogged => format!(
                    "the table {table} is UNLOGGED, so a crash empties it, and terms that are over could claim again; \
                     ALTER TABLE {table} SET LOGGED"
                ),
                Flaw::Subscribed => format!(
                    "a subscription applies to the table {table} what another primary says of its marks, so that terms that are \
                     over could claim or enter; {NOT_SUBSCRIBED}"
                ),
            };
            return Err(self.unfit(Fault::Unsupported, &why));
        }
        match leases {
            Some(Flaw::Unlogged) => {
                self.durability = Durability::FenceOnly(
                    "the table of the leases is UNLOGGED: a crash empties it, and two may lead; ALTER TABLE … SET LOGGED",
                );
            }
            Some(Flaw::Subscribed) => {
                self.durability = Durability::FenceOnly(
                    "a subscription writes to the table of the leases: another primary gives them away as well, and two may lead; \
                     take the table out of it",
                );
            }
            None => {}
        }
        let looked = format!(
            "SELECT {} FROM {}.leases lease, clock_timestamp() moment LIMIT 0",
            crate::schema::RECORD,
            self.schema()
        );
        self.ask(Deed::Read, "the table of the leases", &looked, &[])
            .await?;
        Ok(())
    }

    fn unfit(&self, fault: Fault, why: &str) -> StoreError {
        StoreError::not_applied(fault, format!("PostgreSQL at {}: {why}", self.place))
    }
}

/// Why a table of the schema will not do.
enum Flaw {
    /// The server empties it when it starts after a crash.
    Unlogged,
    /// What applies a logical subscription writes to it, and asks no function.
    Subscribed,
}

const NOT_SUBSCRIBED: &str = "take Tenure's tables out of its publication, then ALTER SUBSCRIPTION … REFRESH PUBLICATION, or drop the \
     subscription";

/// Whether a table has each of the flaws, in their order.
fn flaws(schema: &str, table: &str) -> String {
    let table = format!(
        "pg_catalog.to_regclass({})::oid",
        literal(&format!("{schema}.{table}"))
    );
    format!(
        "EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid OPERATOR(pg_catalog.=) {table} \
         AND c.relpersistence::text OPERATOR(pg_catalog.=) 'u'::text), \
         EXISTS (SELECT FROM pg_catalog.pg_subscription_rel s WHERE s.srrelid OPERATOR(pg_catalog.=) {table})"
    )
}

/// What a server says of itself.
struct Server {
    version: i32,
    is_replica: bool,
    read_only: bool,
    encoding: String,
    /// A crash of the machine can take back what was confirmed.
    forgets: bool,
    /// Synchronous standbys, as they are configured.
    synchronous: String,
    standbys: i64,
    /// Those that are known to follow asynchronously.
    asynchronous: i64,
    /// Those of which this role is not shown how they follow.
    hidden: i64,
    /// Its name and version.
    words: String,
}

/// Which other system answers in PostgreSQL's place, as far as it says so.
fn imitation(words: &str) -> Option<&'static str> {
    [("-YB-", "YugabyteDB"), ("CockroachDB", "CockroachDB")]
        .into_iter()
        .find_map(|(sign, name)| words.contains(sign).then_some(name))
}

impl Server {
    fn read(row: &Row) -> Option<Self> {
        let setting = |index| row.try_get::<_, String>(index).ok();
        Some(Self {
            version: row.try_get(0).ok()?,
            is_replica: row.try_get(1).ok()?,
            read_only: setting(2)? == "on",
            encoding: setting(3)?,
            forgets: setting(4)? == "off" || setting(5)? == "off",
            synchronous: setting(6)?,
            standbys: row.try_get(7).ok()?,
            asynchronous: row.try_get(8).ok()?,
            words: row.try_get(9).ok()?,
            hidden: row.try_get(10).ok()?,
        })
    }

    fn durability(&self) -> Durability {
        if self.forgets {
            return Durability::FenceOnly(
                "fsync or full_page_writes is off: a crash can take acknowledged leases back, and two may lead",
            );
        }
        if self.asynchronous > 0 || self.standbys > 0 && self.synchronous.is_empty() {
            return Durability::FenceOnly(
                "a standby follows asynchronously: a fail-over to it can take acknowledged leases back, and two may lead; \
                 name each in synchronous_standby_names",
            );
        }
        if self.hidden > 0 {
            return Durability::FenceOnly(
                "this role is not shown whether a standby follows asynchronously: a fail-over to such a one can take acknowledged \
                 leases back, and two may lead; GRANT pg_monitor to the role",
            );
        }
        Durability::Safe
    }
}

#[cfg(test)]
mod tests {
    use super::imitation;

    /// By what their own documentation shows of `version()`.
    #[test]
    fn system_that_only_speaks_the_protocol_of_postgres_is_told_by_its_name() {
        for (words, name) in [
            (
                "PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc",
                None,
            ),
            (
                "PostgreSQL 16.4 on aarch64-unknown-linux-gnu, compiled by aarch64-unknown-linux-gnu-gcc",
                None,
            ),
            (
                "PostgreSQL 11.2-YB-2024.1.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang",
                Some("YugabyteDB"),
            ),
            (
                "PostgreSQL 15.12-YB-2025.1.0.0-b0 on aarch64-unknown-linux-gnu, compiled by clang",
                Some("YugabyteDB"),
            ),
            (
                "CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, built 2024/05/15 21:28:29, go1.22.2)",
                Some("CockroachDB"),
            ),
        ] {
            assert_eq!(imitation(words), name, "{words}");
        }
    }
}
