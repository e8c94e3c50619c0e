//! What `tenure doctor` shows of a store file.

use crate::database::{Database, Session};
use crate::only_path;
use crate::patience::patiently;
use crate::schema::{self, Identity, SCHEMA_VERSION};
use crate::transaction;
use crate::trouble::Trouble;
use crate::{SqliteStore, listing, trial};
use rusqlite::Connection;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::{Finding, LeaseStore, Listed, Page, StoreError, Verdict, WatchSource};
use tenure_local::FileSystem;

/// Less free space than this is worth a word: SQLite's log alone grows to some 4 MiB.
const FREE_BYTES_LOW: u64 = 64 << 20;
/// Less than this, and the next commit may fail.
const FREE_BYTES_MIN: u64 = 8 << 20;
/// A write lock that took longer than this to get had somebody in the way.
const LOCK_SLOW: Duration = Duration::from_millis(100);
/// Records read at once.
const PAGE: u16 = 1_000;
/// Unreadable records that are named; the rest are counted.
const NAMED_MAX: usize = 5;

/// Examines point by point. A point that cannot be examined is a finding; the others go on.
pub(crate) async fn examine(
    store: &SqliteStore,
    database: &Arc<Database>,
) -> Result<Vec<Finding>, StoreError> {
    let mut findings = vec![file_system(database), free_space(database), clock(database)];
    let shown = &database.shown;
    findings.push(
        inspect(database, "layout", |session| layout(&session.connection, shown))
            .await
            .0,
    );
    let (durability, reachable) = inspect(database, "durability", durability).await;
    findings.push(durability);
    if !reachable {
        return Ok(findings);
    }
    findings.push(
        inspect(database, "integrity", |session| integrity(&session.connection))
            .await
            .0,
    );
    findings.push(records(database).await);
    let began = Instant::now();
    let (lock, unlocked) = inspect(database, "write lock", |session| {
        transaction::write(&session.connection, |_| Ok(()))?;
        Ok(write_lock(began.elapsed()))
    })
    .await;
    findings.push(lock);
    if unlocked {
        findings.push(trial::round_trip(database).await);
    }
    findings.push(watch(store));
    Ok(findings)
}

/// Examines one point, and whether it could be.
async fn inspect(
    database: &Database,
    subject: &str,
    look: impl Fn(&Session) -> Result<Finding, Trouble> + Send + Sync,
) -> (Finding, bool) {
    let outcome = patiently(
        &database.patience,
        || subject.to_owned(),
        &database.shown,
        || look(&*database.session()?),
    )
    .await;
    match outcome {
        Ok(finding) => (finding, true),
        Err(error) => (failed(subject, &error), false),
    }
}

/// A point that could not be examined.
pub(crate) fn failed(subject: &str, error: &StoreError) -> Finding {
    finding(subject, Verdict::Bad, error.message.clone(), None)
}

/// A finding in one line.
pub(crate) fn finding(
    subject: &str,
    verdict: Verdict,
    detail: impl Into<String>,
    repair: Option<String>,
) -> Finding {
    Finding {
        subject: subject.to_owned(),
        verdict,
        detail: detail.into(),
        repair,
    }
}

fn file_system(database: &Database) -> Finding {
    let shown = &database.shown;
    let kind = database.file_system;
    if let Err(error) = only_path::check(&database.path) {
        return failed("file system", &error);
    }
    let (verdict, detail, repair) = match kind {
        FileSystem::Local(_) => (Verdict::Good, format!("{shown} is on {kind}, a local one"), None),
        FileSystem::Layered(_) => (
            Verdict::Warning,
            format!(
                "{shown} is on {kind}, as a container's own files are: another container has another file by this path"
            ),
            Some("mount one directory of the host into every container, and keep the file there".to_owned()),
        ),
        FileSystem::Memory(_) => (
            Verdict::Warning,
            format!("{shown} is on {kind}: a reboot empties it; tokens still rise by the wall clock"),
            Some("use a path on a disk".to_owned()),
        ),
        FileSystem::Program(_) => (
            Verdict::Warning,
            format!("{shown} is on {kind}, trusted by its URL to be local"),
            Some("use a path on a local disk".to_owned()),
        ),
        FileSystem::Other(_) => (
            Verdict::Warning,
            format!("{shown} is on {kind}, which is in no list here"),
            Some("see that no other machine mounts it".to_owned()),
        ),
        FileSystem::Network(_) => (
            Verdict::Bad,
            format!("{shown} is on {kind}: two machines could hold one lease"),
            Some("use a path on a local disk, or a store for several machines".to_owned()),
        ),
    };
    finding("file system", verdict, detail, repair)
}

fn free_space(database: &Database) -> Finding {
    let subject = "free space";
    match rustix::fs::statvfs(&database.path) {
        Ok(space) => {
            let free = space.f_bavail.saturating_mul(space.f_frsize);
            let verdict = match free {
                0..FREE_BYTES_MIN => Verdict::Bad,
                FREE_BYTES_MIN..FREE_BYTES_LOW => Verdict::Warning,
                _ => Verdict::Good,
            };
            let repair = (verdict != Verdict::Good).then(|| "free space on that disk".to_owned());
            finding(subject, verdict, format!("{} MiB", free >> 20), repair)
        }
        Err(error) => finding(
            subject,
            Verdict::Warning,
            format!("cannot be told: {error}"),
            None,
        ),
    }
}

