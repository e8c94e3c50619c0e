//! Whether all that a URL leads to is of one store: each process would else go by whichever it comes to.

use crate::connect::{Dialled, Target};
use crate::durability::RunId;
use crate::id::Id;
use crate::one_store::WAY_OUT;
use crate::site::Site;
use crate::url::{Host, Security, Set};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::time::Duration;
use tenure_core::{Fault, Finding, StoreError};
use tenure_remote::findings::{bad, good};
use tokio::time::{Instant, timeout_at};

/// How long all of them may take to say what they are.
const LOOK_TIME_MAX: Duration = Duration::from_secs(1);

/// What a host or an address leads to.
struct Seen {
    host: Host,
    id: Option<Id>,
    /// Unknown to who may not ask.
    run: Option<RunId>,
    /// Another one may rule in its place.
    fails_over: bool,
}

/// Why these cannot all be of one store. As a fail-over may be under way, two that differ in no id are told
/// as what may pass.
fn divided(seen: &[Seen]) -> Option<(Fault, String)> {
    let ids: BTreeMap<&Id, &Host> = seen
        .iter()
        .filter_map(|one| Some((one.id.as_ref()?, &one.host)))
        .collect();
    if ids.len() > 1 {
        let told: Vec<String> = ids
            .iter()
            .map(|(id, host)| format!("{host} is of store {id}"))
            .collect();
        let why = format!(
            "{}: each would have a leader of its own; {WAY_OUT}",
            told.join(", ")
        );
        return Some((Fault::Invalid, why));
    }
    let runs: BTreeMap<&RunId, &Seen> = seen
        .iter()
        .filter_map(|one| Some((one.run.as_ref()?, one)))
        .collect();
    if runs.len() < 2 {
        return None;
    }
    let told: Vec<String> = runs.values().map(|one| one.host.to_string()).collect();
    let told = told.join(" and ");
    match seen.iter().all(|one| one.fails_over) {
        true if seen.iter().all(|one| one.id.is_some()) => None,
        true => Some((
            Fault::AnotherStore,
            format!(
                "{told} each take writes, and not all of them keep of which store they are: each may have a leader of its own; \
                 {WAY_OUT}; or a fail-over is under way"
            ),
        )),
        false => Some((
            Fault::Invalid,
            format!(
                "{told} are servers that each take writes: each would have a leader of its own; {WAY_OUT}"
            ),
        )),
    }
}

impl Target {
    /// The places that the URL leads to, if there are several: the addresses of its host, the members of a
    /// cluster, or the primaries that its sentinels name. By an encrypted connection a host's addresses
    /// cannot be told apart: their certificates have its name.
    async fn places(&self, until: Instant) -> Vec<Host> {
        let hosts = &self.url.hosts;
        match (&self.url.set, hosts.as_slice()) {
            (Set::Sentinels { primary }, _) => self.named_primaries(primary).await,
            (Set::Server | Set::Independent, [host]) if self.url.security == Security::Plain => {
                let looking = tokio::net::lookup_host((host.name.as_str(), host.port));
                let found = timeout_at(until, looking).await.ok().and_then(Result::ok);
                let at = |address: std::net::SocketAddr| Host {
                    name: address.ip().to_string(),
                    port: address.port(),
                };
                found.into_iter().flatten().map(at).collect()
            }
            (Set::Server | Set::Independent, _) => hosts.clone(),
        }
    }

    /// What is wrong with those of these that answer.
    async fn division(&self, places: &[Host], until: Instant) -> Option<(Fault, String)> {
        let looks = places.iter().map(|host| timeout_at(until, self.look_at(host)));
        let seen: Vec<Seen> = join_all(looks).await.into_iter().flatten().flatten().collect();
        divided(&seen)
    }

    async fn look_at(&self, host: &Host) -> Result<Seen, StoreError> {
        let mut dialled = self.dial_ruler(host.clone()).await?;
        let (id, run) = (self.kept_id(&dialled)?, self.run_of(&mut dialled).await?);
        let is_of_sentinels = matches!(self.url.set, Set::Sentinels { .. });
        Ok(Seen {
            host: host.clone(),
            id,
            run,
            fails_over: dialled.hello.clustered || is_of_sentinels,
        })
    }

    async fn run_of(&self, dialled: &mut Dialled) -> Result<Option<RunId>, StoreError> {
        let asking = redis::cmd("INFO").arg("server").to_owned();
        let told = self.told::<String>(asking, dialled).await?;
        Ok(told.ok().as_deref().and_then(RunId::read))
    }
}

impl Site {
    /// # Errors
    /// [`Fault::Invalid`]: what the URL leads to, of what answers, is of different stores;
    /// [`Fault::AnotherStore`] where that may pass. Not applied.
    pub(crate) async fn refuse_division(&self) -> Result<(), StoreError> {
        match self.divided().await {
            Some(Some((fault, why))) => Err(StoreError::not_applied(fault, format!("{}: {why}", self.place))),
            Some(None) | None => Ok(()),
        }
    }

    /// Nothing where the URL leads to one place.
    pub(crate) async fn examine_places(&self) -> Option<Finding> {
        Some(match self.divided().await? {
            None => good(
                "places",
                "those that the URL leads to, and that answer, are of one store",
            ),
            Some((_, why)) => bad("places", why, WAY_OUT),
        })
    }

    /// What is wrong, if anything is; nothing where there is one place.
    async fn divided(&self) -> Option<Option<(Fault, String)>> {
        let until = Instant::now() + LOOK_TIME_MAX;
        let places = self.target.places(until).await;
        match places.len() {
            0 | 1 => None,
            _ => Some(self.target.division(&places, until).await),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LOOK_TIME_MAX, Site};
    use crate::url::{Host, StoreUrl};
    use tenure_core::Fault;
    use tenure_testkit::{RedisOptions, RedisServer};
    use tokio::time::Instant;

    /// Each process would lead at whichever it is connected to, as where names are looked up in turn.
    #[tokio::test]
    async fn addresses_of_one_host_of_redis_that_lead_to_two_servers_are_refused() {
        let start = || RedisServer::start(RedisOptions::default());
        let (one, other) = (start().await.expect("a server"), start().await.expect("a server"));
        let url = StoreUrl::parse(&one.url()).unwrap_or_else(|error| panic!("{error}"));
        let target = Site::new(url).target;
        let at = |server: &RedisServer| Host {
            name: "127.0.0.1".to_owned(),
            port: server.port(),
        };
        let division = async |places: &[Host]| target.division(places, Instant::now() + LOOK_TIME_MAX).await;
        let (fault, why) = division(&[at(&one), at(&other)]).await.expect("two servers");
        assert_eq!(fault, Fault::Invalid, "{why}");
        assert!(why.contains("each take writes"), "{why}");
        let same = Host {
            name: "localhost".to_owned(),
            ..at(&one)
        };
        assert_eq!(division(&[at(&one), same]).await, None, "one server by two ways");
        other
            .ask(&format!("REPLICAOF 127.0.0.1 {}", one.port()))
            .expect("asked");
        assert_eq!(
            division(&[at(&one), at(&other)]).await,
            None,
            "a replica takes none"
        );
    }
}
