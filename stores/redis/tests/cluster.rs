//! A Redis Cluster: replicas that are named, fail-overs, and slots that move while a lease is held.

use crate::common::{Scratch, connection, granted, refused, renewal, request, seconds, take};
use redis::{FromRedisValue, Value};
use std::net::TcpListener;
use std::time::Duration;
use tenure_core::{
    Acquire, Claimed, Fault, Fence, FenceError, FencingToken, LeaseStore, Leases, Listed, Page, Renew,
    Renewed, ResourceName, Term,
};
use tenure_redis::{FencedWrites, RedisFence, RedisStore};
use tenure_testkit::{RedisBuild, RedisCluster, RedisOptions, RedisServer, eventually_async, free_port};

/// Long, as a busy machine may need it.
const BOUND: Duration = Duration::from_secs(90);

/// A replica gives up by itself after five seconds.
const PLANNED_FAIL_OVER_MAX: Duration = Duration::from_secs(10);

const BUILDS: [RedisBuild; 2] = [RedisBuild::Redis, RedisBuild::Valkey];

async fn ask<T: FromRedisValue>(server: &RedisServer, words: &[&str]) -> T {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    let mut connection = connection(&server.url()).await;
    command.query_async(&mut connection).await.expect("an answer")
}

/// The slot of a prefix.
async fn slot_of(member: &RedisServer, prefix: &str) -> u16 {
    ask(member, &["CLUSTER", "KEYSLOT", prefix]).await
}

/// The place among the members of the one that has this slot, as this one of them knows.
async fn owner_of(members: &[RedisServer], slot: u16, told_by: usize) -> usize {
    let ranges: Vec<Value> = ask(&members[told_by], &["CLUSTER", "SLOTS"]).await;
    for range in ranges {
        let parts: Vec<Value> = redis::from_redis_value(range).expect("a range");
        let number = |place: usize| redis::from_redis_value::<u16>(parts[place].clone()).expect("a slot");
        if (number(0)..=number(1)).contains(&slot) {
            let node: Vec<Value> = redis::from_redis_value(parts[2].clone()).expect("a node");
            let port: u16 = redis::from_redis_value(node[1].clone()).expect("a port");
            let place = members.iter().position(|member| member.port() == port);
            return place.expect("a member");
        }
    }
    panic!("nobody has slot {slot}")
}

async fn is_primary(server: &RedisServer) -> bool {
    let role: Vec<Value> = ask(server, &["ROLE"]).await;
    redis::from_redis_value::<String>(role[0].clone()).expect("a role") == "master"
}

