//! What every scenario needs: a store, elections, and the checks that hold in every order.

use crate::clock::{self, Pace};
use crate::election::{Election, Leadership};
use crate::store::{Store, Weather};
use crate::sync::{self, broadcast};
use shuttle::future::block_on;
use shuttle::rand::{Rng, thread_rng};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenure_core::{Authority, Event, FencingToken, LeaseName, Moment, Timing, Ttl};
use tokio::sync::broadcast::error::TryRecvError;

pub(crate) struct Site {
    pub(crate) store: Arc<Store>,
    pub(crate) name: LeaseName,
    pace: Pace,
    /// Whether nobody is ever late, and every request is answered at once.
    prompt: bool,
    /// The greatest token that was seen to be over.
    over: AtomicU64,
}

impl Site {
    /// Begins an execution: first of all in every scenario.
    pub(crate) fn begin(pace: Pace, weather: Weather) -> Arc<Self> {
        sync::begin();
        clock::begin(pace);
        let name = LeaseName::new("job").expect("letters are a name");
        Arc::new(Self {
            store: Store::new(weather),
            name,
            pace,
            prompt: pace == Pace::Patient && weather == Weather::Fair,
            over: AtomicU64::new(0),
        })
    }

    pub(crate) fn election(&self, candidate: &str) -> Election {
        let builder = Election::builder(&self.name, self.store.clone());
        builder
            .candidate(candidate)
            .timing(timing())
            .build()
            .expect("the timing fits")
    }

    pub(crate) fn strict_election(&self, progress_within: Duration) -> Election {
        let builder = Election::builder(&self.name, self.store.clone()).timing(timing());
        builder
            .progress_within(progress_within)
            .build()
            .expect("the timing fits")
    }

    /// Campaigns, and counts the term as at work from then on.
    pub(crate) fn lead(&self, election: &Election) -> Leadership {
        let leadership = block_on(election.campaign()).expect("campaigns end with a term");
        self.store.begin_work(leadership.token());
        leadership
    }

    /// The work of a term ends; whoever holds it may drop it now.
    pub(crate) fn end_work(&self, leadership: &Leadership) {
        self.store.end_work(leadership.token());
    }

    /// Looks at a term's authority, and checks what must hold of it in every order.
    pub(crate) fn look(&self, leadership: &Leadership) -> Authority {
        let token = leadership.token();
        let was_over = self.over.load(Ordering::SeqCst) >= token.number();
        let authority = leadership.authority();
        match authority.token().zip(authority.until()) {
            Some((of, until)) => {
                assert_eq!(of, token, "the authority of another term");
                assert!(
                    !was_over,
                    "term {token} was over, and is believed in again until {until:?}"
                );
                self.check_belief(token);
            }
            None => {
                self.over.fetch_max(token.number(), Ordering::SeqCst);
            }
        }
        authority
    }

    /// A term that is believed in is the store's. Holds only while nobody ends it at the same time.
    fn check_belief(&self, token: FencingToken) {
        let record = self.store.peek(&self.name).expect("a term has a record");
        assert_eq!(record.token, token, "the store's term is another");
        assert!(
            self.store.is_held(&self.name),
            "term {token} is believed in after it expired in the store"
        );
    }

    /// Nobody leads any more, and no campaign was withdrawn: then nothing is held, or not for long.
    pub(crate) fn check_given_back(&self) {
        if self.prompt {
            assert!(!self.store.is_held(&self.name), "held though nobody leads");
        } else {
            // A term that has ended at its deadline is not given back: it may last a little longer in the
            // store.
            self.check_nothing_is_renewed();
        }
    }

    /// Nobody leads any more: then nothing is held after one ttl.
    ///
    /// A campaign that is withdrawn while its request travels may leave a lease behind: the look for what it
    /// has left can overtake the request. Nobody renews that lease.
    pub(crate) fn check_nothing_is_renewed(&self) {
        pause(timing().ttl().duration());
        assert!(!self.store.is_held(&self.name), "renewed though nobody leads");
    }

