//! Sentinels of which one is lost, or wrong: the others lead to the primary.

use crate::common::{Scratch, connection, granted, refused, renewal, request, seconds, take};
use std::time::Duration;
use tenure_core::{Interest, LeaseStore, Renewed, Scope, StoreError, Verdict};
use tenure_redis::{QuorumStore, RedisStore};
use tenure_testkit::{Fault, FaultProxy, RedisSentinels, RedisServer, eventually_async};

/// What a caller waits: less than one silent sentinel is given.
const PATIENCE: Duration = Duration::from_millis(500);

/// Long, as a busy machine may need it.
const BOUND: Duration = Duration::from_secs(60);

/// The address that stands first in the URL.
fn first_sentinel(set: &RedisSentinels) -> String {
    let url = set.url();
    let hosts = url.trim_start_matches("redis+sentinel://");
    hosts.split(',').next().expect("a sentinel").to_owned()
}

/// It keeps no leases, and would be asked for them for ever.
#[tokio::test]
async fn sentinel_that_is_named_as_a_server_is_told_to_be_one() {
    let set = RedisSentinels::start().await.expect("sentinels");
    let first = first_sentinel(&set);
    let all = set.url().replace("redis+sentinel:", "redis+quorum:");
    let (all, _options) = all.split_once('?').expect("a URL with options");
    let errors = [
        refused(&format!("redis://{first}")).await,
        QuorumStore::connect(all)
            .await
            .expect_err("no member keeps leases"),
    ];
    for error in errors {
        assert_eq!(error.fault, tenure_core::Fault::Invalid, "{error}");
        assert!(error.message.contains("redis+sentinel://"), "{error}");
    }
}

/// The answer, unless the caller gives up before.
async fn patient<T>(asking: impl Future<Output = Result<T, StoreError>>) -> Result<T, String> {
    let answer = tokio::time::timeout(PATIENCE, asking).await;
    answer
        .map_err(|_late| "gave up".to_owned())?
        .map_err(|error| error.to_string())
}

/// One machine had the primary and the first sentinel. With a dial that ended with its caller, nobody would
/// ever ask the second one.
#[tokio::test]
async fn fail_over_is_followed_past_a_silent_sentinel_by_who_has_little_time() {
    let mut set = RedisSentinels::start().await.expect("sentinels");
    let first = first_sentinel(&set);
    let proxy = FaultProxy::redis(first.clone()).expect("a proxy");
    let url = set.url().replace(&first, &proxy.address().to_string());
    let store = Scratch::on(&url).store().await;
    let before = take(&store, &request("job", "a", seconds(300))).await;
    proxy.set(Fault::BlackHole);
    set.servers()[0].freeze();
    let replica = &set.servers()[1];
    eventually_async(BOUND, "a fail-over", || async {
        // Of a primary: its role, how far it is, its replicas.
        let role = replica.ask("ROLE");
        role.is_ok_and(|first| first == "*3")
    })
    .await;
    let other = request("other", "b", seconds(300));
    let after = eventually_async(BOUND, "a term on the new primary", || {
        patient(store.acquire(&other))
    })
    .await;
    let after = granted(after);
    assert!(after.token > before.token);
    // Renewals have a connection of their own, which is made now, and then anew. All sentinels are asked now
    // and then whether the primary still is one, and that may fall into one of these times.
    let renewals = [renewal(&other, after.token)];
    eventually_async(BOUND, "a renewal that asks no silent sentinel", || async {
        let asked = proxy.counts().connections;
        let killed = replica.ask("CLIENT KILL TYPE normal");
        let renewing = || patient(async { store.renew(&renewals).await.remove(0) });
        let renewed = eventually_async(BOUND, "a renewal", renewing).await;
        assert!(
            matches!(renewed, Renewed::Extended { .. }),
            "{killed:?} {renewed:?}"
        );
        proxy.counts().connections == asked
    })
    .await;
}

