//! What a driver is started with.

use super::Meter;
use super::jitter::jitter;
use crate::lock::OwnerTag;
use crate::registry::SharedStore;
use std::time::Duration;
use tenure_core::{Actions, Candidate, Event, Input, LeaseName, Moment, Note, Timing};

/// What a driver is started with.
pub(crate) struct Plan {
    /// What it drives, for people: the name of its thread.
    pub(crate) label: String,
    pub(crate) store: SharedStore,
    pub(crate) candidate: Candidate,
    pub(crate) timing: Timing,
    pub(crate) note: Note,
    pub(crate) progress_within: Option<Duration>,
    pub(crate) watching: Watching,
    /// Whether those of this process who have had a lease one after another let others go first, now and
    /// then: where nothing else says whose turn it is.
    pub(crate) stands_back: bool,
    /// Whose records it takes; `None` for anybody's.
    pub(crate) tag: Option<OwnerTag>,
    /// Tells people what happens to a lease of this candidate.
    pub(crate) announce: fn(&str, &Event),
    /// Counts what happens.
    pub(crate) meter: Meter,
    /// Which of its leases are this candidate's own places in queues.
    pub(crate) places: Option<Places>,
    /// What the engine's jitter is drawn from.
    pub(crate) seed: u64,
    pub(crate) recorder: Option<Box<dyn Recorder>>,
}

impl Plan {
    /// Whether this is the name of a place in a queue.
    pub(crate) fn is_place(&self, name: &LeaseName) -> bool {
        self.places_with(name).is_some()
    }

    /// Tells people of an event.
    pub(crate) fn announce(&self, candidate: &str, event: &Event) {
        let places = self.places_with(event.name());
        places.map_or(self.announce, |places| places.announce)(candidate, event);
    }

    fn places_with(&self, name: &LeaseName) -> Option<&Places> {
        let places = self.places.as_ref();
        places.filter(|places| name.as_str().ends_with(&places.end))
    }
}

/// The leases by which a candidate waits in queues. They are nobody's locks, and are not counted as such.
pub(crate) struct Places {
    /// How all their names end.
    pub(crate) end: String,
    /// Tells people what happens to one.
    pub(crate) announce: fn(&str, &Event),
}

/// What is watched in the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Watching {
    /// The lease, from the first obstacle or the first longer term on.
    OneLease,
    /// Each lease that somebody waits for; where it cannot be watched, it is looked at ever more seldom.
    Waits(BackOff),
}

/// How soon somebody looks again who cannot be woken: after `base`, twice that, and so on, never later than
/// after `pause_max`; each pause is longer by up to `jitter_max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BackOff {
    pub(crate) base: Duration,
    pub(crate) jitter_max: Duration,
    pub(crate) pause_max: Duration,
}

impl BackOff {
    /// Each twice as long as the one before, up to the longest, however long somebody wants to be left alone;
    /// and each with a jitter of its own.
    pub(crate) fn pauses(self) -> impl Iterator<Item = Duration> {
        std::iter::successors(Some(self.base), |pause| Some(pause.saturating_mul(2)))
            .map(move |pause| pause.min(self.pause_max).saturating_add(jitter(self.jitter_max)))
    }
}

/// Keeps every step of an engine.
pub(crate) trait Recorder: Send {
    /// Takes a step down, without waiting for anything. Dropping a recorder finishes what it has taken.
    fn record(&mut self, at: Moment, input: &Input, actions: &Actions);
}

#[cfg(test)]
mod tests {
    use super::BackOff;
    use std::time::Duration;

    #[test]
    fn looks_come_after_pauses_that_double_up_to_their_cap_and_are_longer_by_the_jitter_at_most() {
        let milliseconds = Duration::from_millis;
        let back_off = BackOff {
            base: milliseconds(50),
            jitter_max: milliseconds(20),
            pause_max: milliseconds(150),
        };
        let drawn: Vec<_> = back_off.pauses().take(200).collect();
        for (number, pause) in drawn.iter().enumerate() {
            let least = milliseconds(*[50, 100].get(number).unwrap_or(&150));
            assert!(
                (least..=least + back_off.jitter_max).contains(pause),
                "{number}: {drawn:?}"
            );
        }
        assert!(
            drawn[2..].iter().any(|pause| *pause != drawn[2]),
            "nothing is drawn: {drawn:?}"
        );
    }
}
