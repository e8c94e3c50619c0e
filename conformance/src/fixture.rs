use crate::client::Client;
use crate::slowness::Slowness;
use crate::{Contender, Corruption, Hooked, Subject};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenure_core::{
    Attempt, Candidate, CandidateId, Fault, FencingToken, Grant, Incarnation, Interest, Lease, LeaseName,
    LeasePurge, Note, Scope, StoreTraits, Timekeeper, Ttl, Watch, WatchSource,
};
use tokio::time::Instant;

/// Shortest ttl that a case lets run out: below it, a loaded machine measures itself and not the store.
const SHORT: Duration = Duration::from_millis(300);

/// The ttl of a lease that must not run out during a case.
const LONG: Duration = Duration::from_secs(300);

/// What whole milliseconds and a clock that is being slewed may take from a ttl.
pub(crate) const CLOCK_GRAIN: Duration = Duration::from_millis(5);

/// What one case works with: two clients of one storage, fresh names, and the ways beneath the store.
pub struct Fixture {
    first: Client,
    second: Client,
    slowness: Slowness,
    unique: String,
    names: AtomicU64,
    // Declared last, so dropped last: it may own the server that the clients talk to.
    subject: Box<dyn Subject>,
}

/// A record as it was, to be compared with itself later: natively, or as the store reads it where the
/// storage cannot be read natively.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Snapshot {
    /// What [`Subject::raw`] answered.
    Raw(Option<String>),
    /// What [`LeaseStore::get`](tenure_core::LeaseStore::get) answered, without what time changes.
    Read(Option<Lease>),
}

impl Fixture {
    /// A fixture over `subject`.
    pub fn new(subject: impl Subject + 'static) -> Self {
        let slowness = Slowness::default();
        Self {
            first: Client::new(subject.store(), "first", slowness.clone()),
            second: Client::new(subject.other(), "second", slowness.clone()),
            slowness,
            unique: format!("conformance-{:016x}", random_bits()),
            names: AtomicU64::new(0),
            subject: Box::new(subject),
        }
    }

    /// Whether a renewal may be told as extended although its record cannot be read.
    pub(crate) fn renews_unread(&self) -> bool {
        self.subject.renews_unread()
    }

    /// Whether the clock by which a record expires may be set back.
    pub(crate) fn clock_may_be_set_back(&self) -> bool {
        self.subject.clock_may_be_set_back()
    }

    /// Whether its server was too slow for a request of a client.
    pub(crate) fn slowness(&self) -> Slowness {
        self.slowness.clone()
    }

    /// The first client.
    #[must_use]
    pub fn first(&self) -> &Client {
        &self.first
    }

    /// The second client, independent of the first.
    #[must_use]
    pub fn second(&self) -> &Client {
        &self.second
    }

    /// What the store is and can do.
    #[must_use]
    pub fn traits(&self) -> StoreTraits {
        self.first.store().traits()
    }

    /// A text that no other case and no other run has, and that every name of this case contains.
    #[must_use]
    pub fn unique(&self) -> &str {
        &self.unique
    }

    /// A lease name that nothing has used.
    #[must_use]
    pub fn name(&self) -> LeaseName {
        let number = self.names.fetch_add(1, Ordering::Relaxed);
        self.named(&format!("{}/lease-{number}", self.unique))
    }

    /// The lease with this name.
    ///
    /// # Panics
    /// On a text that no name can be.
    #[must_use]
    pub fn named(&self, text: &str) -> LeaseName {
        LeaseName::new(text).expect("a case gives a valid name")
    }

    /// A new process that asks for `name`, by its first attempt, with a ttl that does not run out.
    #[must_use]
    pub fn contender(&self, label: &str, name: &LeaseName) -> Contender {
        let bits = (u128::from(random_bits()) << 64) | u128::from(random_bits());
        Contender {
            name: name.clone(),
            candidate: Candidate {
                id: CandidateId::new(label).expect("a case gives a valid candidate id"),
                incarnation: Incarnation::from_bits(bits),
            },
            attempt: Attempt::FIRST,
            ttl: self.ttl_long(),
            note: Note::default(),
        }
    }

