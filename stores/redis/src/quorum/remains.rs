//! What an acquisition leaves in members when it comes to no term: it is let go of, or it would hold everybody up for a ttl,
//! and nobody could see it.
//!
//! Only what was taken and never confirmed is let go of, and that by the attempt's own name: a term is left alone, also one of
//! this attempt that was granted before or is granted later. Where this comes between the taking and the confirming of a
//! repeated try, the member confirms nothing, and is taken anew.

use super::candidacy::on_record;
use super::{Effect, Quorum};
use crate::fault::Deed;
use crate::script::UNDO;
use crate::site::{Site, subject};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::{Acquire, Acquired, Attempt, FencingToken, Incarnation, LeaseName, Release, StoreError};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

/// Acquisitions whose remains are let go of at once. What those beyond it leave runs out with its ttl.
const LETTING_GO_MAX: usize = 1_024;

/// Before members that did not answer are asked again: at first, and at most.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// How long one member is waited for.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// Who asks for what.
type Key = (LeaseName, Incarnation);

/// The acquisitions under way, and those that left something.
pub(super) struct Tries {
    latest: Mutex<Latest>,
    turns: Arc<Semaphore>,
}

/// The last acquisition of each: its number, and what lets go of its remains once it has ended.
#[derive(Default)]
struct Latest {
    begun: u64,
    by_key: BTreeMap<Key, (u64, Option<LettingGo>)>,
}

/// Remains that are being let go of.
struct LettingGo {
    task: AbortHandle,
    attempt: Attempt,
    members: BTreeSet<usize>,
    /// The attempt is over, and what members have confirmed for it is being given back.
    is_split: bool,
}

impl Default for Tries {
    fn default() -> Self {
        Self {
            latest: Mutex::default(),
            turns: Arc::new(Semaphore::new(LETTING_GO_MAX)),
        }
    }
}

impl Tries {
    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, key: &Key, number: u64) {
        let mut latest = self.lock();
        if latest.by_key.get(key).is_some_and(|(last, _)| *last == number) {
            latest.by_key.remove(key);
        }
    }
}

/// One acquisition. Dropped, however it ended, it has its remains let go of.
pub(super) struct Try {
    quorum: Arc<Quorum>,
    thread: Handle,
    request: Acquire,
    number: u64,
    /// What rounds may have done: a later one does not undo it.
    pub(super) effect: Effect,
    /// Members that are being asked to take it.
    asked: BTreeSet<usize>,
    /// Members that have taken it, or may have.
    taken: BTreeSet<usize>,
    /// What members have confirmed for it, or may have.
    tokens: BTreeSet<FencingToken>,
    /// None of its tokens is ever anybody's.
    is_split: bool,
    /// No other one of the same process was under way, or had left anything, when this one began.
    pub(super) is_alone: bool,
    /// It is one of an attempt that was split, and is being given back.
    pub(super) is_over: bool,
    /// Members were asked to confirm a token that was guessed.
    has_guessed: bool,
}

impl Try {
    /// The one before of the same process is over: what it left is this one's, if it is the same attempt. That of an earlier attempt
    /// goes on being let go of, and is nothing to this one.
    pub(super) fn begin(quorum: &Arc<Quorum>, request: &Acquire) -> Self {
        let key = (request.name.clone(), request.candidate.incarnation);
        let mut latest = quorum.tries.lock();
        latest.begun += 1;
        let number = latest.begun;
        let mut taken = BTreeSet::new();
        let before = latest.by_key.remove(&key);
        let is_alone = before.is_none();
        // Whoever was not told that would be granted what is given back just now.
        let is_over = before.as_ref().is_some_and(|(_, before)| {
            let before = before.as_ref();
            before.is_some_and(|before| before.is_split && before.attempt == request.attempt)
        });
        match before {
            Some(before) if is_over => {
                latest.by_key.insert(key, before);
            }
            before => {
                latest.by_key.insert(key, (number, None));
                if let Some((_, Some(before))) = before
                    && before.attempt == request.attempt
                {
                    before.task.abort();
                    taken = before.members;
                }
            }
        }
        drop(latest);
        Self {
            quorum: Arc::clone(quorum),
            thread: Handle::current(),
            request: request.clone(),
            number,
            effect: Effect::Nothing,
            asked: BTreeSet::new(),
            taken,
            tokens: BTreeSet::new(),
            is_split: false,
            is_alone,
            is_over,
            has_guessed: false,
        }
    }

    /// These members are about to be asked to take it.
    pub(super) fn asks(&mut self, members: impl IntoIterator<Item = usize>) {
        self.asked.extend(members);
    }

    /// Whether these members hold it for all that is known now; of others that were asked, what was known before holds.
    pub(super) fn hears(&mut self, members: impl IntoIterator<Item = (usize, bool)>) {
        for (member, takes) in members {
            match takes {
                true => self.taken.insert(member),
                false => self.taken.remove(&member),
            };
        }
        self.asked.clear();
    }

