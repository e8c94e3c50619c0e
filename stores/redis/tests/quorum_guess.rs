//! A quorum whose members are asked to take and to confirm at once, by a process that had the lease last
//! itself.

use crate::common::guess::{
    KEY, a_and_b, asked_of, give_back, had, had_ahead, is_confirmed, is_held, next, set, three,
};
use crate::common::{
    BOUND, behind_proxies, granted, hosts, in_every_member, quorum_at, record_in, request, seconds, servers,
    take, three_servers, two_at,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenure_core::{Acquire, Acquired, CandidateId, End, Grant, LeaseStore, Predecessor};
use tenure_redis::QuorumStore;
use tenure_testkit::{Fault, RedisOptions, RedisServer, RequestFault, eventually_async};

/// How often something is tried that needs two things to happen at the same time.
const TRIES_MAX: usize = 20;

/// How far a guess may be behind the clock of a member.
const LAG_MS_MAX: u64 = 1_000;

fn clock_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time");
    u64::try_from(now.as_millis()).expect("a time")
}

#[tokio::test]
async fn what_was_given_back_a_moment_ago_is_confirmed_before_anybody_has_answered() {
    is_confirmed_before_anybody_has_answered(had).await;
}

#[tokio::test]
async fn what_is_handed_on_within_a_process_is_confirmed_before_anybody_has_answered() {
    is_confirmed_before_anybody_has_answered(holds).await;
}

/// No member answers, and each confirms the term that follows: nothing else was waited for.
async fn is_confirmed_before_anybody_has_answered(
    begin: impl AsyncFn(&QuorumStore, &[RedisServer], &mut Acquire) -> Grant,
) {
    let servers = three().await;
    let (proxies, store) = behind_proxies(&servers).await;
    let mut asked = request("job", "a", seconds(300));
    had_ahead(&store, &servers, &mut asked).await;
    for _ in 0..TRIES_MAX {
        let before = begin(&store, &servers, &mut asked).await;
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
        // A slow machine may be late for that, but not every time.
        if confirmed == servers.len() {
            let expected = (true, before.terms + 1, next(before.token));
            assert_eq!((grant.again, grant.terms, grant.token), expected, "{grant:?}");
            return is_held(&store, &asked, grant.token).await;
        }
        give_back(&store, &servers, &asked, grant.token).await;
        asked.attempt = asked.attempt.next();
    }
    panic!("nothing is confirmed before its answers");
}

/// The lease "job" is held everywhere: what is asked next hands it on.
async fn holds(store: &QuorumStore, servers: &[RedisServer], asked: &mut Acquire) -> Grant {
    let grant = take(store, asked).await;
    in_every_member(servers, grant.token).await;
    asked.attempt = asked.attempt.next();
    grant
}

/// Who holds it for all that it knows guesses from a term that had run out, and another's came.
#[tokio::test]
async fn what_another_had_since_is_not_handed_on() {
    let servers = three().await;
    let (ours, others) = two_at(&servers).await;
    let (mut a, b) = a_and_b();
    holds(&ours, &servers, &mut a).await;
    for server in &servers {
        let over = [("expiresAt", "1")];
        asked_of(server, redis::cmd("HSET").arg(KEY).arg(&over)).await;
    }
    let between = take(&others, &b).await;
    let refused = ours.acquire(&a).await;
    assert!(
        matches!(&refused, Ok(Acquired::Held(lease)) if lease.token == between.token),
        "{refused:?}"
    );
    in_every_member(&servers, between.token).await;
    give_back(&others, &servers, &b, between.token).await;
    let grant = take(&ours, &a).await;
    assert!(grant.token > between.token && grant.terms == 3, "{grant:?}");
    is_held(&ours, &a, grant.token).await;
}

/// Who was told nothing of a term between guesses as if there had been none.
#[tokio::test]
async fn term_of_another_between_is_counted_and_named() {
    let servers = three().await;
    let (ours, others) = two_at(&servers).await;
    let (mut a, mut b) = a_and_b();
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

/// It was the first to have heard of the other's term, and has forgotten it: a guess would have a lower token
/// than that.
#[tokio::test]
async fn guess_counts_on_no_member_that_was_emptied() {
    let servers = three().await;
    let (ours, others) = two_at(&servers).await;
    let (mut a, b) = a_and_b();
    had(&ours, &servers, &mut a).await;
    let before = record_in(&servers[0], "job").await;
    let held = take(&others, &b).await;
    in_every_member(&servers, held.token).await;
    set(&servers[0], &before).await;
    asked_of(&servers[1], redis::cmd("DEL").arg(KEY)).await;
    let mut tries = 0;
    let grant = loop {
        match ours.acquire(&a).await {
            Ok(Acquired::Granted(grant)) => break grant,
            told => assert!(tries < TRIES_MAX, "{told:?}"),
        }
        a.attempt = a.attempt.next();
        tries += 1;
    };
    assert!(grant.token > held.token, "{grant:?} after {held:?}");
}

/// It holds the term as the others do, before anybody has renewed.
#[tokio::test]
async fn member_that_knows_of_another_term_before_holds_what_was_guessed_too() {
    let servers = three().await;
    let store = quorum_at(&hosts(&servers)).await;
    let mut asked = request("job", "a", seconds(300));
    had_ahead(&store, &servers, &mut asked).await;
    for emptied in [0, 2] {
        let last = had(&store, &servers, &mut asked).await;
        asked_of(&servers[emptied], redis::cmd("DEL").arg(KEY)).await;
        let grant = take(&store, &asked).await;
        assert_eq!(grant.token, next(last.token), "nothing was guessed");
        in_every_member(&servers, grant.token).await;
        give_back(&store, &servers, &asked, grant.token).await;
        asked.attempt = asked.attempt.next();
    }
}

/// Where they may, a token that is not floored by the clocks may be one that they have forgotten.
#[tokio::test]
async fn nothing_is_guessed_where_members_may_forget() {
    for (servers, guesses) in [(three().await, true), (three_servers().await, false)] {
        let store = quorum_at(&hosts(&servers)).await;
        let mut asked = request("job", "a", seconds(300));
        let mut is_shown = false;
        for _ in 0..TRIES_MAX {
            let last = had(&store, &servers, &mut asked).await;
            let grant = take(&store, &asked).await;
            is_shown = (grant.token == next(last.token)) == guesses;
            if is_shown || !guesses {
                break;
            }
            // A slow machine may have come too late for that, but not every time.
            let is_old = last.token.number() + LAG_MS_MAX / 2 < clock_ms();
            assert!(is_old, "nothing was guessed: {grant:?} after {last:?}");
            in_every_member(&servers, grant.token).await;
            give_back(&store, &servers, &asked, grant.token).await;
            asked.attempt = asked.attempt.next();
        }
        assert!(is_shown, "guesses: {guesses}");
    }
}

#[tokio::test]
async fn guess_is_confirmed_by_members_that_have_forgotten_the_scripts() {
    let servers = three().await;
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
    let servers = servers(5, RedisOptions::durable()).await;
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
    let servers = three().await;
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
