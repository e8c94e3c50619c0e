//! The acquisitions under way, and what each knows of what it has done to the members.

use super::remains::{Remains, undo};
use super::token::Mine;
use super::{Effect, Quorum};
use crate::site::Site;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenure_core::{Acquire, Acquired, Attempt, FencingToken, Incarnation, LeaseName, Release, StoreError};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// Acquisitions whose remains are let go of at once. What those beyond it leave runs out with its ttl.
const LETTING_GO_MAX: usize = 1_024;

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
    by_key: BTreeMap<Key, Last>,
}

/// The last acquisition of somebody.
struct Last {
    number: u64,
    attempt: Attempt,
    /// The attempt is over, and what members have confirmed for it is given back.
    is_over: bool,
    /// Another of the same attempt was under way when it began, and may have been granted a token.
    is_shared: bool,
    /// Once it has ended.
    letting_go: Option<LettingGo>,
}

/// Remains that are being let go of.
struct LettingGo {
    task: AbortHandle,
    members: BTreeSet<usize>,
    tokens: BTreeSet<FencingToken>,
    has_guessed: bool,
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
}

impl Latest {
    /// The last acquisition of somebody, if it is this one.
    fn of(&mut self, key: &Key, number: u64) -> Option<&mut Last> {
        self.by_key.get_mut(key).filter(|last| last.number == number)
    }

