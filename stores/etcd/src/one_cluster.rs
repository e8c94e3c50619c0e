//! The one cluster that is asked: each other would have leaders and marks of its own.

use crate::fault::Failure;
use crate::wire::ResponseHeader;
use std::sync::OnceLock;

/// That of whoever was connected to first. A member of another cluster is none of ours, however late it comes: as one that was away
/// until then, and was set up anew meanwhile.
#[derive(Default)]
pub(crate) struct OneCluster(OnceLock<u64>);

impl OneCluster {
    pub(crate) fn is_known(&self) -> bool {
        self.0.get().is_some()
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

/// The cluster that an answer is of, if it says so.
pub(crate) fn cluster_of(header: Option<ResponseHeader>) -> Option<u64> {
    header.map(|header| header.cluster_id).filter(|id| *id != 0)
}
