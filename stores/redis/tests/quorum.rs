//! A quorum whose members fail: whichever minority it is, one holder, and tokens rise.

use crate::common::{
    connection, giving_back, granted, hosts, in_every_member, recorded_at, renewal, request, seconds, take,
};
use std::time::{Duration, Instant};
use tenure_core::{
    Acquired, Change, Durability, Fault, Interest, LeaseStore, Occupancy, Released, Renewed, Scope, Verdict,
    WatchEvent,
};
use tenure_redis::{QuorumStore, RedisStore};
use tenure_testkit::{RedisOptions, RedisServer, eventually_async};

/// The store's own bound on a request is a few seconds; the rest is for a loaded machine.
const BOUND: Duration = Duration::from_secs(20);

async fn five(options: RedisOptions) -> Vec<RedisServer> {
    let mut servers = Vec::new();
    for _ in 0..5 {
        servers.push(RedisServer::start(options.clone()).await.expect("a server"));
    }
    servers
}

async fn store(servers: &[RedisServer]) -> QuorumStore {
    recorded_at(&hosts(servers)).await
}

async fn bounded<T>(what: &str, work: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let answer = work.await;
    assert!(began.elapsed() < BOUND, "{what} took {:?}", began.elapsed());
    answer
}

#[tokio::test]
async fn minority_that_is_down_or_frozen_costs_nothing() {
    let mut servers = five(RedisOptions::default()).await;
    let store = store(&servers).await;
    let held = request("held", "a", seconds(300));
    let term = take(&store, &held).await;
    servers[0].freeze();
    servers[3].kill();
    let renewed = bounded("a renewal", store.renew(&[renewal(&held, term.token)])).await;
    assert!(matches!(renewed[0], Ok(Renewed::Extended { .. })), "{renewed:?}");
    let rival = request("held", "b", seconds(300));
    let Ok(Acquired::Held(lease)) = bounded("a refusal", store.acquire(&rival)).await else {
        panic!("two hold the lease")
    };
    assert_eq!((lease.token, lease.occupancy()), (term.token, Occupancy::Held));
    let released = bounded("a release", store.release(&[giving_back(&held, term.token)])).await;
    assert_eq!(released[0], Ok(Released::Vacated));
    let next = bounded("a term", store.acquire(&rival))
        .await
        .map(granted)
        .expect("it is free");
    assert!(next.token > term.token);
    let findings = store.examine().await.expect("an examination");
    let down = findings
        .iter()
        .filter(|finding| finding.detail.contains("does not answer"))
        .count();
    assert_eq!(down, 2, "{findings:?}");
    assert!(
        findings.iter().all(|finding| finding.verdict < Verdict::Bad),
        "{findings:?}"
    );
}

/// Which members make the majority changes from term to term, and each has missed something.
#[tokio::test]
async fn tokens_rise_whichever_majority_there_is() {
    let mut servers = five(RedisOptions::durable()).await;
    let store = store(&servers).await;
    assert_eq!(store.traits().durability, Durability::Safe);
    let mut last = None;
    let mut terms = 0;
    for down in [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4], [0, 2]] {
        for member in down {
            servers[member].kill();
        }
        let asked = request("job", "a", seconds(300));
        let grant = eventually_async(Duration::from_secs(60), "a term", || async {
            store.acquire(&asked).await.map(granted)
        })
        .await;
        assert!(
            last.is_none_or(|last| grant.token > last),
            "{} after {last:?}",
            grant.token
        );
        terms += 1;
        assert_eq!(grant.terms, terms, "a term was forgotten");
        last = Some(grant.token);
        store
            .release(&[giving_back(&asked, grant.token)])
            .await
            .remove(0)
            .expect("released");
        for member in down {
            servers[member].restart().await.expect("restarted");
        }
    }
}

