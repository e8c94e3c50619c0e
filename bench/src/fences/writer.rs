//! The program of a leader that is frozen: claims, writes until it is refused, and then goes on trying.

use super::kind::Kind;
use super::place::open;
use super::register::{Outcome, term};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Longest time that a leader goes on without a refusal: by then it was succeeded or the run has failed, so
/// that whatever is accepted then is counted as stale, and a fence that refuses nothing is found out.
const LEADS_MAX_NS: i64 = 90_000_000_000;

/// Tasks that go on when the leader was refused.
const TASKS: usize = 16;

/// What a leader has counted, as it tells it in one line.
#[derive(Clone, Copy, Default, Debug)]
pub struct Told {
    pub refused: u64,
    /// After the first refusal, or when it was succeeded long ago.
    pub accepted: u64,
    /// Of which nothing was decided, or nobody knows.
    pub undecided: u64,
    /// When the last write began that was accepted before those.
    pub last_accepted_ns: i64,
}

impl Told {
    pub fn parse(line: &str) -> Self {
        let numbers: Vec<&str> = line.split(' ').skip(1).step_by(2).collect();
        let [refused, accepted, undecided, last] = numbers[..] else {
            panic!("a leader told \"{line}\"")
        };
        Self {
            refused: refused.parse().unwrap(),
            accepted: accepted.parse().unwrap(),
            undecided: undecided.parse().unwrap(),
            last_accepted_ns: last.parse().unwrap(),
        }
    }
}

/// Time since the machine's start, the same for all its processes.
pub fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

pub async fn write_until_refused(kind: Kind, address: &str, token: u64, stale_writes: u64) {
    let (register, term) = (open(kind, address).await, term(token));
    register.claim(&term).await.unwrap();
    let mut read = register.read(&term).await.unwrap();
    let mut last_accepted_ns = 0;
    println!("writing");
    let leads_since = now_ns();
    let first_refused = loop {
        let began = now_ns();
        if began - leads_since > LEADS_MAX_NS {
            break 0;
        }
        match register.write(&term, read).await {
            Outcome::Accepted => (read, last_accepted_ns) = (read + 1, began),
            Outcome::Refused => break 1,
            Outcome::Undecided => read = register.read(&term).await.unwrap_or(read),
        }
    };
    let count = Arc::new([first_refused, 0, 0].map(AtomicU64::new));
    let tasks = (0..TASKS).map(|_| {
        let (register, term, count) = (Arc::clone(&register), term.clone(), Arc::clone(&count));
        tokio::spawn(async move {
            let [refused, accepted, undecided] = &*count;
            while refused.load(Ordering::SeqCst) + accepted.load(Ordering::SeqCst) < stale_writes {
                let counter = match register.write(&term, read).await {
                    Outcome::Refused => refused,
                    Outcome::Accepted => accepted,
                    Outcome::Undecided => undecided,
                };
                counter.fetch_add(1, Ordering::SeqCst);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let [refused, accepted, undecided] = &*count;
    println!("refused {refused:?} accepted {accepted:?} undecided {undecided:?} last {last_accepted_ns}");
}