/// Whoever is on its side goes on reaching it: nobody can tell it that another one rules.
#[tokio::test]
async fn primary_that_the_sentinels_cannot_reach_is_left_when_they_name_another() {
    let mut set = RedisSentinels::start().await.expect("sentinels");
    hide_from_sentinels(&mut set, "+@all").await;
    let scratch = Scratch::on(&set.url());
    let store = scratch.store().await;
    let asked = request("job", "a", seconds(600));
    let grant = take(&store, &asked).await;
    let renewals = [renewal(&asked, grant.token)];
    let renewed = store.renew(&renewals).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let mut watch = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .expect("a watch");
    hide_from_sentinels(&mut set, "-@all").await;
    let elsewhere = until_the_other_is_followed(set.servers(), &scratch, &store).await;
    let renewed = eventually_async(BOUND, "a renewal there", || async {
        let renewed = store.renew(&renewals).await.remove(0);
        let until = elsewhere.raw("job").await.remove("lastRenewedAt");
        renewed.map(|renewed| (renewed, until))
    })
    .await;
    assert!(
        matches!(&renewed, (Renewed::Extended { .. }, Some(_))),
        "{renewed:?}"
    );
    let ended = async {
        loop {
            if let Err(error) = watch.next().await {
                return error;
            }
        }
    };
    let error = tokio::time::timeout(BOUND, ended).await.expect("the watch ends");
    assert_eq!(error.fault, tenure_core::Fault::Unreachable, "{error}");
}

/// Waits until the second server rules, beside the first, and `store` has found it. Answers where that is.
async fn until_the_other_is_followed(
    servers: &[RedisServer; 2],
    scratch: &Scratch,
    store: &RedisStore,
) -> Scratch {
    let [old, new] = servers;
    eventually_async(BOUND, "a fail-over", || async {
        new.ask("ROLE").is_ok_and(|role| role == "*3")
    })
    .await;
    let role = old.ask("ROLE").expect("asked");
    assert_eq!(role, "*3", "it rules as well, for all it knows");
    // What only the new one has.
    let other = request("other", "b", seconds(600));
    let elsewhere = Scratch {
        url: new.url(),
        prefix: scratch.prefix.clone(),
    };
    let there = take(&elsewhere.store().await, &other).await;
    eventually_async(BOUND, "the new primary", || async {
        let found = store.get(&other.name).await.ok().flatten();
        found.is_some_and(|lease| lease.token == there.token)
    })
    .await;
    elsewhere
}

/// Gives the sentinels a user of their own on both servers, with these rights on the primary.
async fn hide_from_sentinels(set: &mut RedisSentinels, rights: &str) {
    let url = set.url();
    for (server, rights) in set.servers().iter().zip([rights, "+@all"]) {
        let mut connection = connection(&server.url()).await;
        let user = ["SETUSER", "sentinel", "on", ">hunter2", "~*", "&*", rights];
        let set: String = redis::cmd("ACL")
            .arg(&user)
            .query_async(&mut connection)
            .await
            .expect("asked");
        assert_eq!(set, "OK");
    }
    let hosts = url.trim_start_matches("redis+sentinel://").split('?').next();
    for host in hosts.expect("hosts").split(',') {
        let mut connection = connection(&format!("redis://{host}")).await;
        let words = [
            "SET",
            RedisSentinels::PRIMARY,
            "auth-user",
            "sentinel",
            "auth-pass",
            "hunter2",
        ];
        let set: String = redis::cmd("SENTINEL")
            .arg(&words)
            .query_async(&mut connection)
            .await
            .expect("asked");
        assert_eq!(set, "OK");
    }
}

/// Sentinels without a password before servers that have one.
#[tokio::test]
async fn sentinels_without_a_password_lead_to_servers_with_one() {
    let mut set = RedisSentinels::start().await.expect("sentinels");
    let url = set.url().replace("://", "://:hunter2@");
    for server in set.servers().iter() {
        for setting in ["masterauth hunter2", "requirepass hunter2"] {
            let done = server.ask(&format!("CONFIG SET {setting}")).expect("asked");
            assert!(done == "+OK" || done.starts_with("-NOAUTH"), "{done}");
        }
    }
    let error = refused(&url).await;
    assert_eq!(error.fault, tenure_core::Fault::Unauthenticated, "{error}");
    assert!(error.message.contains("sentinelPassword="), "{error}");
    let scratch = Scratch::on(&format!("{url}&sentinelUser=&sentinelPassword="));
    take(&scratch.store().await, &request("job", "a", seconds(300))).await;
}