#[tokio::test]
async fn without_a_majority_nothing_is_granted_and_it_is_said_in_time() {
    let mut servers = five(RedisOptions::durable()).await;
    let store = store(&servers).await;
    let held = request("held", "a", seconds(300));
    let term = take(&store, &held).await;
    for server in &mut servers[..3] {
        server.kill();
    }
    let other = request("other", "b", seconds(300));
    let error = bounded("an acquisition", store.acquire(&other))
        .await
        .expect_err("two of five have granted a lease");
    assert!(
        !error.fault.is_misconfiguration() && !error.message.contains('\n'),
        "{error}"
    );
    assert!(error.message.contains("2 of 5"), "{error}");
    assert!(
        bounded("a read", store.get(&held.name)).await.is_err(),
        "two of five told who leads"
    );
    let renewed = bounded("a renewal", store.renew(&[renewal(&held, term.token)])).await;
    assert!(
        renewed[0].is_err(),
        "two of five have extended a lease: {renewed:?}"
    );
    for server in &mut servers[..3] {
        server.restart().await.expect("restarted");
    }
    let renewed = eventually_async(BOUND, "a renewal", || async {
        store.renew(&[renewal(&held, term.token)]).await.remove(0)
    })
    .await;
    assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
    let grant = eventually_async(BOUND, "a term", || async {
        store.acquire(&other).await.map(granted)
    })
    .await;
    assert_eq!(grant.terms, 1, "what a minority had was a term");
}

