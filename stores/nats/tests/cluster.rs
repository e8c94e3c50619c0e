//! A cluster of three: its leader dies, a follower is behind, a majority is gone.

use crate::common::{Scratch, giving_back, granted, in_time, name, renewal, request, seconds};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::{
    Acquire, Change, Fault, Fence, FenceError, FencingToken, Grant, Interest, LeaseStore, Leases, Released,
    Renew, Renewed, ResourceName, Scope, Term, Verdict, WatchEvent,
};
use tenure_nats::{NatsFence, NatsStore};
use tenure_testkit::{FaultProxy, NatsCluster, NatsOptions, eventually_async};

/// An election takes the servers 4 to 10 s; the rest is for a loaded machine.
const ELECTION: Duration = Duration::from_secs(60);

/// Asks until it is granted: right after a bucket was made its stream may be without a leader once more.
async fn take_in_time(store: &dyn LeaseStore, asked: &Acquire) -> Grant {
    let ask = || async { store.acquire(asked).await.map(granted) };
    eventually_async(ELECTION, "the lease", ask).await
}

/// By a majority: one that has not noticed yet confirms nothing that it has not.
async fn extended_in_time(store: &dyn LeaseStore, renewals: &[Renew]) {
    let renewed = eventually_async(ELECTION, "a renewal by the majority", || async {
        store.renew(renewals).await.remove(0)
    })
    .await;
    assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
}

/// For so long at least a claim is put off before it is given up.
const CLAIM_TIME_MIN: Duration = Duration::from_millis(1_500);

/// The servers choose which of them keeps a watch: of so many, the one that is cut off has some.
const WATCHES: usize = 12;

#[tokio::test]
async fn term_outlives_the_death_of_the_buckets_leader() {
    let mut cluster = NatsCluster::start(NatsOptions::default())
        .await
        .expect("a cluster");
    let scratch = Scratch::on(&cluster.url());
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(60));
    let term = take_in_time(&store, &asked).await;
    let leader = cluster.leader_of(&scratch.stream()).await.expect("it has one");
    cluster.servers()[leader].kill();
    let renewals = [renewal(&asked, term.token)];
    let renewed = eventually_async(ELECTION, "a renewal by the new leader", || async {
        let renewed = store.renew(&renewals).await.remove(0);
        assert!(
            !matches!(renewed, Ok(Renewed::Lost(_))),
            "the term was lost: {renewed:?}"
        );
        renewed
    })
    .await;
    assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
    // A server that has not heard of the new leader yet knows nothing.
    let again = eventually_async(ELECTION, "the same term", || async {
        store.acquire(&asked).await.map(granted)
    })
    .await;
    assert_eq!((again.token, again.again), (term.token, true));
    let copies = eventually_async(ELECTION, "the examination's word for it", || async {
        let findings = store.examine().await.map_err(|error| error.to_string())?;
        let copies = findings.into_iter().find(|finding| finding.subject == "copies");
        let copies = copies.expect("they are examined");
        match copies.detail.contains("behind or gone") {
            true => Ok(copies),
            false => Err(copies.detail),
        }
    })
    .await;
    assert_eq!(copies.verdict, Verdict::Warning, "{copies:?}");
    // The killed one comes back, and has what it missed.
    let released = eventually_async(ELECTION, "a release", || async {
        store.release(&[giving_back(&asked, term.token)]).await.remove(0)
    })
    .await;
    assert_eq!(released, Released::Vacated);
    cluster.servers()[leader].restart().await.expect("restarted");
    let url = format!("{}/{}", cluster.servers()[leader].url(), scratch.bucket);
    let late = in_time("a store", || NatsStore::connect(&url)).await;
    let next = eventually_async(ELECTION, "the next term", || async {
        late.acquire(&request("job", "next", seconds(60)))
            .await
            .map(granted)
    })
    .await;
    assert!(next.token > term.token);
}

/// As the copies of a service do that are started for the first time.
#[tokio::test]
async fn all_who_make_the_same_bucket_at_once_have_it() {
    let cluster = NatsCluster::start(NatsOptions::default())
        .await
        .expect("a cluster");
    for _bucket in 0..4 {
        let scratch = Scratch::on(&cluster.url());
        let stores = (0..12).map(|_| {
            let url = scratch.store_url();
            tokio::spawn(async move { NatsStore::connect(&url).await.map(drop) })
        });
        for store in stores.collect::<Vec<_>>() {
            store.await.expect("no panic").expect("it has the bucket");
        }
    }
}

