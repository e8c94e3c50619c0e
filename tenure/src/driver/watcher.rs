//! Keeps a watch on one lease: starts it again when it breaks, and says so.

use super::caught::caught;
use super::plan::BackOff;
use super::unwatched::{Absence, PAUSE_MAX, Pauses};
use crate::clock;
use crate::registry::SharedStore;
use crate::sync::{AtomicBool, Ordering, mpsc, oneshot, select, sleep, spawn, watch as told};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Change, Fault, Interest, LeaseName, Occupancy, Scope, StoreError, WatchEvent};
use tokio::sync::mpsc::error::SendError;

/// Hints that may wait for the engine; a hint more makes its watch wait, nothing is lost.
pub(super) const HINTS_WAITING: usize = 64;

/// A watch on one lease; dropping it ends it.
pub(super) struct Watcher {
    _end: oneshot::Sender<Infallible>,
}

/// How a lease is watched.
#[derive(Clone, Debug)]
pub(super) enum Manner {
    /// By who waits for it, and by its holder for wishes; from `after` a while on, and not at all where the
    /// store cannot.
    Election {
        after: Duration,
        pause_min: Duration,
        /// Which of the two it is now.
        leads: Arc<AtomicBool>,
    },
    /// As one of many: what may have been missed concerns this lease, not all. Looked at while it cannot be
    /// watched.
    OneOfMany(BackOff),
    /// Not watched, but looked at.
    Looking(BackOff),
}

impl Watcher {
    pub(super) fn start(
        store: &SharedStore,
        name: &LeaseName,
        manner: Manner,
        hints: mpsc::Sender<WatchEvent>,
        recoveries: told::Receiver<u64>,
    ) -> Self {
        let (end, ended) = oneshot::channel();
        let (store, name, listener) = (store.clone(), name.clone(), Listener::new(hints));
        spawn(async move {
            select! {
                biased;
                // Whatever it waits for, and be it for the next event of a lease to which nothing happens any
                // more.
                _ = ended => {}
                () = watch(&store, &name, manner, recoveries, &listener) => {}
            }
        });
        Self { _end: end }
    }
}

/// Starts watching one lease or several for somebody who listens alone: the watch ends with the channel. The
/// channel closes where the store cannot be watched.
pub(crate) fn watch_scope(
    store: &SharedStore,
    scope: Scope,
    pause_min: Duration,
) -> mpsc::Receiver<WatchEvent> {
    listen_alone(
        store,
        scope,
        Interest::Everything,
        Meanwhile::Nothing { pause_min },
    )
    .hints
}

/// The ends of this lease's terms, also of one that begins anew at once, as whoever stands in a queue must
/// hear; and hints to look again for as long as they cannot be watched: the channel stays open.
pub(crate) fn watch_ends_or_look(store: &SharedStore, name: LeaseName, back_off: BackOff) -> Listening {
    listen_alone(
        store,
        Scope::Name(name),
        Interest::EveryEnd,
        Meanwhile::Looks(back_off),
    )
}

/// What is heard of a watch by the only one who listens; it ends with this.
pub(crate) struct Listening {
    pub(crate) hints: mpsc::Receiver<WatchEvent>,
    /// Whether there is a watch now, and no mere looks.
    stands: Arc<AtomicBool>,
}

impl Listening {
    pub(crate) fn stands(&self) -> bool {
        self.stands.load(Ordering::SeqCst)
    }
}

/// Where it is told what a watch hears.
struct Listener {
    hints: mpsc::Sender<WatchEvent>,
    stands: Arc<AtomicBool>,
}

impl Listener {
    fn new(hints: mpsc::Sender<WatchEvent>) -> Self {
        Self {
            hints,
            stands: Arc::default(),
        }
    }
}

