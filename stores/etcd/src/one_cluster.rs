//! The one cluster that is asked: each other would have leaders and marks of its own.

use crate::fault::Failure;
use crate::wire::ResponseHeader;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};
use tonic::Status;

/// That of whoever was connected to first. A member of another cluster is none of ours, however late it
/// comes: as one that was away until then, and was set up anew meanwhile.
#[derive(Default)]
pub(crate) struct OneCluster(OnceLock<u64>);

impl OneCluster {
    pub(crate) fn is_known(&self) -> bool {
        self.0.get().is_some()
    }

    /// Its id, if it is known.
    pub(crate) fn id(&self) -> Option<u64> {
        self.0.get().copied()
    }

    /// It is this one, unless another is known already.
    pub(crate) fn is(&self, cluster: Option<u64>) {
        if let Some(cluster) = cluster {
            self.0.get_or_init(|| cluster);
        }
    }

    /// Whether a member may be of it.
    ///
    /// # Errors
    /// It says that it is of another one. Nothing was applied.
    pub(crate) fn check(&self, host: &str, told: Option<u64>) -> Result<(), Failure> {
        match (self.0.get(), told) {
            (Some(ours), Some(theirs)) if *ours != theirs => Err(Failure::Stranger(format!(
                "{host} is of cluster {theirs:016x}, and whoever was connected to first is of {ours:016x}: each would have a \
                 leader of its own; name the members of one in the etcd URL, and start this process anew if that was restored \
                 as another"
            ))),
            (Some(_) | None, Some(_) | None) => Ok(()),
        }
    }
}

/// An answer is of another cluster than the connection that it came over: the connection is of no use any
/// more.
#[derive(Debug)]
pub(crate) struct OfAnother;

impl OfAnother {
    /// What is told in place of the answer.
    pub(crate) fn status(told: String) -> Status {
        let mut status = Status::unavailable(told);
        status.set_source(Arc::new(Self));
        status
    }
}

impl fmt::Display for OfAnother {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another cluster has answered")
    }
}

impl Error for OfAnother {}

/// The cluster that an answer is of, if it says so.
pub(crate) fn cluster_of(header: Option<ResponseHeader>) -> Option<u64> {
    header.map(|header| header.cluster_id).filter(|id| *id != 0)
}