    /// Waits until every thread and task of the shell has ended.
    pub(crate) fn wait_until_nothing_runs(&self) {
        // A thread that is late may be late by any time, as long as anybody is.
        if self.pace != Pace::Patient && nothing_runs_within(LATE_TTLS) {
            return;
        }
        clock::calm();
        assert!(
            nothing_runs_within(PATIENT_TTLS),
            "{} threads or tasks stay behind",
            sync::running()
        );
    }
}

/// How long those who are late may take to end, in ttls: nearly all do.
const LATE_TTLS: u32 = 1_000;

/// How long it takes to end where nobody is late.
const PATIENT_TTLS: u32 = 10;

fn nothing_runs_within(ttls: u32) -> bool {
    let limit = clock::peek().after(ttls * timing().ttl().duration());
    while sync::running() > 0 && clock::peek() < limit {
        pause(Duration::from_millis(100));
    }
    sync::running() == 0
}

pub(crate) fn timing() -> Timing {
    Timing::of(Ttl::from_millis(1000).expect("a second is a ttl"))
}

/// Sleeps in virtual time.
pub(crate) fn pause(duration: Duration) {
    block_on(clock::sleep(duration));
}

/// Some time up to `longest`, often none at all.
pub(crate) fn some_time(longest: Duration) -> Duration {
    longest * thread_rng().gen_range(0..=8) / 8
}

/// Any pace: mostly one in which nobody is late without reason.
pub(crate) fn any_pace() -> Pace {
    match thread_rng().gen_range(0..4) {
        0 => Pace::Hasty(4),
        1 => Pace::Hasty(32),
        _ => Pace::Patient,
    }
}

/// Any weather in which requests are answered in the end.
pub(crate) fn any_weather() -> Weather {
    match thread_rng().gen_range(0..3) {
        0 => Weather::Slow(Duration::from_millis(150)),
        1 => Weather::Slow(Duration::from_millis(8)),
        _ => Weather::Fair,
    }
}

/// Everything an election has said: each term begins once and ends once, in this order.
pub(crate) fn check_events(events: &mut broadcast::Receiver<Event>) -> Vec<Event> {
    let mut all = Vec::new();
    loop {
        match events.try_recv() {
            Ok(event) => all.push(event),
            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            // So many terms were lost in a hasty time that the oldest events are gone: no count is whole.
            Err(TryRecvError::Lagged(_)) => return Vec::new(),
        }
    }
    let mut ends: BTreeMap<FencingToken, u32> = BTreeMap::new();
    for event in &all {
        match event {
            Event::Acquired { grant, .. } => {
                assert_eq!(
                    ends.insert(grant.token, 0),
                    None,
                    "term {} began twice",
                    grant.token
                );
            }
            Event::Ended { token, .. } => {
                *ends.get_mut(token).expect("a term begins before it ends") += 1;
            }
            Event::Standby { .. }
            | Event::AttemptFailed { .. }
            | Event::CampaignEnded { .. }
            | Event::Withdrawn { .. }
            | Event::Renewed { .. }
            | Event::RenewalFailed { .. }
            | Event::Doubted { .. }
            | Event::Reassured { .. }
            | Event::Stuck { .. }
            | Event::AskedToStepDown { .. }
            | Event::ReleaseFailed { .. }
            | Event::Departed { .. } => {}
        }
    }
    for (token, count) in ends {
        assert_eq!(count, 1, "term {token} ended {count} times");
    }
    all
}

/// The deadline of the last renewal that was reported.
pub(crate) fn last_deadline(events: &[Event]) -> Option<Moment> {
    events.iter().rev().find_map(|event| match event {
        Event::Acquired { until, .. } | Event::Renewed { until, .. } => Some(*until),
        _ => None,
    })
}
