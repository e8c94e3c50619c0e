//! Hints of a store's watches that it is time to look.

use std::time::Duration;
use tenure::contract::{Answer, Interest, Scope, Watch};
use tenure::{SharedStore, StoreError};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

/// Shortest time from one look to the next. Each asks for all that was chosen, which may be every lock of a
/// store.
const LOOKS_APART: Duration = Duration::from_millis(100);

/// Pause before a watch that is over is started again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// One that waits stands for all that come meanwhile.
const HINTS_WAITING: usize = 1;

/// The hints of some watches.
pub(super) struct Hints(mpsc::Receiver<()>);

impl Hints {
    /// Watches for as long as the store can tell of changes.
    pub(super) fn follow(store: &SharedStore, scopes: Vec<Scope>) -> Self {
        let (sender, hints) = mpsc::channel(HINTS_WAITING);
        for scope in scopes {
            let (store, sender) = (SharedStore::clone(store), sender.clone());
            tokio::spawn(async move { pass_on(|| store.watch(&scope, Interest::Everything), &sender).await });
        }
        Self(hints)
    }

    /// Waits for the next hint, from a look on, and at most for `pause`; never so short that looks follow
    /// without a rest.
    pub(super) async fn wait(&mut self, pause: Duration) {
        let looked = Instant::now();
        tokio::select! {
            Some(()) = self.0.recv() => {}
            () = sleep(pause) => {}
        }
        sleep_until(looked + LOOKS_APART).await;
        let _that_look_sees_it = self.0.try_recv();
    }
}

/// Passes on what a watch tells, and starts the next where one is over.
async fn pass_on<'a>(
    mut begin: impl FnMut() -> Answer<'a, Result<Box<dyn Watch>, StoreError>>,
    hints: &mpsc::Sender<()>,
) {
    // One that finds another waiting is seen by the same look.
    let hint = || {
        let _ = hints.try_send(());
    };
    loop {
        match begin().await {
            Ok(mut watch) => {
                // Of what changed before it was in place it tells nothing.
                hint();
                while watch.next().await.is_ok() {
                    hint();
                }
            }
            Err(error) if error.fault.is_final() => return,
            Err(_) => {}
        }
        sleep(RETRY_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::contract::{Fault, WatchEvent};

    /// Comes as fast as the clock ticks.
    #[tokio::test(start_paused = true)]
    async fn looks_are_apart_however_many_hints_there_are() {
        let (sender, hints) = mpsc::channel(HINTS_WAITING);
        tokio::spawn(async move {
            loop {
                let _ = sender.try_send(());
                sleep(Duration::from_millis(1)).await;
            }
        });
        let (mut hints, began) = (Hints(hints), Instant::now());
        for _look in 0..50 {
            hints.wait(Duration::from_secs(10)).await;
        }
        assert!(began.elapsed() >= LOOKS_APART * 50, "{:?}", began.elapsed());
    }

    /// One that tells nothing, and is over at once or never.
    struct Silent {
        is_over: bool,
    }

    impl Watch for Silent {
        fn next(&mut self) -> Answer<'_, Result<WatchEvent, StoreError>> {
            let is_over = self.is_over;
            Box::pin(async move {
                if !is_over {
                    std::future::pending::<()>().await;
                }
                Err(StoreError::not_applied(Fault::Unreachable, "it broke"))
            })
        }
    }

    /// What changed since the last look, and before the watch was in place, is told by none.
    #[tokio::test(start_paused = true)]
    async fn every_watch_that_begins_is_a_hint() {
        let (sender, hints) = mpsc::channel(HINTS_WAITING);
        let mut begun = 0;
        let begin = move || -> Answer<'_, Result<Box<dyn Watch>, StoreError>> {
            begun += 1;
            let is_over = begun < 3;
            Box::pin(async move {
                sleep(Duration::from_secs(3)).await;
                Ok(Box::new(Silent { is_over }) as Box<dyn Watch>)
            })
        };
        tokio::spawn(async move { pass_on(begin, &sender).await });
        let (mut hints, began) = (Hints(hints), Instant::now());
        for second in [3, 7, 11, 71] {
            hints.wait(Duration::from_secs(60)).await;
            assert_eq!(began.elapsed().as_secs(), second);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_hint_after_a_rest_is_followed_at_once_and_none_is_lost_in_a_rest() {
        let (sender, hints) = mpsc::channel(HINTS_WAITING);
        let mut hints = Hints(hints);
        tokio::spawn(async move {
            for pause in [500, 50, 500] {
                sleep(Duration::from_millis(pause)).await;
                let _ = sender.try_send(());
            }
            std::future::pending::<()>().await;
        });
        let began = Instant::now();
        for at in [500, 600, 1050, 11_050] {
            hints.wait(Duration::from_secs(10)).await;
            assert_eq!(began.elapsed().as_millis() / 10, at / 10);
        }
    }
}
