//! Connecting: to the right server or to none, with the reason in one line and never a password.

use crate::common::{
    Scratch, connection, giving_back, granted, only_the_cleaner_cleans_up, refused, request, seconds, take,
};
use std::time::Duration;
use tenure_core::{Durability, Fault, Interest, LeaseStore, Released, Scope};
use tenure_redis::RedisStore;
use tenure_testkit::{RedisBuild, RedisOptions, RedisSentinels, RedisServer, eventually_async};

#[tokio::test]
async fn wrong_credentials_and_missing_ones_are_told_apart_from_missing_rights() {
    let options = RedisOptions {
        password: Some("right".to_owned()),
        ..RedisOptions::default()
    };
    // They word it differently.
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let server = RedisServer::start(options.clone().of(build)).await;
        credentials_and_rights_are_told_apart(&server.expect("a server")).await;
    }
}

async fn credentials_and_rights_are_told_apart(server: &RedisServer) {
    let address = server.address();
    for url in [
        format!("redis://{address}"),
        format!("redis://:hunter2@{address}"),
        format!("redis://me:hunter2@{address}"),
    ] {
        assert_eq!(refused(&url).await.fault, Fault::Unauthenticated, "{url}");
    }
    let mut admin = connection(&server.url()).await;
    let rights: Vec<&str> = LEAST.split_whitespace().collect();
    for (user, keys) in [("service", "~{tenure}:*"), ("stranger", "~other:*")] {
        let mut command = redis::cmd("ACL");
        command
            .arg("SETUSER")
            .arg(user)
            .arg("on")
            .arg(">hunter2")
            .arg(keys)
            // A new user of 6.2 may use every channel.
            .arg("resetchannels")
            .arg("&{tenure}:changes:*");
        let _set: String = command
            .arg(&rights)
            .query_async(&mut admin)
            .await
            .expect("a user");
    }
    let service = RedisStore::connect(&format!("redis://service:hunter2@{address}"))
        .await
        .expect("connects");
    let asked = request("job", "a", seconds(60));
    let token = take(&service, &asked).await.token;
    service
        .watch(&Scope::Name(asked.name.clone()), Interest::Everything)
        .await
        .expect("a watch");
    service
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .expect("a watch of everything");
    assert_eq!(
        service.release(&[giving_back(&asked, token)]).await[0],
        Ok(Released::Vacated)
    );
    let mut more: Vec<&str> = vec![
        "SETUSER",
        "cleaner",
        "on",
        ">hunter2",
        "~{tenure}:*",
        "resetchannels",
        "&{tenure}:changes:*",
        "+del",
    ];
    more.extend(&rights);
    let _set: String = redis::cmd("ACL")
        .arg(&more)
        .query_async(&mut admin)
        .await
        .expect("a user");
    let cleaner = RedisStore::connect(&format!("redis://cleaner:hunter2@{address}"))
        .await
        .expect("connects");
    only_the_cleaner_cleans_up(&service, &cleaner).await;
    let findings = service.examine().await.expect("an examination");
    let worst = findings.iter().map(|finding| finding.verdict).max();
    assert!(worst < Some(tenure_core::Verdict::Bad), "{findings:?}");
    let stranger = RedisStore::connect(&format!("redis://stranger:hunter2@{address}"))
        .await
        .expect("connects");
    let error = stranger
        .acquire(&asked)
        .await
        .expect_err("it has no right to the keys");
    assert_eq!(error.fault, Fault::Forbidden, "{error}");
    assert!(!error.message.contains("hunter2"), "{error}");
    let _set: String = redis::cmd("ACL")
        .arg(&["SETUSER", "service", "resetchannels"])
        .query_async(&mut admin)
        .await
        .expect("a user");
    let error = RedisStore::connect(&format!("redis://service:hunter2@{address}"))
        .await
        .expect("connects")
        .acquire(&request("job", "b", seconds(60)))
        .await
        .expect_err("it has no right to the channels");
    assert_eq!(error.fault, Fault::Forbidden, "{error}");
}