fn listen_alone(store: &SharedStore, scope: Scope, interest: Interest, meanwhile: Meanwhile) -> Listening {
    let (sender, hints) = mpsc::channel(HINTS_WAITING);
    let listener = Listener::new(sender);
    let stands = listener.stands.clone();
    let store = store.clone();
    spawn(async move {
        select! {
            biased;
            () = listener.hints.closed() => {}
            () = keep_watching(&store, (&scope, interest), meanwhile, Missed::Anything, None, &listener) => {}
        }
    });
    Listening { hints, stands }
}

/// Ends where nobody listens, or there is nothing more to be heard.
async fn watch(
    store: &SharedStore,
    name: &LeaseName,
    manner: Manner,
    recoveries: told::Receiver<u64>,
    listener: &Listener,
) {
    let scope = Scope::Name(name.clone());
    let (interest, meanwhile, missed) = match manner {
        Manner::Election {
            after,
            pause_min,
            leads,
        } => {
            if !after.is_zero() {
                sleep(after).await;
            }
            let meanwhile = Meanwhile::Nothing { pause_min };
            let (at_first, leads) = (true, leads.clone());
            let missed = Missed::InElection {
                name,
                at_first,
                leads,
            };
            // A holder hears in time that it was succeeded, too.
            (Interest::Everything, meanwhile, missed)
        }
        // Nothing else is of use to whoever waits for a lock.
        Manner::OneOfMany(back_off) => (Interest::Ends, Meanwhile::Looks(back_off), Missed::Change(name)),
        Manner::Looking(back_off) => return keep_looking(look(name), back_off, &listener.hints).await,
    };
    keep_watching(
        store,
        (&scope, interest),
        meanwhile,
        missed,
        Some(recoveries),
        listener,
    )
    .await;
}

/// Ends where nobody listens, or the store cannot be watched and nothing is done meanwhile.
async fn keep_watching(
    store: &SharedStore,
    (scope, interest): (&Scope, Interest),
    meanwhile: Meanwhile,
    mut missed: Missed<'_>,
    recoveries: Option<told::Receiver<u64>>,
    Listener { hints, stands }: &Listener,
) {
    let mut pauses = Pauses::new(meanwhile.pause_min(), recoveries);
    let mut absence = Absence::default();
    // While there is no watch, from the first failure on.
    let mut looking: Option<Looking<'_>> = None;
    loop {
        // A panic of the store's is as a watch that failed: nobody else would begin it anew.
        let beginning = caught(async { store.watch(scope, interest).await });
        let Some(begun) = beside(&mut looking, beginning).await else {
            return;
        };
        match begun.unwrap_or_else(|| Err(panicked())) {
            Ok(mut watch) => {
                let began = clock::now();
                looking = None;
                stands.store(true, Ordering::SeqCst);
                pauses.watched();
                // What happened before the watch was in place may have been missed.
                if missed.tell(store, hints).await.is_err() {
                    return;
                }
                let over = loop {
                    let event = caught(async { watch.next().await }).await;
                    let told = match event.unwrap_or_else(|| Err(panicked())) {
                        Ok(WatchEvent::Gap) => missed.tell(store, hints).await,
                        Ok(event @ WatchEvent::Changed { .. }) => hints.send(event).await,
                        Err(error) => break error,
                    };
                    pauses.begin_anew();
                    if told.is_err() {
                        return;
                    }
                };
                stands.store(false, Ordering::SeqCst);
                if was_of_use(clock::now().since(began)) {
                    pauses.begin_anew();
                    absence = Absence::default();
                }
                absence.note(scope, &over);
            }
            Err(error) if error.fault == Fault::Unsupported => {
                if let Meanwhile::Looks(back_off) = meanwhile {
                    keep_looking(missed.hint(), back_off, hints).await;
                }
                return;
            }
            Err(error) => absence.note(scope, &error),
        }
        if let (Meanwhile::Looks(back_off), None) = (meanwhile, &looking) {
            looking = Some(Box::pin(keep_looking(missed.hint(), back_off, hints)));
        }
        if beside(&mut looking, pauses.pass()).await.is_none() {
            return;
        }
    }
}