/// A bucket as other programs make them lets every copy answer reads. The store asks its leader all the same.
#[tokio::test]
async fn follower_that_is_behind_is_never_read() {
    let mut cluster = NatsCluster::start(NatsOptions::default())
        .await
        .expect("a cluster");
    let scratch = Scratch::on(&cluster.url());
    let beneath = scratch.beneath().await;
    beneath
        .make(json!({ "num_replicas": 3, "allow_direct": true }))
        .await;
    let leader = cluster.leader_of(&scratch.stream()).await.expect("it has one");
    let follower = (leader + 1) % 3;
    let at = |url: String| format!("{url}/{}", scratch.bucket);
    let (here, there) = (
        at(cluster.servers()[leader].url()),
        at(cluster.servers()[follower].url()),
    );
    let (here, there) = (
        in_time("a store", || NatsStore::connect(&here)).await,
        in_time("a store", || NatsStore::connect(&there)).await,
    );
    let asked = request("job", "holder", seconds(300));
    take_in_time(&here, &asked).await;
    for round in 0..5 {
        cluster.servers()[follower].freeze();
        // A majority of two goes on; the frozen one has none of this.
        let mut newest = 0;
        for attempt in 2..12 {
            let attempt = tenure_core::Attempt::new(round * 100 + attempt).expect("a number");
            let again = tenure_core::Acquire {
                attempt,
                ..asked.clone()
            };
            newest = take_in_time(&here, &again).await.token.number();
        }
        cluster.servers()[follower].thaw();
        let read = eventually_async(ELECTION, "a read through the follower", || async {
            there.get(&asked.name).await
        })
        .await;
        assert_eq!(
            read.expect("the record").token.number(),
            newest,
            "in round {round}"
        );
    }
}

#[tokio::test]
async fn without_a_majority_of_copies_nothing_is_granted_and_it_is_said_in_time() {
    let mut cluster = NatsCluster::start(NatsOptions::default())
        .await
        .expect("a cluster");
    let scratch = Scratch::on(&cluster.url());
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(300));
    let term = take_in_time(&store, &asked).await;
    let leader = cluster.leader_of(&scratch.stream()).await.expect("it has one");
    let (one, two) = ((leader + 1) % 3, (leader + 2) % 3);
    cluster.servers()[one].kill();
    cluster.servers()[two].kill();
    for _try in 0..3 {
        let began = Instant::now();
        let answer = store.acquire(&request("other", "a", seconds(60))).await;
        assert!(answer.is_err(), "granted by a minority: {answer:?}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
    // With a majority, the term is still there, and its holder's.
    cluster.servers()[one].start_again().expect("started");
    let again = eventually_async(ELECTION, "the same term", || async {
        store.acquire(&asked).await.map(granted)
    })
    .await;
    assert_eq!((again.token, again.again), (term.token, true));
}

#[tokio::test]
async fn majority_that_comes_back_has_the_term() {
    let mut cluster = NatsCluster::start(NatsOptions::default())
        .await
        .expect("a cluster");
    let scratch = Scratch::on(&cluster.url());
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(300));
    let term = take_in_time(&store, &asked).await;
    for server in cluster.servers() {
        server.freeze();
    }
    let began = Instant::now();
    let silent = store.renew(&[renewal(&asked, term.token)]).await.remove(0);
    assert!(silent.is_err(), "{silent:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    for server in cluster.servers() {
        server.thaw();
    }
    let again = eventually_async(ELECTION, "the same term", || async {
        store.acquire(&asked).await.map(granted)
    })
    .await;
    assert_eq!((again.token, again.again), (term.token, true));
}

/// A majority is well, and its servers are in the URL: whoever is connected to the third one turns to them.
#[tokio::test]
async fn server_that_is_cut_off_from_its_cluster_is_left_for_the_others() {
    let mut cluster = NatsCluster::start(NatsOptions::default())
        .await
        .expect("a cluster");
    let servers = cluster.servers();
    let last_first = [2, 0, 1].map(|place: usize| servers[place].address()).join(",");
    let scratch = Scratch::on(&format!("nats://{last_first}"));
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(300));
    let term = take_in_time(&store, &asked).await;
    let renewals = [renewal(&asked, term.token)];
    extended_in_time(&store, &renewals).await;
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        let scope = Scope::Name(asked.name.clone());
        watches.push(in_time("a watch", || store.watch(&scope, Interest::Everything)).await);
    }
    cluster.cut_off_the_last();
    extended_in_time(&store, &renewals).await;
    let released = eventually_async(ELECTION, "a release over the other connection", || async {
        store.release(&[giving_back(&asked, term.token)]).await.remove(0)
    })
    .await;
    assert_eq!(released, Released::Vacated);
    for mut watch in watches {
        // One that was begun over another server goes on, and hears of the release.
        let heard = async {
            loop {
                match watch.next().await {
                    Ok(WatchEvent::Changed {
                        change: Change::Vacated,
                        ..
                    }) => return,
                    Ok(_) => {}
                    Err(_over) => return,
                }
            }
        };
        let heard = tokio::time::timeout(ELECTION, heard).await;
        heard.expect("a watch that can hear nothing of the others says so");
    }
    let late = eventually_async(ELECTION, "a store of a process that has just started", || async {
        NatsStore::connect(&scratch.store_url()).await
    })
    .await;
    let next = eventually_async(ELECTION, "the next term", || async {
        late.acquire(&request("job", "next", seconds(300)))
            .await
            .map(granted)
    })
    .await;
    assert!(next.token > term.token);
}