    fn forget(&mut self, key: &Key, number: u64) {
        if self.of(key, number).is_some() {
            self.by_key.remove(key);
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
    /// No lower one can ever have a majority.
    below: Option<FencingToken>,
    /// None of its tokens is ever anybody's.
    is_split: bool,
    /// No other one of the same process was under way, or had left anything, when this one began.
    pub(super) is_alone: bool,
    /// It is one of an attempt that was split, and is being given back.
    pub(super) is_over: bool,
    /// A token was guessed for its attempt, and nobody was granted it.
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
        let (mut taken, mut tokens) = (BTreeSet::new(), BTreeSet::new());
        let mut has_guessed = false;
        let before = latest.by_key.remove(&key);
        let is_alone = before.is_none();
        let before = before.filter(|before| before.attempt == request.attempt);
        // Whoever was not told that would be granted what is given back just now.
        let is_over = before.as_ref().is_some_and(|before| before.is_over);
        match before {
            Some(before) if is_over => {
                latest.by_key.insert(key, before);
            }
            before => {
                let last = Last {
                    number,
                    attempt: request.attempt,
                    is_over: false,
                    is_shared: before
                        .as_ref()
                        .is_some_and(|before| before.is_shared || before.letting_go.is_none()),
                    letting_go: None,
                };
                latest.by_key.insert(key, last);
                if let Some(left) = before.and_then(|before| before.letting_go) {
                    left.task.abort();
                    (taken, tokens, has_guessed) = (left.members, left.tokens, left.has_guessed);
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
            tokens,
            below: None,
            is_split: false,
            is_alone,
            is_over,
            has_guessed,
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

    /// Gives up a guess that may still have a majority; nothing where it was found, or another request of the attempt goes on with it.
    ///
    /// Nobody was granted it, and nobody is from now on: whoever asks by the same attempt is told that it is over.
    pub(super) fn gives_way(&mut self) -> Option<Acquired> {
        let key = (self.request.name.clone(), self.request.candidate.incarnation);
        let mut latest = self.quorum.tries.lock();
        let last = latest.of(&key, self.number)?;
        if !self.has_guessed {
            return None;
        }
        last.is_over = true;
        drop(latest);
        Some(self.split())
    }

    /// Whether members may have confirmed one.
    pub(super) fn has_tokens(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// Members have answered so that no lower token can ever have a majority.
    pub(super) fn is_nothing_below(&mut self, token: Option<FencingToken>) {
        self.below = self.below.max(token);
    }

    /// Whether a member that has this need not go on with it.
    pub(super) fn lets_go_of(&self, mine: &Mine) -> bool {
        !mine.is_confirmed() || mine.token < self.below
    }

    /// It has come to a term. Members that have confirmed a lower token for it let go of that, and may take this one in.
    pub(super) fn is_granted(&mut self, token: FencingToken) {
        self.asked.clear();
        if self.tokens.iter().all(|other| *other >= token) {
            self.taken.clear();
        }
        self.below = self.below.max(Some(token));
    }

    /// Members have confirmed different tokens for this attempt, and would for as long as it is repeated, each time holding
    /// up everybody else. A later attempt takes all of them anew.
    ///
    /// Nobody asks by this attempt any more, and one that was not heard may have completed the majority of a token: they are
    /// given back, unless another request of the attempt is about, which may have been granted one of them.
    pub(super) fn split(&mut self) -> Acquired {
        self.is_split = true;
        Acquired::Superseded
    }

    /// Has one member let go of what it took, and of no token that may have a majority.
    pub(super) fn undo(&self, site: Arc<Site>) -> impl Future<Output = Result<(), StoreError>> + use<> {
        undo(site, self.request.clone(), self.below)
    }

    /// Whether its tokens are its own, and none of them is ever anybody's.
    fn gives_back(&self, latest: &mut Latest, key: &Key) -> bool {
        self.is_split && latest.of(key, self.number).is_some_and(|last| !last.is_shared)
    }

    fn remains(&self, latest: &mut Latest, key: &Key) -> Remains {
        let release = |token: &FencingToken| Release {
            name: self.request.name.clone(),
            incarnation: self.request.candidate.incarnation,
            token: *token,
            attempt: self.request.attempt,
        };
        Remains {
            members: match self.is_split {
                true => (0..self.quorum.members.len()).collect(),
                false => &self.asked | &self.taken,
            },
            given_back: match self.gives_back(latest, key) {
                true => self.tokens.iter().map(release).collect(),
                false => Vec::new(),
            },
            below: self.below,
        }
    }
}

impl Drop for Try {
    fn drop(&mut self) {
        let key = (self.request.name.clone(), self.request.candidate.incarnation);
        let (quorum, number) = (Arc::clone(&self.quorum), self.number);
        let mut latest = self.quorum.tries.lock();
        let remains = self.remains(&mut latest, &key);
        let turn = Arc::clone(&quorum.tries.turns).try_acquire_owned();
        let (false, Ok(turn)) = (remains.members.is_empty(), turn) else {
            return latest.forget(&key, number);
        };
        let is_given_back = self.gives_back(&mut latest, &key);
        let (request, of_whom) = (self.request.clone(), key.clone());
        let members = remains.members.clone();
        let task = self.thread.spawn(async move {
            remains.let_go(&quorum, &request).await;
            quorum.tries.lock().forget(&of_whom, number);
            drop(turn);
        });
        // One that was given up may be dropped only after the next has begun, which does not know of it then.
        if let Some(last) = latest.of(&key, number) {
            last.is_over |= is_given_back;
            last.letting_go = Some(LettingGo {
                task: task.abort_handle(),
                members,
                tokens: self.tokens.clone(),
                has_guessed: self.has_guessed,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::member::Member;
    use super::super::{Quorum, adopt};
    use super::{Key, Tries, Try};
    use crate::url::StoreUrl;
    use std::sync::Arc;
    use tenure_core::{
        Acquire, Attempt, Candidate, CandidateId, Durability, FencingToken, Incarnation, LeaseName, Note, Ttl,
    };

    /// Of members that nobody reaches.
    fn quorum() -> Arc<Quorum> {
        let url = StoreUrl::parse("redis+quorum://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3").unwrap();
        Arc::new(Quorum {
            members: url.members().into_iter().map(Member::new).collect(),
            place: url.shown(),
            durability: Durability::Safe,
            adoptions: adopt::turns(),
            tries: Tries::default(),
            rivals: Default::default(),
        })
    }

    fn asked() -> Acquire {
        Acquire {
            name: LeaseName::new("job").unwrap(),
            candidate: Candidate {
                id: CandidateId::new("a").unwrap(),
                incarnation: Incarnation::from_bits(1),
            },
            attempt: Attempt::FIRST,
            ttl: Ttl::MIN,
            note: Note::default(),
        }
    }

    /// How many tokens it gives back.
    fn given_back(quorum: &Quorum, trying: &Try) -> usize {
        let key: Key = (trying.request.name.clone(), trying.request.candidate.incarnation);
        trying.remains(&mut quorum.tries.lock(), &key).given_back.len()
    }

    fn split(trying: &mut Try, tokens: &[u64]) {
        for token in tokens {
            trying.confirms(FencingToken::new(*token).unwrap());
        }
        trying.split();
    }

    #[tokio::test]
    async fn duplicate_that_is_split_gives_back_no_token_that_its_twin_may_have_been_granted() {
        let quorum = quorum();
        let (mut one, mut other) = (Try::begin(&quorum, &asked()), Try::begin(&quorum, &asked()));
        split(&mut one, &[7, 9]);
        split(&mut other, &[9]);
        assert_eq!(given_back(&quorum, &one), 0, "the other goes on");
        assert_eq!(
            given_back(&quorum, &other),
            0,
            "the one before may have been granted it"
        );
        drop((one, other));
        let mut later = Try::begin(&quorum, &asked());
        assert!(!later.is_over, "nothing was given back");
        split(&mut later, &[9]);
        assert_eq!(
            given_back(&quorum, &later),
            0,
            "nor does one that comes later know"
        );
    }

    #[tokio::test]
    async fn request_that_is_split_and_was_the_only_one_of_its_attempt_gives_its_tokens_back() {
        let quorum = quorum();
        let mut only = Try::begin(&quorum, &asked());
        split(&mut only, &[7, 9]);
        assert_eq!(given_back(&quorum, &only), 2);
        drop(only);
        assert!(Try::begin(&quorum, &asked()).is_over);
    }
}