/// Whether a watch that lived so long is none that fails again and again, although it told nothing: there may
/// be nothing to tell for weeks, as of a leader that leads on.
fn was_of_use(lived: Duration) -> bool {
    lived > PAUSE_MAX
}

/// What is done while a watch cannot be had that may be had later.
#[derive(Clone, Copy)]
enum Meanwhile {
    /// Nothing: the engine sleeps, and asks once per ttl.
    Nothing { pause_min: Duration },
    /// The engine is made to look, as where there are no watches.
    Looks(BackOff),
}

impl Meanwhile {
    /// The first pause before a broken watch is started again.
    fn pause_min(self) -> Duration {
        match self {
            Self::Nothing { pause_min } => pause_min,
            Self::Looks(back_off) => back_off.base,
        }
    }
}

/// Ends only where nobody listens.
type Looking<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Waits for something, and looks beside it; `None` where nobody listens.
async fn beside<T>(looking: &mut Option<Looking<'_>>, awaited: impl Future<Output = T>) -> Option<T> {
    let Some(looking) = looking else {
        return Some(awaited.await);
    };
    select! {
        biased;
        outcome = awaited => Some(outcome),
        () = looking => None,
    }
}

/// Tells again and again that something may have been missed, ever more seldom, until nobody listens.
async fn keep_looking(hint: WatchEvent, back_off: BackOff, hints: &mpsc::Sender<WatchEvent>) {
    for pause in back_off.pauses() {
        sleep(pause).await;
        if hints.send(hint.clone()).await.is_err() {
            return;
        }
    }
}

/// What is told where something may have been missed.
enum Missed<'a> {
    /// That it may have been.
    Anything,
    /// A look at this lease at once.
    Change(&'a LeaseName),
    /// A look at this lease at once, the first time: what was missed then was missed by this process alone.
    /// Later gaps are those of a connection that all lost together, and who was cut off with others does not
    /// ask with them. Who leads by then is told of a wish, too.
    InElection {
        name: &'a LeaseName,
        at_first: bool,
        leads: Arc<AtomicBool>,
    },
}

impl Missed<'_> {
    /// What makes somebody look who has no watch.
    fn hint(&self) -> WatchEvent {
        match self {
            Self::Anything => WatchEvent::Gap,
            Self::Change(name) | Self::InElection { name, .. } => look(name),
        }
    }

    /// Fails where nobody listens.
    async fn tell(
        &mut self,
        store: &SharedStore,
        hints: &mpsc::Sender<WatchEvent>,
    ) -> Result<(), SendError<WatchEvent>> {
        match self {
            Self::Anything => hints.send(WatchEvent::Gap).await,
            Self::Change(name) => hints.send(look(name)).await,
            Self::InElection {
                name,
                at_first,
                leads,
            } => {
                let is_first = std::mem::take(at_first);
                hints
                    .send(if is_first { look(name) } else { WatchEvent::Gap })
                    .await?;
                // After the gap: who led a moment ago may stand by now.
                if leads.load(Ordering::SeqCst)
                    && let Some(wish) = wish(store, name).await
                {
                    hints.send(wish).await?;
                }
                Ok(())
            }
        }
    }
}

/// A wish that stands in this lease. An answer that does not come costs nothing: the next renewal tells of
/// the wish.
async fn wish(store: &SharedStore, name: &LeaseName) -> Option<WatchEvent> {
    let answer = caught(async { store.get(name).await }).await;
    let lease = answer?.ok()??;
    // In a store that keeps it, a lease that was given back has the wish of its last term.
    (lease.asked_to_step_down && lease.occupancy() == Occupancy::Held).then(|| WatchEvent::Changed {
        name: name.clone(),
        change: Change::Asked,
        token: Some(lease.token),
    })
}

/// "It may have been vacated": a hint may be wrong, and makes the engine look.
fn look(name: &LeaseName) -> WatchEvent {
    WatchEvent::Changed {
        name: name.clone(),
        change: Change::Vacated,
        token: None,
    }
}

fn panicked() -> StoreError {
    StoreError::not_applied(Fault::Internal, "the store has panicked")
}