fn clock(database: &Database) -> Finding {
    let reading = database.clock.read();
    let offset = match database.clock.namespace_offset_ns() {
        0 => String::new(),
        offset => format!(", less {} ms of this time namespace", offset / 1_000_000),
    };
    finding(
        "clock",
        Verdict::Good,
        format!(
            "CLOCK_BOOTTIME {} s{offset}, boot {}",
            reading.now.as_nanos() / 1_000_000_000,
            reading.boot_id
        ),
        None,
    )
}

fn layout(connection: &Connection, shown: &str) -> Result<Finding, Trouble> {
    Ok(match schema::identity(connection)? {
        Identity::Tenure(SCHEMA_VERSION) => finding(
            "layout",
            Verdict::Good,
            format!("schema version {SCHEMA_VERSION}"),
            None,
        ),
        // Whoever has the file open goes on; nobody opens it any more.
        Identity::Tenure(version) => finding(
            "layout",
            Verdict::Bad,
            format!("schema version {version} where {SCHEMA_VERSION} belongs"),
            Some(format!(
                "restart nothing, as nobody can open the file again: if no newer Tenure uses it, another program has set \
                 the number, as migration tools do: {}",
                schema::way_back(shown)
            )),
        ),
        other => finding(
            "layout",
            Verdict::Bad,
            format!("{other:?} where schema version {SCHEMA_VERSION} belongs"),
            Some("restart every process that uses the file".to_owned()),
        ),
    })
}

fn durability(session: &Session) -> Result<Finding, Trouble> {
    let connection = &session.connection;
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    let level: i64 = connection.query_row("PRAGMA synchronous", [], |row| row.get(0))?;
    // One that is under way is told to who waits for it.
    session.log.sync_here().unwrap_or(Ok(()))?;
    let as_meant = mode == "wal" && level >= 1;
    let detail = format!(
        "journal_mode {mode}, synchronous {level}; the log of new terms is put on the disk before use"
    );
    Ok(if as_meant {
        finding("durability", Verdict::Good, detail, None)
    } else {
        let repair = "stop what changes the file's settings, and restart";
        finding("durability", Verdict::Bad, detail, Some(repair.to_owned()))
    })
}

fn integrity(connection: &Connection) -> Result<Finding, Trouble> {
    let answer: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok(if answer == "ok" {
        finding(
            "integrity",
            Verdict::Good,
            "quick_check finds nothing wrong",
            None,
        )
    } else {
        let repair =
            "stop every process that uses the file, move it away, and start again; tokens still rise";
        finding("integrity", Verdict::Bad, answer, Some(repair.to_owned()))
    })
}

async fn records(database: &Database) -> Finding {
    let (mut count, mut unreadable) = (0_usize, Vec::new());
    let mut page = Page::first("", PAGE);
    loop {
        let read = patiently(
            &database.patience,
            || "the records".to_owned(),
            &database.shown,
            || listing::read_page(database, &page),
        );
        let leases = match read.await {
            Ok(leases) => leases,
            Err(error) => return failed("records", &error),
        };
        count += leases.leases.len();
        unreadable.extend(leases.leases.into_iter().filter_map(|listed| match listed {
            Listed::Unreadable { key, .. } => Some(key),
            Listed::Lease(_) => None,
        }));
        if leases.next.is_none() {
            break;
        }
        page.after = leases.next;
    }
    if unreadable.is_empty() {
        return finding("records", Verdict::Good, format!("{count}, all readable"), None);
    }
    let named = unreadable[..unreadable.len().min(NAMED_MAX)].join("\", \"");
    finding(
        "records",
        Verdict::Bad,
        format!(
            "{} of {count} cannot be understood: \"{named}\"",
            unreadable.len()
        ),
        Some(format!(
            "look with: sqlite3 '{}' \"select * from lease\"; then correct or delete those rows",
            database.shown
        )),
    )
}

fn write_lock(waited: Duration) -> Finding {
    let detail = format!("free after {} ms", waited.as_millis());
    if waited < LOCK_SLOW {
        finding("write lock", Verdict::Good, detail, None)
    } else {
        let repair = "see who writes so much: fuser -v on the file";
        finding("write lock", Verdict::Warning, detail, Some(repair.to_owned()))
    }
}

fn watch(store: &SqliteStore) -> Finding {
    match store.traits().watch {
        WatchSource::Push => finding("watch", Verdict::Good, "file notification (inotify)", None),
        WatchSource::Poll | WatchSource::Absent => finding(
            "watch",
            Verdict::Warning,
            "no inotify instance was free: standbys look 100 times a second",
            Some("raise fs.inotify.max_user_instances with sysctl".to_owned()),
        ),
    }
}
