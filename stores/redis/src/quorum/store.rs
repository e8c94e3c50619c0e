use super::latest::Tries;
use super::member::{Member, Poll, Progress};
use super::rivals::Rivals;
use super::watch::QuorumWatch;
use super::{Effect, Quorum, adopt};
use crate::SYSTEM;
use crate::admission::Admission;
use crate::durability::RunId;
use crate::fault::Deed;
use crate::membership::{FIELD_READMITTED, Membership, TWINS_REPAIR};
use crate::site::Site;
use crate::store::traits;
use crate::url::{Set, StoreUrl, invalid};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;
use tenure_core::{
    Acquire, Acquired, Ask, Asked, Durability, Fault, Finding, Interest, Lease, LeaseName, LeasePage, Page,
    Purge, Purged, Release, Released, Renew, Renewed, Scope, StoreError, StoreTraits, Watch,
};
use tenure_remote::findings::{bad, good, warning};
use tenure_remote::{OwnThread, PurgeRequests, Remote, Requests, lease_purge, lease_store};

/// Leases in several independent Redis or Valkey servers, held by whoever has a majority of them.
///
/// A candidate takes a majority of the members, then a token above all that they know is confirmed by a
/// majority before anybody leads by it. Two majorities share a member, so tokens rise and no two processes
/// hold a lease at once, whichever minority fails. Each member judges expiry by its own clock, and no two
/// clocks are compared.
///
/// What it does not promise, and what it costs: the `README.md` of this crate.
///
/// Answers can be awaited on any executor.
pub struct QuorumStore(Remote<Quorum>);

impl QuorumStore {
    /// Connects by a URL: `redis+quorum://[[user]:password@]host[:port],…[/database][?options]` with three,
    /// five, seven or nine hosts, `rediss+quorum:` for TLS; options as of
    /// [`RedisStore::connect`](crate::RedisStore::connect), but for `purgeAfter=`: members must agree that
    /// nobody uses a name, as [`purge`](tenure_core::LeasePurge::purge) has them.
    ///
    /// # Errors
    /// [`StoreError`], not applied: as [`RedisStore::connect`](crate::RedisStore::connect), where a majority
    /// does not answer. The message never holds a password.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let url = independent(url)?;
        let membership = Membership::new(hosts(&url));
        let opening = async move {
            let mut quorum = Quorum::of(&url, membership);
            quorum.durability = quorum.assess().await?;
            let _to_keep = quorum.meet_nameless().await;
            quorum.membership.refusal().map_or(Ok(quorum), Err)
        };
        Ok(Self(Remote::open(SYSTEM, opening).await?))
    }

    /// Has the servers of this URL keep that they are one quorum, whatever they kept of it before: for who
    /// has exchanged a member. A new quorum needs none of it; its first candidate does it. To be run when all
    /// candidates have ended, and the longest ttl is over: those that go on by the servers they know could
    /// lead beside others. Where the servers keep just these members already, nothing changes, and candidates
    /// may go on.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and [`Fault::Invalid`](tenure_core::Fault::Invalid), not applied, if a
    /// server does not answer, or has a lease that is held. [`Fault::Unreachable`], unknown, if one fails in
    /// the midst: run it again, until then no candidate of the new URL is let in.
    pub async fn init(url: &str) -> Result<(), StoreError> {
        let url = independent(url)?;
        let quorum = Quorum::of(&url, Membership::unchecked(hosts(&url)));
        let thread = OwnThread::start(SYSTEM)?;
        thread.run(async move { quorum.record_anew().await }).await?
    }
}

fn independent(url: &str) -> Result<StoreUrl, StoreError> {
    let url = StoreUrl::parse(url)?;
    match url.set {
        Set::Independent => Ok(url),
        Set::Server | Set::Sentinels { .. } => Err(invalid(
            "a quorum's URL begins with redis+quorum:// or rediss+quorum://",
        )),
    }
}

fn hosts(url: &StoreUrl) -> Vec<String> {
    url.hosts.iter().map(ToString::to_string).collect()
}

