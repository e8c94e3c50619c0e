//! Servers that were demoted after the store had connected: they tell nothing of what they no longer rule.

use crate::common::{Scratch, connection, giving_back, renewal, request, seconds, take};
use tenure_core::{
    Acquire, Acquired, Ask, Asked, Certainty, Durability, Fence, FenceError, FencingToken, LeaseStore,
    Leases, Page, Released, Renewed, ResourceName, StoreError, Term, Verdict,
};
use tenure_redis::{FencedScript, FencedWrites, QuorumStore, RedisFence};
use tenure_testkit::{FaultProxy, RedisBuild, RedisOptions, RedisServer, free_port};

async fn server(build: RedisBuild) -> RedisServer {
    let started = RedisServer::start(RedisOptions::default().of(build)).await;
    started.expect("a server")
}

async fn demote(old: &RedisServer, new: &RedisServer) {
    make_replica(old, new.port()).await;
}

async fn make_replica(old: &RedisServer, of_port: u16) {
    let mut connection = connection(&old.url()).await;
    let demoted: String = redis::cmd("REPLICAOF")
        .arg("127.0.0.1")
        .arg(of_port)
        .query_async(&mut connection)
        .await
        .expect("asked");
    assert_eq!(demoted, "OK");
}

async fn make_primary(server: &RedisServer) {
    let mut connection = connection(&server.url()).await;
    let alone: String = redis::cmd("REPLICAOF")
        .arg(&["NO", "ONE"])
        .query_async(&mut connection)
        .await
        .expect("asked");
    assert_eq!(alone, "OK");
}

fn page() -> Page {
    Page::first("", 10)
}

#[track_caller]
fn says_that_it_is_demoted(error: &StoreError) {
    assert!(
        error.message.contains("replica") || error.message.contains("MASTERDOWN"),
        "{error}"
    );
    assert!(
        !error.fault.is_misconfiguration(),
        "it would end a campaign: {error}"
    );
}

/// No script can tell there that it rules no longer: that is said beforehand.
#[tokio::test]
async fn server_that_takes_writes_as_a_replica_says_fence_only() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let options = RedisOptions::with("--appendonly yes --appendfsync always --replica-read-only no");
        let old = RedisServer::start(options.of(build)).await;
        let old = old.expect("a server");
        let scratch = Scratch::on(&old.url());
        let store = scratch.store().await;
        take(&store, &request("before", "a", seconds(300))).await;
        // Of nobody, whose records would replace its own.
        make_replica(&old, free_port()).await;
        take(&store, &request("job", "a", seconds(300))).await;
        make_primary(&old).await;
        let told = scratch.store().await.traits().durability;
        assert!(
            matches!(told, Durability::FenceOnly(why) if why.contains("demoted")),
            "{build:?}: {told:?}"
        );
        let findings = store.examine().await.expect("an examination");
        let found = findings.iter().find(|finding| finding.subject == "topology");
        let found = found.expect("a finding");
        assert_eq!(found.verdict, Verdict::Bad, "{build:?}: {found:?}");
    }
}

#[tokio::test]
async fn server_that_is_demoted_lists_neither_leases_nor_marks() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let (old, new) = (server(build).await, server(build).await);
        let scratch = Scratch::on(&old.url());
        let store = scratch.store().await;
        let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
            .await
            .expect("a fence");
        let asked = request("job", "a", seconds(60));
        let term = Term::new(asked.name.clone(), take(&store, &asked).await.token);
        let ledger = ResourceName::new("ledger").expect("a name");
        fence.claim(&ledger, &term).await.expect("a claim");
        assert_eq!(store.list(&page()).await.expect("a page").leases.len(), 1);
        assert_eq!(fence.marks(None).await.expect("a page").marks.len(), 1);
        demote(&old, &new).await;
        for _ in 0..2 {
            let listed = store.list(&page()).await;
            says_that_it_is_demoted(&listed.expect_err("a replica listed what it knows"));
            match fence.marks(None).await {
                Err(tenure_core::FenceError::Store(error)) => says_that_it_is_demoted(&error),
                told => panic!("a replica told its marks: {told:?}"),
            }
        }
    }
}

