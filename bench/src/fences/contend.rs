//! Tasks that take the register from each other, and go on writing when they have lost it.

use super::register::{NotClaimed, Outcome, Register, Superseded, term};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Tasks that contend.
const TASKS: u64 = 64;

/// Claims at once: more than an election ever makes, and few enough that terms follow each other.
const CLAIMS_AT_ONCE: usize = 4;

/// Terms that have been succeeded share the stale writes: about so many.
const STALE_TERMS: u64 = 200;

/// Fewest stale writes that one of them attempts before its task takes the next term.
const STALE_PER_TERM_MIN: u64 = 100;

/// Stale writes that may be left undecided for each one that is decided, before the run is given up.
const UNDECIDED_MAX: u64 = 10;

/// How long one term may try to claim: far longer than any claim waits for a writer.
const CLAIM_PATIENCE: Duration = Duration::from_secs(300);

struct Count {
    claims: Semaphore,
    stale_writes: u64,
    /// The latest token that was given out.
    granted: AtomicU64,
    /// The highest token that has superseded those before it.
    claimed: AtomicU64,
    accepted: AtomicU64,
    /// Writes that began after a later term had superseded their own, by what became of them.
    stale_refused: AtomicU64,
    stale_accepted: AtomicU64,
    stale_undecided: AtomicU64,
}

impl Count {
    fn new(stale_writes: u64) -> Self {
        Self {
            claims: Semaphore::new(CLAIMS_AT_ONCE),
            stale_writes,
            granted: AtomicU64::new(0),
            claimed: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            stale_refused: AtomicU64::new(0),
            stale_accepted: AtomicU64::new(0),
            stale_undecided: AtomicU64::new(0),
        }
    }

    /// Stale writes that were refused or accepted.
    fn stale(&self) -> u64 {
        self.stale_refused.load(Ordering::SeqCst) + self.stale_accepted.load(Ordering::SeqCst)
    }

    fn has_enough(&self) -> bool {
        self.stale() >= self.stale_writes
    }

    fn note_stale(&self, outcome: Outcome) {
        let counter = match outcome {
            Outcome::Accepted => &self.stale_accepted,
            Outcome::Refused => &self.stale_refused,
            Outcome::Undecided => &self.stale_undecided,
        };
        let noted = counter.fetch_add(1, Ordering::SeqCst);
        let undecided_max = UNDECIDED_MAX * self.stale_writes;
        assert!(
            outcome != Outcome::Undecided || noted < undecided_max,
            "nothing was decided {noted} times"
        );
    }
}

/// Answers with the highest token that was given out.
pub async fn contend(register: &Arc<dyn Register>, stale_writes: u64) -> u64 {
    let (count, began) = (Arc::new(Count::new(stale_writes)), Instant::now());
    let tasks: Vec<_> = (0..TASKS)
        .map(|seed| {
            let (register, count) = (Arc::clone(register), Arc::clone(&count));
            tokio::spawn(async move {
                let mut turn = seed;
                while !count.has_enough() {
                    turn += 1;
                    one_term(&*register, &count, turn).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let number = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
    println!(
        "  {TASKS} tasks, {} terms, {:.0?}: {} stale writes attempted, {} refused, {} accepted; {} more undecided; {} \
         writes accepted in all",
        number(&count.granted),
        began.elapsed(),
        count.stale(),
        number(&count.stale_refused),
        number(&count.stale_accepted),
        number(&count.stale_undecided),
        number(&count.accepted),
    );
    assert_eq!(number(&count.stale_accepted), 0);
    number(&count.granted)
}

async fn one_term(register: &dyn Register, count: &Count, turn: u64) {
    let turn_to_claim = count.claims.acquire().await.unwrap();
    if count.has_enough() {
        return;
    }
    let term = term(count.granted.fetch_add(1, Ordering::SeqCst) + 1);
    let began = Instant::now();
    loop {
        match register.claim(&term).await {
            Ok(()) => break,
            Err(NotClaimed::Undecided(why)) => assert!(began.elapsed() < CLAIM_PATIENCE, "{why}"),
            Err(NotClaimed::Refused(_)) => return,
        }
        tokio::task::yield_now().await;
    }
    drop(turn_to_claim);
    let claimed = || count.claimed.fetch_max(term.token.number(), Ordering::SeqCst);
    if register.superseded() == Superseded::ByClaim {
        claimed();
    }
    let found = register.read(&term).await;
    if register.superseded() == Superseded::ByRead && found.is_some() {
        claimed();
    }
    let mut read = found.unwrap_or(0);
    let mut stale = 0;
    let stale_max = STALE_PER_TERM_MIN.max(count.stale_writes / STALE_TERMS);
    // The last term of all is superseded by nobody.
    while stale < stale_max && !count.has_enough() {
        for _ in 0..turn % 4 {
            tokio::task::yield_now().await;
        }
        let is_stale = count.claimed.load(Ordering::SeqCst) > term.token.number();
        let outcome = register.write(&term, read).await;
        match outcome {
            Outcome::Accepted => {
                read += 1;
                count.accepted.fetch_add(1, Ordering::SeqCst);
            }
            // A write may have had its effect although it failed: what was read is not what is there.
            Outcome::Undecided if !is_stale => read = register.read(&term).await.unwrap_or(read),
            Outcome::Refused | Outcome::Undecided => {}
        }
        if is_stale {
            count.note_stale(outcome);
            stale += u64::from(outcome != Outcome::Undecided);
        }
    }
}
