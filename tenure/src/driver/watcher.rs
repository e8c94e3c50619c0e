//! Keeps a watch on one lease: starts it again when it breaks, and says so.

use crate::registry::SharedStore;
use crate::sync::{mpsc, select, sleep, spawn};
use std::time::Duration;
use tenure_core::{Fault, LeaseName, Scope, WatchEvent};

/// Hints that may wait for the engine; a hint more makes it wait, nothing is lost.
const HINTS_WAITING: usize = 64;

/// Longest pause before a broken watch is started again.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Starts watching, `after` a while. The channel closes where the store cannot be watched.
pub(crate) fn start(
    store: &SharedStore,
    name: &LeaseName,
    after: Duration,
    pause_min: Duration,
) -> mpsc::Receiver<WatchEvent> {
    let (hints, receiver) = mpsc::channel(HINTS_WAITING);
    let (store, name) = (store.clone(), name.clone());
    spawn(async move {
        select! {
            biased;
            // Whoever listened is gone: so is the watch, whatever it waits for, and be it for the next event of
            // a lease to which nothing happens any more.
            () = hints.closed() => {}
            () = keep_watching(&store, &name, after, pause_min, &hints) => {}
        }
    });
    receiver
}

/// Ends where the store cannot be watched, or nobody listens.
async fn keep_watching(
    store: &SharedStore,
    name: &LeaseName,
    after: Duration,
    pause_min: Duration,
    hints: &mpsc::Sender<WatchEvent>,
) {
    let scope = Scope::Name(name.clone());
    sleep(after).await;
    let mut pause = pause_min;
    loop {
        match store.watch(&scope).await {
            Ok(mut watch) => {
                // What happened before the watch was in place may have been missed.
                if hints.send(WatchEvent::Gap).await.is_err() {
                    return;
                }
                while let Ok(event) = watch.next().await {
                    pause = pause_min;
                    if hints.send(event).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) if error.fault == Fault::Unsupported => return,
            Err(error) => tracing::debug!(lease = %name, %error, "Watch failed"),
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// The next hint; never, where there is no watch.
pub(super) async fn next(watch: &mut Option<mpsc::Receiver<WatchEvent>>) -> Option<WatchEvent> {
    let event = match watch {
        Some(receiver) => receiver.recv().await,
        None => return std::future::pending().await,
    };
    if event.is_none() {
        // Not supported here. The campaign waits by what remains.
        *watch = None;
        return std::future::pending().await;
    }
    event
}
