//! A quorum whose members are asked to take and to confirm at once, by a process that gave the lease back itself a moment ago.

use crate::common::{
    BOUND, Detours, behind_proxies, connection, given_back_in_each, giving_back, granted, hosts,
    in_every_member, quorum_at, record_in, renewal, request, seconds, servers, take, three_servers,
};
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, CandidateId, End, FencingToken, Grant, LeaseStore, Predecessor, Released, Renewed,
};
use tenure_redis::QuorumStore;
use tenure_testkit::{Fault, RedisOptions, RedisServer, RequestFault, eventually_async};

/// How often something is tried that needs two things to happen at the same time.
const TRIES_MAX: usize = 20;

/// Above every clock's time.
const LATER: u64 = 4_000_000_000_000;

const KEY: &str = "{tenure}:lease:job";

async fn asked_of(server: &RedisServer, command: &redis::Cmd) -> redis::Value {
    let mut member = connection(&server.url()).await;
    command.query_async(&mut member).await.expect("the test can ask")
}

/// Whether a member has confirmed a term of this very attempt.
async fn is_confirmed(server: &RedisServer, asked: &Acquire) -> bool {
    let record = record_in(server, "job").await;
    record.get("incarnation") == Some(&asked.candidate.incarnation.to_string())
        && record.get("attempt") == Some(&asked.attempt.to_string())
        && !record.contains_key("unconfirmed")
}

