//! The gate: who is inside beside whom, for how long a later term waits, and what outlives the process.
use crate::common::{A_WHILE, Counting, LONG, Marks, SHORT, ledger, nightly, term, token};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::{Bump, Fault, Fence, FencingToken, LeaseName, ResourceName, Term};
use tenure_http::{Gate, Refusal};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

fn stale(refused: u64, mark: u64) -> Refusal {
    Refusal::Stale {
        resource: ledger(),
        token: token(refused),
        mark: token(mark),
    }
}

#[tokio::test]
async fn later_term_waits_until_the_older_ones_have_left() {
    let marks = Marks::new();
    let gate = Arc::new(marks.gate());
    let first = gate.admit(&ledger(), &term(1)).await.unwrap();
    let second = gate.admit(&ledger(), &term(1)).await.unwrap();
    let later = tokio::spawn({
        let gate = gate.clone();
        async move { gate.admit(&ledger(), &term(2)).await }
    });
    timeout(LONG, first.superseded()).await.unwrap();
    // It has claimed, so nobody else of the old term gets in, and it is not inside itself.
    assert_eq!(gate.admit(&ledger(), &term(1)).await.unwrap_err(), stale(1, 2));
    drop(first);
    sleep(A_WHILE).await;
    assert!(!later.is_finished());
    drop(second);
    let later = timeout(LONG, later).await.unwrap().unwrap().unwrap();
    assert_eq!((later.term(), later.is_superseded()), (&term(2), false));
}

#[tokio::test]
async fn clone_of_an_admission_keeps_a_later_term_waiting() {
    let marks = Marks::new();
    let gate = marks.gate();
    let admission = gate.admit(&ledger(), &term(1)).await.unwrap();
    let clone = admission.clone();
    drop(admission);
    let gate = gate.wait_at_most(SHORT);
    let refused = gate.admit(&ledger(), &term(2)).await.unwrap_err();
    assert!(
        matches!(refused, Refusal::OlderInside { inside: 1, .. }),
        "{refused}"
    );
    drop(clone);
    gate.admit(&ledger(), &term(2)).await.unwrap();
}

#[tokio::test]
async fn wait_is_bounded_and_the_mark_stays_raised() {
    let marks = Marks::new();
    let gate = marks.gate();
    let inside = gate.admit(&ledger(), &term(1)).await.unwrap();
    let gate = gate.wait_at_most(SHORT);
    let refused = timeout(LONG, gate.admit(&ledger(), &term(2))).await.unwrap();
    let expected = Refusal::OlderInside {
        resource: ledger(),
        token: token(2),
        inside: 1,
        waited: SHORT,
    };
    assert_eq!(refused.unwrap_err(), expected);
    assert_eq!(gate.admit(&ledger(), &term(1)).await.unwrap_err(), stale(1, 2));
    drop(inside);
    gate.admit(&ledger(), &term(2)).await.unwrap();
}

