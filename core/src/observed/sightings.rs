use super::entry::{Ages, Entry, Heartbeat, Revision, Version};
use crate::{Lease, LeaseName, Moment, Ttl};
use std::collections::BTreeMap;
use std::time::Duration;

/// One million: rates are in parts per million.
const MILLION: u128 = 1_000_000;

/// What one observer has seen of the records of a store: which version, and since when.
///
/// The answer to "has it expired?" of a store without a clock. A version counts from the moment at which the
/// **answer** that showed it had arrived, never from when it was asked for: between the two the holder may
/// have renewed, and the time before would be counted against a version that did not exist yet.
///
/// After a suspension everything here stays true. [`Moment`] counts the sleep, and a claim is conditional on
/// the revision, so it does not matter what happened meanwhile: a version that is still there after its time
/// has seen no renewal. (A clock that stood still would only wait longer.) After a restart nothing is known,
/// and every record waits out its whole ttl.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sightings {
    clock_rate_error_ppm: u32,
    seen: BTreeMap<LeaseName, Sighting>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Sighting {
    revision: Revision,
    heartbeat: Heartbeat,
    released: bool,
    asked: bool,
    /// When the answer that first showed this heartbeat, or this vacancy, had arrived.
    since: Moment,
    /// When the answer that first showed this term had arrived.
    term_since: Moment,
    /// How old the term was at its first sight, and this heartbeat at its own, as far as the store told. For
    /// people.
    ages: Ages,
    /// The highest number of renewals of this term that was seen, or that this process has sent.
    renewals: u64,
    looked_at: Moment,
    /// What the record holds, where this process has written this very version and holds the lease by it.
    written: Option<Entry>,
}

impl Sightings {
    /// Most records that are remembered: more than the 100,000 leases that one process may wait for.
    ///
    /// When there is no room left, the eighth that was not looked at for the longest is forgotten. Forgetting
    /// is safe: the next look begins to count anew.
    pub const MAX: usize = 131_072;

    /// Nothing seen yet.
    ///
    /// `clock_rate_error_ppm` is ρ: how much this machine's clock may be too fast, in parts per million. It
    /// must be what every holder's [`Timing`](crate::Timing) assumes, or more; 500 by default there.
    #[must_use]
    pub fn new(clock_rate_error_ppm: u32) -> Self {
        Self {
            clock_rate_error_ppm,
            seen: BTreeMap::new(),
        }
    }

    /// How many records are remembered; at most [`MAX`](Self::MAX).
    #[must_use]
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Takes in what an answer of the store showed, `None` if there was no record; `now` is not before that
    /// answer had arrived.
    ///
    /// Also for what a watch tells, and it matters there: who sees each renewal when it is written, and not
    /// only at its own next look, takes over one ttl after the last one. Events that come late, twice or in
    /// the wrong order only make the wait longer.
    pub fn see(&mut self, now: Moment, name: &LeaseName, version: Option<&Version>) {
        let Some(version) = version else {
            self.seen.remove(name);
            return;
        };
        if !self.seen.contains_key(name) {
            self.make_room();
        }
        self.note(now, name, version);
    }

    /// As [`see`](Self::see), but for a page of a list: it never crowds out what was looked at for itself.
    pub fn glance(&mut self, now: Moment, name: &LeaseName, version: &Version) {
        if self.seen.len() < Self::MAX || self.seen.contains_key(name) {
            self.note(now, name, version);
        }
    }

    /// As [`see`](Self::see), for what this process itself has just written: while nobody writes after it,
    /// the next write of the term needs no reading.
    pub fn wrote(&mut self, now: Moment, name: &LeaseName, version: Version) {
        self.see(now, name, Some(&version));
        if let Some(sighting) = self.seen.get_mut(name).filter(|_| !version.entry.released) {
            sighting.written = Some(version.entry);
        }
    }

    /// The version of a held lease that this process has written, if it has seen none since.
    pub(super) fn last_written(&self, name: &LeaseName) -> Option<Version> {
        let sighting = self.seen.get(name)?;
        Some(Version {
            revision: sighting.revision.clone(),
            entry: sighting.written.clone()?,
            ages: None,
        })
    }

    /// The number of renewals that the next one of this entry's term must exceed. A store that has lost what
    /// it confirmed shows a lower one than it has shown before: repeated over the same revision, the next
    /// would be taken for what others have seen already, and their wait for it would have begun before it was
    /// written.
    pub(super) fn renewals(&self, name: &LeaseName, entry: &Entry) -> u64 {
        let sighting = self.of_term(name, entry);
        sighting.map_or(0, |seen| seen.renewals).max(entry.renewals)
    }

    /// Takes in that this process sends this entry, whatever becomes of it.
    pub(super) fn sends(&mut self, name: &LeaseName, entry: &Entry) {
        let renewals = self.renewals(name, entry);
        if self.of_term(name, entry).is_some() {
            self.seen
                .entry(name.clone())
                .and_modify(|seen| seen.renewals = renewals);
        }
    }

    fn of_term(&self, name: &LeaseName, entry: &Entry) -> Option<&Sighting> {
        let sighting = self.seen.get(name)?;
        sighting
            .heartbeat
            .is_of_one_term(&entry.heartbeat())
            .then_some(sighting)
    }

