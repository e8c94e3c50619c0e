//! A quorum whose members are all asked at once, as nobody else was met: by two candidates, and by duplicates
//! of one request.

use crate::common::{
    Detours, behind_proxies, connection, giving_back, granted, hosts, in_every_member, record_in,
    recorded_at, request, seconds, servers, take, take_in_time, three_servers, told_held, two_at,
};
use std::time::{Duration, Instant};
use tenure_core::{Acquire, Acquired, LeaseStore, Released};
use tenure_testkit::{Fault, RedisOptions, RedisServer, RequestFault};

/// How often something is tried that needs two things to happen at the same time.
const TRIES_MAX: usize = 20;

/// Whether a member is taken for this request, and has confirmed nothing.
async fn is_taken(server: &RedisServer, asked: &Acquire) -> bool {
    let record = record_in(server, asked.name.as_str()).await;
    let whose = record.get("incarnation");
    record.contains_key("unconfirmed") && whose == Some(&asked.candidate.incarnation.to_string())
}

/// Two members that each is first at one of, the third being down, and what each of two candidates was told
/// that asked at the same time. Nothing where they did not, on this machine.
async fn split(servers: &[RedisServer], asked: &[Acquire; 2]) -> Option<[Acquired; 2]> {
    let detours = Detours::to(servers).await;
    for (place, store) in detours.stores.iter().enumerate() {
        // So that connections are there, and servers know the scripts.
        let warm = request(&format!("{}/{place}", asked[0].name), "warm", seconds(300));
        let token = take(store, &warm).await.token;
        let released = store.release(&[giving_back(&warm, token)]).await.remove(0);
        assert_eq!(released, Ok(Released::Vacated));
    }
    detours.ask_at_once(servers, asked, is_taken).await
}

#[tokio::test]
async fn two_that_ask_all_members_at_once_end_with_one_holder_and_keep_nobody_out() {
    let mut servers = three_servers().await;
    let third = recorded_at(&hosts(&servers)).await;
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
        assert_eq!(told_held(&third, &next).await.token, token);
        let released = third
            .release(&[giving_back(&asked[winner], token)])
            .await
            .remove(0);
        assert_eq!(released, Ok(Released::Vacated));
        // What the loser took would keep it out for the rest of 300 s.
        let grant = take_in_time(&third, &next).await;
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
        let (one, other) = two_at(&servers).await;
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

/// It does not hear that it is to be taken, only what is to be confirmed, which it has confirmed before: the
/// holder counts from now on as long as every other member.
#[tokio::test]
async fn member_that_has_confirmed_before_holds_for_as_long_as_who_asks_again_believes() {
    let servers = three_servers().await;
    let (proxies, store) = behind_proxies(&servers).await;
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
        record_in(&servers[2], "job").await["expiresAt"]
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

/// A member before the others is waited for 300 ms. What a process hands on within itself is asked of all,
/// though others were met.
#[tokio::test]
async fn what_is_handed_on_waits_for_no_first_member() {
    const FIRST_TIME_MAX: Duration = Duration::from_millis(300);
    let servers = three_servers().await;
    let (ours, others) = two_at(&servers).await;
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
