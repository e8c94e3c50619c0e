//! Leading while the members of a cluster are cut from each other, and each of them answers its clients as
//! ever: a primary of before serves the one who leads by it, while the others elect another.
mod data;

use crate::believed::until_lost;
use data::{Data, ledger};
use mongodb::Client;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;
use tenure::contract::{Claimed, Fence as _, FenceError, Renew, Renewed, StoreError, Term};
use tenure::etcd::{EtcdFence, EtcdStore};
use tenure::mongodb::{MongoFence, MongoStore};
use tenure::nats::{NatsFence, NatsStore};
use tenure::redis::RedisStore;
use tenure::sqlite::{SqliteFence, SqliteOptions};
use tenure::{Authority, Cause, Election, Event, LeaseName, Leases, SharedStore, Timing, Ttl, clock_now};
use tenure_testkit::{
    Cut, Etcd, EtcdOptions, NatsCluster, NatsOptions, Network, RedisSentinels, ReplicaSet, ScratchDir,
    eventually, eventually_async,
};

/// Elections on a loaded machine included.
const PATIENCE: Duration = Duration::from_secs(120);

/// One way to the leases, and to the data that they guard.
#[derive(Clone)]
struct Side {
    store: SharedStore,
    data: Arc<Data>,
}

/// A cluster with its primary, and who reaches what of it.
struct Cluster {
    network: Network,
    /// Where the primary of the beginning listens.
    primary: String,
    /// Reaches the primary of the beginning alone.
    beside: Side,
    /// Reaches all of them.
    all: Side,
    /// By which whoever was beside the primary is answered when it heals: the same, where a member hands on
    /// to who leads now.
    healed: Side,
    ttl: Ttl,
    /// They run as long as this lives.
    _servers: Box<dyn Any>,
}

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("{what}: not within {PATIENCE:?}"),
    }
}

/// Connects at last: a cluster that has just begun may not serve yet.
async fn connected<T>(connect: impl AsyncFn() -> Result<T, StoreError>) -> T {
    eventually_async(PATIENCE, "a connection", || connect()).await
}

fn election(store: &SharedStore, candidate: &str, ttl: Ttl) -> Election {
    Election::builder("job", Arc::clone(store))
        .candidate(candidate)
        .timing(Timing::of(ttl))
        .build()
        .unwrap()
}

/// Claims and writes at last: the others may still be electing.
async fn claims_and_writes(side: &Side, term: &Term) {
    let claim = || async { side.data.fence().claim(&ledger(), term).await };
    eventually_async(PATIENCE, "the claim", claim).await;
    eventually_async(PATIENCE, "the write", || side.data.write(term)).await;
}