    fn note(&mut self, now: Moment, name: &LeaseName, version: &Version) {
        let Version {
            revision,
            entry,
            ages,
        } = version;
        let heartbeat = entry.heartbeat();
        let before = self.seen.get(name);
        let told = ages.unwrap_or_default();
        let (since, renewed_ago) = match before {
            Some(before) if before.shows(version) || before.is_the_same_but_asked(entry) => {
                (before.since, before.ages.renewed_ago)
            }
            // Written since the last look, whatever the clocks say by which ages are told.
            Some(before) => (now, told.renewed_ago.min(now.since(before.looked_at))),
            None => (now, told.renewed_ago),
        };
        let of_this_term = before.filter(|before| before.heartbeat.is_of_one_term(&heartbeat));
        // What a watch tells late was shown in an earlier epoch than what is known of the same version.
        let latest = before
            .filter(|before| before.shows(version) && before.revision.epoch() > revision.epoch())
            .map(|before| &before.revision);
        let written = before.and_then(|before| before.written.as_ref());
        let sighting = Sighting {
            written: written.filter(|written| *written == entry).cloned(),
            revision: latest.unwrap_or(revision).clone(),
            heartbeat,
            released: entry.released,
            asked: entry.asked_to_step_down,
            since,
            term_since: of_this_term.map_or(now, |before| before.term_since),
            ages: Ages {
                held_for: of_this_term.map_or(told.held_for, |before| before.ages.held_for),
                renewed_ago,
            },
            renewals: of_this_term
                .map_or(0, |before| before.renewals)
                .max(heartbeat.renewals),
            looked_at: now,
        };
        self.seen.insert(name.clone(), sighting);
    }

    fn make_room(&mut self) {
        if self.seen.len() < Self::MAX {
            return;
        }
        let mut looks: Vec<Moment> = self.seen.values().map(|sighting| sighting.looked_at).collect();
        let (_, youngest, _) = looks.select_nth_unstable(Self::MAX / 8);
        let youngest = *youngest;
        let mut to_go = Self::MAX / 8;
        self.seen.retain(|_, sighting| {
            let goes = to_go > 0 && sighting.looked_at <= youngest;
            to_go -= usize::from(goes);
            !goes
        });
    }

    /// The lease as this observer knows it at `now`.
    ///
    /// [`Lease::remaining`] is the **record's** ttl·(1+ρ) less the time for which this very version was seen:
    /// all of it, if it was not seen before. The ages are what the store told at the first sight of the term,
    /// and of the renewal, and the time since; where it told nothing, they count from there.
    #[must_use]
    pub fn lease(&self, now: Moment, name: &LeaseName, version: &Version) -> Lease {
        let entry = &version.entry;
        let sighting = self.seen.get(name).filter(|seen| seen.shows(version));
        let seen_for = sighting.map_or(Duration::ZERO, |sighting| now.since(sighting.since));
        let ages = sighting.map_or(version.ages.unwrap_or_default(), |sighting| sighting.ages_at(now));
        let remaining = match entry.released {
            true => Duration::ZERO,
            false => self.surely_expired(entry.ttl).saturating_sub(seen_for),
        };
        Lease {
            name: name.clone(),
            holder: entry.holder.clone(),
            token: entry.token,
            attempt: entry.attempt,
            terms: entry.terms,
            ttl: entry.ttl,
            remaining,
            released: entry.released,
            held_for: ages.held_for,
            // By a clock that was set in between, the renewal might be older than the term.
            renewed_ago: ages.renewed_ago.min(ages.held_for),
            asked_to_step_down: entry.asked_to_step_down,
            note: entry.note.clone(),
        }
    }

    /// How long a version must be seen unchanged before its lease may be claimed: ttl·(1+ρ), so that a clock
    /// that is too fast by ρ has still waited the whole ttl.
    fn surely_expired(&self, ttl: Ttl) -> Duration {
        let nanoseconds = ttl.duration().as_nanos();
        let drift = (nanoseconds * u128::from(self.clock_rate_error_ppm)).div_ceil(MILLION);
        ttl.duration() + Duration::from_nanos(u64::try_from(drift).unwrap_or(u64::MAX))
    }
}

impl Sighting {
    fn ages_at(&self, now: Moment) -> Ages {
        Ages {
            held_for: self.ages.held_for.saturating_add(now.since(self.term_since)),
            renewed_ago: self.ages.renewed_ago.saturating_add(now.since(self.since)),
        }
    }

    /// Whether this version is what was seen. Its revision alone does not say so: a store that has lost what
    /// it had confirmed may give it to another write. The wish is left out: it is no sign of life.
    fn shows(&self, version: &Version) -> bool {
        self.revision.as_str() == version.revision.as_str()
            && self.heartbeat == version.entry.heartbeat()
            && self.released == version.entry.released
    }

    /// Whether `entry` is what was seen with nothing but a wish added. A wish is no sign of life: if it began
    /// the wait again, a dead holder's lease would outlast its ttl for having been asked.
    fn is_the_same_but_asked(&self, entry: &Entry) -> bool {
        self.heartbeat == entry.heartbeat() && !entry.released && entry.asked_to_step_down && !self.asked
    }
}

impl Heartbeat {
    fn is_of_one_term(&self, other: &Self) -> bool {
        (self.incarnation, self.token, self.attempt) == (other.incarnation, other.token, other.attempt)
    }
}
