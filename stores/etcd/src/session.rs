//! Sessions: one for all leases of the process with the same ttl, so that one request extends them all.

use crate::attached::{Attached, Member, Put, Sitting};
use crate::beat::Listing;
use crate::clock;
use crate::fault::Failure;
use crate::lane::Lane;
use crate::shared::Shared;
use crate::wire::lease::{LeaseGrantRequest, LeaseGrantResponse};
use crate::wire::path;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::{FencingToken, LeaseName, Moment, Ttl};
use tenure_remote::TriedInVain;
use tonic::Status;

/// Most sessions, which is most different ttls, at one time.
const SESSIONS_MAX: usize = 1_000;

/// How much longer than a lease its session lasts, in seconds: for so long after an extension a lease may be
/// put on it that is to last its whole ttl. So acquisitions in a row extend it once a second, and not each.
const SPARE_S: u64 = 1;

/// The shortest ttl whose sessions have that to spare, in seconds. It is what a dead holder's lease may last
/// longer: a tenth at most.
const SPARE_FROM_S: u64 = 10;

/// A session of this process.
pub(crate) struct Session {
    pub(crate) id: i64,
    /// What each lease on it is granted.
    pub(crate) ttl: Ttl,
    /// What the server granted beside that, and grants with each extension.
    spare: Duration,
    state: Mutex<State>,
    /// How many values of holders were made for it.
    serial: AtomicU64,
    /// Held while it is cleared of what nobody holds: once at a time.
    pub(crate) clearing: tokio::sync::Mutex<()>,
    /// Which keys are on it: they are all told at once, whoever asks for some of them.
    pub(crate) listing: Shared<Result<Arc<Listing>, Failure>>,
}

struct State {
    /// From when on it lives its whole ttl at least.
    alive_from: Moment,
    /// There is no such session any more.
    gone: bool,
    attached: Attached,
    /// When it is to be cleared next.
    clear_at: Instant,
}

impl Session {
    fn new(id: i64, ttl: Ttl, spare: Duration, alive_from: Moment) -> Self {
        let state = State {
            alive_from,
            gone: false,
            attached: Attached::default(),
            clear_at: Instant::now() + ttl.duration(),
        };
        Self {
            id,
            ttl,
            spare,
            state: Mutex::new(state),
            serial: AtomicU64::new(0),
            clearing: tokio::sync::Mutex::default(),
            listing: Shared::default(),
        }
    }

    /// A number that no other value of a holder on this session has.
    pub(crate) fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a lease that was asked for at `sent` lasts its whole ttl on it, as far as is known here.
    pub(crate) fn is_fresh(&self, sent: Moment) -> bool {
        self.state().alive_from.after(self.spare) >= sent
    }

    /// It was extended, and lives its whole ttl from `sent` on at least.
    pub(crate) fn extended(&self, sent: Moment) {
        let mut state = self.state();
        state.alive_from = state.alive_from.max(sent);
    }

    /// It is over.
    pub(crate) fn end(&self) {
        self.state().gone = true;
    }

    fn may_live(&self) -> bool {
        let state = self.state();
        !state.gone && clock::now().since(state.alive_from) < self.ttl.duration() + self.spare
    }

    /// A lease is about to be put on it. It is a member before that, and stays one if nobody hears the
    /// answer: so no key that somebody may trust in is taken for nobody's.
    pub(crate) fn admit(&self, sitting: &Sitting, holder: Vec<u8>) {
        self.state().attached.admit(sitting, holder);
    }

    /// It was not put on it, or is on it no more.
    pub(crate) fn dismiss(&self, name: &LeaseName, holder: &[u8]) {
        self.keep(name, |member| member.holder != holder);
    }

    fn keep(&self, name: &LeaseName, stays: impl Fn(&Member) -> bool) {
        self.state().attached.keep(name, stays);
    }

    /// Whether the lease is on it by this very term, as far as is known here. If so, its holder has asked
    /// now.
    pub(crate) fn holds(&self, sitting: &Sitting, token: FencingToken) -> bool {
        self.state().attached.holds(sitting, token)
    }

    /// Whether a key of the lease that is on it, and was at this revision and before this is asked, can only
    /// be this term's.
    pub(crate) fn holds_alone(&self, sitting: &Sitting, token: FencingToken, revision: i64) -> bool {
        self.state().attached.holds_alone(sitting, token, revision)
    }

    /// Whether there may be any that nobody holds: whoever extends the session must not extend them. So it is
    /// where holders have not asked for a whole ttl. Beside that it is looked at once a ttl: a request to put
    /// a lease on it may have arrived when nobody waited for it any more, and a server that was put back has
    /// what was given back since.
    pub(crate) fn is_to_be_cleared(&self) -> bool {
        let state = self.state();
        state.attached.has_abandoned(self.ttl.duration()) || state.clear_at <= Instant::now()
    }

    /// Those whose holders have not asked for a whole ttl count as held by nobody from now on, and their keys
    /// are to be removed.
    pub(crate) fn drop_abandoned(&self) {
        let mut state = self.state();
        if state.attached.drop_abandoned(self.ttl.duration()) {
            state.clear_at = Instant::now();
        }
    }

    /// Whether anybody may trust in the lease on it, as far as is known here.
    pub(crate) fn has(&self, name: &LeaseName) -> bool {
        self.state().attached.has(name)
    }

    /// Nothing is on it that nobody held at this moment, as far as it had arrived.
    pub(crate) fn was_cleared(&self, at: Instant) {
        self.state().clear_at = at + self.ttl.duration();
    }
}

