//! Where a store's records live, and the bounds of every request to them.

use crate::admission::Admission;
use crate::connect::{CONNECTION_TIME_MAX, Target};
use crate::fault::{Deed, timed_out};
use crate::keys::Keys;
use crate::link::Link;
use crate::reply::Reply;
use crate::script::{Arguments, Script};
use crate::url::StoreUrl;
use std::future::Future;
use std::time::Duration;
use tenure_core::{Durability, Fault, StoreError};
use tenure_remote::WatchPlaces;
pub(crate) use tenure_remote::lease_subject as subject;

/// How long one request may take beyond connecting: the store's own bound, beside the engine's.
pub(crate) const REQUEST_TIME_MAX: Duration = Duration::from_secs(3);

/// Watches of one store at a time. Each has a connection of its own.
pub(crate) const WATCHES_MAX: usize = 64;

/// The records under one prefix of one server, or of what stands for one.
pub(crate) struct Site {
    pub(crate) target: Target,
    pub(crate) keys: Keys,
    /// Host, database and prefix, for people.
    pub(crate) place: String,
    pub(crate) purge_after: Option<Duration>,
    /// What a confirmed write is worth there; known once the server was asked.
    pub(crate) durability: Durability,
    /// Everything but renewals.
    pub(crate) requests: Link,
    /// Renewals alone: nothing that takes long stands before them.
    pub(crate) renewals: Link,
    /// How many more watches there may be.
    pub(crate) watches: WatchPlaces,
}

impl Site {
    pub(crate) fn new(url: StoreUrl) -> Self {
        Self::with(url, None)
    }

    /// The same, of a server that is a member of a quorum.
    pub(crate) fn of_quorum(url: StoreUrl, admission: Admission) -> Self {
        Self::with(url, Some(admission))
    }

    fn with(url: StoreUrl, admission: Option<Admission>) -> Self {
        let keys = Keys::new(&url.prefix, url.database);
        let target = Target::new(url.clone(), keys.clone(), admission);
        Self {
            place: format!("{} ({})", url.shown(), url.prefix.escape_debug()),
            purge_after: url.purge_after,
            durability: Durability::FenceOnly("the server was not asked yet what it keeps"),
            requests: Link::new(target.clone()),
            renewals: Link::new(target.clone()),
            watches: WatchPlaces::new(WATCHES_MAX),
            target,
            keys,
        }
    }

    /// Which member of a quorum the server is, as far as it has told; else nothing.
    pub(crate) fn member_id(&self) -> String {
        let admission = self.target.admission.as_ref();
        let id = admission.and_then(|admission| admission.membership.id_at(admission.place));
        id.map_or_else(String::new, |id| id.to_string())
    }

    /// The same, of a server that may not have been met yet: it tells when it is dialled.
    ///
    /// # Errors
    /// Not applied: it cannot be dialled; or it could keep no id when it was met, and nobody had told yet who
    /// the members are: it may be none of them.
    pub(crate) async fn told_member_id(&self) -> Result<String, StoreError> {
        let id = self.member_id();
        if !id.is_empty() {
            return Ok(id);
        }
        self.requests.open().await?;
        let id = self.member_id();
        if !id.is_empty() {
            return Ok(id);
        }
        // The next who wants it asks again.
        self.hang_up().await;
        Err(StoreError::not_applied(
            Fault::Unreachable,
            format!("{} has not told yet which member it is", self.place),
        ))
    }

    /// How long names that nobody uses are kept, in milliseconds; 0 for ever.
    pub(crate) fn purge_ms(&self) -> u64 {
        self.purge_after
            .map_or(0, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
    }

    /// Runs a script on the connection of everything but renewals, in bounded time.
    pub(crate) async fn run(
        &self,
        script: &Script,
        arguments: &Arguments,
        deed: Deed,
        subject: &str,
    ) -> Result<Reply, StoreError> {
        self.in_time(
            deed,
            subject,
            self.requests.run(script, arguments, deed, subject, &self.place),
        )
        .await
    }

    /// Has the next requests dial anew.
    pub(crate) async fn hang_up(&self) {
        self.requests.hang_up().await;
        self.renewals.hang_up().await;
    }

    /// Waits for a request, connecting included, and no longer than both may take.
    pub(crate) async fn in_time<T>(
        &self,
        deed: Deed,
        subject: &str,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let time_max = CONNECTION_TIME_MAX + REQUEST_TIME_MAX;
        let late = |_| Err(timed_out(deed, subject, &self.place, time_max));
        tokio::time::timeout(time_max, work).await.unwrap_or_else(late)
    }
}