    /// A member may confirm this token, or has.
    pub(super) fn confirms(&mut self, token: FencingToken) {
        self.tokens.insert(token);
    }

    /// A member may confirm this token, which was guessed: this is the first request of its attempt.
    pub(super) fn guesses(&mut self, token: FencingToken) {
        self.has_guessed = true;
        self.confirms(token);
    }

    /// Whether members may have confirmed a token that was guessed, and no other request of the attempt can be granted it.
    pub(super) fn leaves_a_guess(&self) -> bool {
        let key = (self.request.name.clone(), self.request.candidate.incarnation);
        let is_last = |(last, _): &(u64, _)| *last == self.number;
        self.has_guessed
            && !self.taken.is_empty()
            && self.quorum.tries.lock().by_key.get(&key).is_some_and(is_last)
    }

    /// It has come to a term.
    pub(super) fn is_granted(&mut self) {
        self.asked.clear();
        self.taken.clear();
    }

    /// Members have confirmed different tokens for this attempt, and would for as long as it is repeated, each time holding
    /// up everybody else. A later attempt takes all of them anew.
    ///
    /// Nobody asks by this attempt any more, and one that was not heard may have completed the majority of a token: they are
    /// given back.
    pub(super) fn split(&mut self) -> Acquired {
        self.is_split = true;
        Acquired::Superseded
    }

    /// Has one member let go of what it took and did not confirm.
    pub(super) fn undo(&self, site: Arc<Site>) -> impl Future<Output = Result<(), StoreError>> + use<> {
        undo(site, self.request.clone())
    }

    fn remains(&self) -> Remains {
        let release = |token: &FencingToken| Release {
            name: self.request.name.clone(),
            incarnation: self.request.candidate.incarnation,
            token: *token,
            attempt: self.request.attempt,
        };
        match self.is_split {
            true => Remains {
                members: (0..self.quorum.members.len()).collect(),
                given_back: self.tokens.iter().map(release).collect(),
            },
            false => Remains {
                members: &self.asked | &self.taken,
                given_back: Vec::new(),
            },
        }
    }
}

impl Drop for Try {
    fn drop(&mut self) {
        let key = (self.request.name.clone(), self.request.candidate.incarnation);
        let (quorum, number, remains) = (Arc::clone(&self.quorum), self.number, self.remains());
        let turn = Arc::clone(&quorum.tries.turns).try_acquire_owned();
        let (false, Ok(turn)) = (remains.members.is_empty(), turn) else {
            return quorum.tries.forget(&key, number);
        };
        let mut latest = self.quorum.tries.lock();
        let (request, of_whom) = (self.request.clone(), key.clone());
        let members = remains.members.clone();
        let task = self.thread.spawn(async move {
            remains.let_go(&quorum, &request).await;
            quorum.tries.forget(&of_whom, number);
            drop(turn);
        });
        // One that was given up may be dropped only after the next has begun, which does not know of it then.
        if let Some((last, letting_go)) = latest.by_key.get_mut(&key)
            && *last == number
        {
            *letting_go = Some(LettingGo {
                task: task.abort_handle(),
                attempt: self.request.attempt,
                members,
                is_split: self.is_split,
            });
        }
    }
}

/// What is to be let go of.
struct Remains {
    members: BTreeSet<usize>,
    given_back: Vec<Release>,
}

impl Remains {
    /// Asks the members until each has answered, or all of it has run out.
    async fn let_go(self, quorum: &Quorum, request: &Acquire) {
        let runs_out = Instant::now() + Duration::from_millis(request.ttl.as_millis());
        let (mut members, mut pause) = (self.members, PAUSE);
        loop {
            // Not as a member is asked otherwise: whether it is silent is for those to know who wait for it.
            let mut asked = JoinSet::new();
            for place in members.iter().copied() {
                let site = Arc::clone(&quorum.members[place].site);
                let asking = let_go_in(site, request.clone(), self.given_back.clone());
                asked.spawn(async move { (place, tokio::time::timeout(ANSWER_TIME_MAX, asking).await) });
            }
            while let Some(answer) = asked.join_next().await {
                if let Ok((place, Ok(Ok(())))) = answer {
                    members.remove(&place);
                }
            }
            if members.is_empty() || Instant::now() + pause > runs_out {
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }
}

async fn let_go_in(site: Arc<Site>, request: Acquire, given_back: Vec<Release>) -> Result<(), StoreError> {
    for released in site.release(&given_back).await {
        released?;
    }
    undo(site, request).await
}

async fn undo(site: Arc<Site>, request: Acquire) -> Result<(), StoreError> {
    let arguments = on_record(&site, &request.name)
        .with(request.candidate.incarnation)
        .with(request.attempt);
    site.run(&UNDO, &arguments, Deed::Write, &subject(&request.name))
        .await?;
    Ok(())
}