/// The sessions of the process.
#[derive(Default)]
pub(crate) struct Sessions {
    by_seconds: Mutex<HashMap<u64, Arc<Session>>>,
    /// Held while a session is asked for: several that need it ask once. Nobody else waits for it.
    granting: tokio::sync::Mutex<()>,
    /// Sessions that were asked for of a cluster that did not answer.
    unanswered: TriedInVain<Failure>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Session>>> {
        self.by_seconds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of a ttl; a new one where there is none that may live.
    ///
    /// # Errors
    /// [`Failure`]: no lease was touched.
    pub(crate) async fn of(&self, lane: &Lane, seconds: u64) -> Result<Arc<Session>, Failure> {
        if let Some(session) = self.standing(seconds) {
            return Ok(session);
        }
        let unanswered_before = self.unanswered.count();
        let _turn = self.granting.lock().await;
        if let Some(session) = self.standing(seconds) {
            return Ok(session);
        }
        self.unanswered.since(unanswered_before)?;
        if self.all().len() >= SESSIONS_MAX {
            return Err(Failure::Status(Status::resource_exhausted(format!(
                "leases with {SESSIONS_MAX} different ttls are held already; use the same ttl for more of them"
            ))));
        }
        let granted = grant(lane, seconds).await;
        if let Err(failure) = &granted
            && failure.ends_connection()
        {
            self.unanswered.note(failure);
        }
        let session = Arc::new(granted?);
        let mut sessions = self.lock();
        sessions.retain(|_, session| session.may_live());
        sessions.insert(seconds, Arc::clone(&session));
        Ok(session)
    }

    /// The session of a ttl, if there is one that may live. Waits for nothing.
    pub(crate) fn standing(&self, seconds: u64) -> Option<Arc<Session>> {
        let session = self.lock().get(&seconds).cloned();
        session.filter(|session| session.may_live())
    }

    /// A lease was put on a session. Where it was before, by an earlier term or by this one, it is no more: a
    /// key that is on a session under its name must not be taken for theirs.
    pub(crate) fn confirm(&self, session: &Session, name: &LeaseName, holder: &[u8], put: Put) {
        session.state().attached.confirm(name, holder, put);
        let all = self.all();
        // Answers may come in another order than the writes.
        let puts = all.iter().filter_map(|one| one.state().attached.last_put(name));
        let last = puts.max().unwrap_or(put.revision);
        for one in all {
            // Not this one, whatever revisions say: those of a server that was put back begin anew.
            one.keep(name, |member| {
                member.holder == holder || !member.was_put_before(last)
            });
        }
    }

    /// A term was given back.
    pub(crate) fn dismiss(&self, sitting: &Sitting, token: FencingToken) {
        for session in self.all() {
            session.keep(&sitting.name, |member| !member.ended_with(sitting, token));
        }
    }

    /// Those that may live.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        let sessions: Vec<Arc<Session>> = self.lock().values().cloned().collect();
        sessions
            .into_iter()
            .filter(|session| session.may_live())
            .collect()
    }
}

/// Asks for a session. If the answer is lost it ends by itself: nothing is on it.
pub(crate) async fn grant(lane: &Lane, seconds: u64) -> Result<Session, Failure> {
    let sent = clock::now();
    let spare = if seconds < SPARE_FROM_S { 0 } else { SPARE_S };
    let ttl = i64::try_from(seconds + spare).unwrap_or(i64::MAX);
    let granted: LeaseGrantResponse = lane
        .unary(path::LEASE_GRANT, &LeaseGrantRequest { ttl, id: 0 })
        .await?;
    let odd = || {
        Failure::Status(Status::internal(format!(
            "a session of {ttl} s was granted as {} s {}",
            granted.ttl, granted.error
        )))
    };
    let ttl = u64::try_from(granted.ttl)
        .ok()
        .and_then(|granted| Ttl::from_secs(granted.checked_sub(spare)?).ok())
        .ok_or_else(odd)?;
    Ok(Session::new(granted.id, ttl, Duration::from_secs(spare), sent))
}

// No server can be made to go back between two requests.
#[cfg(test)]
mod tests {
    use super::{Session, Sessions};
    use crate::attached::{Put, Sitting};
    use crate::clock;
    use std::sync::Arc;
    use std::time::Duration;
    use tenure_core::{Attempt, FencingToken, LeaseName, Ttl};

    #[test]
    fn lease_that_is_taken_of_a_server_that_was_put_back_is_on_its_session() {
        let ttl = Ttl::from_secs(60).expect("a ttl");
        let session = Arc::new(Session::new(1, ttl, Duration::ZERO, clock::now()));
        let sessions = Sessions::default();
        sessions.lock().insert(60, Arc::clone(&session));
        let sitting = |digit: &str| Sitting {
            name: LeaseName::new("job").expect("a name"),
            incarnation: digit.repeat(32).parse().expect("32 digits"),
            attempt: Attempt::FIRST,
        };
        let token = |number| FencingToken::new(number).expect("a token");
        let take = |sitting: &Sitting, number: u64, revision: i64| {
            let holder = format!("{sitting:?}").into_bytes();
            session.admit(sitting, holder.clone());
            let token = token(number);
            sessions.confirm(&session, &sitting.name, &holder, Put { token, revision });
        };
        let (before, after) = (sitting("1"), sitting("2"));
        take(&before, 100, 100);
        take(&after, 60, 60);
        assert!(session.holds(&after, token(60)));
        // In the order of revisions the later one is there alone.
        take(&before, 101, 101);
        assert!(session.holds_alone(&before, token(101), 101));
    }
}
