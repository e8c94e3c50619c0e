//! Tasks that take the register from each other, and go on writing when they have lost it.

use super::register::{Kind, Outcome, Register, resource, term};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tenure::FenceError;
use tokio::sync::Semaphore;

/// Tasks that contend.
const TASKS: u64 = 64;

/// Claims at once: more than an election ever makes, and few enough that terms follow each other.
const CLAIMS_AT_ONCE: usize = 4;

/// Terms that have been succeeded share the stale writes: about so many.
const STALE_TERMS: u64 = 200;

/// Fewest stale writes that one of them attempts before its task takes the next term.
const STALE_PER_TERM_MIN: u64 = 100;

struct Count {
    claims: Semaphore,
    /// The latest token that was given out.
    granted: AtomicU64,
    /// The highest token whose claim has returned: of the resource, or of the document where that is what is fenced.
    claimed: AtomicU64,
    accepted: AtomicU64,
    /// Writes that began after a later term's claim had returned.
    stale: AtomicU64,
    stale_accepted: AtomicU64,
}

impl Count {
    fn new() -> Self {
        Self {
            claims: Semaphore::new(CLAIMS_AT_ONCE),
            granted: AtomicU64::new(0),
            claimed: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            stale: AtomicU64::new(0),
            stale_accepted: AtomicU64::new(0),
        }
    }
}

pub async fn contend(kind: Kind, register: &Arc<dyn Register>, stale_writes: u64) {
    let (count, began) = (Arc::new(Count::new()), Instant::now());
    let tasks: Vec<_> = (0..TASKS)
        .map(|seed| {
            let (register, count) = (Arc::clone(register), Arc::clone(&count));
            tokio::spawn(async move {
                let mut turn = seed;
                while count.stale.load(Ordering::SeqCst) < stale_writes {
                    turn += 1;
                    one_term(kind, &*register, &count, turn, stale_writes).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let number = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
    println!(
        "{kind:?}: {TASKS} tasks, {} terms, {:.0?}: {} writes accepted; {} stale ones attempted, {} accepted",
        number(&count.granted),
        began.elapsed(),
        number(&count.accepted),
        number(&count.stale),
        number(&count.stale_accepted),
    );
    assert_eq!(number(&count.stale_accepted), 0);
}

async fn one_term(kind: Kind, register: &dyn Register, count: &Count, turn: u64, stale_writes: u64) {
    let turn_to_claim = count.claims.acquire().await.unwrap();
    if count.stale.load(Ordering::SeqCst) >= stale_writes {
        return;
    }
    let term = term(count.granted.fetch_add(1, Ordering::SeqCst) + 1);
    loop {
        match register.fence().claim(&resource(), &term).await {
            Ok(_) => break,
            Err(FenceError::Store(_)) => tokio::task::yield_now().await,
            Err(_) => return,
        }
    }
    drop(turn_to_claim);
    let claimed = || count.claimed.fetch_max(term.token.number(), Ordering::SeqCst);
    // In a document the claim of the resource refuses nobody yet: the claim of the document does, which reads it.
    let claims_by_reading = kind == Kind::MongoDocument;
    if !claims_by_reading {
        claimed();
    }
    let found = register.read(&term).await;
    if claims_by_reading && found.is_some() {
        claimed();
    }
    let mut read = found.unwrap_or(0);
    let mut stale = 0;
    let stale_max = STALE_PER_TERM_MIN.max(stale_writes / STALE_TERMS);
    // The last term of all is superseded by nobody.
    while stale < stale_max && count.stale.load(Ordering::SeqCst) < stale_writes {
        for _ in 0..turn % 4 {
            tokio::task::yield_now().await;
        }
        let is_stale = count.claimed.load(Ordering::SeqCst) > term.token.number();
        let outcome = register.write(&term, read).await;
        match outcome {
            Outcome::Accepted => {
                read += 1;
                count.accepted.fetch_add(1, Ordering::SeqCst);
                count
                    .stale_accepted
                    .fetch_add(u64::from(is_stale), Ordering::SeqCst);
            }
            // A write may have had its effect although it failed: what was read is not what is there.
            Outcome::Failed if !is_stale => read = register.read(&term).await.unwrap_or(read),
            Outcome::Refused | Outcome::Failed => {}
        }
        if is_stale && outcome != Outcome::Failed {
            stale += 1;
            count.stale.fetch_add(1, Ordering::SeqCst);
        }
    }
}