/// A service that has a bound of its own around the layer.
#[tokio::test]
async fn gate_that_is_to_wait_for_ever_lets_terms_in_and_waits() {
    let marks = Marks::new();
    let gate = Arc::new(marks.gate().wait_at_most(Duration::MAX));
    let first = gate.admit(&ledger(), &term(1)).await.unwrap();
    let later = tokio::spawn({
        let gate = gate.clone();
        async move { gate.admit(&ledger(), &term(2)).await }
    });
    timeout(LONG, first.superseded()).await.unwrap();
    sleep(A_WHILE).await;
    assert!(!later.is_finished());
    drop(first);
    timeout(LONG, later).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn term_that_waits_is_refused_once_a_later_one_claims() {
    let marks = Marks::new();
    let gate = Arc::new(marks.gate());
    let inside = gate.admit(&ledger(), &term(1)).await.unwrap();
    let wait_for = |number| {
        let gate = gate.clone();
        tokio::spawn(async move { gate.admit(&ledger(), &term(number)).await })
    };
    let second = wait_for(2);
    timeout(LONG, inside.superseded()).await.unwrap();
    let third = wait_for(3);
    let refused = timeout(LONG, second).await.unwrap().unwrap();
    assert_eq!(refused.unwrap_err(), stale(2, 3));
    drop(inside);
    timeout(LONG, third).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn mark_outlives_the_gate() {
    let marks = Marks::new();
    let gate = marks.gate();
    gate.admit(&ledger(), &term(2)).await.unwrap();
    drop(gate);
    let restarted = marks.gate();
    assert_eq!(
        restarted.admit(&ledger(), &term(1)).await.unwrap_err(),
        stale(1, 2)
    );
    restarted.admit(&ledger(), &term(2)).await.unwrap();
}

#[tokio::test]
async fn resources_do_not_wait_for_each_other() {
    let marks = Marks::new();
    let gate = marks.gate();
    let _inside = gate.admit(&ledger(), &term(1)).await.unwrap();
    let other = ResourceName::new("other").unwrap();
    timeout(LONG, gate.admit(&other, &term(9)))
        .await
        .unwrap()
        .unwrap();
    gate.admit(&ledger(), &term(1)).await.unwrap();
}

/// Two leases may grant one number; an operator's bump is nobody's claim.
#[tokio::test]
async fn number_of_the_mark_alone_lets_nobody_in() {
    let marks = Marks::new();
    let gate = marks.gate();
    gate.admit(&ledger(), &term(5)).await.unwrap();
    let hourly = Term::new(LeaseName::new("hourly").unwrap(), token(5));
    let refused = gate.admit(&ledger(), &hourly).await.unwrap_err();
    let expected = Refusal::Foreign {
        resource: ledger(),
        token: token(5),
        lease: hourly.lease,
        owner: nightly(),
    };
    assert_eq!(refused, expected);
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    let bumped = marks.fence().bump(&bump).await.unwrap().token.number();
    drop(gate);
    let gate = marks.gate();
    assert_eq!(
        gate.admit(&ledger(), &term(5)).await.unwrap_err(),
        stale(5, bumped)
    );
    gate.admit(&ledger(), &term(bumped + 1)).await.unwrap();
}

#[tokio::test]
async fn token_that_cannot_exist_yet_closes_nothing() {
    let marks = Marks::new();
    let gate = marks.gate();
    let refused = gate
        .admit(&ledger(), &term(FencingToken::MAX.number()))
        .await
        .unwrap_err();
    assert!(matches!(refused, Refusal::Future { .. }), "{refused}");
    gate.admit(&ledger(), &term(1)).await.unwrap();
}

#[tokio::test]
async fn nobody_new_gets_in_while_the_fence_does_not_answer() {
    let marks = Marks::new();
    let gate = marks.gate();
    let inside = gate.admit(&ledger(), &term(1)).await.unwrap();
    let gate = gate.wait_at_most(A_WHILE);
    let blocker = marks.connection();
    blocker.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let refused = timeout(LONG, gate.admit(&ledger(), &term(2))).await.unwrap();
    let Err(Refusal::Unavailable { error, .. }) = &refused else {
        panic!("{refused:?}")
    };
    assert!(matches!(error.fault, Fault::TimedOut | Fault::Busy), "{error:?}");
    // Nobody was let in by that claim, so the term that has the mark goes on, without asking the fence.
    assert!(!inside.is_superseded());
    gate.admit(&ledger(), &term(1)).await.unwrap();
    drop(inside);
    blocker.execute_batch("ROLLBACK").unwrap();
    let gate = gate.wait_at_most(LONG);
    gate.admit(&ledger(), &term(2)).await.unwrap();
}

#[tokio::test]
async fn fence_that_fails_lets_nobody_in() {
    let marks = Marks::new();
    let gate = marks.gate();
    marks
        .connection()
        .execute_batch("DROP TABLE tenure_fence")
        .unwrap();
    let refused = gate.admit(&ledger(), &term(1)).await.unwrap_err();
    let Refusal::Unavailable { error, .. } = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!(error.fault, Fault::Invalid, "{error}");
}

#[tokio::test]
async fn line_at_the_gate_is_bounded_and_a_cancelled_wait_gives_its_place_back() {
    let marks = Marks::new();
    let gate = Arc::new(marks.gate().wait_at_most(LONG));
    let inside = gate.admit(&ledger(), &term(1)).await.unwrap();
    let mut waiting = JoinSet::new();
    let waiters: Vec<_> = (0..=1024)
        .map(|_| {
            let gate = gate.clone();
            waiting.spawn(async move { gate.admit(&ledger(), &term(2)).await.map(drop) })
        })
        .collect();
    // One more than the line has places, so one is refused, and at once.
    let first = timeout(LONG, waiting.join_next_with_id()).await.unwrap();
    let (refused, outcome) = first.unwrap().unwrap();
    assert_eq!(outcome, Err(Refusal::Crowded { resource: ledger() }));
    let crowded = timeout(LONG, gate.admit(&ledger(), &term(2))).await.unwrap();
    assert_eq!(crowded.unwrap_err(), Refusal::Crowded { resource: ledger() });
    waiters
        .iter()
        .find(|waiter| waiter.id() != refused)
        .unwrap()
        .abort();
    let cancelled = timeout(LONG, waiting.join_next()).await.unwrap().unwrap();
    assert!(cancelled.unwrap_err().is_cancelled());
    let short = timeout(A_WHILE, gate.admit(&ledger(), &term(2))).await;
    assert!(
        short.is_err(),
        "it waits in the place that has become free: {short:?}"
    );
    drop(inside);
    while let Some(waited) = timeout(LONG, waiting.join_next()).await.unwrap() {
        waited.unwrap().unwrap();
    }
}

#[tokio::test]
async fn requests_inside_are_bounded_and_one_that_ends_gives_its_place_back() {
    let marks = Marks::new();
    let gate = marks.gate();
    let mut inside = Vec::new();
    let refused = loop {
        match gate.admit(&ledger(), &term(1)).await {
            Ok(admission) => inside.push(admission),
            Err(refused) => break refused,
        }
        assert!(inside.len() <= 10_000, "there is no bound");
    };
    assert_eq!(refused, Refusal::Crowded { resource: ledger() });
    inside.pop();
    gate.admit(&ledger(), &term(1)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_requests_of_a_term_make_one_claim() {
    let marks = Marks::new();
    let fence = Arc::new(Counting::over(marks.fence()));
    let gate = Arc::new(Gate::new(fence.clone()));
    let requests: Vec<_> = (0..500)
        .map(|_| {
            let gate = gate.clone();
            tokio::spawn(async move { gate.admit(&ledger(), &term(7)).await.map(drop) })
        })
        .collect();
    for request in requests {
        request.await.unwrap().unwrap();
    }
    assert_eq!(fence.claims.load(Ordering::SeqCst), 1);
}

/// How many must have been admitted, and how many refused, to show anything.
const SHOWN_MIN: usize = 200;

/// Rounds of each task, and for how long it makes more of them where a busy disk lets few claims through.
const ROUNDS_MIN: usize = 60;
const ROUNDS_TIME_MAX: Duration = Duration::from_secs(120);

/// Whatever the order in which 64 tasks come, go, wait and give up: the terms inside are of one token, and
/// tokens inside never go back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_older_term_is_inside_beside_or_after_a_later_one() {
    let marks = Marks::new();
    let gate = Arc::new(marks.gate());
    let next = Arc::new(AtomicU64::new(1));
    // The token in the upper part, how many are inside in the lower 16 bits.
    let inside = Arc::new(AtomicU64::new(0));
    let (admitted, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let over = Instant::now() + ROUNDS_TIME_MAX;
    let task = |seed| {
        let (gate, next, inside) = (gate.clone(), next.clone(), inside.clone());
        let (admitted, refused) = (admitted.clone(), refused.clone());
        async move {
            let mut dice = fastrand::Rng::with_seed(seed);
            let are_enough =
                || [&admitted, &refused].map(|count| count.load(Ordering::SeqCst) > SHOWN_MIN) == [true; 2];
            for round in 0.. {
                if round >= ROUNDS_MIN && (are_enough() || Instant::now() >= over) {
                    break;
                }
                // Mostly tokens that somebody has already, now and then a new one.
                let latest = next.load(Ordering::SeqCst);
                let number = if dice.u8(0..80) == 0 {
                    next.fetch_add(1, Ordering::SeqCst) + 1
                } else {
                    latest.saturating_sub(dice.u64(0..3)).max(1)
                };
                let resource = ledger();
                let term = term(number);
                let admission = gate.admit(&resource, &term);
                let patience = Duration::from_micros(dice.u64(0..60_000));
                let admission = match timeout(patience, admission).await {
                    Ok(Ok(admission)) => admission,
                    Ok(Err(Refusal::Stale { token, mark, .. })) => {
                        assert!(token < mark);
                        refused.fetch_add(1, Ordering::SeqCst);
                        continue;
                    }
                    Ok(Err(refusal)) => panic!("{refusal}"),
                    Err(_) => continue,
                };
                let before = inside
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |word| {
                        let (token, count) = (word >> 16, word & 0xffff);
                        (number > token && count == 0 || number == token)
                            .then_some((number << 16) + count + 1)
                    })
                    .unwrap_or_else(|word| {
                        panic!(
                            "{number} got in beside or after {}, with {} inside",
                            word >> 16,
                            word & 0xffff
                        )
                    });
                assert!(before >> 16 <= number);
                admitted.fetch_add(1, Ordering::SeqCst);
                sleep(Duration::from_micros(dice.u64(0..800))).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                drop(admission);
            }
        }
    };
    let tasks: Vec<_> = (0..64).map(|seed| tokio::spawn(task(seed))).collect();
    for task in tasks {
        timeout(ROUNDS_TIME_MAX + LONG, task).await.unwrap().unwrap();
    }
    let (admitted, refused) = (admitted.load(Ordering::SeqCst), refused.load(Ordering::SeqCst));
    assert!(
        admitted > SHOWN_MIN && refused > SHOWN_MIN,
        "{admitted} admitted, {refused} refused: too few to show anything"
    );
}
