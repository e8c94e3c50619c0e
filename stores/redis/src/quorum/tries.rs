//! An acquisition under way, and what it knows of what it has done to the members.

use super::latest::{Key, Latest, LettingGo};
use super::remains::{Remains, undo};
use super::token::Mine;
use super::{Effect, Quorum};
use crate::site::Site;
use std::collections::BTreeSet;
use std::sync::Arc;
use tenure_core::{Acquire, Acquired, FencingToken, Release, StoreError};
use tokio::runtime::Handle;

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
}

impl Try {
    /// The one before of the same process is over: what it left is this one's, if it is the same attempt.
    /// That of an earlier attempt goes on being let go of, and is nothing to this one.
    pub(super) fn begin(quorum: &Arc<Quorum>, request: &Acquire) -> Self {
        let begun = quorum.tries.lock().begin(&key_of(request), request.attempt);
        let (mut taken, mut tokens) = (BTreeSet::new(), BTreeSet::new());
        if let Some(left) = begun.left {
            left.task.abort();
            (taken, tokens) = (left.members, left.tokens);
        }
        Self {
            quorum: Arc::clone(quorum),
            thread: Handle::current(),
            request: request.clone(),
            number: begun.number,
            effect: Effect::Nothing,
            asked: BTreeSet::new(),
            taken,
            tokens,
            below: None,
            is_split: false,
            is_alone: begun.is_alone,
            is_over: begun.is_over,
        }
    }

    /// These members are about to be asked to take it.
    pub(super) fn asks(&mut self, members: impl IntoIterator<Item = usize>) {
        self.asked.extend(members);
    }

    /// Whether these members hold it for all that is known now; of others that were asked, what was known
    /// before holds.
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

    /// Gives up a guess that may still have a majority; nothing where another request of the attempt was
    /// granted a token, or may be.
    ///
    /// Nobody was granted it, and nobody is from now on: whoever asks by the same attempt is told that it is
    /// over.
    pub(super) fn gives_way(&mut self) -> Option<Acquired> {
        let mut latest = self.quorum.tries.lock();
        latest.sole(&key_of(&self.request), self.number)?.is_over = true;
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

    /// It has come to a term. Members that have confirmed a lower token for it let go of that, and may take
    /// this one in.
    pub(super) fn is_granted(&mut self, token: FencingToken) {
        let key = key_of(&self.request);
        let mut latest = self.quorum.tries.lock();
        latest.is_granted(&key, self.request.attempt, token);
        drop(latest);
        self.asked.clear();
        if self.tokens.iter().all(|other| *other >= token) {
            self.taken.clear();
        }
        self.below = self.below.max(Some(token));
    }

    /// Members have confirmed different tokens for this attempt, and would for as long as it is repeated,
    /// each time holding up everybody else. A later attempt takes all of them anew.
    ///
    /// Nobody asks by this attempt any more, and one that was not heard may have completed the majority of a
    /// token: they are given back, unless another request of the attempt was granted one of them, or may be.
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
        self.is_split && latest.sole(key, self.number).is_some()
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
        let key = key_of(&self.request);
        let (quorum, number) = (Arc::clone(&self.quorum), self.number);
        let mut latest = self.quorum.tries.lock();
        let remains = self.remains(&mut latest, &key);
        let (false, Some(turn)) = (remains.members.is_empty(), quorum.tries.turn()) else {
            return latest.end(&key, number, None, false);
        };
        let is_given_back = self.gives_back(&mut latest, &key);
        let (request, of_whom) = (self.request.clone(), key.clone());
        let members = remains.members.clone();
        let task = self.thread.spawn(async move {
            remains.let_go(&quorum, &request).await;
            quorum.tries.lock().has_let_go(&of_whom, number);
            drop(turn);
        });
        let left = LettingGo {
            task: task.abort_handle(),
            members,
            tokens: self.tokens.clone(),
        };
        latest.end(&key, number, Some(left), is_given_back);
    }
}

fn key_of(request: &Acquire) -> Key {
    (request.name.clone(), request.candidate.incarnation)
}