/// Whoever leads by a primary that is cut off believes until its deadline, and no longer; who reaches the
/// others leads after that, with a greater token. What it was confirmed stays when the two sides meet, and
/// the old term is refused by both.
async fn one_leads_at_a_time(cluster: Cluster, cut: Cut) {
    let (beside, all, healed) = (&cluster.beside, &cluster.all, &cluster.healed);
    let job = LeaseName::new("job").unwrap();
    let leader = election(&beside.store, "leader", cluster.ttl);
    let standby = election(&all.store, "standby", cluster.ttl);
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let old = Term::new(job.clone(), leadership.token());
    claims_and_writes(beside, &old).await;
    let record = eventually_async(PATIENCE, "the record", || async { beside.store.get(&job).await });
    let record = record.await.expect("there is one");
    assert_eq!(record.token, old.token);
    let campaign = tokio::spawn(async move { (standby.campaign().await.unwrap(), clock_now(), standby) });
    cluster.network.cut_off(&cluster.primary, cut);
    let (until, loss) = soon("the loss", until_lost(&leadership)).await;
    assert!(
        clock_now() >= until && matches!(loss.cause, Cause::Deadline(_)),
        "{cut:?}: {loss}"
    );
    let (won, when, _standby) = soon("the take-over", campaign).await.unwrap();
    assert!(when >= until, "{cut:?}: two believed for {:?}", until.since(when));
    assert!(won.token() > old.token, "{cut:?}: the token did not rise");
    // Whoever leads now works while the old side is still apart.
    let new = Term::new(job.clone(), won.token());
    claims_and_writes(all, &new).await;
    let shown = || all.data.shown_to(&new);
    let before = eventually_async(PATIENCE, "the data", shown).await;
    let written = beside.data.write(&old).await;
    assert!(written.is_err(), "{cut:?}: a write of an older term was accepted");
    let late = beside.data.fence().claim(&ledger(), &old).await;
    // It had claimed before, and a leader that does not know that it is deposed may say so.
    assert!(!matches!(late, Ok(Claimed::Raised { .. })), "{cut:?}: {late:?}");
    cluster.network.heal();
    let renewal = [Renew {
        name: job.clone(),
        incarnation: record.holder.incarnation,
        token: old.token,
        attempt: record.attempt,
        ttl: cluster.ttl,
    }];
    let renewed = eventually_async(PATIENCE, "an answer of the old side", || async {
        healed.store.renew(&renewal).await.remove(0)
    });
    let renewed = renewed.await;
    assert!(matches!(renewed, Renewed::Lost(_)), "{cut:?}: {renewed:?}");
    // At last: until it has heard of the others, the old side may show what was.
    eventually_async(PATIENCE, "the fence's own refusal of a write", || async {
        let refused = healed.data.write(&old).await;
        let refused = refused.expect_err("a write of an older term was accepted");
        match refused.to_lowercase().contains("stale") {
            true => Ok(()),
            false => Err(refused),
        }
    })
    .await;
    let after = eventually_async(PATIENCE, "the data", shown).await;
    assert_eq!(before, after, "{cut:?}: an older term wrote after a later one");
    eventually_async(PATIENCE, "a refusal by the old side", || async {
        let claimed = healed.data.fence().claim(&ledger(), &old).await;
        assert!(
            !matches!(claimed, Ok(Claimed::Raised { .. })),
            "{cut:?}: {claimed:?}"
        );
        match claimed {
            Err(FenceError::Stale { .. }) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    eventually_async(PATIENCE, "the new term's record and mark", || async {
        let record = healed.store.get(&job).await.map_err(|error| error.to_string())?;
        let mark = healed.data.fence().mark(&ledger()).await;
        let mark = mark.map_err(|error| error.to_string())?;
        let shown = (record.map(|record| record.token), mark.map(|mark| mark.token));
        match shown == (Some(new.token), Some(new.token)) {
            true => Ok(()),
            false => Err(format!("{shown:?}")),
        }
    })
    .await;
    assert!(
        matches!(won.authority(), Authority::Held { .. }),
        "{cut:?}: the sides met, and it cost the leadership: {won:?}"
    );
    won.step_down().await;
    let third = election(&healed.store, "third", cluster.ttl);
    let third = soon("a campaign by the old side", third.campaign())
        .await
        .unwrap();
    assert!(third.token() > new.token, "{cut:?}: the token did not rise");
}

/// A leader whose primary is cut off for less than its term goes on: its deadline passes, and it has been
/// renewed.
async fn goes_on_when_it_heals(cluster: &Cluster, side: &Side) {
    let ttl = Ttl::from_secs(40).unwrap();
    let leader = election(&side.store, "leader", ttl);
    let standby = election(&cluster.all.store, "standby", ttl);
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let mut events = leader.events();
    let campaign = tokio::spawn(async move { standby.campaign().await.map(|won| won.token()) });
    cluster.network.cut_off(&cluster.primary, Cut::Both);
    // A renewal has failed, or was answered by another primary.
    soon("a renewal", async {
        while !matches!(
            events.recv().await,
            Ok(Event::Renewed { .. } | Event::RenewalFailed { .. })
        ) {}
    })
    .await;
    let until = leadership.until();
    cluster.network.heal();
    tenure::sleep_until(until).await;
    assert!(
        matches!(leadership.authority(), Authority::Held { .. }),
        "{leadership:?}"
    );
    assert!(leadership.until() > until && !campaign.is_finished());
    campaign.abort();
}

async fn etcd(network: Network) -> Cluster {
    let servers = Etcd::start(EtcdOptions::three().on(&network)).await.unwrap();
    let leads = eventually(PATIENCE, "a leader", || servers.leader());
    let side = async |url: &str| Side {
        store: Arc::new(connected(async || EtcdStore::connect(url).await).await),
        data: Arc::new(Data::Etcd(
            connected(async || EtcdFence::connect(url, Leases::Here).await).await,
        )),
    };
    let beside = side(&format!("etcd://{}", servers.address(leads))).await;
    Cluster {
        network,
        primary: servers.address(leads),
        healed: beside.clone(),
        beside,
        all: side(&servers.url()).await,
        ttl: Ttl::from_secs(8).unwrap(),
        _servers: Box::new(servers),
    }
}

async fn mongodb(network: Network) -> Cluster {
    let set = ReplicaSet::on(&network).await.unwrap();
    let side = async |url: &str| Side {
        store: Arc::new(connected(async || MongoStore::connect(url).await).await),
        data: {
            let client = Client::with_uri_str(url).await.unwrap();
            Arc::new(Data::Mongo(
                MongoFence::new(&client.database("tenure"), Leases::Here),
                client,
            ))
        },
    };
    let all = side(&set.uri()).await;
    let leads = set.primary().await.unwrap();
    Cluster {
        network,
        primary: set.address(leads),
        beside: side(&set.direct_uri(leads)).await,
        healed: all.clone(),
        all,
        ttl: Ttl::from_secs(8).unwrap(),
        _servers: Box::new(set),
    }
}

async fn nats(network: Network) -> Cluster {
    let mut servers = NatsCluster::start(NatsOptions::durable().on(&network))
        .await
        .unwrap();
    let monitors = servers.monitor_addresses();
    let side = async |hosts: &str| {
        let url = &format!("{hosts}/app?monitor={monitors}");
        Side {
            store: Arc::new(connected(async || NatsStore::connect(url).await).await),
            data: Arc::new(Data::Nats(
                connected(async || NatsFence::connect(url, Leases::Here).await).await,
            )),
        }
    };
    let all = side(&servers.url()).await;
    let leads = servers.leader_of("KV_app").await.unwrap();
    let beside = side(&servers.servers()[leads].url()).await;
    Cluster {
        network,
        primary: servers.servers()[leads].address(),
        healed: beside.clone(),
        beside,
        all,
        ttl: Ttl::from_secs(12).unwrap(),
        _servers: Box::new(servers),
    }
}

/// Where there is a network that can be cut.
async fn while_it_is_cut(cluster: impl AsyncFn(Network) -> Cluster, cut: Cut) {
    if let Some(network) = Network::unless_left_out() {
        one_leads_at_a_time(cluster(network).await, cut).await;
    }
}

#[tokio::test]
async fn one_leads_at_a_time_while_the_leader_of_etcd_is_cut_off() {
    while_it_is_cut(etcd, Cut::Both).await;
}

#[tokio::test]
async fn one_leads_at_a_time_while_what_the_leader_of_etcd_sends_is_lost() {
    while_it_is_cut(etcd, Cut::WhatItSends).await;
}

#[tokio::test]
async fn one_leads_at_a_time_while_the_leader_of_etcd_hears_nothing() {
    while_it_is_cut(etcd, Cut::WhatItHears).await;
}

#[tokio::test]
async fn one_leads_at_a_time_while_the_primary_of_mongodb_is_cut_off() {
    while_it_is_cut(mongodb, Cut::Both).await;
}

#[tokio::test]
async fn one_leads_at_a_time_while_what_the_primary_of_mongodb_sends_is_lost() {
    while_it_is_cut(mongodb, Cut::WhatItSends).await;
}

#[tokio::test]
async fn one_leads_at_a_time_while_the_primary_of_mongodb_hears_nothing() {
    while_it_is_cut(mongodb, Cut::WhatItHears).await;
}

#[tokio::test]
async fn one_leads_at_a_time_while_the_leader_of_nats_is_cut_off() {
    while_it_is_cut(nats, Cut::Both).await;
}

#[tokio::test]
async fn one_leads_at_a_time_while_what_the_leader_of_nats_sends_is_lost() {
    while_it_is_cut(nats, Cut::WhatItSends).await;
}

#[tokio::test]
async fn one_leads_at_a_time_while_the_leader_of_nats_hears_nothing() {
    while_it_is_cut(nats, Cut::WhatItHears).await;
}

#[tokio::test]
async fn a_leader_whose_member_of_etcd_is_cut_off_for_less_than_its_term_goes_on() {
    if let Some(network) = Network::unless_left_out() {
        let cluster = etcd(network).await;
        goes_on_when_it_heals(&cluster, &cluster.beside).await;
    }
}

#[tokio::test]
async fn a_leader_whose_server_of_nats_is_cut_off_for_less_than_its_term_goes_on() {
    if let Some(network) = Network::unless_left_out() {
        let cluster = nats(network).await;
        goes_on_when_it_heals(&cluster, &cluster.beside).await;
    }
}

/// Who knows the set goes over to the primary that the others elect.
#[tokio::test]
async fn a_leader_whose_primary_of_mongodb_is_cut_off_for_less_than_its_term_goes_on() {
    if let Some(network) = Network::unless_left_out() {
        let cluster = mongodb(network).await;
        goes_on_when_it_heals(&cluster, &cluster.all).await;
    }
}

/// A primary of sentinels confirms alone, so that two believe, one on each side; the tokens rise, and a fence
/// elsewhere admits the later.
#[tokio::test]
async fn two_may_believe_while_the_primary_of_sentinels_is_cut_off_and_a_fence_elsewhere_admits_the_later() {
    let Some(network) = Network::unless_left_out() else {
        return;
    };
    let mut servers = RedisSentinels::on(&network).await.unwrap();
    let primary = servers.servers()[0].address();
    let side = async |url: &str| {
        let store = connected(async || RedisStore::connect(url).await).await;
        Arc::new(store) as SharedStore
    };
    let (beside, all) = (
        side(&format!("redis://{primary}")).await,
        side(&servers.url()).await,
    );
    let folder = ScratchDir::new("fence");
    let data = folder.join("data.db");
    std::fs::File::create(&data).unwrap();
    let fence = SqliteFence::create(&SqliteOptions::new(&data), Leases::Elsewhere).unwrap();
    let (job, ttl) = (LeaseName::new("job").unwrap(), Ttl::from_secs(8).unwrap());
    let leader = election(&beside, "leader", ttl);
    let standby = election(&all, "standby", ttl);
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let old = Term::new(job.clone(), leadership.token());
    fence.claim(&ledger(), &old).await.unwrap();
    // Its replica has the record before it is cut off, so that whoever comes waits for its end.
    eventually(PATIENCE, "the replica has it", || {
        let [primary, replica] = servers
            .servers()
            .each_ref()
            .map(|server| server.ask("DBSIZE").unwrap());
        primary == replica && primary != ":0"
    });
    network.cut_off(&primary, Cut::Both);
    let won = soon("the take-over", standby.campaign()).await.unwrap();
    assert!(won.token() > old.token);
    assert!(
        matches!(leadership.authority(), Authority::Held { .. }),
        "its primary serves it still: {leadership:?}"
    );
    let new = Term::new(job.clone(), won.token());
    fence.claim(&ledger(), &new).await.unwrap();
    let refusal = fence.claim(&ledger(), &old).await;
    assert!(matches!(refusal, Err(FenceError::Stale { .. })), "{refusal:?}");
    network.heal();
    // The primary of before becomes a replica, and confirms nothing.
    soon("the loss", leadership.lost()).await;
    let now = eventually_async(PATIENCE, "the record", || async { all.get(&job).await }).await;
    assert_eq!(now.expect("there is one").token, new.token);
    assert!(matches!(won.authority(), Authority::Held { .. }), "{won:?}");
    won.step_down().await;
    let third = election(&all, "third", ttl);
    assert!(soon("the third", third.campaign()).await.unwrap().token() > new.token);
}