/// Asks the replica to take over; it gives up after a while, and must be asked anew.
async fn planned_fail_over(replica: &RedisServer) -> Result<(), String> {
    let began = replica.ask("CLUSTER FAILOVER");
    let done = async {
        while !is_primary(replica).await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let in_time = tokio::time::timeout(PLANNED_FAIL_OVER_MAX, done).await;
    in_time.map_err(|_late| format!("{began:?} {:?}", replica.ask_all("CLUSTER NODES")))
}

/// The replica that was started for this primary.
fn replica_of(primary: usize) -> usize {
    assert!(primary < RedisCluster::PRIMARIES, "it is a replica");
    primary + RedisCluster::PRIMARIES
}

async fn renewed(store: &RedisStore, asked: &Acquire, token: FencingToken) -> Result<(), String> {
    match store.renew(&[renewal(asked, token)]).await.remove(0) {
        Ok(Renewed::Extended { .. }) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn ledger() -> ResourceName {
    ResourceName::new("ledger").expect("a name")
}

#[tokio::test]
async fn replica_of_a_cluster_sends_on_to_the_member_that_has_the_slot() {
    for build in BUILDS {
        let cluster = RedisCluster::start(build).await.expect("a cluster");
        let (mut tokens, asked) = (Vec::new(), request("job", "a", seconds(300)));
        for member in cluster.members() {
            let store = Scratch {
                url: member.url(),
                prefix: "bank".to_owned(),
            };
            let store = store.store().await;
            tokens.push(take(&store, &asked).await.token);
        }
        assert!(
            tokens.iter().all(|token| *token == tokens[0]),
            "{build:?}: two records of one lease: {tokens:?}"
        );
    }
}

#[tokio::test]
async fn members_of_a_cluster_that_are_gone_are_passed_over() {
    let cluster = RedisCluster::start(RedisBuild::Redis).await.expect("a cluster");
    let gone = free_port();
    let lives = cluster.members()[0].address();
    let store = RedisStore::connect(&format!("redis://127.0.0.1:{gone},{lives}")).await;
    let grant = take(&store.expect("connects"), &request("job", "a", seconds(300))).await;
    assert_eq!(grant.terms, 1);
    let error = refused(&format!("redis://127.0.0.1:{gone},127.0.0.1:{gone}")).await;
    assert_eq!(error.fault, Fault::Unreachable, "{error}");
}

/// They would take longer, one after the other, than connecting may.
#[tokio::test]
async fn members_of_a_cluster_that_are_silent_keep_nobody_from_the_last() {
    let cluster = RedisCluster::start(RedisBuild::Redis).await.expect("a cluster");
    let silent: Vec<TcpListener> = (0..8)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"))
        .collect();
    let silent = silent
        .iter()
        .map(|listener| listener.local_addr().expect("an address"));
    let mut hosts: Vec<String> = silent.map(|address| address.to_string()).collect();
    hosts.push(cluster.members()[0].address());
    let store = RedisStore::connect(&format!("redis://{}", hosts.join(","))).await;
    let grant = take(&store.expect("connects"), &request("job", "a", seconds(300))).await;
    assert_eq!(grant.terms, 1);
}

#[tokio::test]
async fn member_of_a_cluster_that_takes_no_more_clients_is_passed_over() {
    for build in BUILDS {
        let cluster = RedisCluster::start(build).await.expect("a cluster");
        let members = cluster.members();
        let owner = owner_of(members, slot_of(&members[0], "{tenure}").await, 0).await;
        let full = (owner + 1) % RedisCluster::PRIMARIES;
        let set: String = ask(&members[full], &["CONFIG", "SET", "maxclients", "1"]).await;
        assert_eq!(set, "OK");
        let url = format!("redis://{},{}", members[full].address(), members[owner].address());
        let store = RedisStore::connect(&url).await.expect("connects");
        let grant = take(&store, &request("job", "a", seconds(300))).await;
        assert_eq!(grant.terms, 1, "{build:?}");
        let error = refused(&members[full].url()).await;
        assert_eq!(error.fault, Fault::Unreachable, "{build:?}: {error}");
        assert!(error.message.contains("maxclients"), "{build:?}: {error}");
    }
}

/// It was forgotten when the others' password was changed, and they are away for a moment: that must end
/// nobody's campaign.
#[tokio::test]
async fn member_of_a_cluster_that_lets_nobody_in_is_passed_over() {
    let cluster = RedisCluster::start(RedisBuild::Redis).await.expect("a cluster");
    let members = cluster.members();
    let owner = owner_of(members, slot_of(&members[0], "{tenure}").await, 0).await;
    let locked = (owner + 1) % RedisCluster::PRIMARIES;
    let set: String = ask(&members[locked], &["CONFIG", "SET", "requirepass", "another"]).await;
    assert_eq!(set, "OK");
    let (locked, owner) = (members[locked].address(), members[owner].address());
    let store = RedisStore::connect(&format!("redis://{locked},{owner}")).await;
    let grant = take(&store.expect("connects"), &request("job", "a", seconds(300))).await;
    assert_eq!(grant.terms, 1);
    let gone = format!("127.0.0.1:{}", free_port());
    for hosts in [[&locked, &gone], [&gone, &locked]] {
        let error = refused(&format!("redis://{},{}", hosts[0], hosts[1])).await;
        assert_eq!(error.fault, Fault::Unreachable, "{error}");
        for host in hosts {
            assert!(error.message.contains(host), "{error}");
        }
    }
    let error = refused(&format!("redis://{locked}")).await;
    assert_eq!(error.fault, Fault::Unauthenticated, "{error}");
}

/// Each of them would have leases of its own.
#[tokio::test]
async fn servers_that_are_no_members_of_a_cluster_are_not_taken_for_each_other() {
    let start = || RedisServer::start(RedisOptions::default());
    let (one, two) = (start().await.expect("a server"), start().await.expect("a server"));
    let error = refused(&format!("redis://{},{}", one.address(), two.address())).await;
    assert_eq!(error.fault, Fault::Invalid, "{error}");
    assert!(error.message.contains("no member of a cluster"), "{error}");
}

/// The planned one loses nothing; after the other, a later term is above whatever was known.
#[tokio::test]
async fn fail_overs_of_a_cluster_are_followed_by_store_and_fence_and_tokens_rise() {
    for build in BUILDS {
        let mut cluster = RedisCluster::start(build).await.expect("a cluster");
        let scratch = Scratch::on(&cluster.url());
        let store = scratch.store().await;
        let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
            .await
            .expect("a fence");
        let asked = request("job", "a", seconds(600));
        let before = take(&store, &asked).await;
        let term = Term::new(asked.name.clone(), before.token);
        fence.claim(&ledger(), &term).await.expect("a claim");

        let slot = slot_of(&cluster.members()[0], &scratch.prefix).await;
        let old = owner_of(cluster.members(), slot, 0).await;
        let new = replica_of(old);
        eventually_async(BOUND, "a planned fail-over", || {
            planned_fail_over(&cluster.members()[new])
        })
        .await;
        eventually_async(BOUND, "a renewal", || renewed(&store, &asked, before.token)).await;
        let lease = eventually_async(BOUND, "a read", || store.get(&asked.name)).await;
        let lease = lease.expect("a record");
        assert_eq!((lease.token, lease.terms), (before.token, 1), "{build:?}");
        let data = format!("{{{}}}:balance", scratch.prefix);
        let writes = FencedWrites::new().command(&[&data], ["INCR", &data]);
        let resource = ledger();
        let written = eventually_async(BOUND, "a write", || fence.write(&resource, &term, &writes)).await;
        assert_eq!(written, vec![Value::Int(1)], "{build:?}");

        cluster.kill(new);
        eventually_async(BOUND, "a fail-over", || is_primary(&cluster.members()[old])).await;
        let other = request("other", "b", seconds(600));
        let after = eventually_async(BOUND, "a term after the fail-over", || async {
            store.acquire(&other).await.map(granted)
        })
        .await;
        assert!(after.token > before.token, "{build:?}");
        let later = Term::new(other.name, after.token);
        let claimed = eventually_async(BOUND, "a claim after the fail-over", || async {
            match fence
                .claim(&ResourceName::new("other").expect("a name"), &later)
                .await
            {
                Err(FenceError::Store(error)) => Err(error.to_string()),
                decided => Ok(decided),
            }
        })
        .await;
        assert_eq!(claimed, Ok(Claimed::Raised { from: None }), "{build:?}");
    }
}

/// While its slot is half moved, nothing is told of a lease that is wrong; when it is moved, the term goes
/// on.
#[tokio::test]
async fn a_lease_that_is_held_while_its_slot_moves_is_neither_lost_nor_unreadable() {
    for build in BUILDS {
        let cluster = RedisCluster::start(build).await.expect("a cluster");
        let scratch = Scratch::on(&cluster.url());
        let store = scratch.store().await;
        let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
            .await
            .expect("a fence");
        let asked = request("job", "a", seconds(600));
        let token = take(&store, &asked).await.token;
        let term = Term::new(asked.name.clone(), token);
        fence.claim(&ledger(), &term).await.expect("a claim");

        let slot = slot_of(&cluster.members()[0], &scratch.prefix).await;
        let from = owner_of(cluster.members(), slot, 0).await;
        let to = (from + 1) % RedisCluster::PRIMARIES;
        let slot = slot.to_string();
        let members = cluster.members();
        let from_id: String = ask(&members[from], &["CLUSTER", "MYID"]).await;
        let to_id: String = ask(&members[to], &["CLUSTER", "MYID"]).await;
        let port = members[to].port().to_string();
        for (place, words) in [
            (to, ["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]),
            (from, ["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]),
        ] {
            assert_eq!(ask::<String>(&members[place], &words).await, "OK");
        }
        let keys: Vec<String> = ask(&members[from], &["CLUSTER", "GETKEYSINSLOT", &slot, "100"]).await;
        let (record, mark) = (scratch.key("job"), format!("{{{}}}:fence:ledger", scratch.prefix));
        let rest = keys.iter().filter(|key| ![&record, &mark].contains(key));
        let order = [&record, &mark].into_iter().chain(rest);
        for key in order {
            let words = ["MIGRATE", "127.0.0.1", &port, key, "0", "10000"];
            assert_eq!(ask::<String>(&members[from], &words).await, "OK", "{key}");
            nothing_is_told_that_is_wrong(&store, &fence, &asked, token).await;
        }
        nobody_is_sent_to_and_fro(&members[from], &members[to], &store, &renewal(&asked, token)).await;
        for place in [to, from] {
            let words = ["CLUSTER", "SETSLOT", &slot, "NODE", &to_id];
            assert_eq!(ask::<String>(&members[place], &words).await, "OK");
        }
        eventually_async(BOUND, "a renewal", || renewed(&store, &asked, token)).await;
        eventually_async(BOUND, "the fence", async || fence.check(&ledger(), &term).await).await;
    }
}

/// All keys have moved, and the slot has not: until it has, the old member sends on to the new one, and that
/// one back.
async fn nobody_is_sent_to_and_fro(
    old: &RedisServer,
    new: &RedisServer,
    store: &RedisStore,
    renewal: &Renew,
) {
    let connections = async || [connections_made(old).await, connections_made(new).await];
    let before = connections().await;
    for _try in 0..20 {
        let renewed = store.renew(std::slice::from_ref(renewal)).await.remove(0);
        let Err(error) = renewed else {
            panic!("{renewed:?}")
        };
        assert_eq!(error.fault, Fault::Unreachable, "{error}");
    }
    let after = connections().await;
    for (before, after) in before.into_iter().zip(after) {
        // One to look, and one for each connection of the store's.
        assert!(after - before <= 4, "{} connections", after - before);
    }
}

async fn connections_made(server: &RedisServer) -> u64 {
    let told: String = ask(server, &["INFO", "stats"]).await;
    let made = told
        .lines()
        .find_map(|line| line.strip_prefix("total_connections_received:"));
    made.expect("it is told").trim().parse().expect("a number")
}

/// Every request succeeds, or says that it is not known what is so.
async fn nothing_is_told_that_is_wrong(
    store: &RedisStore,
    fence: &RedisFence,
    asked: &Acquire,
    token: FencingToken,
) {
    let passing =
        |error: &tenure_core::StoreError| matches!(error.fault, Fault::Unreachable | Fault::TimedOut);
    let page = Page::first("", 10);
    match store.list(&page).await {
        Ok(found) => assert!(matches!(found.leases[..], [Listed::Lease(_)]), "{found:?}"),
        Err(error) => assert!(passing(&error), "{error:?}"),
    }
    match store.renew(&[renewal(asked, token)]).await.remove(0) {
        Ok(renewed) => assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}"),
        Err(error) => assert!(passing(&error), "{error:?}"),
    }
    match store.get(&asked.name).await {
        Ok(lease) => assert_eq!(lease.map(|lease| lease.token), Some(token)),
        Err(error) => assert!(passing(&error), "{error:?}"),
    }
    match fence.marks(None).await {
        Ok(page) => assert_eq!(page.marks.len(), 1, "{page:?}"),
        Err(FenceError::Store(error)) => assert!(passing(&error), "{error:?}"),
        Err(refused) => panic!("{refused:?}"),
    }
}