impl Quorum {
    /// Of the servers of this URL, whom nobody has asked yet.
    pub(super) fn of(url: &StoreUrl, membership: Membership) -> Self {
        let membership = Arc::new(membership);
        let members = url.members().into_iter().enumerate();
        let members = members.map(|(place, url)| {
            let membership = Arc::clone(&membership);
            Member::new(url, Admission { membership, place })
        });
        Self {
            members: members.collect(),
            membership,
            place: format!("{} ({})", url.shown(), url.prefix.escape_debug()),
            durability: Durability::FenceOnly("the members were not asked yet what they keep"),
            adoptions: adopt::turns(),
            tries: Tries::default(),
            rivals: Rivals::default(),
        }
    }

    /// Asks all members who they are and what they keep; a majority must answer. Those that do must be the
    /// members of one quorum, and as many servers as they are: one that counts twice decides with itself.
    pub(super) async fn meet(&self) -> Result<Poll<(Durability, Option<RunId>)>, StoreError> {
        // All are waited for: what one does not tell now is not asked again.
        let assess = |site: Arc<Site>| async move { site.assess().await };
        let poll = self
            .ask(0..self.members.len(), Deed::Read, assess, |_, _| Progress::Open)
            .await;
        if let Some(refusal) = self.membership.refusal() {
            return Err(refusal);
        }
        if poll.answers.len() < self.majority() {
            return Err(self.undecided("connecting", poll.answers.len(), &poll.errors, Effect::Nothing));
        }
        let told = poll.answers.iter().map(|(place, (_, id))| (*place, id.clone()));
        if let Some(twins) = self.twins(told) {
            return Err(invalid(&format!("{twins}; {TWINS_REPAIR}")));
        }
        Ok(poll)
    }

    /// What a confirmed write is worth there: no more since a member has forgotten some.
    pub(super) fn durability(&self) -> Durability {
        match self.durability {
            Durability::Safe if self.membership.has_forgotten() => {
                Durability::FenceOnly("a member of the quorum has forgotten what it had confirmed")
            }
            durability => durability,
        }
    }

    /// As durable as the least durable member: one that forgets may be the one that two majorities share.
    async fn assess(&self) -> Result<Durability, StoreError> {
        let poll = self.meet().await?;
        let weak = poll
            .answers
            .iter()
            .map(|(_, (durability, _))| *durability)
            .find(|durability| *durability != Durability::Safe);
        Ok(match weak {
            Some(Durability::FenceOnly(_)) => {
                Durability::FenceOnly("a member of the quorum can lose what it has confirmed")
            }
            _ if poll.answers.len() < self.members.len() => {
                Durability::FenceOnly("a member of the quorum did not tell what it keeps")
            }
            _ => Durability::Safe,
        })
    }

    /// Two members that are one server, if there are any. One that does not tell which it is counts as one of
    /// its own.
    fn twins(&self, told: impl IntoIterator<Item = (usize, Option<RunId>)>) -> Option<String> {
        let mut known = BTreeMap::new();
        for (place, id) in told {
            if let Some(id) = id
                && let Some(twin) = known.insert(id, place)
            {
                let [one, other] = [twin, place].map(|place| self.members[place].host());
                return Some(format!("the members {one} and {other} are one server"));
            }
        }
        None
    }

