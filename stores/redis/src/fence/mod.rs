//! The fence: a mark per resource, in the server that keeps the data.

mod claim;
mod look;
mod mark;
mod refusals;
mod script;
mod write;

pub use write::{FencedScript, FencedWrites};

use crate::SYSTEM;
use crate::fault::Deed;
use crate::reply::Reply;
use crate::script::{Arguments, Script};
use crate::site::Site;
use crate::url::{Set, StoreUrl, invalid};
use std::fmt;
use std::sync::Arc;
use tenure_core::{
    Answer, Bump, Claimed, Cursor, Fence, FenceError, Leases, Mark, MarkPage, ResourceName, StoreError, Term,
};
pub(crate) use tenure_remote::fence_subject as subject;
use tenure_remote::{OwnThread, RemoteFence};

/// A fence in a Redis or Valkey server: [`claim`](Fence::claim) once per term, then [`write`](Self::write) or
/// [`run`](Self::run), which compare the mark and change the data in one script.
///
/// A script is one step of the server, so no write of an older term can be under way when a claim is made:
/// what was admitted before is there to be read, what comes later is refused.
///
/// The marks are under the prefix of the URL, in its slot of a cluster: there, the keys of the data need the
/// same hash tag, `{prefix}`.
///
/// What it refuses is as durable as the data beside it: a server that loses confirmed writes in a crash or a
/// fail-over loses the mark together with the writes that came after it. A term whose claim was lost is
/// refused from then on, as one that has not claimed.
///
/// ```no_run
/// use tenure_core::{Fence, Leases, ResourceName, Term};
/// use tenure_redis::{FencedWrites, RedisFence};
///
/// async fn settle(term: Term) -> Result<(), Box<dyn std::error::Error>> {
///     let fence = RedisFence::connect("redis://localhost?prefix=bank", Leases::Here).await?;
///     let ledger = ResourceName::new("ledger")?;
///     // Before the first read of what this term will change.
///     fence.claim(&ledger, &term).await?;
///     let writes = FencedWrites::new()
///         .command(&["{bank}:balance"], ["HINCRBY", "{bank}:balance", "alice", "-5"])
///         .command(&["{bank}:balance"], ["HINCRBY", "{bank}:balance", "bob", "5"]);
///     fence.write(&ledger, &term, &writes).await?;
///     Ok(())
/// }
/// ```
pub struct RedisFence(RemoteFence<Site>);

impl RedisFence {
    /// The fence in the server of a store's URL. Nothing is sent before its first use.
    ///
    /// Where the leases are elsewhere, a token from the future is known by this server's clock and not
    /// exactly. A quorum is elsewhere, also for a fence in one of its members: what that one has of a lease
    /// may be an earlier term, by which a claim of the present one would be refused.
    ///
    /// # Errors
    /// [`Fault::Invalid`](tenure_core::Fault::Invalid) for a URL that cannot be read, or that names a quorum;
    /// without the password.
    pub async fn connect(url: &str, leases: Leases) -> Result<Self, StoreError> {
        let url = StoreUrl::parse(url)?;
        if url.set == Set::Independent {
            return Err(invalid(
                "a quorum keeps no marks: a fence is in the one server that keeps the data; give its redis:// URL",
            ));
        }
        let thread = OwnThread::start(SYSTEM)?;
        let (site, thread) = (Arc::new(Site::new(url)), Arc::new(thread));
        Ok(Self(RemoteFence::new(site, thread, leases)))
    }

    /// Runs a script on the fence's thread.
    async fn ask(
        &self,
        script: &'static Script,
        arguments: Arguments,
        deed: Deed,
        subject: String,
    ) -> Result<Reply, FenceError> {
        let site = Arc::clone(self.0.site());
        let running = async move {
            site.is_ready(deed).await?;
            site.run(script, &arguments, deed, &subject).await
        };
        Ok(self.0.run(running).await??)
    }
}

impl fmt::Debug for RedisFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the target: it holds the password.
        f.debug_struct("RedisFence")
            .field("place", &self.0.site().place)
            .finish_non_exhaustive()
    }
}

impl Fence for RedisFence {
    fn claim<'a>(
        &'a self,
        resource: &'a ResourceName,
        term: &'a Term,
    ) -> Answer<'a, Result<Claimed, FenceError>> {
        Box::pin(self.raise(resource, term))
    }

    fn check<'a>(&'a self, resource: &'a ResourceName, term: &'a Term) -> Answer<'a, Result<(), FenceError>> {
        Box::pin(async {
            let found = self.look(resource, None).await?;
            self.ruled(resource, term, &found.kept)
        })
    }

    fn mark<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Option<Mark>, FenceError>> {
        Box::pin(async { Ok(self.look(resource, None).await?.shown(resource)) })
    }

    fn marks<'a>(&'a self, after: Option<&'a Cursor>) -> Answer<'a, Result<MarkPage, FenceError>> {
        Box::pin(self.page(after))
    }

    fn bump<'a>(&'a self, bump: &'a Bump) -> Answer<'a, Result<Mark, FenceError>> {
        Box::pin(self.lift(bump))
    }

    fn count_refusal(&self, refusal: &FenceError) {
        self.0.count_refusal(refusal);
    }

    fn note_refusals(&self) -> Answer<'_, ()> {
        self.0.note_refusals()
    }
}
