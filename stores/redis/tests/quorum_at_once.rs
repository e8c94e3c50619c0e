//! A quorum whose members are all asked at once, as nobody else was met: by two candidates, and by duplicates of one request.

use crate::common::{
    connection, giving_back, granted, in_every_member, request, seconds, servers, take, three_servers,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tenure_core::{Acquire, Acquired, LeaseStore, Released};
use tenure_redis::QuorumStore;
use tenure_testkit::{Fault, FaultProxy, RedisOptions, RedisServer, RequestFault, eventually_async};

/// How long something is waited for, on a loaded machine. The ttl is longer.
const BOUND: Duration = Duration::from_secs(60);

/// How often something is tried that needs two things to happen at the same time.
const TRIES_MAX: usize = 20;

/// How long a request is under way to a member that hears of another one meanwhile. One member is waited for longer.
const DETOUR: Duration = Duration::from_millis(700);

async fn store(hosts: &[String]) -> QuorumStore {
    let url = format!("redis+quorum://{}", hosts.join(","));
    eventually_async(BOUND, "a quorum", || QuorumStore::connect(&url)).await
}

fn hosts(servers: &[RedisServer]) -> Vec<String> {
    servers.iter().map(RedisServer::address).collect()
}

async fn record(server: &RedisServer, lease: &str) -> BTreeMap<String, String> {
    let look = redis::cmd("HGETALL")
        .arg(format!("{{tenure}}:lease:{lease}"))
        .to_owned();
    let mut member = connection(&server.url()).await;
    look.query_async(&mut member).await.expect("the test can ask")
}

/// Whether a member is taken for this request, and has confirmed nothing.
async fn is_taken(server: &RedisServer, asked: &Acquire) -> bool {
    let record = record(server, asked.name.as_str()).await;
    let whose = record.get("incarnation");
    record.contains_key("unconfirmed") && whose == Some(&asked.candidate.incarnation.to_string())
}

/// Two members that each is first at one of, the third being down, and what each of two candidates was told that asked at the same
/// time. Nothing where they did not, on this machine.
async fn split(servers: &[RedisServer], asked: &[Acquire; 2]) -> Option<[Acquired; 2]> {
    let detours =
        [&servers[1], &servers[0]].map(|server| FaultProxy::redis(server.address()).expect("a proxy"));
    let mut ways = [hosts(servers), hosts(servers)];
    ways[0][1] = detours[0].address().to_string();
    ways[1][0] = detours[1].address().to_string();
    let stores = [store(&ways[0]).await, store(&ways[1]).await];
    for (place, store) in stores.iter().enumerate() {
        // So that connections are there, and servers know the scripts.
        let warm = request(&format!("{}/{place}", asked[0].name), "warm", seconds(300));
        let token = take(store, &warm).await.token;
        let released = store.release(&[giving_back(&warm, token)]).await.remove(0);
        assert_eq!(released, Ok(Released::Vacated));
    }
    for detour in &detours {
        detour.set(Fault::Delay {
            to_server: DETOUR,
            to_client: Duration::ZERO,
        });
    }
    let seen = async {
        while !(is_taken(&servers[0], &asked[0]).await && is_taken(&servers[1], &asked[1]).await) {
            tokio::task::yield_now().await;
        }
        detours.iter().for_each(FaultProxy::heal);
    };
    let asking = async { tokio::join!(stores[0].acquire(&asked[0]), stores[1].acquire(&asked[1])) };
    let ((one, other), ()) = tokio::time::timeout(BOUND, async { tokio::join!(asking, seen) })
        .await
        .ok()?;
    Some([one.ok()?, other.ok()?])
}

#[tokio::test]
async fn two_that_ask_all_members_at_once_end_with_one_holder_and_keep_nobody_out() {
    let mut servers = three_servers().await;
    let third = store(&hosts(&servers)).await;
    servers[2].kill();
    for round in 0..TRIES_MAX {
        let job = format!("job-{round}");
        let asked = ["a", "b"].map(|label| request(&job, label, seconds(300)));
        let Some(answers) = split(&servers, &asked).await else {
            continue;
        };
        let won = |answer: &Acquired| matches!(answer, Acquired::Granted(_));
        assert_eq!(
            answers.iter().filter(|answer| won(answer)).count(),
            1,
            "{answers:?}"
        );
        let winner = answers.iter().position(won).expect("one has won");
        let token = granted(answers[winner].clone()).token;
        let next = request(&job, "next", seconds(300));
        match third.acquire(&next).await {
            Ok(Acquired::Held(lease)) => assert_eq!(lease.token, token),
            told => panic!("two hold it: {told:?}"),
        }
        let released = third
            .release(&[giving_back(&asked[winner], token)])
            .await
            .remove(0);
        assert_eq!(released, Ok(Released::Vacated));
        // What the loser took would keep it out for the rest of 300 s.
        let grant = take(&third, &next).await;
        assert!(grant.token > token && grant.terms == 2, "{grant:?}");
        return;
    }
    panic!("no two have asked at the same time in {TRIES_MAX} tries");
}

#[tokio::test]
async fn duplicates_that_ask_all_members_at_once_have_one_token() {
    let servers = servers(5, RedisOptions::default()).await;
    for round in 0..10 {
        // Stores that have met nobody yet.
        let (one, other) = (store(&hosts(&servers)).await, store(&hosts(&servers)).await);
        let asked = request(&format!("job-{round}"), "a", seconds(300));
        let answers: [_; 4] = tokio::join!(
            one.acquire(&asked),
            other.acquire(&asked),
            one.acquire(&asked),
            other.acquire(&asked)
        )
        .into();
        let grants = answers.map(|answer| granted(answer.expect("answered")));
        assert!(
            grants.iter().all(|grant| grant.token == grants[0].token),
            "one attempt, one token: {grants:?}"
        );
        let new = grants.iter().filter(|grant| !grant.again).count();
        assert_eq!(new, 1, "new to exactly one of them: {grants:?}");
    }
}

/// It does not hear that it is to be taken, only what is to be confirmed, which it has confirmed before: the holder counts from now on
/// as long as every other member.
#[tokio::test]
async fn member_that_has_confirmed_before_holds_for_as_long_as_who_asks_again_believes() {
    let servers = three_servers().await;
    let proxies: Vec<FaultProxy> = servers
        .iter()
        .map(|server| FaultProxy::redis(server.address()).expect("a proxy"))
        .collect();
    let through: Vec<String> = proxies.iter().map(|proxy| proxy.address().to_string()).collect();
    let store = store(&through).await;
    let asked = request("job", "a", seconds(300));
    let token = take(&store, &asked).await.token;
    in_every_member(&servers, token).await;
    // Its answer shall come first, as it tells that its request was lost.
    for proxy in &proxies[..2] {
        proxy.set(Fault::Delay {
            to_server: Duration::ZERO,
            to_client: Duration::from_millis(100),
        });
    }
    let key = "{tenure}:lease:job";
    let expires = async || {
        record(&servers[2], "job").await["expiresAt"]
            .parse::<u64>()
            .expect("a time")
    };
    let soon = expires().await - 200_000;
    for _ in 0..TRIES_MAX {
        let set = redis::cmd("HSET")
            .arg(key)
            .arg(&["expiresAt", &soon.to_string()])
            .to_owned();
        let mut member = connection(&servers[2].url()).await;
        let _set: i64 = set.query_async(&mut member).await.expect("the test can ask");
        proxies[2].next_requests(1, RequestFault::CutBefore);
        let again = take(&store, &asked).await;
        assert_eq!((again.token, again.again), (token, true));
        // It may be heard after the answer.
        for _ in 0..50 {
            if expires().await > soon + 100_000 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    panic!("the member would be free before its holder knows");
}

/// A member before the others is waited for 300 ms. What a process hands on within itself is asked of all, though others were met.
#[tokio::test]
async fn what_is_handed_on_waits_for_no_first_member() {
    const FIRST_TIME_MAX: Duration = Duration::from_millis(300);
    let servers = three_servers().await;
    let (ours, others) = (store(&hosts(&servers)).await, store(&hosts(&servers)).await);
    let theirs = request("met", "b", seconds(300));
    take(&others, &theirs).await;
    let met = ours.acquire(&request("met", "a", seconds(300))).await;
    assert!(matches!(met, Ok(Acquired::Held(_))), "{met:?}");
    let mut asked = request("job", "a", seconds(300));
    take(&ours, &asked).await;
    let mut times = Vec::new();
    // A slow machine may be late for that, but not every time.
    for _ in 0..TRIES_MAX {
        asked.attempt = asked.attempt.next();
        servers[0].freeze();
        let began = Instant::now();
        let handed_on = ours.acquire(&asked).await;
        times.push(began.elapsed());
        servers[0].thaw();
        assert!(matches!(handed_on, Ok(Acquired::Granted(_))), "{handed_on:?}");
        if times.last() < Some(&FIRST_TIME_MAX) {
            return;
        }
        // Until the first has answered what it was asked, and again counts as one that does.
        for _ in 0..2 {
            tokio::time::sleep(2 * FIRST_TIME_MAX).await;
            asked.attempt = asked.attempt.next();
            take(&ours, &asked).await;
        }
    }
    panic!("{times:?}");
}
