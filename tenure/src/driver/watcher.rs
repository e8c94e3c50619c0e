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
    let (store, scope) = (store.clone(), Scope::Name(name.clone()));
    let name = name.clone();
    spawn(async move {
        if !after.is_zero() {
            select! {
                () = sleep(after) => {}
                () = hints.closed() => return,
            }
        }
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
            select! {
                () = sleep(pause) => {}
                () = hints.closed() => return,
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    });
    receiver
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
