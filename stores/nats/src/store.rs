use crate::site::Site;
use crate::url::StoreUrl;
use std::fmt;
use tenure_core::{LeaseStore as _, StoreError};
use tenure_remote::{Remote, System, lease_purge, lease_store};

/// Leases in a key-value bucket of NATS JetStream, judged by observed time.
///
/// NATS has no clock that a condition could use, so an expired lease is taken over once its record was seen
/// unchanged for its ttl: by a candidate that watches, one ttl after the last renewal; by one that has just
/// started, one ttl after it started. A vacant one is taken at once.
///
/// Every decision is made over what the stream's leader has, by a write that is conditional on the revision
/// that was read. The driver's connections live on a thread of the store's own, so that blocked user code
/// cannot starve a renewal, and renewals have one for themselves. Dropping the store ends the thread without
/// waiting for it.
///
/// What a confirmed write is worth depends on the servers: [`traits`](tenure_core::LeaseStore::traits) says
/// [`FenceOnly`](tenure_core::Durability::FenceOnly) and why where an acknowledged write can be lost.
///
/// Answers can be awaited on any executor.
pub struct NatsStore(Remote<Site>);

/// What messages and the operating system call it.
pub(crate) const SYSTEM: System = System {
    name: "NATS",
    thread: "tenure-nats",
};

impl NatsStore {
    /// Connects by a URL: `nats://[user:password@]host[:port][,…][/bucket][?options]`, or `nats+tls://`; what
    /// stands before the `@` without a colon is a token. The bucket is `tenure` where none is named, and is
    /// made if it does not exist.
    ///
    /// | option | default | meaning |
    /// |---|---|---|
    /// | `creds=` | none | a file of credentials: a user's JWT and the seed of its key, as `nsc` writes them, or the seed alone; 64 KiB at most, read anew for each connection |
    /// | `ca=` | those that the system trusts | a PEM file of the roots that are trusted; for TLS |
    /// | `cert=`, `key=` | none | PEM files of a client's certificate and its key; for TLS |
    /// | `replicas=` | 3 in a cluster, else 1 | copies of a bucket that is made: 1, 3 or 5 |
    /// | `monitor=` | none | `host:port,…` of the servers' HTTP monitoring, by which their `sync_interval` is read |
    /// | `rateErrorPpm=` | `500` | how wrong this machine's clock may go, in parts per million: what every candidate's timing assumes, or more; up to 100,000 |
    ///
    /// # Errors
    /// [`StoreError`], after 30 s at most, not applied but for a bucket that may have been made. The message
    /// never holds a password. [`Fault::Invalid`](tenure_core::Fault::Invalid) for a URL that cannot be read,
    /// [`Fault::Unreachable`](tenure_core::Fault::Unreachable),
    /// [`Fault::Unauthenticated`](tenure_core::Fault::Unauthenticated),
    /// [`Fault::Forbidden`](tenure_core::Fault::Forbidden),
    /// [`Fault::Unsupported`](tenure_core::Fault::Unsupported) for a bucket that would lose records and for
    /// an account without JetStream, [`Fault::ReadOnly`](tenure_core::Fault::ReadOnly) for a mirror.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let url = StoreUrl::parse(url)?;
        Ok(Self(Remote::open(SYSTEM, Site::open(url)).await?))
    }
}

lease_store!(NatsStore);
lease_purge!(NatsStore);

impl fmt::Debug for NatsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the connections: their options hold the password.
        f.debug_struct("NatsStore")
            .field("place", &self.traits().location)
            .finish_non_exhaustive()
    }
}