/// Whoever is named is who asks: not the server's default user, who mostly may do everything.
#[tokio::test]
async fn user_without_a_password_is_not_taken_for_the_default_one() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let server = RedisServer::start(RedisOptions::default().of(build))
            .await
            .expect("a server");
        for user in [
            "open on nopass ~other:* +@all",
            "closed on >hunter2 allkeys +@all",
        ] {
            let set = server.ask(&format!("ACL SETUSER {user}")).expect("asked");
            assert_eq!(set, "+OK");
        }
        let store = RedisStore::connect(&format!("redis://open@{}", server.address()))
            .await
            .expect("it needs no password");
        let error = store
            .acquire(&request("job", "a", seconds(60)))
            .await
            .expect_err("it has no right to the keys");
        assert_eq!(error.fault, Fault::Forbidden, "{build:?}: {error}");
        for user in ["closed", "nobody"] {
            let error = refused(&format!("redis://{user}@{}", server.address())).await;
            assert_eq!(error.fault, Fault::Unauthenticated, "{build:?}: {error}");
        }
    }
}

/// As in the README.
pub const LEAST: &str = "+eval +evalsha +time +hmget +hget +hset +hdel +hincrby +exists +pexpire +persist +zadd +zrem \
    +zrangebylex +zrandmember +publish +subscribe +psubscribe +unsubscribe +punsubscribe +ping +hello +select +role \
    +info +config|get +acl|whoami";

#[tokio::test]
async fn databases_and_prefixes_are_places_of_their_own() {
    let server = RedisServer::start(RedisOptions::default())
        .await
        .expect("a server");
    for place in [
        "",
        "/3",
        "?prefix=other",
        "/3?prefix=other",
        "?prefix=%24%20%C3%A4",
    ] {
        let store = RedisStore::connect(&format!("{}{place}", server.url()))
            .await
            .expect("connects");
        let grant = take(&store, &request("job", "a", seconds(60))).await;
        assert_eq!(grant.terms, 1, "{place}: another place's record");
    }
}

#[tokio::test]
async fn traits_say_what_a_confirmed_write_is_worth() {
    for (settings, reason) in [
        ("--appendonly yes --appendfsync always", None),
        ("--appendonly yes --appendfsync everysec", Some("last second")),
        ("", Some("restarts")),
        (
            "--appendonly yes --appendfsync always --maxmemory 90mb --maxmemory-policy allkeys-lru",
            Some("evicts"),
        ),
        (
            "--appendonly yes --appendfsync always --maxmemory 90mb --maxmemory-policy noeviction",
            None,
        ),
        // Records have a time to live where names are purged.
        (
            "--appendonly yes --appendfsync always --maxmemory 90mb --maxmemory-policy volatile-lru",
            Some("evicts"),
        ),
    ] {
        for build in [RedisBuild::Redis, RedisBuild::Valkey] {
            let server = RedisServer::start(RedisOptions::with(settings).of(build))
                .await
                .expect("a server");
            let durability = RedisStore::connect(&server.url())
                .await
                .expect("connects")
                .traits()
                .durability;
            match (durability, reason) {
                (Durability::Safe, None) => {}
                (Durability::FenceOnly(why), Some(reason)) if why.contains(reason) => {}
                _ => panic!("{build:?} {settings}: {durability:?}"),
            }
        }
    }
}

#[tokio::test]
async fn replica_is_refused_and_its_primary_named() {
    let primary = RedisServer::start(RedisOptions::durable())
        .await
        .expect("a server");
    let of_primary = format!("--replicaof 127.0.0.1 {}", primary.port());
    let replica = RedisServer::start(RedisOptions::with(&of_primary))
        .await
        .expect("a server");
    let error = refused(&replica.url()).await;
    assert_eq!(error.fault, Fault::ReadOnly, "{error}");
    assert!(
        error.message.contains(&format!("127.0.0.1:{}", primary.port())),
        "{error}"
    );
    let durability = eventually_async(Duration::from_secs(30), "the replica is seen", || async {
        match RedisStore::connect(&primary.url())
            .await
            .expect("connects")
            .traits()
            .durability
        {
            Durability::Safe => None,
            Durability::FenceOnly(why) => Some(why),
        }
    })
    .await;
    assert!(durability.contains("fail-over"), "{durability}");
}

