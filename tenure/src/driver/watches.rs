//! Which leases are watched.

use super::plan::Watching;
use super::unwatched::Recoveries;
use super::watcher::{HINTS_WAITING, Manner, Watcher};
use crate::registry::SharedStore;
use crate::sync::{AtomicBool, Ordering, mpsc};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{LeaseName, Moment, Reply, WatchEvent, WatchSource};

/// Watches of one driver at a time; leases beyond are looked at instead. A store has few: MongoDB's driver
/// keeps a connection busy with each.
const WATCHES_MAX: usize = 16;

/// The watches of a driver, and what they say.
pub(super) struct Watches {
    store: SharedStore,
    watching: Watching,
    retry_every: Duration,
    /// How long a watch is kept that nobody needs: to end one and to start it again costs more than to keep
    /// it.
    idle_max: Duration,
    watched: BTreeMap<LeaseName, Watched>,
    looked_at: BTreeMap<LeaseName, Watcher>,
    hints: mpsc::Sender<WatchEvent>,
    heard: mpsc::Receiver<WatchEvent>,
    recoveries: Recoveries,
}

struct Watched {
    _watcher: Watcher,
    /// Whether its holder is here. Looked at in an election, where one watch serves who waits and who leads.
    leads: Arc<AtomicBool>,
    /// Since when nobody needs it.
    idle_since: Option<Moment>,
}

impl Watches {
    pub(super) fn new(
        store: SharedStore,
        watching: Watching,
        retry_every: Duration,
        idle_max: Duration,
    ) -> Self {
        let (hints, heard) = mpsc::channel(HINTS_WAITING);
        Self {
            store,
            watching,
            retry_every,
            idle_max,
            watched: BTreeMap::new(),
            looked_at: BTreeMap::new(),
            hints,
            heard,
            recoveries: Recoveries::new(),
        }
    }

    /// A request of the driver's was answered, or given up: watches that broke are begun anew when the store
    /// is seen to answer again.
    pub(super) fn note(&mut self, reply: Option<&Reply>) {
        self.recoveries.note(reply);
    }

    /// The next hint. May be dropped and called again without losing one.
    pub(super) async fn next(&mut self) -> Option<WatchEvent> {
        self.heard.recv().await
    }

    /// Somebody waits for this lease. What happens before the watch is in place is not missed: it begins with
    /// a hint to look again.
    pub(super) fn wait_for(&mut self, name: &LeaseName) {
        if let Some(watched) = self.watched.get_mut(name) {
            watched.idle_since = None;
            watched.leads.store(false, Ordering::SeqCst);
        } else if !self.looked_at.contains_key(name) {
            match self.watching {
                Watching::OneLease => self.watch_election(name, Duration::ZERO, false),
                Watching::Waits(back_off) => {
                    if self.has_room() {
                        let manner = Manner::OneOfMany(back_off);
                        return self.watch(name, manner, Arc::default());
                    }
                    let watcher = self.start(name, Manner::Looking(back_off));
                    self.looked_at.insert(name.clone(), watcher);
                }
            }
        }
    }

    /// A term of this lease began; it is watched from `after` a while on, where wishes are to be heard.
    /// Whether that is so here: else nobody needs a watch of it.
    pub(super) fn lead(&mut self, name: &LeaseName, after: Duration) -> bool {
        if self.watching != Watching::OneLease {
            return false;
        }
        match self.watched.get_mut(name) {
            Some(watched) => {
                watched.idle_since = None;
                watched.leads.store(true, Ordering::SeqCst);
            }
            None => self.watch_election(name, after, true),
        }
        true
    }

    /// Nobody needs a watch of this lease any more. Whether there is one, to be [ended](Self::end_idle).
    pub(super) fn rest(&mut self, name: &LeaseName, now: Moment) -> bool {
        self.looked_at.remove(name);
        let Some(watched) = self.watched.get_mut(name) else {
            return false;
        };
        watched.leads.store(false, Ordering::SeqCst);
        watched.idle_since.get_or_insert(now);
        true
    }

    /// Ends those that nobody has needed for long; answers whether any is left that nobody needs.
    pub(super) fn end_idle(&mut self, now: Moment) -> bool {
        let idle_max = self.idle_max;
        let needed = |since: &Moment| now.since(*since) < idle_max;
        self.watched
            .retain(|_, watched| watched.idle_since.as_ref().is_none_or(needed));
        self.watched.values().any(|watched| watched.idle_since.is_some())
    }

    /// Whether one more lease can be watched. Ends the watch that nobody has needed for longest, if it must.
    fn has_room(&mut self) -> bool {
        if self.store.traits().watch == WatchSource::Absent {
            return false;
        }
        if self.watched.len() >= WATCHES_MAX {
            let idle = |(name, watched): (&LeaseName, &Watched)| Some((watched.idle_since?, name.clone()));
            let longest = self.watched.iter().filter_map(idle).min();
            if let Some((_, name)) = longest {
                self.watched.remove(&name);
            }
        }
        self.watched.len() < WATCHES_MAX
    }

    fn watch_election(&mut self, name: &LeaseName, after: Duration, leads: bool) {
        let leads = Arc::new(AtomicBool::new(leads));
        let manner = Manner::Election {
            after,
            pause_min: self.retry_every,
            leads: leads.clone(),
        };
        self.watch(name, manner, leads);
    }

    fn watch(&mut self, name: &LeaseName, manner: Manner, leads: Arc<AtomicBool>) {
        let watched = Watched {
            _watcher: self.start(name, manner),
            leads,
            idle_since: None,
        };
        self.watched.insert(name.clone(), watched);
    }

    fn start(&self, name: &LeaseName, manner: Manner) -> Watcher {
        let recoveries = self.recoveries.subscribe();
        Watcher::start(&self.store, name, manner, self.hints.clone(), recoveries)
    }
}