/// It has not heard anything of its new primary, and goes on telling what it knew: each of these answers
/// needs no write.
#[tokio::test]
async fn server_that_is_demoted_decides_nothing_that_needs_no_write() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let old = server(build).await;
        let scratch = Scratch::on(&old.url());
        let store = scratch.store().await;
        let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
            .await
            .expect("a fence");
        let (asked, rival) = (
            request("job", "a", seconds(600)),
            request("job", "b", seconds(600)),
        );
        let token = take(&store, &asked).await.token;
        let earlier = FencingToken::new(token.number() - 1).expect("a token");
        let ledger = ResourceName::new("ledger").expect("a name");
        let [over, term] = [earlier, token].map(|token| Term::new(asked.name.clone(), token));
        fence.claim(&ledger, &term).await.expect("a claim");
        let data = format!("{{{}}}:balance", scratch.prefix);
        let writes = FencedWrites::new().command(&[&data], ["INCR", &data]);
        let script = FencedScript::new("return redis.call('INCR', KEYS[1])");
        let wish = Ask {
            name: asked.name.clone(),
            token: earlier,
        };
        // What it decides as long as it rules.
        assert!(matches!(store.acquire(&rival).await, Ok(Acquired::Held(_))));
        let renewed = store.renew(&[renewal(&asked, earlier)]).await.remove(0);
        assert!(matches!(renewed, Ok(Renewed::Lost(Some(_)))), "{renewed:?}");
        let released = store.release(&[giving_back(&asked, earlier)]).await.remove(0);
        assert!(
            matches!(released, Ok(Released::NotYours(Some(_)))),
            "{released:?}"
        );
        assert_eq!(store.ask(&wish).await, Ok(Asked::NotHeld));
        let stale = fence.write(&ledger, &over, &writes).await;
        assert!(matches!(stale, Err(FenceError::Stale { .. })), "{stale:?}");

        let nobody = tenure_testkit::free_port();
        // Who finds it out leaves the connection, and connects to it no more: each begins with the server as
        // a primary.
        let told = || demoted_once_connected(&scratch, &old, nobody);
        let (store, _) = told().await;
        says_that_it_is_demoted(&store.acquire(&rival).await.expect_err("held"));
        let (store, _) = told().await;
        let renewed = store.renew(&[renewal(&asked, earlier)]).await.remove(0);
        says_that_it_is_demoted(&renewed.expect_err("lost"));
        let (store, _) = told().await;
        let released = store.release(&[giving_back(&asked, earlier)]).await.remove(0);
        says_that_it_is_demoted(&released.expect_err("not yours"));
        let (store, _) = told().await;
        says_that_it_is_demoted(&store.ask(&wish).await.expect_err("not held"));
        // Of a term that is over it would be told that it is stale; by the mark of the other it is let in,
        // and changes nothing.
        let reads = FencedWrites::new().command(&[&data], ["GET", &data]);
        let reading = FencedScript::new("return redis.call('GET', KEYS[1])");
        let none: [&str; 0] = [];
        for (term, writes, script) in [(&over, &writes, &script), (&term, &reads, &reading)] {
            let (_, fence) = told().await;
            let written = fence.write(&ledger, term, writes).await.map(drop);
            let (_, fence) = told().await;
            let run = fence.run(&ledger, term, script, &[&data], &none).await.map(drop);
            for refused in [written, run] {
                match refused {
                    Err(FenceError::Store(error)) => says_that_it_is_demoted(&error),
                    told => panic!("{build:?}: {term}: {told:?}"),
                }
            }
        }
    }
}

