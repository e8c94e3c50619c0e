use super::Quorum;
use super::member::Member;
use super::watch::QuorumWatch;
use crate::fault::Deed;
use crate::thread::OwnThread;
use crate::url::{Set, StoreUrl, invalid};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tenure_core::{
    Acquire, Acquired, Answer, Ask, Asked, Durability, Finding, Lease, LeaseName, LeasePage, LeaseStore,
    Page, Release, Released, Renew, Renewed, Scope, StoreError, StoreTraits, Timekeeper, TokenSource, Ttl,
    Verdict, Watch, WatchSource,
};

/// Most leases that one call renews or releases.
const BATCH_MAX: NonZeroUsize = NonZeroUsize::new(1000).expect("not zero");

/// Leases in several independent Redis or Valkey servers, held by whoever has a majority of them.
///
/// A candidate takes a majority of the members, then a token above all that they know is confirmed by a majority
/// before anybody leads by it. Two majorities share a member, so tokens rise and no two processes hold a lease at
/// once, whichever minority fails. Each member judges expiry by its own clock, and no two clocks are compared.
///
/// What it does not promise, and what it costs: the `README.md` of this crate.
///
/// Answers can be awaited on any executor.
pub struct QuorumStore {
    /// `None` only while it is dropped.
    quorum: Option<Arc<Quorum>>,
    thread: OwnThread,
    durability: Durability,
}

impl QuorumStore {
    /// Connects by a URL: `redis+quorum://[[user]:password@]host[:port],…[/database][?options]` with three, five,
    /// seven or nine hosts, `rediss+quorum:` for TLS; options as of [`RedisStore::connect`](crate::RedisStore::connect).
    ///
    /// # Errors
    /// [`StoreError`], not applied: as [`RedisStore::connect`](crate::RedisStore::connect), where a majority does not
    /// answer. The message never holds a password.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let url = StoreUrl::parse(url)?;
        if url.set != Set::Independent {
            return Err(invalid(
                "a quorum's URL begins with redis+quorum:// or rediss+quorum://",
            ));
        }
        let place = format!("{} ({})", url.shown(), url.prefix.escape_debug());
        let members = url.members().into_iter().map(Member::new).collect();
        let quorum = Arc::new(Quorum { members, place });
        let thread = OwnThread::start()?;
        let opened = Arc::clone(&quorum);
        let durability = thread.run(async move { opened.assess().await }).await??;
        Ok(Self {
            quorum: Some(quorum),
            thread,
            durability,
        })
    }

    fn quorum(&self) -> &Arc<Quorum> {
        self.quorum.as_ref().expect("the quorum is taken by drop alone")
    }
}

impl Quorum {
    /// As durable as the least durable member: one that forgets may be the one that two majorities share.
    async fn assess(&self) -> Result<Durability, StoreError> {
        let poll = self
            .ask_all(Deed::Read, |site| async move { site.assess().await })
            .await;
        if poll.answers.len() < self.majority() {
            return Err(self.undecided("connecting", poll.answers.len(), &poll.errors));
        }
        let weak = poll
            .answers
            .iter()
            .find(|(_, durability)| *durability != Durability::Safe);
        Ok(match weak {
            Some((_, Durability::FenceOnly(_))) => {
                Durability::FenceOnly("a member of the quorum can lose what it has confirmed")
            }
            _ if poll.answers.len() < self.members.len() => {
                Durability::FenceOnly("a member of the quorum did not tell what it keeps")
            }
            _ => Durability::Safe,
        })
    }

    /// Each member's findings under its name. A minority that is down is a warning.
    async fn examine(&self) -> Result<Vec<Finding>, StoreError> {
        let (mut findings, mut errors, mut answered) = (Vec::new(), Vec::new(), 0);
        for member in &self.members {
            let place = member.site.place.split(' ').next().unwrap_or_default();
            match member.site.examine().await {
                Ok(found) => {
                    answered += 1;
                    findings.extend(found.into_iter().map(|finding| Finding {
                        subject: format!("{place} {}", finding.subject),
                        ..finding
                    }));
                }
                Err(error) => {
                    findings.push(Finding {
                        subject: format!("{place} member"),
                        verdict: Verdict::Warning,
                        detail: format!("does not answer: {error}"),
                        repair: Some("bring it back before another fails".to_owned()),
                    });
                    errors.push(error);
                }
            }
        }
        if answered < self.majority() {
            return Err(self.undecided("the examination", answered, &errors));
        }
        Ok(findings)
    }
}

impl fmt::Debug for QuorumStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the members: their targets hold the password.
        f.debug_struct("QuorumStore")
            .field("place", &self.quorum().place)
            .finish_non_exhaustive()
    }
}

impl Drop for QuorumStore {
    fn drop(&mut self) {
        if let Some(quorum) = self.quorum.take() {
            self.thread.drop_there(quorum);
        }
    }
}

impl LeaseStore for QuorumStore {
    fn traits(&self) -> StoreTraits {
        StoreTraits {
            kind: "redis",
            location: self.quorum().place.clone(),
            timekeeper: Timekeeper::Server,
            durability: self.durability,
            watch: WatchSource::Push,
            token_source: TokenSource::CounterAndClock,
            batch_max: BATCH_MAX,
            ttl_min: Ttl::MIN,
            ttl_max: Ttl::MAX,
        }
    }

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        let (quorum, request) = (Arc::clone(self.quorum()), request.clone());
        Box::pin(async move {
            self.thread
                .run(async move { quorum.acquire(&request).await })
                .await?
        })
    }

    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        let (quorum, owned) = (Arc::clone(self.quorum()), requests.to_vec());
        Box::pin(async move {
            let answers = self.thread.run(async move { quorum.renew(&owned).await }).await;
            answers.unwrap_or_else(|error| vec![Err(error); requests.len()])
        })
    }

    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>> {
        let (quorum, owned) = (Arc::clone(self.quorum()), requests.to_vec());
        Box::pin(async move {
            let answers = self.thread.run(async move { quorum.release(&owned).await }).await;
            answers.unwrap_or_else(|error| vec![Err(error); requests.len()])
        })
    }

    fn ask<'a>(&'a self, request: &'a Ask) -> Answer<'a, Result<Asked, StoreError>> {
        let (quorum, request) = (Arc::clone(self.quorum()), request.clone());
        Box::pin(async move {
            self.thread
                .run(async move { quorum.wish(&request).await })
                .await?
        })
    }

    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        let (quorum, name) = (Arc::clone(self.quorum()), name.clone());
        Box::pin(async move { self.thread.run(async move { quorum.get(&name).await }).await? })
    }

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        let (quorum, page) = (Arc::clone(self.quorum()), page.clone());
        Box::pin(async move { self.thread.run(async move { quorum.list(&page).await }).await? })
    }

    fn watch<'a>(&'a self, scope: &'a Scope) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        let (quorum, scope) = (Arc::clone(self.quorum()), scope.clone());
        Box::pin(async move {
            let watch = QuorumWatch::open(&quorum, &self.thread, &scope).await?;
            Ok(Box::new(watch) as Box<dyn Watch>)
        })
    }

    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        let quorum = Arc::clone(self.quorum());
        Box::pin(async move { self.thread.run(async move { quorum.examine().await }).await? })
    }
}
