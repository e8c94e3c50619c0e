//! Giving the lease of a dead supervisor back.

use super::message::Begin;
use std::time::Duration;
use tenure::contract::{Incarnation, Occupancy, Release};
use tenure::{Registry, SharedStore, StoreError};

/// How long it is tried for: after that the lease expires by itself, or is another's already.
const TIME_MAX: Duration = Duration::from_secs(30);

/// How long one try may take: a connection that leads nowhere any more must not use up all the time.
const TRY_MAX: Duration = Duration::from_secs(5);

/// Pauses between tries, each twice as long as the one before it.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Gives the term back that `begin` tells of, if the store still has it. Only when nothing of its work is
/// left.
///
/// What killed the supervisor often ails the store, too: a try that fails is made again.
pub(super) async fn give_back(begin: &Begin) {
    until_told(|| tell(begin)).await;
}

/// Makes tries until one succeeds, or the time is over.
async fn until_told<Telling>(tell: impl Fn() -> Telling)
where
    Telling: Future<Output = Result<(), StoreError>>,
{
    let tries = async {
        let mut pause = PAUSE_MIN;
        while !matches!(tokio::time::timeout(TRY_MAX, tell()).await, Ok(Ok(()))) {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    };
    // Nobody is left to be told; the lease expires by itself where this fails.
    let _ = tokio::time::timeout(TIME_MAX, tries).await;
}

/// The store has been told, or had nothing to be told.
///
/// # Errors
/// The store did not answer.
async fn tell(begin: &Begin) -> Result<(), StoreError> {
    let store = Registry::connect(&begin.store).await?;
    let told = tell_store(&store, begin).await;
    // Closing an SQLite file as the last one costs two flushes of the disk.
    std::mem::forget(store);
    told
}

async fn tell_store(store: &SharedStore, begin: &Begin) -> Result<(), StoreError> {
    let Some(lease) = store.get(&begin.lease).await? else {
        return Ok(());
    };
    let incarnation = Incarnation::from_bits(begin.incarnation);
    let is_ours = lease.token == begin.token
        && lease.holder.incarnation == incarnation
        && lease.occupancy() == Occupancy::Held;
    if !is_ours {
        return Ok(());
    }
    let release = Release {
        name: lease.name,
        incarnation,
        token: lease.token,
        attempt: lease.attempt,
    };
    for answer in store.release(&[release]).await {
        // Refused if the term has passed on meanwhile.
        let _released = answer?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::until_told;
    use std::cell::RefCell;
    use std::time::Duration;
    use tenure::StoreError;
    use tenure::contract::Fault;
    use tokio::time::Instant;

    /// When each try was made, and when there were no more, of a store to which each try is such.
    async fn tries(answer: impl AsyncFn(usize) -> Result<(), StoreError>) -> (Vec<Duration>, Duration) {
        let (began, made) = (Instant::now(), RefCell::new(Vec::new()));
        until_told(|| async {
            let number = made.borrow().len();
            made.borrow_mut().push(began.elapsed());
            answer(number).await
        })
        .await;
        (made.into_inner(), began.elapsed())
    }

    fn refused() -> Result<(), StoreError> {
        Err(StoreError::not_applied(Fault::Unreachable, "away"))
    }

    /// The clock is the runtime's own, and goes on by what is waited for alone.
    #[tokio::test(start_paused = true)]
    async fn a_store_that_does_not_answer_is_asked_again_for_thirty_seconds_and_no_longer() {
        let longest = Duration::from_secs(5 + 2);
        let silent = tries(async |_| std::future::pending().await).await;
        let refusing = tries(async |_| refused()).await;
        for (made, ended) in [silent, refusing] {
            assert_eq!(ended, Duration::from_secs(30), "{made:?}");
            assert!(made.len() > 3, "{made:?}");
            let ends = made.iter().skip(1).chain([&ended]);
            let pauses: Vec<Duration> = made.iter().zip(ends).map(|(one, next)| *next - *one).collect();
            assert!(pauses.iter().all(|pause| *pause <= longest), "{made:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_answers_again_is_asked_no_more() {
        for needed in 0..5 {
            let (made, ended) = tries(async |number| match number {
                _ if number < needed => refused(),
                _ => Ok(()),
            })
            .await;
            assert_eq!(made.len(), needed + 1);
            assert_eq!(made.last(), Some(&ended));
        }
    }
}