/// As what cuts it off does not end it.
#[tokio::test]
async fn doctor_tells_of_a_primary_that_needs_no_replica_to_go_on() {
    let mut set = RedisSentinels::start().await.expect("sentinels");
    let store = Scratch::on(&set.url()).store().await;
    for (needed, verdict) in [("0", Verdict::Bad), ("1", Verdict::Warning)] {
        let done = set.servers()[0].ask(&format!("CONFIG SET min-replicas-to-write {needed}"));
        assert_eq!(done.expect("asked"), "+OK");
        let findings = store.examine().await.expect("an examination");
        let topology = findings.iter().find(|finding| finding.subject == "topology");
        let topology = topology.expect("a finding");
        assert_eq!(topology.verdict, verdict, "{topology:?}");
        assert!(topology.detail.contains("min-replicas-to-write"), "{topology:?}");
    }
}

/// It is cut off from the others, and answers.
#[tokio::test]
async fn sentinel_that_names_a_server_that_is_gone_is_asked_last() {
    let mut set = RedisSentinels::start().await.expect("sentinels");
    let first = first_sentinel(&set);
    let scratch = Scratch::on(&set.url());
    let store = scratch.store().await;
    let asked = request("job", "a", seconds(300));
    let grant = take(&store, &asked).await;
    let gone = tenure_testkit::free_port().to_string();
    let mut sentinel = connection(&format!("redis://{first}")).await;
    for words in [
        vec!["REMOVE", RedisSentinels::PRIMARY],
        vec!["MONITOR", RedisSentinels::PRIMARY, "127.0.0.1", &gone, "2"],
    ] {
        let done: Result<String, _> = redis::cmd("SENTINEL")
            .arg(&words)
            .query_async(&mut sentinel)
            .await;
        assert_eq!(done.as_deref(), Ok("OK"), "{words:?}");
    }
    let killed = set.servers()[0].ask("CLIENT KILL TYPE normal").expect("asked");
    assert!(killed.starts_with(':'), "{killed}");
    let again = eventually_async(BOUND, "the same term", || store.acquire(&asked)).await;
    assert_eq!(granted(again).token, grant.token);
    // Whoever comes now has heard nothing of the primary yet.
    let lease = scratch.store().await.get(&asked.name).await.expect("a read");
    assert_eq!(lease.map(|lease| lease.token), Some(grant.token));
}

/// One machine has the old primary and a sentinel, and neither hears anything of the others: it goes on
/// naming that server, which answers.
#[tokio::test]
async fn primary_that_a_sentinel_goes_on_naming_is_left_when_the_others_name_another() {
    let mut set = RedisSentinels::start().await.expect("sentinels");
    let first = first_sentinel(&set);
    hide_from_sentinels(&mut set, "+@all").await;
    // On the replica it may do nothing from now on, so that it hears nothing there either.
    for (server, rights) in set.servers().iter().zip(["+@all", "-@all"]) {
        let user = format!("ACL SETUSER lonely on >hunter2 ~* &* {rights}");
        assert_eq!(server.ask(&user).expect("asked"), "+OK");
    }
    let mut sentinel = connection(&format!("redis://{first}")).await;
    for words in [
        ["SENTINEL", "SET", RedisSentinels::PRIMARY, "auth-user", "lonely"],
        // The others tell it what they know.
        ["ACL", "SETUSER", "default", "+@all", "-publish"],
    ] {
        let done: Result<String, _> = redis::cmd(words[0])
            .arg(&words[1..])
            .query_async(&mut sentinel)
            .await;
        assert_eq!(done.as_deref(), Ok("OK"), "{words:?}");
    }
    for server in set.servers().iter() {
        let killed = server.ask("CLIENT KILL USER sentinel").expect("asked");
        assert!(killed.starts_with(':'), "{killed}");
    }
    let scratch = Scratch::on(&set.url());
    let store = scratch.store().await;
    let asked = request("job", "a", seconds(600));
    take(&store, &asked).await;
    let hidden = set.servers()[0].ask("ACL SETUSER sentinel -@all");
    assert_eq!(hidden.expect("asked"), "+OK");
    until_the_other_is_followed(set.servers(), &scratch, &store).await;
    let port = set.servers()[0].port().to_string();
    let named: Vec<String> = redis::cmd("SENTINEL")
        .arg(&["get-master-addr-by-name", RedisSentinels::PRIMARY])
        .query_async(&mut sentinel)
        .await
        .expect("asked");
    assert_eq!(
        named[1], port,
        "it has heard of the new primary: nothing was shown"
    );
}