#[cfg(test)]
mod tests {
    use super::super::Quorum;
    use super::{Try, key_of};
    use crate::membership::Membership;
    use crate::url::StoreUrl;
    use std::sync::Arc;
    use tenure_core::{
        Acquire, Attempt, Candidate, CandidateId, Durability, FencingToken, Incarnation, LeaseName, Note, Ttl,
    };

    /// Of members that nobody reaches.
    fn quorum() -> Arc<Quorum> {
        let url = StoreUrl::parse("redis+quorum://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3").unwrap();
        let mut quorum = Quorum::of(&url, Membership::unchecked(Vec::new()));
        quorum.durability = Durability::Safe;
        Arc::new(quorum)
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
        let key = key_of(&trying.request);
        trying.remains(&mut quorum.tries.lock(), &key).given_back.len()
    }

    fn token(number: u64) -> FencingToken {
        FencingToken::new(number).unwrap()
    }

    fn split(trying: &mut Try, tokens: &[u64]) {
        tokens.iter().for_each(|number| trying.confirms(token(*number)));
        trying.split();
    }

    #[tokio::test]
    async fn duplicate_that_is_split_gives_back_no_token_that_its_twin_may_have_been_granted() {
        let quorum = quorum();
        let (mut one, mut other) = (Try::begin(&quorum, &asked()), Try::begin(&quorum, &asked()));
        split(&mut one, &[7, 9]);
        split(&mut other, &[9]);
        assert_eq!(given_back(&quorum, &one), 0, "the other goes on");
        assert_eq!(given_back(&quorum, &other), 0, "the one before goes on, too");
        drop(other);
        drop(one);
        let mut later = Try::begin(&quorum, &asked());
        assert!(!later.is_over, "nothing was given back");
        split(&mut later, &[9]);
        assert_eq!(given_back(&quorum, &later), 1, "neither was granted any");
    }

    #[tokio::test]
    async fn request_that_is_made_again_gives_back_no_token_until_the_one_that_was_granted_is_over() {
        for tokens in [&[9][..], &[7, 9]] {
            let quorum = quorum();
            let mut first = Try::begin(&quorum, &asked());
            tokens.iter().for_each(|number| first.confirms(token(*number)));
            first.is_granted(token(9));
            drop(first);
            for _ in 0..2 {
                let mut again = Try::begin(&quorum, &asked());
                assert!(again.gives_way().is_none(), "{tokens:?}: granted");
                split(&mut again, &[9]);
                assert_eq!(given_back(&quorum, &again), 0, "{tokens:?}");
            }
            // The end of an earlier term is not that of this one.
            let (name, incarnation) = key_of(&asked());
            quorum.tries.believe_no_longer(&name, incarnation, token(8));
            let mut again = Try::begin(&quorum, &asked());
            split(&mut again, &[9]);
            assert_eq!(given_back(&quorum, &again), 0, "{tokens:?}: believed");
            drop(again);
            quorum.tries.believe_no_longer(&name, incarnation, token(9));
            let mut again = Try::begin(&quorum, &asked());
            split(&mut again, &[9]);
            assert!(given_back(&quorum, &again) > 0, "{tokens:?}: given back before");
        }
    }

    #[tokio::test]
    async fn what_was_granted_is_remembered_though_an_earlier_attempt_is_asked_for_late() {
        let quorum = quorum();
        let next = Acquire {
            attempt: Attempt::FIRST.next(),
            ..asked()
        };
        let mut granted = Try::begin(&quorum, &next);
        granted.is_granted(token(9));
        drop(granted);
        drop(Try::begin(&quorum, &asked()));
        let mut again = Try::begin(&quorum, &next);
        assert!(again.is_alone, "nobody is at it");
        split(&mut again, &[9]);
        assert_eq!(given_back(&quorum, &again), 0);
    }

    #[tokio::test]
    async fn guess_that_gives_way_is_that_of_the_only_request_of_its_attempt() {
        let quorum = quorum();
        let (mut one, mut other) = (Try::begin(&quorum, &asked()), Try::begin(&quorum, &asked()));
        assert!(one.gives_way().is_none() && other.gives_way().is_none());
        drop(one);
        assert!(other.gives_way().is_some(), "the other was granted nothing");
        assert!(Try::begin(&quorum, &asked()).is_over);
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
