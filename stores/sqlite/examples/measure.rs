//! Measures the store beside the same statements written straight on rusqlite, in turns, many terms that are
//! asked for together beside as many one after the other, and how long a standby sleeps after a release.
//!
//! `cargo run --release -p tenure-sqlite --example measure -- [ROUNDS]`

#![allow(clippy::unwrap_used, reason = "an example may panic")]

use rusqlite::{Connection, params};
use std::path::Path;
use std::time::{Duration, Instant};
use tenure_core::{
    Acquire, Acquired, Attempt, Candidate, CandidateId, Incarnation, Interest, LeaseName, LeaseStore, Note,
    Release, Renew, Scope, Ttl,
};
use tenure_sqlite::SqliteStore;

fn main() {
    let rounds = std::env::args()
        .nth(1)
        .map_or(3_000, |text| text.parse().unwrap());
    let directory = tempfile::tempdir_in(".").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(measure(directory.path(), rounds));
}

async fn measure(directory: &Path, rounds: u32) {
    let store = SqliteStore::open(directory.join("store.db")).unwrap();
    let raw = Raw::open(&directory.join("raw.db"));
    let mut request = request();
    let (mut of_store, mut of_raw, mut of_renew) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let began = Instant::now();
        let Acquired::Granted(grant) = store.acquire(&request).await.unwrap() else {
            panic!("held")
        };
        let acquired = Instant::now();
        let renew = Renew {
            name: request.name.clone(),
            incarnation: request.candidate.incarnation,
            token: grant.token,
            attempt: request.attempt,
            ttl: request.ttl,
        };
        drop(store.renew(&[renew]).await);
        let renewed = Instant::now();
        let release = Release {
            name: request.name.clone(),
            incarnation: request.candidate.incarnation,
            token: grant.token,
            attempt: request.attempt,
        };
        drop(store.release(&[release]).await);
        of_store.push((acquired - began) + renewed.elapsed());
        of_renew.push(renewed - acquired);
        request.attempt = request.attempt.next();

        let began = Instant::now();
        raw.acquire(&request);
        raw.release(&request);
        of_raw.push(began.elapsed());
    }
    let (store_p50, raw_p50) = (
        report("store acquire+release", of_store),
        report("raw acquire+release", of_raw),
    );
    println!(
        "ratio of p50: {:.3}",
        store_p50.as_secs_f64() / raw_p50.as_secs_f64()
    );
    let _renewals = report("store renew", of_renew);
    together(&store, rounds.min(1_000)).await;
    wake(directory, rounds.min(500)).await;
}

/// As many terms as `many`, each waiting for the disk by itself, and all at once.
async fn together(store: &SqliteStore, many: u32) {
    let of = |number: u32, how: &str| Acquire {
        name: LeaseName::new(format!("{how} {number}")).unwrap(),
        ..request()
    };
    let began = Instant::now();
    for number in 0..many {
        let _granted = store.acquire(&of(number, "alone")).await.unwrap();
    }
    let alone = began.elapsed();
    let began = Instant::now();
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..many {
        let (store, request) = (store.clone(), of(number, "together"));
        asking.spawn(async move { store.acquire(&request).await.unwrap() });
    }
    let _granted = asking.join_all().await;
    println!(
        "{many} terms: {alone:?} one after the other, {:?} together",
        began.elapsed()
    );
}

/// From the moment before a release in one thread to its event in another, each with a handle and a runtime.
async fn wake(directory: &Path, rounds: u32) {
    let path = directory.join("store.db");
    let (sender, receiver) = std::sync::mpsc::channel::<Instant>();
    let watcher = SqliteStore::open(&path).unwrap();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut watch = watcher
                .watch(
                    &Scope::Name(LeaseName::new("wake").unwrap()),
                    Interest::Everything,
                )
                .await
                .unwrap();
            while sender.send(Instant::now()).is_ok() {
                drop(watch.next().await.unwrap());
            }
        });
    });
    let store = SqliteStore::open(&path).unwrap();
    let mut request = request();
    request.name = LeaseName::new("wake").unwrap();
    let _ready = receiver.recv().unwrap();
    let mut times = Vec::new();
    for _ in 0..rounds {
        let Acquired::Granted(grant) = store.acquire(&request).await.unwrap() else {
            panic!("held")
        };
        let _taken = receiver.recv().unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
        let release = Release {
            name: request.name.clone(),
            incarnation: request.candidate.incarnation,
            token: grant.token,
            attempt: request.attempt,
        };
        let began = Instant::now();
        drop(store.release(&[release]).await);
        times.push(receiver.recv().unwrap() - began);
        request.attempt = request.attempt.next();
    }
    let _p50 = report("release to event", times);
    drop(receiver);
    let _granted = store.acquire(&request).await.unwrap();
    thread.join().unwrap();
}