async fn give_back(store: &QuorumStore, servers: &[RedisServer], asked: &Acquire, token: FencingToken) {
    let released = store.release(&[giving_back(asked, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    given_back_in_each(servers.iter().map(RedisServer::url), "job").await;
}

/// The lease "job" was held, and given back everywhere: what is asked next guesses its token.
async fn had(store: &QuorumStore, servers: &[RedisServer], asked: &mut Acquire) -> Grant {
    let grant = take(store, asked).await;
    in_every_member(servers, grant.token).await;
    give_back(store, servers, asked, grant.token).await;
    asked.attempt = asked.attempt.next();
    grant
}

async fn is_held(store: &QuorumStore, asked: &Acquire, token: FencingToken) {
    let renewed = store.renew(&[renewal(asked, token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    match store.acquire(&request("job", "rival", seconds(300))).await {
        Ok(Acquired::Held(lease)) => assert_eq!(lease.token, token),
        told => panic!("two hold it: {told:?}"),
    }
}

/// No member answers, and each confirms: nothing else was waited for.
#[tokio::test]
async fn what_was_given_back_a_moment_ago_is_confirmed_before_anybody_has_answered() {
    let servers = three_servers().await;
    let (proxies, store) = behind_proxies(&servers).await;
    let mut asked = request("job", "a", seconds(300));
    for _ in 0..TRIES_MAX {
        had(&store, &servers, &mut asked).await;
        for proxy in &proxies {
            proxy.set(Fault::Delay {
                to_server: Duration::ZERO,
                to_client: BOUND,
            });
        }
        let unheard = store.acquire(&asked).await;
        assert!(unheard.is_err(), "{unheard:?}");
        let mut confirmed = 0;
        for server in &servers {
            confirmed += usize::from(is_confirmed(server, &asked).await);
        }
        for proxy in &proxies {
            proxy.heal();
            proxy.cut_connections();
        }
        let grant = eventually_async(BOUND, "the term", async || {
            store.acquire(&asked).await.map(granted)
        })
        .await;
        // A slow machine may be late for that, but not every time: the clock that was seen is an old one then.
        if confirmed == servers.len() {
            assert_eq!((grant.again, grant.terms), (true, 2), "{grant:?}");
            return is_held(&store, &asked, grant.token).await;
        }
        give_back(&store, &servers, &asked, grant.token).await;
        asked.attempt = asked.attempt.next();
    }
    panic!("nothing is confirmed before its answers");
}

/// Who was told nothing of a term between guesses as if there had been none.
#[tokio::test]
async fn term_of_another_between_is_counted_and_named() {
    let servers = three_servers().await;
    let (ours, others) = (
        quorum_at(&hosts(&servers)).await,
        quorum_at(&hosts(&servers)).await,
    );
    let (mut a, mut b) = (
        request("job", "a", seconds(300)),
        request("job", "b", seconds(300)),
    );
    had(&ours, &servers, &mut a).await;
    let between = had(&others, &servers, &mut b).await;
    let grant = take(&ours, &a).await;
    assert!(grant.token > between.token && grant.terms == 3, "{grant:?}");
    let predecessor = grant.predecessor.clone().expect("a term before");
    let expected = (
        CandidateId::new("b").expect("an id"),
        between.token,
        End::Released,
    );
    let Predecessor {
        candidate,
        token,
        end,
        ..
    } = predecessor;
    assert_eq!((candidate, token, end), expected);
    in_every_member(&servers, grant.token).await;
    for server in &servers {
        assert_eq!(record_in(server, "job").await["terms"], "3");
    }
    is_held(&ours, &a, grant.token).await;
}

/// Two members that each is first at one of, the third being down. Nothing where they were not, on this machine.
async fn split(servers: &mut [RedisServer], asked: &mut [Acquire; 2]) -> Option<[Acquired; 2]> {
    let detours = Detours::to(servers).await;
    for (store, asked) in detours.stores.iter().zip(asked.iter_mut()) {
        had(store, servers, asked).await;
    }
    servers[2].kill();
    detours.ask_at_once(servers, asked, is_confirmed).await
}

/// Each member has confirmed another one's guess, and none of them for a majority: neither may hold the lease up for its ttl.
#[tokio::test]
async fn two_that_guess_at_once_end_with_one_holder_and_keep_nobody_out() {
    for _ in 0..TRIES_MAX {
        let mut servers = three_servers().await;
        let third = quorum_at(&hosts(&servers)).await;
        let mut asked = ["a", "b"].map(|label| request("job", label, seconds(300)));
        let Some(answers) = split(&mut servers, &mut asked).await else {
            continue;
        };
        if let [Acquired::Granted(_), _] | [_, Acquired::Granted(_)] = answers {
            // It was late, and found what the other had let go of.
            assert!(answers.contains(&Acquired::Superseded), "{answers:?}");
            continue;
        }
        assert_eq!(answers, [Acquired::Superseded, Acquired::Superseded]);
        // What they guessed would keep it out for the rest of 300 s.
        let next = request("job", "next", seconds(300));
        let token = eventually_async(BOUND, "a term", async || match third.acquire(&next).await {
            Ok(Acquired::Granted(grant)) => Ok(grant.token),
            told => Err(format!("{told:?}")),
        })
        .await;
        return is_held(&third, &next, token).await;
    }
    panic!("no two have guessed at the same time in {TRIES_MAX} tries");
}

/// Somebody else's in every member but one, which has not heard of that.
#[tokio::test]
async fn guess_in_a_member_that_knows_of_no_holder_ends_no_term_and_is_given_back() {
    for deaf in [0, 2] {
        let servers = three_servers().await;
        let (ours, others) = (
            quorum_at(&hosts(&servers)).await,
            quorum_at(&hosts(&servers)).await,
        );
        let (mut a, b) = (
            request("job", "a", seconds(300)),
            request("job", "b", seconds(300)),
        );
        had(&ours, &servers, &mut a).await;
        let before = record_in(&servers[deaf], "job").await;
        let held = take(&others, &b).await;
        in_every_member(&servers, held.token).await;
        asked_of(&servers[deaf], redis::cmd("DEL").arg(KEY)).await;
        let fields: Vec<(&String, &String)> = before.iter().collect();
        asked_of(&servers[deaf], redis::cmd("HSET").arg(KEY).arg(&fields)).await;
        let answer = ours.acquire(&a).await.expect("answered");
        match answer {
            Acquired::Superseded => {}
            // It was late for a guess.
            Acquired::Held(lease) => assert_eq!(lease.token, held.token),
            told @ Acquired::Granted(_) => panic!("two hold it: {told:?}"),
        }
        given_back_in_each([servers[deaf].url()], "job").await;
        is_held(&others, &b, held.token).await;
    }
}

#[tokio::test]
async fn guess_that_is_too_low_for_members_is_used_by_nobody_who_knows_more() {
    for higher in [&[0][..], &[2], &[0, 1], &[0, 1, 2]] {
        let servers = three_servers().await;
        let store = quorum_at(&hosts(&servers)).await;
        let mut asked = request("job", "a", seconds(300));
        had(&store, &servers, &mut asked).await;
        for member in higher {
            let fields = [("generation", LATER.to_string())];
            asked_of(&servers[*member], redis::cmd("HSET").arg(KEY).arg(&fields)).await;
        }
        let grant = take(&store, &asked).await;
        assert!(!grant.again, "{higher:?}: {grant:?}");
        if higher.len() > 1 {
            assert!(grant.token.number() > LATER, "{higher:?}: {grant:?}");
        }
        is_held(&store, &asked, grant.token).await;
        let released = store.release(&[giving_back(&asked, grant.token)]).await.remove(0);
        assert_eq!(released, Ok(Released::Vacated), "{higher:?}");
        asked.attempt = asked.attempt.next();
        let next = take(&store, &asked).await;
        assert!(next.token > grant.token, "{higher:?}: {next:?}");
        is_held(&store, &asked, next.token).await;
    }
}

#[tokio::test]
async fn guess_is_confirmed_by_members_that_have_forgotten_the_scripts() {
    let servers = three_servers().await;
    let store = quorum_at(&hosts(&servers)).await;
    let mut asked = request("job", "a", seconds(300));
    let mut last = had(&store, &servers, &mut asked).await;
    for forgetful in [1, 2, 3] {
        for server in &servers[..forgetful] {
            asked_of(server, redis::cmd("SCRIPT").arg("FLUSH")).await;
        }
        let grant = had(&store, &servers, &mut asked).await;
        assert_eq!((grant.terms, grant.again), (last.terms + 1, false), "{forgetful}");
        assert!(grant.token > last.token, "{forgetful}: {grant:?}");
        last = grant;
    }
}

/// One is the first, which guesses; what the others are told of it is one token.
#[tokio::test]
async fn duplicates_of_a_request_that_guesses_have_one_token() {
    let servers = servers(5, RedisOptions::default()).await;
    for _ in 0..10 {
        let store = quorum_at(&hosts(&servers)).await;
        let mut asked = request("job", "a", seconds(300));
        had(&store, &servers, &mut asked).await;
        let answers: [_; 3] = tokio::join!(
            store.acquire(&asked),
            store.acquire(&asked),
            store.acquire(&asked)
        )
        .into();
        let grants = answers.map(|answer| granted(answer.expect("answered")));
        assert!(
            grants.iter().all(|grant| grant.token == grants[0].token),
            "one attempt, one token: {grants:?}"
        );
        let new = grants.iter().filter(|grant| !grant.again).count();
        assert_eq!(new, 1, "new to exactly one of them: {grants:?}");
        give_back(&store, &servers, &asked, grants[0].token).await;
    }
}

/// Each request of a guess arrives twice, and again when the term is over.
#[tokio::test]
async fn guess_that_arrives_again_revives_no_term() {
    let servers = three_servers().await;
    let (proxies, store) = behind_proxies(&servers).await;
    for fault in [
        RequestFault::Duplicate,
        RequestFault::DuplicateLater(Duration::from_millis(1_500)),
    ] {
        let mut asked = request("job", "a", seconds(300));
        had(&store, &servers, &mut asked).await;
        let doubled = || -> Vec<u64> { proxies.iter().map(|proxy| proxy.counts().duplicated).collect() };
        let before = doubled();
        for proxy in &proxies {
            // To take it, and to confirm it.
            proxy.next_requests(2, fault);
        }
        let grant = take(&store, &asked).await;
        assert!(!grant.again, "{fault:?}: {grant:?}");
        give_back(&store, &servers, &asked, grant.token).await;
        let again = async || {
            doubled()
                .iter()
                .zip(&before)
                .all(|(now, before)| now - before == 2)
        };
        eventually_async(BOUND, "the duplicates", again).await;
        let lease = store.get(&asked.name).await.expect("a read").expect("a record");
        assert_eq!((lease.token, lease.released), (grant.token, true), "{fault:?}");
        let mut later = request("job", "next", seconds(300));
        let next = had(&store, &servers, &mut later).await;
        assert_eq!(next.terms, grant.terms + 1, "{fault:?}");
    }
}