    /// The shortest ttl that a case lets run out: 300 ms, or the store's minimum.
    #[must_use]
    pub fn ttl_short(&self) -> Ttl {
        self.ttl_near(SHORT)
    }

    /// A ttl that does not run out during a case: five minutes, or the store's maximum.
    #[must_use]
    pub fn ttl_long(&self) -> Ttl {
        self.ttl_near(LONG)
    }

    /// The ttl nearest to `wanted` that the store keeps to.
    #[must_use]
    pub fn ttl_near(&self, wanted: Duration) -> Ttl {
        let StoreTraits { ttl_min, ttl_max, .. } = self.traits();
        let wanted = Ttl::try_from(wanted).expect("a case gives a valid ttl");
        wanted.clamp(ttl_min, ttl_max)
    }

    /// The most that can remain of a lease with this ttl: the ttl, and where a server times it a millisecond
    /// more, by which one whose clock shows whole milliseconds rounds up; or, where each observer times it
    /// for itself, a tenth more: the greatest error of a clock's rate that a timing takes.
    #[must_use]
    pub fn remaining_max(&self, ttl: Ttl) -> Duration {
        match self.traits().timekeeper {
            Timekeeper::Server => ttl.duration() + Duration::from_millis(1),
            Timekeeper::Session => ttl.duration(),
            Timekeeper::Observer => ttl.duration() + ttl.duration() / 10,
        }
    }

    /// Checks that a lease lasts its whole ttl from when it was asked for: who was granted it believes in it
    /// for so long. Where the store tells whole seconds, one that has begun counts: who waits for it must not
    /// come too early.
    ///
    /// # Panics
    /// If it ends before.
    pub fn assert_lasts(&self, lease: &Lease, sent: Instant) {
        let since = sent.elapsed();
        assert!(
            lease.remaining + since + CLOCK_GRAIN >= lease.ttl.duration(),
            "{:?} remain of {} at most {since:?} after it was asked for: {lease:?}",
            lease.remaining,
            lease.ttl
        );
    }

    /// How coarsely the store tells what remains of a lease and when it was renewed: the server of a session
    /// tells whole seconds.
    #[must_use]
    pub fn grain(&self) -> Duration {
        match self.traits().timekeeper {
            Timekeeper::Server | Timekeeper::Observer => Duration::ZERO,
            Timekeeper::Session => Duration::from_secs(1),
        }
    }

    /// Lets both clients look at the lease. Where each observer times it for itself, ages count from its
    /// look.
    pub async fn both_look(&self, name: &LeaseName) {
        let _first = self.first.lease(name).await;
        let _second = self.second.lease(name).await;
    }

    /// Takes the lease with a short ttl and waits until it has expired, by either client's reading.
    pub async fn let_expire(&self, contender: &Contender) -> Grant {
        let grant = self.first.take(&contender.with_ttl(self.ttl_short())).await;
        self.wait_until_free(&contender.name).await;
        grant
    }

    /// Waits until both clients read that the lease may be taken.
    pub async fn wait_until_free(&self, name: &LeaseName) {
        self.first.wait_until_free(name).await;
        self.second.wait_until_free(name).await;
    }

    /// The record as it is now.
    pub async fn snapshot(&self, name: &LeaseName) -> Snapshot {
        match self.subject.raw(name).await {
            Hooked::Done(record) => Snapshot::Raw(record),
            Hooked::Unsupported(reason) => {
                assert_reason("raw", reason);
                Snapshot::Read(self.first.get(name).await.map(timeless))
            }
        }
    }

    /// Checks that the record is what it was.
    pub async fn assert_unchanged(&self, name: &LeaseName, before: &Snapshot, after_what: &str) {
        let now = self.snapshot(name).await;
        assert_eq!(
            &now, before,
            "the record of \"{name}\" changed after {after_what}"
        );
    }