/// The old server lives on as a replica, so no connection to it ends, and the mark is there: it admits, and
/// its write fails.
#[tokio::test]
async fn fence_leaves_the_server_that_was_demoted_for_the_one_that_rules() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let (old, new) = (server(build).await, server(build).await);
        let name = FaultProxy::redis(old.address()).expect("a proxy");
        let scratch = Scratch::on(&format!("redis://{}", name.address()));
        let term = Term::new(
            request("job", "a", seconds(60)).name,
            FencingToken::new(1).expect("a token"),
        );
        let ledger = ResourceName::new("ledger").expect("a name");
        let data = format!("{{{}}}:balance", scratch.prefix);
        let reads_first = FencedWrites::new()
            .command(&[&data], ["GET", &data])
            .command(&[&data], ["INCR", &data]);
        let raises = FencedScript::new("return redis.call('INCR', KEYS[1])");
        let answers = FencedScript::new("return { redis.pcall('INCR', KEYS[1]) }");
        let none: [&str; 0] = [];
        for script in [None, Some(&raises), Some(&answers)] {
            make_primary(&old).await;
            make_primary(&new).await;
            name.lead_to(old.address());
            let fence = RedisFence::connect(&scratch.store_url(), Leases::Elsewhere).await;
            let fence = fence.expect("a fence");
            let write = async || match script {
                None => fence.write(&ledger, &term, &reads_first).await.map(drop),
                Some(script) => fence.run(&ledger, &term, script, &[&data], &none).await.map(drop),
            };
            fence.claim(&ledger, &term).await.expect("a claim");
            write().await.expect("it is admitted");
            // What a replica would have by now.
            let url = format!("{}?prefix={}", new.url(), scratch.prefix);
            let elsewhere = RedisFence::connect(&url, Leases::Elsewhere).await;
            let elsewhere = elsewhere.expect("a fence");
            let key = format!("{{{}}}:leases:store", scratch.prefix);
            let id = old.ask_all(&format!("HGET {key} id")).expect("asked");
            new.ask(&format!("HSET {key} id {id}")).expect("asked");
            elsewhere.claim(&ledger, &term).await.expect("a claim");
            make_replica(&old, tenure_testkit::free_port()).await;
            name.lead_to(new.address());
            match write().await {
                Err(FenceError::Store(error)) => {
                    says_that_it_is_demoted(&error);
                    assert_eq!(error.certainty, Certainty::NotApplied, "{error}");
                }
                told => panic!("{build:?}: {told:?}"),
            }
            write().await.expect("the next one goes to who rules");
        }
    }
}

/// Store and fence that were connected while the server ruled, and it no longer does.
async fn demoted_once_connected(
    scratch: &Scratch,
    server: &RedisServer,
    of_port: u16,
) -> (tenure_redis::RedisStore, RedisFence) {
    make_primary(server).await;
    let store = scratch.store().await;
    // Both of its connections.
    let asked = request("warm", "warm", seconds(60));
    store.get(&asked.name).await.expect("a read");
    let renewed = store.renew(&[renewal(&asked, FencingToken::MAX)]).await.remove(0);
    assert_eq!(renewed, Ok(Renewed::Lost(None)));
    let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    let ledger = ResourceName::new("ledger").expect("a name");
    fence.mark(&ledger).await.expect("a look");
    make_replica(server, of_port).await;
    (store, fence)
}

#[tokio::test]
async fn quorum_whose_majority_is_demoted_lists_no_leases() {
    let build = RedisBuild::Redis;
    let members = [server(build).await, server(build).await, server(build).await];
    let new = server(build).await;
    let hosts: Vec<String> = members.iter().map(RedisServer::address).collect();
    let url = format!("redis+quorum://{}", hosts.join(","));
    let store = QuorumStore::connect(&url).await.expect("the quorum connects");
    take(&store, &request("job", "a", seconds(60))).await;
    demote(&members[0], &new).await;
    let listed = store.list(&page()).await.expect("two of three still rule");
    assert_eq!(listed.leases.len(), 1);
    demote(&members[1], &new).await;
    for _ in 0..2 {
        let listed = store.list(&page()).await;
        listed.expect_err("one of three decided for all");
    }
}

/// Of nobody, whose records would replace its own.
#[tokio::test]
async fn quorum_whose_majority_is_demoted_tells_nobody_that_a_lease_is_held_or_a_term_over() {
    let build = RedisBuild::Redis;
    let members = [server(build).await, server(build).await, server(build).await];
    let hosts: Vec<String> = members.iter().map(RedisServer::address).collect();
    let url = format!("redis+quorum://{}", hosts.join(","));
    let store = QuorumStore::connect(&url).await.expect("the quorum connects");
    let early = request("job", "a", seconds(60));
    let asked = Acquire {
        attempt: early.attempt.next(),
        ..early.clone()
    };
    take(&store, &asked).await;
    let rival = request("job", "b", seconds(60));
    for (member, asked) in members.iter().zip([None, Some(rival), Some(early)]) {
        make_replica(member, free_port()).await;
        if let Some(asked) = asked {
            let answer = store.acquire(&asked).await;
            answer.expect_err("one of three rules, or none");
        }
    }
}