/// As of a service with several servers behind it: the same name leads to one of the others next.
#[tokio::test]
async fn server_that_is_cut_off_is_left_although_the_url_names_no_other() {
    let mut cluster = NatsCluster::start(NatsOptions::default())
        .await
        .expect("a cluster");
    let name = FaultProxy::nats(cluster.servers()[2].address()).expect("a proxy");
    let scratch = Scratch::on(&format!("nats://{}", name.address()));
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(300));
    let term = take_in_time(&store, &asked).await;
    let renewals = [renewal(&asked, term.token)];
    extended_in_time(&store, &renewals).await;
    name.lead_to(cluster.servers()[0].address());
    cluster.cut_off_the_last();
    extended_in_time(&store, &renewals).await;
}

/// While a write is being stored that the mark admits, the servers put the claim off. Nobody else has written
/// meanwhile.
#[tokio::test]
async fn claim_that_meets_a_write_under_way_waits_for_it_and_asks_seldom() {
    let mut cluster = NatsCluster::start(NatsOptions::default())
        .await
        .expect("a cluster");
    let scratch = Scratch::on(&cluster.url());
    drop(scratch.store().await);
    let leader = cluster.leader_of(&scratch.stream()).await.expect("it has one");
    let followers = [(leader + 1) % 3, (leader + 2) % 3];
    let proxy = FaultProxy::nats(cluster.servers()[leader].address()).expect("a proxy");
    let at = |address: String| format!("nats://{address}/{}", scratch.bucket);
    let [old, new] = [
        at(cluster.servers()[leader].address()),
        at(proxy.address().to_string()),
    ];
    let old = in_time("a fence", || NatsFence::connect(&old, Leases::Elsewhere)).await;
    let new = in_time("a fence", || NatsFence::connect(&new, Leases::Elsewhere)).await;
    let old = Arc::new(old);
    let ledger = ResourceName::new("ledger").expect("a name");
    let term = |number| Term::new(name("job"), FencingToken::new(number).expect("a token"));
    eventually_async(ELECTION, "a claim", async || old.claim(&ledger, &term(1)).await).await;
    eventually_async(ELECTION, "an answer", async || new.mark(&ledger).await).await;
    for round in 2..12 {
        for follower in followers {
            cluster.servers()[follower].freeze();
        }
        let writing = tokio::spawn({
            let (old, ledger, term) = (Arc::clone(&old), ledger.clone(), term(round - 1));
            async move { old.put(&ledger, &term, "balance", "1").await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (before, began) = (proxy.counts().requests, Instant::now());
        let thawing = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            for follower in followers {
                cluster.servers()[follower].thaw();
            }
        };
        let claim = term(round);
        let (claimed, ()) = tokio::join!(new.claim(&ledger, &claim), thawing);
        let (asked, took) = (proxy.counts().requests - before, began.elapsed());
        assert!(
            u128::from(asked) <= 10 + took.as_millis() / 2,
            "{asked} messages in {took:?}"
        );
        drop(writing.await.expect("no panic"));
        match claimed {
            Ok(_raised) => return,
            // On a loaded machine the followers came too late.
            Err(FenceError::Store(error)) if took >= CLAIM_TIME_MIN => {
                assert!(matches!(error.fault, Fault::Busy | Fault::TimedOut), "{error}");
            }
            Err(error) => panic!("given up after {took:?}: {error}"),
        }
        // The next one is over what holds now.
        eventually_async(ELECTION, "the old leader's claim", || async {
            old.claim(&ledger, &term(round)).await
        })
        .await;
    }
    panic!("no claim came through");
}
