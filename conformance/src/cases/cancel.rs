//! Futures that are dropped half-way: applied or not, but nothing is left locked, and nothing haunts.

use crate::{Contender, Fixture};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tenure_core::{Acquired, Ask, Page, Released, Renewed};
use tokio::time::{Instant, sleep, timeout};

/// Requests that each case drops, each at another point.
const DROPS: usize = 24;

/// Longest time in which a store that holds no lock answers, on a loaded machine.
const UNLOCKED: Duration = Duration::from_secs(20);

/// Where a request is dropped.
#[derive(Clone, Copy, Debug)]
enum Point {
    /// After it was polled this often.
    Polls(usize),
    /// After this time.
    Time(Duration),
}

/// Points spread over the time that a request takes here and now: every second one by polls, because a timer
/// is too coarse for a store on the same machine.
async fn points(fixture: &Fixture) -> Vec<Point> {
    let probe = fixture.contender("probe", &fixture.name());
    let began = Instant::now();
    fixture.first().take(&probe).await;
    let latency = began.elapsed().max(Duration::from_micros(200));
    let step = latency.mul_f64(1.5 / DROPS as f64);
    (0..DROPS)
        .map(|number| {
            if number % 2 == 0 {
                Point::Polls(number / 2 % 6 + 1)
            } else {
                Point::Time(step * u32::try_from(number).expect("a small number"))
            }
        })
        .collect()
}

/// Runs a request until `point`, then drops it.
async fn drop_at<T>(point: Point, request: impl Future<Output = T>) -> Option<T> {
    match point {
        Point::Time(after) => timeout(after, request).await.ok(),
        Point::Polls(polls) => {
            let mut request = pin!(request);
            let mut left = polls;
            poll_fn(|context| match request.as_mut().poll(context) {
                Poll::Ready(answer) => Poll::Ready(Some(answer)),
                Poll::Pending => {
                    left -= 1;
                    if left == 0 {
                        Poll::Ready(None)
                    } else {
                        Poll::Pending
                    }
                }
            })
            .await
        }
    }
}

/// Fails if a store does not answer although nobody holds it up.
async fn unlocked<T>(what: &str, point: Point, answer: impl Future<Output = T>) -> T {
    match timeout(UNLOCKED, answer).await {
        Ok(answer) => answer,
        Err(_) => panic!("{what} got no answer within {UNLOCKED:?} after a request was dropped at {point:?}"),
    }
}

/// A request to take a lease that was dropped is resolved by asking again: one term, one token.
pub async fn dropped_acquire_is_resolved_by_asking_again(fixture: &Fixture) {
    for point in points(fixture).await {
        let contender = fixture.contender("ada", &fixture.name());
        let request = contender.acquire();
        let answered = drop_at(point, fixture.first().store().acquire(&request)).await;
        let grant = unlocked("the same attempt", point, fixture.first().take(&contender)).await;
        if let Some(answer) = answered {
            let Ok(Acquired::Granted(first)) = answer else {
                panic!("{contender} should have been granted the lease, but got {answer:?}")
            };
            assert_eq!(first.token, grant.token, "one attempt, one token");
        }
        let lease = unlocked("a reader", point, fixture.second().lease(&contender.name)).await;
        assert_eq!(
            (lease.token, lease.terms),
            (grant.token, 1),
            "dropped at {point:?}"
        );
        let rival = fixture.contender("bob", &contender.name);
        unlocked("a rival", point, fixture.second().be_refused(&rival)).await;
    }
}

/// A dropped request that is applied late must not create a lease that nobody knows of.
pub async fn dropped_acquire_never_haunts(fixture: &Fixture) {
    let mut released = Vec::new();
    for point in points(fixture).await {
        let contender = fixture.contender("ada", &fixture.name());
        let request = contender.acquire();
        let _dropped = drop_at(point, fixture.first().store().acquire(&request)).await;
        let grant = unlocked("the same attempt", point, fixture.second().take(&contender)).await;
        let release = contender.release(grant.token);
        unlocked("a release", point, fixture.second().vacate(&release)).await;
        released.push((point, contender, grant));
    }
    sleep(Duration::from_millis(100)).await;
    for (point, contender, grant) in released {
        let lease = fixture.first().lease(&contender.name).await;
        assert!(
            lease.released && lease.token == grant.token,
            "a request dropped at {point:?} came back after the release: {lease:?}"
        );
    }
}

/// A renewal that was dropped leaves the term as it was or extended, and the next renewal is answered.
pub async fn dropped_renewal_leaves_the_term(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&contender).await;
    let requests = [contender.renew(grant.token)];
    for point in points(fixture).await {
        let _dropped = drop_at(point, fixture.first().store().renew(&requests)).await;
        let answer = unlocked("a renewal", point, fixture.second().renew(&requests[0])).await;
        assert!(
            matches!(answer, Renewed::Extended { .. }),
            "after a renewal dropped at {point:?}: {answer:?}"
        );
    }
}

/// A release that was dropped is resolved by releasing again.
pub async fn dropped_release_is_resolved_by_releasing_again(fixture: &Fixture) {
    for point in points(fixture).await {
        let contender = fixture.contender("ada", &fixture.name());
        let grant = fixture.first().take(&contender).await;
        let requests = [contender.release(grant.token)];
        let _dropped = drop_at(point, fixture.first().store().release(&requests)).await;
        let answer = unlocked("a release", point, fixture.second().release(&requests[0])).await;
        assert_eq!(answer, Released::Vacated, "dropped at {point:?}");
        let rival = fixture.contender("bob", &contender.name);
        unlocked("a rival", point, fixture.first().take(&rival)).await;
    }
}

/// Dropped requests of every other kind leave nothing locked either.
pub async fn dropped_reads_and_wishes_lock_nothing(fixture: &Fixture) {
    let mut contender = fixture.contender("ada", &fixture.name());
    let mut grant = fixture.first().take(&contender).await;
    let page = Page::first(fixture.unique(), 10);
    for point in points(fixture).await {
        let ask = Ask {
            name: contender.name.clone(),
            token: grant.token,
        };
        let store = fixture.first().store();
        let _dropped = drop_at(point, store.get(&contender.name)).await;
        let _dropped = drop_at(point, store.list(&page)).await;
        let _dropped = drop_at(point, store.ask(&ask)).await;
        let _dropped = drop_at(point, store.examine()).await;
        let _dropped = drop_at(
            point,
            store.watch(
                &tenure_core::Scope::Name(ask.name.clone()),
                tenure_core::Interest::Everything,
            ),
        )
        .await;
        contender = next_attempt(&contender);
        grant = unlocked("a writer", point, fixture.second().take(&contender)).await;
    }
}

fn next_attempt(contender: &Contender) -> Contender {
    contender.at_attempt(contender.attempt.next().number())
}