    /// Damages the record of `name`. `false` if the storage makes that impossible; then it is checked that
    /// the record is what it was, and still readable.
    pub async fn corrupt(&self, name: &LeaseName, corruption: Corruption) -> bool {
        let before = self.snapshot(name).await;
        match self.subject.corrupt(name, corruption).await {
            Hooked::Done(()) => {
                if matches!(before, Snapshot::Raw(_)) {
                    let now = self.snapshot(name).await;
                    assert_ne!(now, before, "the hook did not apply {corruption:?} to \"{name}\"");
                }
                true
            }
            Hooked::Unsupported(reason) => {
                assert_reason("corrupt", reason);
                self.assert_unchanged(name, &before, "a refused corruption").await;
                let _readable = self.first.lease(name).await;
                false
            }
        }
    }

    /// Leaves something under a key that is no name. `false` if the storage has no such keys.
    pub async fn stray(&self, key: &str) -> bool {
        match self.subject.stray(key).await {
            Hooked::Done(()) => true,
            Hooked::Unsupported(reason) => {
                assert_reason("stray", reason);
                false
            }
        }
    }

    /// Removes the record of `name`. `false` if the storage makes that impossible; then it is checked that
    /// the record is still there.
    pub async fn purge(&self, name: &LeaseName) -> bool {
        match self.subject.purge(name).await {
            Hooked::Done(()) => {
                let left = self.first.get(name).await;
                assert_eq!(left, None, "the hook did not remove the record of \"{name}\"");
                true
            }
            Hooked::Unsupported(reason) => {
                assert_reason("purge", reason);
                let _still_there = self.first.lease(name).await;
                false
            }
        }
    }

    /// The store as what cleans it up. `None` where it declares that it cannot.
    #[must_use]
    pub fn cleaner(&self) -> Option<Arc<dyn LeasePurge>> {
        match self.subject.cleaner() {
            Hooked::Done(cleaner) => Some(cleaner),
            Hooked::Unsupported(reason) => {
                assert_reason("cleaner", reason);
                None
            }
        }
    }

    /// The store's clock in milliseconds, as it enters into tokens; `None` where tokens are revisions.
    pub async fn clock_ms(&self) -> Option<u64> {
        match self.subject.clock_ms().await {
            Hooked::Done(now) => Some(now),
            Hooked::Unsupported(reason) => {
                assert_reason("clock_ms", reason);
                let source = self.traits().token_source;
                assert_eq!(
                    source,
                    tenure_core::TokenSource::Revision,
                    "a token with a clock in it needs clock_ms"
                );
                None
            }
        }
    }

    /// Starts watching through `client`. `None` where the store declares that it cannot be watched; then it
    /// is checked that it says so.
    pub async fn watch(&self, client: &Client, scope: &Scope) -> Option<Box<dyn Watch>> {
        self.watch_for(client, scope, Interest::Everything).await
    }

    /// The same, for whoever does not wait for everything.
    pub async fn watch_for(
        &self,
        client: &Client,
        scope: &Scope,
        interest: Interest,
    ) -> Option<Box<dyn Watch>> {
        let answer = client.store().watch(scope, interest).await;
        match self.traits().watch {
            WatchSource::Push | WatchSource::Poll => {
                Some(answer.unwrap_or_else(|error| panic!("watching {scope:?} failed: {error}")))
            }
            WatchSource::Absent => {
                let Err(error) = answer else {
                    panic!("the store declares no watch, and yet watches {scope:?}")
                };
                assert_eq!(error.fault, Fault::Unsupported, "{error}");
                None
            }
        }
    }
}

/// A lease without what time changes.
fn timeless(lease: Lease) -> Lease {
    Lease {
        remaining: Duration::ZERO,
        held_for: Duration::ZERO,
        renewed_ago: Duration::ZERO,
        ..lease
    }
}

fn assert_reason(hook: &str, reason: &str) {
    assert!(
        !reason.trim().is_empty(),
        "hook {hook} is unsupported without a reason"
    );
}

/// Bits that differ between calls and between processes: the standard library seeds its hasher randomly.
pub(crate) fn random_bits() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A token that is higher than `token` by `more`.
pub(crate) fn higher(token: FencingToken, more: u64) -> FencingToken {
    FencingToken::new(token.number() + more).expect("tokens of cases are far from the last one")
}