    /// Each member's findings under its name. A minority that is down is a warning.
    async fn examine(&self) -> Result<Vec<Finding>, StoreError> {
        let (mut findings, mut errors, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        for (number, member) in self.members.iter().enumerate() {
            let place = member.host();
            let examined = async {
                let (_, id) = member
                    .site
                    .in_time(Deed::Read, "the examination", member.site.assess())
                    .await?;
                Ok((id, member.site.examine().await?))
            };
            match examined.await {
                Ok((id, found)) => {
                    ids.push((number, id));
                    findings.extend(member.readmitted().await);
                    findings.extend(found.into_iter().map(|finding| Finding {
                        subject: format!("{place} {}", finding.subject),
                        ..finding
                    }));
                }
                Err(error) => {
                    findings.push(missing(place, &error));
                    errors.push(error);
                }
            }
        }
        if ids.len() < self.majority() {
            return Err(self.undecided("the examination", ids.len(), &errors, Effect::Nothing));
        }
        if let Some(twins) = self.twins(ids) {
            findings.push(bad("members", twins, TWINS_REPAIR));
        }
        findings.push(match self.membership.roster() {
            Some(roster) => good(
                "members",
                format!("know each other as the quorum {}", roster.hosts()),
            ),
            None => warning(
                "members",
                "do not know of each other yet: who names others in his URL would not be noticed",
                "start a candidate while all members answer",
            ),
        });
        Ok(findings)
    }
}

impl Member {
    /// That it was taken in again after it had forgotten everything, until somebody has seen to it.
    async fn readmitted(&self) -> Option<Finding> {
        let mut look = redis::cmd("HMGET");
        look.arg(self.site.keys.membership()).arg(FIELD_READMITTED);
        let asking = self.site.requests.look(look, "its quorum", &self.site.place);
        let told = self.in_time(Deed::Read, asking).await.ok()?;
        let (seconds,) = redis::from_redis_value::<(Option<u64>,)>(told).ok()?;
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let ago = now.as_secs().saturating_sub(seconds?);
        Some(warning(
            &format!("{} member", self.host()),
            format!(
                "kept nothing of the quorum any more when it was taken in again, {ago} s ago: two may have led until the longest ttl \
                 after that, and still do where the server that was there before runs on"
            ),
            format!(
                "end that server for good, if it is another one; then HDEL \"{}\" {FIELD_READMITTED}",
                self.site.keys.membership().escape_debug()
            ),
        ))
    }
}

/// A member that tells nothing of itself, or does not count.
fn missing(place: &str, error: &StoreError) -> Finding {
    let subject = format!("{place} member");
    match error.fault {
        Fault::Invalid => bad(
            &subject,
            error.message.clone(),
            "correct the URL of every candidate",
        ),
        _ => warning(
            &subject,
            format!("does not answer: {error}"),
            "bring it back before another fails",
        ),
    }
}

impl fmt::Debug for QuorumStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the members: their targets hold the password.
        f.debug_struct("QuorumStore")
            .field("place", &self.0.site().place)
            .finish_non_exhaustive()
    }
}

lease_store!(QuorumStore);
lease_purge!(QuorumStore);

impl Requests for Quorum {
    fn traits(&self) -> StoreTraits {
        traits(&self.place, self.durability())
    }

    async fn acquire(self: &Arc<Self>, request: &Acquire) -> Result<Acquired, StoreError> {
        Quorum::acquire(self, request).await
    }

    async fn renew(self: &Arc<Self>, requests: &[Renew]) -> Vec<Result<Renewed, StoreError>> {
        Quorum::renew(self, requests).await
    }

    async fn release(self: &Arc<Self>, requests: &[Release]) -> Vec<Result<Released, StoreError>> {
        Quorum::release(self, requests).await
    }

    async fn ask(self: &Arc<Self>, request: &Ask) -> Result<Asked, StoreError> {
        Quorum::wish(self, request).await
    }

    async fn get(self: &Arc<Self>, name: &LeaseName) -> Result<Option<Lease>, StoreError> {
        Quorum::get(self, name).await
    }

    async fn list(self: &Arc<Self>, page: &Page) -> Result<LeasePage, StoreError> {
        Quorum::list(self, page).await
    }

    async fn examine(self: &Arc<Self>) -> Result<Vec<Finding>, StoreError> {
        Quorum::examine(self).await
    }

    async fn watch(
        self: &Arc<Self>,
        thread: &OwnThread,
        scope: Scope,
        _interest: Interest,
    ) -> Result<Box<dyn Watch>, StoreError> {
        let watch = QuorumWatch::open(self, thread, &scope).await?;
        Ok(Box::new(watch))
    }
}

impl PurgeRequests for Quorum {
    const NOTES_FIRST: bool = false;

    async fn purge(self: &Arc<Self>, request: &Purge) -> Result<Purged, StoreError> {
        Quorum::purge(self, request).await
    }
}
