//! Asking each member of the URL how it stands.

use crate::dial::{LOGIN_TIME_MAX, MEMBER_TIME_MAX, Members};
use crate::fault::Failure;
use crate::one_cluster::cluster_of;
use crate::url::invalid;
use crate::version::Version;
use crate::wire::cluster::StatusResponse;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use tenure_core::StoreError;
use tokio::time::{Instant, timeout_at};

/// A member of the URL, and how it stands or why it did not say.
pub(crate) struct Told {
    pub(crate) host: String,
    /// Of which cluster each of its addresses is that said so: also who tells to the role root alone how it
    /// stands says it.
    pub(crate) clusters: Vec<(String, u64)>,
    /// As the first of its addresses says that answers.
    pub(crate) status: Result<StatusResponse, Failure>,
}

impl Members {
    /// Asks one how it stands, at each address that its name leads to, all at a time, on connections of their
    /// own and in bounded time.
    async fn ask_one(&self, place: usize) -> Told {
        let allowed = match self.url.credentials {
            Some(_) => MEMBER_TIME_MAX + LOGIN_TIME_MAX,
            None => MEMBER_TIME_MAX,
        };
        let until = Instant::now() + allowed;
        let late = || Failure::undialled(format!("no answer within {allowed:?}"));
        let looked_up = timeout_at(until, self.addresses(place)).await;
        match looked_up.unwrap_or_else(|_| Err(late())) {
            Ok(addresses) => self.ask_at(place, &addresses, until, late).await,
            Err(failure) => Told {
                host: self.endpoints[place].0.clone(),
                clusters: Vec::new(),
                status: Err(failure),
            },
        }
    }

    /// The same at these addresses.
    async fn ask_at(
        &self,
        place: usize,
        addresses: &[SocketAddr],
        until: Instant,
        late: impl Fn() -> Failure,
    ) -> Told {
        let host = &self.endpoints[place].0;
        let asking = addresses.iter().map(async |address| {
            let mut cluster = None;
            let asking = async {
                let connection = self.reach(place, Some(*address)).await?;
                cluster = connection.cluster;
                let status = connection.status().await;
                match &status {
                    Ok(status) => cluster = cluster_of(status.header).or(cluster),
                    Err(denied) if cluster.is_none() && !denied.ends_connection() => {
                        cluster = connection.told_to_anybody().await.unwrap_or(None);
                    }
                    Err(_) => {}
                }
                status
            };
            let status = timeout_at(until, asking).await.unwrap_or_else(|_| Err(late()));
            (address, cluster, status)
        });
        let mut told = Told {
            host: host.clone(),
            clusters: Vec::new(),
            status: Err(Failure::undialled("the name has no address".to_owned())),
        };
        for (place, (address, cluster, status)) in join_all(asking).await.into_iter().enumerate() {
            let shown = match addresses {
                [_] => host.clone(),
                _ => format!("{host} at {}", address.ip()),
            };
            told.clusters.extend(cluster.map(|cluster| (shown, cluster)));
            if place == 0 || told.status.is_err() && status.is_ok() {
                told.status = status;
            }
        }
        told
    }
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

/// Which members are of which cluster, where they are of several: each would have leaders of its own. Who
/// tells nothing is not looked at.
pub(crate) fn divided(all: &[Told]) -> Option<String> {
    let mut clusters = BTreeMap::new();
    for (host, cluster) in all.iter().flat_map(|told| &told.clusters) {
        clusters.entry(cluster).or_insert(host.as_str());
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
        None => Ok(all
            .iter()
            .flat_map(|told| &told.clusters)
            .map(|(_, cluster)| *cluster)
            .next()),
    }
}

#[cfg(test)]
mod tests {
    use super::divided;
    use crate::dial::Members;
    use crate::fault::Failure;
    use crate::url::StoreUrl;
    use std::net::SocketAddr;
    use std::time::Duration;
    use tenure_testkit::{Etcd, EtcdOptions, eventually_async};
    use tokio::io::copy_bidirectional;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::Instant;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Each process would lead at whichever it was connected to, as where names are looked up in turn.
    #[tokio::test]
    async fn addresses_of_one_member_of_etcd_of_different_clusters_are_seen() {
        let start = async || Etcd::start(EtcdOptions::default()).await.expect("it starts");
        let (ours, strange) = (start().await, start().await);
        let here: SocketAddr = ours.address(0).parse().expect("an address");
        let other = SocketAddr::from(([127, 0, 0, 9], here.port()));
        let listener = TcpListener::bind(other)
            .await
            .expect("the port is another address's");
        let leading = tokio::spawn(async move {
            while let Ok((mut caller, _)) = listener.accept().await {
                if let Ok(mut upstream) = TcpStream::connect(strange.address(0)).await {
                    tokio::spawn(async move { copy_bidirectional(&mut caller, &mut upstream).await });
                }
            }
        });
        let url = StoreUrl::parse(&format!("etcd://localhost:{}", here.port()));
        let members = Members::new(url.unwrap_or_else(|error| panic!("{error}")));
        let members = members.unwrap_or_else(|error| panic!("{error}"));
        let told = async |addresses: &[SocketAddr]| {
            let until = Instant::now() + super::MEMBER_TIME_MAX;
            let late = || Failure::undialled("late".to_owned());
            divided(&[members.ask_at(0, addresses, until, late).await])
        };
        let addresses = [here, other];
        let both = eventually_async(PATIENCE, "what each is of", || told(&addresses)).await;
        assert!(both.contains(" at 127.0.0.9 is of cluster"), "{both}");
        assert_eq!(told(&[here]).await, None);
        leading.abort();
    }
}