fn report(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!("{what}: p50 {:?}, p90 {:?}, p99 {:?}", at(50), at(90), at(99));
    at(50)
}

fn request() -> Acquire {
    Acquire {
        name: LeaseName::new("job").unwrap(),
        candidate: Candidate {
            id: CandidateId::new("measure").unwrap(),
            incarnation: Incarnation::from_bits(7),
        },
        attempt: Attempt::FIRST,
        ttl: Ttl::from_secs(30).unwrap(),
        note: Note::new("host example, process 1").unwrap(),
    }
}

/// What one would write by hand: the same row, the same durability, no decoding, no watch.
struct Raw {
    durable: Connection,
    relaxed: Connection,
}

impl Raw {
    fn open(path: &Path) -> Self {
        drop(SqliteStore::open(path).unwrap());
        let connect = |synchronous| {
            let connection = Connection::open(path).unwrap();
            connection.pragma_update(None, "journal_mode", "WAL").unwrap();
            connection
                .pragma_update(None, "synchronous", synchronous)
                .unwrap();
            connection.set_prepared_statement_cache_capacity(40);
            connection
        };
        Self {
            durable: connect("FULL"),
            relaxed: connect("NORMAL"),
        }
    }

    fn run(connection: &Connection, statement: &str) {
        let _rows = connection.prepare_cached(statement).unwrap().execute([]).unwrap();
    }

    fn acquire(&self, request: &Acquire) {
        let connection = &self.durable;
        Self::run(connection, "BEGIN IMMEDIATE");
        let row = connection
            .prepare_cached("SELECT token, terms, expires_ns, released, version FROM lease WHERE name = ?1")
            .unwrap()
            .query_row([request.name.as_str()], |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, i64>(1)?,
                    row.get::<_, i64>(4)?,
                ))
            });
        let (token, terms, version) = row.unwrap_or((0, 0, 0));
        let _rows = connection
            .prepare_cached(
                "INSERT INTO lease (name, owner, incarnation, token, attempt, terms, ttl_ms, boot_id, \
                 acquired_ns, renewed_ns, expires_ns, released, wish, note, version, created_at, acquired_at, \
                 last_renewed_at) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, 0, 'nothing', ?11, ?12, \
                 wall, wall, wall FROM (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AS wall) WHERE true \
                 ON CONFLICT (name) DO UPDATE SET owner = ?2, incarnation = ?3, token = ?4, attempt = ?5, \
                 terms = ?6, ttl_ms = ?7, boot_id = ?8, acquired_ns = ?9, renewed_ns = ?9, expires_ns = ?10, \
                 released = 0, wish = 'nothing', note = ?11, version = ?12, \
                 acquired_at = excluded.acquired_at, last_renewed_at = excluded.last_renewed_at",
            )
            .unwrap()
            .execute(params![
                request.name.as_str(),
                request.candidate.id.as_str(),
                request.candidate.incarnation.to_string(),
                token + 1,
                1,
                terms + 1,
                30_000,
                "11111111-2222-4333-8444-555555555555",
                1_000,
                30_000_001_000_i64,
                request.note.as_str(),
                version + 1,
            ])
            .unwrap();
        Self::run(connection, "COMMIT");
    }

    fn release(&self, request: &Acquire) {
        let connection = &self.relaxed;
        Self::run(connection, "BEGIN IMMEDIATE");
        let token: i64 = connection
            .prepare_cached("SELECT token FROM lease WHERE name = ?1 AND incarnation = ?2")
            .unwrap()
            .query_row(
                [request.name.as_str(), &request.candidate.incarnation.to_string()],
                |row| row.get(0),
            )
            .unwrap();
        let _rows = connection
            .prepare_cached(
                "UPDATE lease SET released = 1, wish = 'nothing', expires_ns = ?3, version = version + 1 \
                 WHERE name = ?1 AND token = ?2",
            )
            .unwrap()
            .execute(params![request.name.as_str(), token, 2_000])
            .unwrap();
        Self::run(connection, "COMMIT");
    }
}
