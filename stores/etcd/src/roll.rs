//! Asking each member of the URL how it stands.

use crate::dial::Members;
use crate::fault::Failure;
use crate::version::Version;
use crate::wire::cluster::StatusResponse;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::JoinSet;

/// A member of the URL, and how it stands or why it did not say.
pub(crate) struct Told {
    pub(crate) host: String,
    pub(crate) status: Result<StatusResponse, Failure>,
}

/// Asks each member, all at a time; in the order of the URL.
pub(crate) async fn ask_each(members: &Arc<Members>) -> Vec<Told> {
    let mut asking = JoinSet::new();
    for place in 0..members.count() {
        let members = Arc::clone(members);
        asking.spawn(async move {
            let status = members.ask_one(place).await;
            let host = members.host(place).to_owned();
            (place, Told { host, status })
        });
    }
    let mut all = asking.join_all().await;
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, told)| told).collect()
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
    for Told { host, status } in all {
        if let Ok(StatusResponse {
            header: Some(header), ..
        }) = status
        {
            clusters.entry(header.cluster_id).or_insert(host.as_str());
        }
    }
    let shown = clusters
        .iter()
        .map(|(cluster, host)| format!("{host} is of cluster {cluster:016x}"));
    (clusters.len() > 1).then(|| shown.collect::<Vec<_>>().join(", "))
}
