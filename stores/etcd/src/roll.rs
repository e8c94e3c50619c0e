//! Asking each member of the URL how it stands.

use crate::dial::Members;
use crate::fault::Failure;
use crate::url::invalid;
use crate::version::Version;
use crate::wire::cluster::StatusResponse;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use tenure_core::StoreError;

/// A member of the URL, and how it stands or why it did not say.
pub(crate) struct Told {
    pub(crate) host: String,
    /// Of which cluster it is, if it said so: also who tells to the role root alone how it stands says it at the login.
    pub(crate) cluster: Option<u64>,
    pub(crate) status: Result<StatusResponse, Failure>,
}

/// Asks each member, all at a time; in the order of the URL.
pub(crate) async fn ask_each(members: &Members) -> Vec<Told> {
    join_all((0..members.count()).map(|place| members.ask_one(place))).await
}

/// The version of each, as far as it was told.
pub(crate) fn versions(all: &[Told]) -> Vec<Option<Version>> {
    let version = |told: &Told| Some(Version::read(&told.status.as_ref().ok()?.version));
    all.iter().map(version).collect()
}

/// Which members are of which cluster, where they are of several: each would have leaders of its own. Who tells nothing is not
/// looked at.
pub(crate) fn divided(all: &[Told]) -> Option<String> {
    let mut clusters = BTreeMap::new();
    for Told { host, cluster, .. } in all {
        if let Some(cluster) = cluster {
            clusters.entry(cluster).or_insert(host.as_str());
        }
    }
    let shown = clusters
        .iter()
        .map(|(cluster, host)| format!("{host} is of cluster {cluster:016x}"));
    (clusters.len() > 1).then(|| shown.collect::<Vec<_>>().join(", "))
}

/// The one cluster of all members that say of which they are; `None` where none does.
///
/// # Errors
/// [`Fault::Invalid`](tenure_core::Fault::Invalid): they are of several.
pub(crate) fn one_cluster(all: &[Told]) -> Result<Option<u64>, StoreError> {
    match divided(all) {
        Some(divided) => Err(invalid(&format!(
            "the etcd URL names members of several clusters, each of which would have a leader of its own: {divided}; name the \
             members of one"
        ))),
        None => Ok(all.iter().find_map(|told| told.cluster)),
    }
}
