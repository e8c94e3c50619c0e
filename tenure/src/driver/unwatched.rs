//! While a lease is not watched that should be: when the watch is begun anew, and when that is told.

use crate::clock;
use crate::sync::{select, sleep, watch};
use std::future::pending;
use std::time::Duration;
use tenure_core::{Fault, Moment, Reply, Scope, StoreError};

/// Longest pause before a broken watch is started again.
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(10);

/// How long no watch may last before that is told.
const TOLD_AFTER: Duration = Duration::from_secs(60);

/// Tells watches that broke that the store answers again.
pub(super) struct Recoveries {
    /// How many so far.
    count: watch::Sender<u64>,
    is_away: bool,
}

impl Recoveries {
    pub(super) fn new() -> Self {
        Self {
            count: watch::Sender::new(0),
            is_away: false,
        }
    }

    /// A request was answered, or given up. The first that is answered after one that was not is a recovery.
    pub(super) fn note(&mut self, reply: Option<&Reply>) {
        let is_away = is_away(reply);
        if std::mem::replace(&mut self.is_away, is_away) && !is_away {
            self.count.send_if_modified(|count| {
                *count += 1;
                true
            });
        }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }
}

/// Whether nobody answered who is to be asked, or let anybody in.
fn is_away(reply: Option<&Reply>) -> bool {
    let is_away = |error: &StoreError| {
        matches!(
            error.fault,
            Fault::Unreachable | Fault::TimedOut | Fault::AnotherStore | Fault::Unauthenticated
        )
    };
    match reply {
        None => true,
        Some(Reply::Acquired(answer)) => answer.as_ref().is_err_and(is_away),
        Some(Reply::Looked(answer)) => answer.as_ref().is_err_and(is_away),
        Some(Reply::Renewed(answers)) => answers.iter().any(|answer| answer.as_ref().is_err_and(is_away)),
        Some(Reply::Released(answers)) => answers.iter().any(|answer| answer.as_ref().is_err_and(is_away)),
    }
}

/// The pauses before a watch that broke is begun anew: each is twice the one before, and ends when the store
/// is seen to answer again.
pub(super) struct Pauses {
    min: Duration,
    next: Duration,
    /// `None` where no requests are made beside the watch.
    recoveries: Option<watch::Receiver<u64>>,
}

impl Pauses {
    pub(super) fn new(min: Duration, recoveries: Option<watch::Receiver<u64>>) -> Self {
        let min = min.min(PAUSE_MAX);
        Self {
            min,
            next: min,
            recoveries,
        }
    }

    /// There is a watch. That the store has come back before that is nothing new when it breaks.
    pub(super) fn watched(&mut self) {
        if let Some(recoveries) = &mut self.recoveries {
            let _seen = *recoveries.borrow_and_update();
        }
    }

    /// The watch was of use: the next pause is the first.
    pub(super) fn begin_anew(&mut self) {
        self.next = self.min;
    }

    pub(super) async fn pass(&mut self) {
        let (pause, recoveries) = (self.next, &mut self.recoveries);
        self.next = select! {
            biased;
            () = recovery(recoveries) => self.min,
            () = sleep(pause) => (pause * 2).min(PAUSE_MAX),
        };
    }
}

async fn recovery(recoveries: &mut Option<watch::Receiver<u64>>) {
    let told = match recoveries {
        Some(recoveries) => recoveries.changed().await,
        None => pending().await,
    };
    if told.is_err() {
        // The driver is gone, and soon so is who waits here.
        pending().await
    }
}

/// Since when no watch has lasted.
#[derive(Default)]
pub(super) struct Absence {
    since: Option<Moment>,
    is_told: bool,
}

impl Absence {
    /// A watch could not be begun, or broke without having been of use.
    pub(super) fn note(&mut self, scope: &Scope, error: &StoreError) {
        if self.is_to_be_told(clock::now()) {
            let lease = match scope {
                Scope::Name(name) => name.as_str(),
                Scope::Prefix(prefix) => prefix,
            };
            tracing::warn!(target: "tenure", lease, %error, "Not watched for a minute");
        } else {
            tracing::debug!(?scope, %error, "Watch failed");
        }
    }

    /// Once, until a watch has lasted.
    fn is_to_be_told(&mut self, now: Moment) -> bool {
        let since = *self.since.get_or_insert(now);
        !self.is_told && now.since(since) >= TOLD_AFTER && {
            self.is_told = true;
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Absence, PAUSE_MAX, Pauses, Recoveries, TOLD_AFTER};
    use std::time::Duration;
    use tenure_core::{Acquired, Fault, Moment, Reply, StoreError};
    use tokio::time::Instant;

    const MIN: Duration = Duration::from_secs(1);

    fn failed(fault: Fault) -> Reply {
        Reply::Acquired(Err(StoreError::not_applied(fault, "told to fail")))
    }

    async fn pass(pauses: &mut Pauses) -> Duration {
        let began = Instant::now();
        pauses.pass().await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn pause_before_a_watch_is_begun_anew_ends_when_the_store_answers_again() {
        let mut recoveries = Recoveries::new();
        let mut pauses = Pauses::new(MIN, Some(recoveries.subscribe()));
        let answered = Reply::Acquired(Ok(Acquired::Superseded));
        // Nothing was amiss before.
        recoveries.note(Some(&answered));
        for seconds in [1, 2, 4, 8, 10, 10] {
            assert_eq!(pass(&mut pauses).await.as_secs(), seconds);
        }
        let faults = [Fault::Unreachable, Fault::AnotherStore, Fault::Unauthenticated];
        for passing in faults.map(Some).into_iter().chain([None]) {
            recoveries.note(passing.map(failed).as_ref());
            recoveries.note(Some(&answered));
            assert_eq!(pass(&mut pauses).await, Duration::ZERO);
            // Watches that break while all else is well are begun ever more seldom.
            recoveries.note(Some(&answered));
            recoveries.note(Some(&failed(Fault::Busy)));
            recoveries.note(Some(&answered));
            assert_eq!(pass(&mut pauses).await, MIN);
            pauses.begin_anew();
        }
        recoveries.note(None);
        recoveries.note(Some(&answered));
        pauses.watched();
        assert_eq!(pass(&mut pauses).await, MIN, "it was back before the watch began");
        drop(recoveries);
        assert_eq!(pass(&mut pauses).await, 2 * MIN);
        assert!(PAUSE_MAX < TOLD_AFTER, "the first that fails in time is told");
    }

    #[test]
    fn absence_of_a_watch_is_told_once_after_a_minute_and_again_after_one_that_lasted() {
        let began = Moment::from_millis(1_000_000);
        let mut absence = Absence::default();
        for _time in 0..2 {
            assert!(!absence.is_to_be_told(began));
            assert!(!absence.is_to_be_told(began.after(TOLD_AFTER - MIN)));
            assert!(absence.is_to_be_told(began.after(TOLD_AFTER)));
            assert!(!absence.is_to_be_told(began.after(TOLD_AFTER * 10)));
            absence = Absence::default();
        }
    }
}