/// A member that forgets is free for everybody: no majority may come of it while the holder has one.
#[tokio::test]
async fn minority_that_forgot_everything_helps_nobody_to_the_lease() {
    let mut servers = five(RedisOptions::default()).await;
    let store = store(&servers).await;
    assert!(matches!(store.traits().durability, Durability::FenceOnly(_)));
    let held = request("held", "a", seconds(300));
    let term = take(&store, &held).await;
    for member in [0, 1] {
        servers[member].restart().await.expect("restarted");
    }
    for rival in ["b", "c"] {
        let refused = bounded("a refusal", store.acquire(&request("held", rival, seconds(300)))).await;
        assert!(
            matches!(&refused, Ok(Acquired::Held(lease)) if lease.token == term.token),
            "{refused:?}"
        );
    }
    let renewed = store.renew(&[renewal(&held, term.token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let again = take(&store, &held).await;
    assert_eq!(
        (again.token, again.again),
        (term.token, true),
        "the same attempt has the same token"
    );
}

/// Candidates that died between taking and confirming have left what is no term: it holds up for its ttl at
/// most, and only where it makes a majority.
#[tokio::test]
async fn what_a_dead_candidate_took_in_a_minority_holds_nobody_up() {
    let servers = five(RedisOptions::default()).await;
    let store = store(&servers).await;
    let before = take(&store, &request("job", "a", seconds(300))).await;
    in_every_member(&servers, before.token).await;
    for server in &servers[..2] {
        let mut member = connection(&server.url()).await;
        let dead = redis::cmd("HSET")
            .arg("{tenure}:lease:job")
            .arg(&[
                "unconfirmed",
                "later",
                "incarnation",
                "0123456789abcdef0123456789abcdef",
            ])
            .to_owned();
        let _set: i64 = dead.query_async(&mut member).await.expect("the test can ask");
    }
    let lease = store
        .get(&crate::common::name("job"))
        .await
        .expect("a read")
        .expect("a record");
    assert_eq!(
        (lease.token, lease.occupancy()),
        (before.token, Occupancy::Held),
        "three of five still hold it"
    );
    let vacated = servers[2..].iter();
    for server in vacated {
        let mut member = connection(&server.url()).await;
        let expire = redis::cmd("HSET")
            .arg("{tenure}:lease:job")
            .arg("expiresAt")
            .arg("1")
            .to_owned();
        let _set: i64 = expire.query_async(&mut member).await.expect("the test can ask");
    }
    let next = bounded("a term", store.acquire(&request("job", "b", seconds(300))))
        .await
        .map(granted);
    assert!(next.expect("a majority is free").token > before.token);
}

#[tokio::test]
async fn watch_tells_what_a_majority_tells_and_survives_a_minority() {
    let mut servers = five(RedisOptions::default()).await;
    let store = store(&servers).await;
    let mut watch = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .expect("a watch");
    servers[1].kill();
    let asked = request("job", "a", seconds(300));
    let grant = take(&store, &asked).await;
    store
        .release(&[giving_back(&asked, grant.token)])
        .await
        .remove(0)
        .expect("released");
    let told = async {
        let mut told = Vec::new();
        while told.len() < 2 {
            // One that is down may be the last of a majority: what is told before that has no token yet, or
            // is repeated.
            if let WatchEvent::Changed { change, token, .. } = watch.next().await.expect("the watch goes on")
                && token.is_some()
                && told.last() != Some(&(change, token))
            {
                told.push((change, token));
            }
        }
        told
    };
    let told = tokio::time::timeout(BOUND, told).await.expect("two changes");
    assert_eq!(
        told,
        [
            (Change::Taken, Some(grant.token)),
            (Change::Vacated, Some(grant.token))
        ]
    );
}

/// What PTTL says of a key that stays.
const NEVER: i64 = -1;

/// Members may have been used alone, with `purgeAfter=`: then a released record is about to be purged when it
/// is taken again.
#[tokio::test]
async fn what_is_taken_just_before_it_would_be_purged_is_held() {
    let servers = five(RedisOptions::default()).await;
    let store = store(&servers).await;
    let asked = request("job", "a", seconds(300));
    let term = take(&store, &asked).await;
    let released = store.release(&[giving_back(&asked, term.token)]).await;
    assert_eq!(released[0], Ok(Released::Vacated));
    for server in &servers {
        let soon = redis::cmd("PEXPIRE")
            .arg("{tenure}:lease:job")
            .arg(60_000)
            .to_owned();
        let is_to_be_purged: i64 = soon
            .query_async(&mut connection(&server.url()).await)
            .await
            .expect("asked");
        assert_eq!(is_to_be_purged, 1);
    }
    let next = request("job", "b", seconds(300));
    let term = take(&store, &next).await;
    in_every_member(&servers, term.token).await;
    for server in &servers {
        let left = redis::cmd("PTTL").arg("{tenure}:lease:job").to_owned();
        let left: i64 = left
            .query_async(&mut connection(&server.url()).await)
            .await
            .expect("asked");
        assert_eq!(left, NEVER, "it is to be purged still");
    }
    let lease = store.get(&next.name).await.expect("a read").expect("the record");
    assert_eq!((lease.token, lease.occupancy()), (term.token, Occupancy::Held));
}

#[tokio::test]
async fn quorums_that_are_none_are_refused() {
    for url in [
        "redis+quorum://a,b",
        "redis+quorum://a",
        "redis+quorum://a,b,c,d",
        "redis+quorum://a,b,a",
        "redis+quorum://:hunter2@a,b,c,d,e,f,g,h,i,j,k",
        "redis://a",
    ] {
        let error = QuorumStore::connect(url).await.expect_err("refused");
        assert_eq!(error.fault, Fault::Invalid, "{url}: {error}");
        assert!(!error.message.contains("hunter2"), "{error}");
    }
    let error = RedisStore::connect("redis+quorum://a,b,c")
        .await
        .expect_err("refused");
    assert_eq!(error.fault, Fault::Invalid, "{error}");
}

/// Four candidates contend while members freeze and thaw: no token twice, and each above the last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_rise_while_members_freeze_and_thaw_under_contention() {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};
    let servers = five(RedisOptions::default()).await;
    let (tokens, all_thawed) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
    let mut candidates = Vec::new();
    for number in 0..4 {
        let store = store(&servers).await;
        let (tokens, all_thawed) = (Arc::clone(&tokens), Arc::clone(&all_thawed));
        candidates.push(tokio::spawn(async move {
            let mut asked = request("job", &format!("candidate-{number}"), seconds(20));
            let mut won = 0;
            while won < 5 || !all_thawed.load(Ordering::Relaxed) {
                match store.acquire(&asked).await {
                    Ok(Acquired::Granted(grant)) => {
                        // Held: nobody else may be granted one before the release.
                        tokens.lock().expect("unpoisoned").push(grant.token);
                        let release = [giving_back(&asked, grant.token)];
                        eventually_async(Duration::from_secs(60), "a release", || async {
                            store.release(&release).await.remove(0)
                        })
                        .await;
                        won += 1;
                        asked.attempt = asked.attempt.next();
                    }
                    Ok(Acquired::Superseded) => asked.attempt = asked.attempt.next(),
                    Ok(Acquired::Held(_)) | Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        }));
    }
    let contending = async {
        for candidate in candidates {
            candidate.await.expect("it won its terms");
        }
    };
    let freezing = async {
        for member in [0, 3, 1, 4, 2] {
            servers[member].freeze();
            tokio::time::sleep(Duration::from_millis(150)).await;
            servers[member].thaw();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        all_thawed.store(true, Ordering::Relaxed);
    };
    tokio::join!(contending, freezing);
    let tokens = tokens.lock().expect("unpoisoned");
    assert!(tokens.len() >= 20, "{tokens:?}");
    assert!(
        tokens.windows(2).all(|pair| pair[0] < pair[1]),
        "tokens did not rise: {tokens:?}"
    );
}
