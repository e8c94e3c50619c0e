//! Leader-terms under random faults, on a real server: `cargo run -p tenure-mysql --example terms -- 10000`.
//!
//! Four contenders, each behind a network that delays, cuts, swallows and repeats, want one lease without end; now and
//! then the server is frozen, or killed and started again. Ends with 1 if a token was given twice, if tokens did not
//! rise, or if two believed that they held the lease at the same time.
#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made may stop")]

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tenure_core::{
    Acquire, Acquired, Attempt, Candidate, CandidateId, FencingToken, Incarnation, LeaseName, LeaseStore,
    Note, Release, Renew, Renewed, Ttl,
};
use tenure_mysql::MysqlStore;
use tenure_testkit::{Fault, FaultProxy, Mariadb, RequestFault};

const CONTENDERS: usize = 4;

/// Short, so that many terms expire; long against a round trip.
const TTL: Duration = Duration::from_millis(400);

/// How often one release is sent before the lease is left to expire.
const RELEASES_MAX: u32 = 3;

#[tokio::main]
async fn main() -> ExitCode {
    let terms = std::env::args()
        .nth(1)
        .and_then(|terms| terms.parse().ok())
        .unwrap_or(1_000);
    let mut server = Mariadb::start().await.unwrap();
    server.execute("CREATE DATABASE jobs").await.unwrap();
    MysqlStore::init(&server.uri_of("jobs")).await.unwrap();
    let witness = Arc::new(Mutex::new(Witness::default()));
    let began = Instant::now();
    let (mut contending, mut proxies) = (tokio::task::JoinSet::new(), Vec::new());
    for number in 0..CONTENDERS {
        let proxy = Arc::new(FaultProxy::mysql(server.address()).unwrap());
        let url = format!("mysql://root@{}/jobs", proxy.address());
        let store = MysqlStore::connect(&url).await.unwrap();
        contending.spawn(contend(store, number, terms, Arc::clone(&witness)));
        proxies.push(proxy);
    }
    let mut faults = 0_u64;
    while contending.len() > finished(&mut contending) && witness.lock().unwrap().terms < terms {
        tokio::time::sleep(Duration::from_millis(20 + random(60))).await;
        strike(&proxies[usize::try_from(random(4)).unwrap()]).await;
        faults += 1;
        match random(400) {
            0 => {
                server.restart().await.unwrap();
                faults += 1;
            }
            1 | 2 => {
                server.freeze();
                tokio::time::sleep(Duration::from_millis(random(900))).await;
                server.thaw();
                faults += 1;
            }
            _ => {}
        }
    }
    proxies.iter().for_each(|proxy| proxy.heal());
    while contending.join_next().await.is_some() {}
    let witness = witness.lock().unwrap();
    println!(
        "{} terms in {:.0} s, {faults} faults; {} outcomes unknown, {} replies late, {} terms given again, {} renewed; {} violations",
        witness.terms,
        began.elapsed().as_secs_f64(),
        witness.unknown,
        witness.late,
        witness.again,
        witness.renewed,
        witness.violations.len()
    );
    witness
        .violations
        .iter()
        .for_each(|violation| println!("  {violation}"));
    match witness.violations.is_empty() && witness.unknown > 0 && witness.again > 0 {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// How many contenders have ended; none does before the others, unless it panicked.
fn finished(contending: &mut tokio::task::JoinSet<()>) -> usize {
    let mut ended = 0;
    while let Some(task) = contending.try_join_next() {
        task.unwrap();
        ended += 1;
    }
    ended
}

/// One fault of the network, which passes.
async fn strike(proxy: &FaultProxy) {
    let requests = [
        RequestFault::CutBefore,
        RequestFault::CutAfter,
        RequestFault::Duplicate,
        RequestFault::DuplicateLater(Duration::from_millis(random(1_500))),
    ];
    let commands = ["tenure_acquire_1", "tenure_renew_1", "tenure_release_1"];
    match random(8) {
        which @ 0..4 => {
            let command = commands[usize::try_from(random(3)).unwrap()];
            proxy.next_commands(1, command, requests[usize::try_from(which).unwrap()]);
        }
        4 => proxy.cut_connections(),
        which => {
            let (silence, delay) = (
                Duration::from_millis(random(500)),
                Duration::from_millis(random(150)),
            );
            proxy.set(match which {
                5 => Fault::BlackHole,
                6 => Fault::HalfOpen,
                _ => Fault::Delay {
                    to_server: delay,
                    to_client: delay,
                },
            });
            tokio::time::sleep(silence).await;
            proxy.heal();
        }
    }
}

/// Wants the lease, holds it for a while, gives it back, until there were enough terms.
async fn contend(store: MysqlStore, number: usize, terms: u64, witness: Arc<Mutex<Witness>>) {
    let mut asked = Acquire {
        name: LeaseName::new("job").unwrap(),
        candidate: Candidate {
            id: CandidateId::new(format!("contender-{number}")).unwrap(),
            incarnation: Incarnation::from_bits((u128::from(bits()) << 64) | u128::from(bits())),
        },
        attempt: Attempt::FIRST,
        ttl: Ttl::try_from(TTL).unwrap(),
        note: Note::default(),
    };
    while witness.lock().unwrap().terms < terms {
        let sent = Instant::now();
        // As the engine: no request outlasts what it is good for.
        let answer = tokio::time::timeout(TTL, store.acquire(&asked)).await;
        match answer {
            Ok(Ok(Acquired::Granted(grant))) => {
                let begun = witness
                    .lock()
                    .unwrap()
                    .begin(&asked, grant.token, grant.again, sent);
                if begun {
                    hold(&store, &asked, grant.token, sent, &witness).await;
                }
                asked.attempt = asked.attempt.next();
            }
            Ok(Ok(Acquired::Held(lease))) => {
                let wait = lease.remaining.min(Duration::from_millis(30 + random(30)));
                tokio::time::sleep(wait).await;
            }
            Ok(Ok(Acquired::Superseded)) => asked.attempt = asked.attempt.next(),
            Ok(Err(_)) | Err(_) => {
                witness.lock().unwrap().unknown += 1;
                // Mostly the same attempt again; now and then it is given up for the next one.
                if random(5) == 0 {
                    asked.attempt = asked.attempt.next();
                }
            }
        }
    }
}

async fn hold(
    store: &MysqlStore,
    asked: &Acquire,
    token: FencingToken,
    sent: Instant,
    witness: &Mutex<Witness>,
) {
    let mut until = sent + TTL;
    for _ in 0..random(3) {
        tokio::time::sleep(Duration::from_millis(random(120))).await;
        let renewal = Renew {
            name: asked.name.clone(),
            incarnation: asked.candidate.incarnation,
            token,
            attempt: asked.attempt,
            ttl: asked.ttl,
        };
        let (sent, renewals) = (Instant::now(), [renewal]);
        let left = until.saturating_duration_since(sent);
        match tokio::time::timeout(left, store.renew(&renewals))
            .await
            .map(|mut answers| answers.remove(0))
        {
            Ok(Ok(Renewed::Extended { .. })) if Instant::now() < until => {
                until = sent + TTL;
                witness.lock().unwrap().extend(asked, until);
            }
            Ok(Ok(Renewed::Lost(lease))) if Instant::now() < until => {
                let violation = format!(
                    "term {token} was lost {:?} before its deadline: {lease:?}",
                    until - Instant::now()
                );
                witness.lock().unwrap().violations.push(violation);
            }
            _ => {}
        }
    }
    // Nothing is believed any more when the release is sent.
    witness.lock().unwrap().end(asked);
    let release = Release {
        name: asked.name.clone(),
        incarnation: asked.candidate.incarnation,
        token,
        attempt: asked.attempt,
    };
    for _ in 0..RELEASES_MAX {
        let releases = [release.clone()];
        let answer = tokio::time::timeout(TTL, store.release(&releases)).await;
        if answer.is_ok_and(|mut answers| answers.remove(0).is_ok()) {
            return;
        }
    }
}

/// Sees every term, and remembers all tokens.
#[derive(Default)]
struct Witness {
    terms: u64,
    unknown: u64,
    late: u64,
    again: u64,
    renewed: u64,
    tokens: BTreeMap<FencingToken, (Incarnation, Attempt)>,
    /// Who believes, and until when.
    holder: Option<(Incarnation, Instant)>,
    violations: Vec<String>,
}

impl Witness {
    /// Whether a term begins with this grant: not if it is over already.
    fn begin(&mut self, asked: &Acquire, token: FencingToken, again: bool, sent: Instant) -> bool {
        let (now, mine) = (Instant::now(), (asked.candidate.incarnation, asked.attempt));
        self.again += u64::from(again);
        if let Some(other) = self.tokens.insert(token, mine)
            && other != mine
        {
            self.violations
                .push(format!("token {token} was given to two attempts"));
        }
        if now >= sent + TTL {
            self.late += 1;
            return false;
        }
        // Whoever believes from now on has the highest token of all.
        if self
            .tokens
            .last_key_value()
            .is_some_and(|(highest, _)| *highest > token)
        {
            self.violations
                .push(format!("term {token} begins after a later one"));
        }
        if let Some((other, until)) = self.holder
            && other != mine.0
            && now < until
        {
            let violation = format!(
                "two believe: {other} for {:?} more, and term {token}",
                until - now
            );
            self.violations.push(violation);
        }
        self.holder = Some((mine.0, sent + TTL));
        self.terms += 1;
        true
    }

    fn extend(&mut self, asked: &Acquire, until: Instant) {
        self.renewed += 1;
        if let Some(holder) = self
            .holder
            .as_mut()
            .filter(|holder| holder.0 == asked.candidate.incarnation)
        {
            holder.1 = until;
        }
    }

    fn end(&mut self, asked: &Acquire) {
        if self
            .holder
            .is_some_and(|holder| holder.0 == asked.candidate.incarnation)
        {
            self.holder = None;
        }
    }
}

fn bits() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A number below `limit`.
fn random(limit: u64) -> u64 {
    bits() % limit.max(1)
}