/// Once connected, it is demoted: nothing it still knows may be told or changed, and that ends no campaign.
#[tokio::test]
async fn server_that_is_demoted_decides_nothing_any_more() {
    let [old, new] = [(); 2].map(|()| RedisServer::start(RedisOptions::default()));
    let (old, new) = (old.await.expect("a server"), new.await.expect("a server"));
    let store = Scratch::on(&old.url()).store().await;
    let asked = request("job", "a", seconds(60));
    take(&store, &asked).await;
    let demoted = old
        .ask(&format!("REPLICAOF 127.0.0.1 {}", new.port()))
        .expect("asked");
    assert_eq!(demoted, "+OK");
    for _ in 0..2 {
        let read = store
            .get(&asked.name)
            .await
            .expect_err("a replica told what it knows");
        let taken = store
            .acquire(&asked)
            .await
            .expect_err("a replica granted a lease");
        assert!(
            !taken.fault.is_misconfiguration(),
            "it would end a campaign: {taken}"
        );
        assert!(
            read.message.contains("replica") || read.message.contains("MASTERDOWN"),
            "{read}"
        );
    }
}

#[tokio::test]
async fn member_of_a_cluster_sends_on_to_the_one_that_has_the_slot() {
    let options = || RedisOptions::with("--cluster-enabled yes");
    let (one, two) = (
        RedisServer::start(options()).await.expect("a server"),
        RedisServer::start(options()).await.expect("a server"),
    );
    for (server, slots) in [(&one, "0 8191"), (&two, "8192 16383")] {
        assert_eq!(
            server
                .ask(&format!("CLUSTER ADDSLOTSRANGE {slots}"))
                .expect("asked"),
            "+OK"
        );
    }
    assert_eq!(
        one.ask(&format!("CLUSTER MEET 127.0.0.1 {}", two.port()))
            .expect("asked"),
        "+OK"
    );
    let prefixes: Vec<String> = (0..8).map(|number| format!("place-{number}")).collect();
    for prefix in &prefixes {
        let mut tokens = Vec::new();
        for server in [&one, &two] {
            let url = format!("{}?prefix={prefix}", server.url());
            let store = eventually_async(Duration::from_secs(60), "the whole cluster", || {
                RedisStore::connect(&url)
            })
            .await;
            assert!(matches!(store.traits().durability, Durability::FenceOnly(_)));
            let asked = request("job", "a", seconds(60));
            let grant = eventually_async(Duration::from_secs(60), "a term", || async {
                store.acquire(&asked).await.map(granted)
            })
            .await;
            store
                .watch(&Scope::Name(asked.name.clone()), Interest::Everything)
                .await
                .expect("a watch");
            store
                .release(&[giving_back(&asked, grant.token)])
                .await
                .remove(0)
                .expect("released");
            tokens.push((grant.token, grant.terms));
        }
        assert!(
            tokens[0].0 < tokens[1].0 && tokens[1].1 == 2,
            "two records of one lease: {tokens:?}"
        );
    }
    let keys = |server: &RedisServer| server.ask("DBSIZE").expect("asked");
    assert!(
        keys(&one) != ":0" && keys(&two) != ":0",
        "all prefixes fell to one member"
    );
}

/// The sentinels make the replica primary; the same store finds it, and tokens rise.
#[tokio::test]
async fn primary_of_sentinels_is_followed_through_a_fail_over() {
    let mut set = RedisSentinels::start().await.expect("sentinels");
    let store = Scratch::on(&set.url()).store().await;
    assert!(matches!(store.traits().durability, Durability::FenceOnly(_)));
    let before = take(&store, &request("job", "a", seconds(300))).await;
    let mut watch = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .expect("a watch");
    set.servers()[0].kill();
    // Whoever leads has a later term: the same record where it had reached the replica, none where it had
    // not.
    let other = request("other", "b", seconds(300));
    let after = eventually_async(Duration::from_secs(60), "a term on the new primary", || async {
        store.acquire(&other).await.map(granted)
    })
    .await;
    assert!(after.token > before.token);
    let ended = async {
        loop {
            if let Err(error) = watch.next().await {
                return error;
            }
        }
    };
    let error = tokio::time::timeout(Duration::from_secs(30), ended)
        .await
        .expect("the watch of a dead server ends");
    assert_eq!(error.fault, Fault::Unreachable, "{error}");
    let unknown = set.url().replace(RedisSentinels::PRIMARY, "nobody");
    let error = refused(&unknown).await;
    assert!(error.message.contains("watches no primary"), "{error}");
}
