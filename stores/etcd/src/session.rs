//! Sessions: one for all leases of the process with the same ttl, so that one request extends them all.

use crate::attached::{Attached, Member, Put, Sitting};
use crate::clock;
use crate::fault::Failure;
use crate::lane::Lane;
use crate::wire::lease::{LeaseGrantRequest, LeaseGrantResponse};
use crate::wire::path;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::{FencingToken, LeaseName, Moment, Ttl};
use tonic::Status;

/// Most sessions, which is most different ttls, at one time.
const SESSIONS_MAX: usize = 1_000;

/// How much longer than a lease its session lasts, in seconds: for so long after an extension a lease may be put on it that is to
/// last its whole ttl. So acquisitions in a row extend it once a second, and not each.
const SPARE_S: u64 = 1;

/// The shortest ttl whose sessions have that to spare, in seconds. It is what a dead holder's lease may last longer: a tenth
/// at most.
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
    /// Held while what was abandoned on it is ended: once at a time.
    pub(crate) endings: tokio::sync::Mutex<()>,
}

struct State {
    /// From when on it lives its whole ttl at least.
    alive_from: Moment,
    /// There is no such session any more.
    gone: bool,
    attached: Attached,
}

impl Session {
    fn new(id: i64, ttl: Ttl, spare: Duration, alive_from: Moment) -> Self {
        let state = State {
            alive_from,
            gone: false,
            attached: Attached::default(),
        };
        Self {
            id,
            ttl,
            spare,
            state: Mutex::new(state),
            serial: AtomicU64::new(0),
            endings: tokio::sync::Mutex::default(),
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

    /// A lease is about to be put on it. It stays a member whatever the answer, so that it is not kept alive for ever if
    /// nobody hears the answer.
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

    /// Whether the lease is on it by this very term, as far as is known here. If so, its holder has asked now.
    pub(crate) fn holds(&self, sitting: &Sitting, token: FencingToken) -> bool {
        self.state().attached.holds(sitting, token)
    }

    /// Whether a key of the lease that is on it, and was before this is asked, can only be this term's.
    pub(crate) fn holds_alone(&self, sitting: &Sitting, token: FencingToken) -> bool {
        self.state().attached.holds_alone(sitting, token)
    }

    /// Whether there are any whose holders have not asked for a whole ttl: whoever extends the session must not extend them.
    pub(crate) fn has_abandoned(&self) -> bool {
        self.state().attached.has_abandoned(self.ttl.duration())
    }

    /// Those; from now on they count as held by nobody. Each is to be dismissed once its key is gone.
    pub(crate) fn begin_ending(&self) -> Vec<Member> {
        self.state().attached.begin_ending(self.ttl.duration())
    }
}

/// The sessions of the process.
#[derive(Default)]
pub(crate) struct Sessions {
    by_seconds: Mutex<HashMap<u64, Arc<Session>>>,
    /// Held while a session is asked for: several that need it ask once. Nobody else waits for it.
    granting: tokio::sync::Mutex<()>,
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
        let _turn = self.granting.lock().await;
        if let Some(session) = self.standing(seconds) {
            return Ok(session);
        }
        if self.all().len() >= SESSIONS_MAX {
            return Err(Failure::Status(Status::resource_exhausted(format!(
                "leases with {SESSIONS_MAX} different ttls are held already; use the same ttl for more of them"
            ))));
        }
        let session = Arc::new(grant(lane, seconds).await?);
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

    /// A lease was put on a session. Where it was before, by an earlier term or by this one, it is no more: a key that is
    /// on a session under its name must not be taken for theirs.
    pub(crate) fn confirm(&self, session: &Session, name: &LeaseName, holder: &[u8], put: Put) {
        session.state().attached.confirm(name, holder, put);
        let all = self.all();
        // Answers may come in another order than the writes.
        let puts = all.iter().filter_map(|one| one.state().attached.last_put(name));
        let last = puts.max().unwrap_or(put.revision);
        for one in all {
            one.keep(name, |member| !member.was_put_before(last));
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
