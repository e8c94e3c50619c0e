//! A number that terms read, add one to and write back, for every fence: what the history of the accepted
//! writes shows.
//!
//! The reading is outside of what the fence protects, as it is where a leader reads, thinks and writes. So a
//! fence that lets an older term in once more, or lets a later one claim past an open write, leaves a write
//! that had not read the one before.

use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Answer, Fault, Fence, FenceError, FencingToken, LeaseName, ResourceName, Term};
use tokio::sync::watch;

/// Accepted writes after which the next term claims: the one before is then in the middle of its own.
const WRITES_PER_TERM: u64 = 5;

/// Later terms claim at so many different moments of a write, so far apart: how long these take is the
/// machine's matter.
const PHASES: u64 = 8;
const PHASE: Duration = Duration::from_millis(3);

/// Most writes and claims of one term: then no later one has come, and the history says why.
const TRIES_MAX: u32 = 2_000;

/// One term's way to the number and to its history.
pub trait Register: Send + 'static {
    /// Reads the number, outside of what the fence protects.
    fn read(&mut self) -> Answer<'_, u64>;

    /// Writes `read + 1`, and notes who wrote and what it had read, in one step that the fence protects.
    fn write<'a>(&'a mut self, term: &'a Term, read: u64) -> Answer<'a, Result<(), FenceError>>;

    /// The token and what it had read, of every write that is there, in the order of their effect.
    fn history(&mut self) -> Answer<'_, Vec<(u64, u64)>>;
}

/// What became of one term.
struct Ended {
    accepted: u64,
    /// A write was refused, after this term had claimed, as a later one had.
    refused: bool,
}

/// One term for each register: each claims while the one before it reads and writes, and goes on until it is
/// refused. Each accepted write has read what the one before it left, none comes after one of a later term,
/// and none is missing.
///
/// # Panics
/// If not, or if too little happened to show it.
pub async fn terms_follow_each_other<R: Register>(
    fence: Arc<dyn Fence>,
    resource: &ResourceName,
    registers: Vec<R>,
    mut judge: R,
) {
    let terms = registers.len() as u64;
    let accepted = watch::Sender::new(0);
    let mut running = Vec::new();
    for (number, register) in (1..).zip(registers) {
        let lease = LeaseName::new("nightly").expect("a valid name");
        let term = Term::new(lease, FencingToken::new(number).expect("a valid token"));
        let writes_max = if number == terms {
            WRITES_PER_TERM
        } else {
            u64::MAX
        };
        let (fence, resource, accepted) = (Arc::clone(&fence), resource.clone(), accepted.clone());
        running.push(tokio::spawn(async move {
            let so_far = (number - 1) * WRITES_PER_TERM;
            let mut all = accepted.subscribe();
            all.wait_for(|all| *all >= so_far).await.expect("it is sent to");
            tokio::time::sleep(PHASE * u32::try_from(number % PHASES).expect("it is little")).await;
            lead(fence, &resource, &term, register, &accepted, writes_max).await
        }));
    }
    let (mut written, mut refused) = (0, 0);
    for term in running {
        let ended = term.await.expect("a term ends");
        written += ended.accepted;
        refused += u64::from(ended.refused);
    }
    let history = judge.history().await;
    for (index, (token, read)) in (0..).zip(&history) {
        assert_eq!(
            *read, index,
            "write {index}, of term {token}, has lost the one before it: {history:?}"
        );
    }
    assert!(
        history.is_sorted_by_key(|(token, _)| *token),
        "an older term wrote after a later one: {history:?}"
    );
    assert_eq!(
        history.len() as u64,
        written,
        "confirmed and not there, or the reverse"
    );
    assert_eq!(judge.read().await, written);
    assert!(
        refused > 0,
        "no write was refused after a claim: this shows nothing of {terms} terms"
    );
}

/// Claims, and then reads and writes until a later term has claimed, or until this many writes were accepted.
async fn lead<R: Register>(
    fence: Arc<dyn Fence>,
    resource: &ResourceName,
    term: &Term,
    mut register: R,
    accepted: &watch::Sender<u64>,
    writes_max: u64,
) -> Ended {
    let mut ended = Ended {
        accepted: 0,
        refused: false,
    };
    let mut claimed = false;
    for _try in 0..TRIES_MAX {
        let outcome = if claimed {
            let read = register.read().await;
            register.write(term, read).await
        } else {
            fence.claim(resource, term).await.map(drop)
        };
        match outcome {
            Ok(()) if claimed => {
                ended.accepted += 1;
                accepted.send_modify(|all| *all += 1);
            }
            Ok(()) => claimed = true,
            Err(FenceError::Stale { .. }) => {
                ended.refused = claimed;
                return ended;
            }
            // Nothing was changed, or the claim is made again.
            Err(FenceError::Store(error)) if error.fault == Fault::Busy => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => panic!("term {}: {error}", term.token),
        }
        if ended.accepted >= writes_max {
            return ended;
        }
    }
    assert!(
        claimed,
        "term {}: the store was busy {TRIES_MAX} times",
        term.token
    );
    ended
}
