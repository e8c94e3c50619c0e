//! Leader-terms under random faults, on a real cluster: `cargo run --release -p tenure-etcd --example terms -- 10000`.
//!
//! Four processes' stores, each behind a network of its own that delays, cuts and swallows, want many leases without end;
//! now and then a member of the cluster is frozen, or killed and started again. Ends with 1 if a token was given twice, if
//! tokens did not rise, or if two believed that they held a lease at the same time.
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
use tenure_etcd::EtcdStore;
use tenure_testkit::{Etcd, EtcdOptions, Fault, FaultProxy, RequestFault};

/// Stores that contend for each lease.
const CONTENDERS: usize = 4;

/// Leases: many at once, so that the expiry of one holds up no other.
const LEASES: usize = 40;

/// The shortest that the cluster grants, so that many terms expire.
const TTL: Duration = Duration::from_secs(1);

/// How often one release is sent before the lease is left to expire.
const RELEASES_MAX: u32 = 3;

#[tokio::main]
async fn main() -> ExitCode {
    let terms = std::env::args()
        .nth(1)
        .and_then(|terms| terms.parse().ok())
        .unwrap_or(1_000);
    let mut etcd = Etcd::start(EtcdOptions::three()).await.unwrap();
    let witness = Arc::new(Mutex::new(Witness::default()));
    let began = Instant::now();
    let (mut contending, mut proxies) = (tokio::task::JoinSet::new(), Vec::new());
    for number in 0..CONTENDERS {
        let ways: Vec<FaultProxy> = (0..etcd.size())
            .map(|member| FaultProxy::http2(etcd.address(member)).unwrap())
            .collect();
        let addresses: Vec<String> = ways.iter().map(|way| way.address().to_string()).collect();
        let store = EtcdStore::connect(&format!("etcd://{}", addresses.join(","))).await;
        let store = Arc::new(store.unwrap());
        for lease in 0..LEASES {
            contending.spawn(contend(
                Arc::clone(&store),
                number,
                lease,
                terms,
                Arc::clone(&witness),
            ));
        }
        proxies.push(ways);
    }
    let mut faults = 0_u64;
    while contending.len() > finished(&mut contending) && witness.lock().unwrap().terms < terms {
        tokio::time::sleep(Duration::from_millis(20 + random(60))).await;
        let ways = &proxies[usize::try_from(random(4)).unwrap()];
        strike(ways).await;
        faults += 1;
        let member = usize::try_from(random(3)).unwrap();
        match random(120) {
            0 => {
                etcd.restart(member).await.unwrap();
                faults += 1;
            }
            1 | 2 => {
                etcd.freeze(member);
                tokio::time::sleep(Duration::from_millis(random(1_500))).await;
                etcd.thaw(member);
                faults += 1;
            }
            _ => {}
        }
    }
    proxies.iter().flatten().for_each(FaultProxy::heal);
    while let Some(contended) = contending.join_next().await {
        contended.unwrap();
    }
    let witness = witness.lock().unwrap();
    println!(
        "{} terms of {LEASES} leases in {:.0} s, {faults} faults; {} outcomes unknown, {} replies late, {} terms given again, \
         {} renewed; {} violations",
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

/// How many tasks have ended; none does before the others, unless it panicked.
fn finished(contending: &mut tokio::task::JoinSet<()>) -> usize {
    let mut ended = 0;
    while let Some(task) = contending.try_join_next() {
        task.unwrap();
        ended += 1;
    }
    ended
}

/// One fault of a store's network, on the ways to all members, which passes.
async fn strike(ways: &[FaultProxy]) {
    match random(7) {
        which @ 0..4 => {
            let fault =
                [RequestFault::CutBefore, RequestFault::CutAfter][usize::try_from(which % 2).unwrap()];
            ways.iter().for_each(|way| way.next_requests(1, fault));
        }
        4 => ways.iter().for_each(FaultProxy::cut_connections),
        which => {
            let (silence, delay) = (
                Duration::from_millis(random(500)),
                Duration::from_millis(random(150)),
            );
            let fault = match which {
                5 if random(2) == 0 => Fault::BlackHole,
                5 => Fault::HalfOpen,
                _ => Fault::Delay {
                    to_server: delay,
                    to_client: delay,
                },
            };
            ways.iter().for_each(|way| way.set(fault));
            tokio::time::sleep(silence).await;
            ways.iter().for_each(FaultProxy::heal);
        }
    }
}

/// Wants the lease, holds it for a while, gives it back, until there were enough terms.
async fn contend(
    store: Arc<EtcdStore>,
    number: usize,
    lease: usize,
    terms: u64,
    witness: Arc<Mutex<Witness>>,
) {
    let mut asked = Acquire {
        name: LeaseName::new(format!("job-{lease}")).unwrap(),
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
    store: &EtcdStore,
    asked: &Acquire,
    token: FencingToken,
    sent: Instant,
    witness: &Mutex<Witness>,
) {
    let mut until = sent + TTL;
    for _ in 0..random(3) {
        tokio::time::sleep(Duration::from_millis(random(300))).await;
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
                    "term {token} of {} was lost {:?} before its deadline: {lease:?}",
                    asked.name,
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

/// Sees every term of every lease, and remembers all tokens.
#[derive(Default)]
struct Witness {
    terms: u64,
    unknown: u64,
    late: u64,
    again: u64,
    renewed: u64,
    leases: BTreeMap<LeaseName, Seen>,
    violations: Vec<String>,
}

/// What was seen of one lease.
#[derive(Default)]
struct Seen {
    tokens: BTreeMap<FencingToken, (Incarnation, Attempt)>,
    /// Who believes, and until when.
    holder: Option<(Incarnation, Instant)>,
}

impl Witness {
    /// Whether a term begins with this grant: not if it is over already.
    fn begin(&mut self, asked: &Acquire, token: FencingToken, again: bool, sent: Instant) -> bool {
        let (now, mine) = (Instant::now(), (asked.candidate.incarnation, asked.attempt));
        self.again += u64::from(again);
        let seen = self.leases.entry(asked.name.clone()).or_default();
        if let Some(other) = seen.tokens.insert(token, mine)
            && other != mine
        {
            self.violations.push(format!(
                "token {token} of {} was given to two attempts",
                asked.name
            ));
        }
        if now >= sent + TTL {
            self.late += 1;
            return false;
        }
        // Whoever believes from now on has the highest token of all.
        if seen
            .tokens
            .last_key_value()
            .is_some_and(|(highest, _)| *highest > token)
        {
            self.violations
                .push(format!("term {token} of {} begins after a later one", asked.name));
        }
        if let Some((other, until)) = seen.holder
            && other != mine.0
            && now < until
        {
            let violation = format!(
                "two believe in {}: {other} for {:?} more, and term {token}",
                asked.name,
                until - now
            );
            self.violations.push(violation);
        }
        seen.holder = Some((mine.0, sent + TTL));
        self.terms += 1;
        true
    }

    fn extend(&mut self, asked: &Acquire, until: Instant) {
        self.renewed += 1;
        if let Some(holder) = self.held_by(asked) {
            holder.1 = until;
        }
    }

    fn end(&mut self, asked: &Acquire) {
        if self.held_by(asked).is_some() {
            self.leases.entry(asked.name.clone()).or_default().holder = None;
        }
    }

    fn held_by(&mut self, asked: &Acquire) -> Option<&mut (Incarnation, Instant)> {
        let seen = self.leases.get_mut(&asked.name)?;
        seen.holder
            .as_mut()
            .filter(|holder| holder.0 == asked.candidate.incarnation)
    }
}

fn bits() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A number below `limit`.
fn random(limit: u64) -> u64 {
    bits() % limit.max(1)
}
