//! A quorum of five of which two are away: a guess that one of the other three does not confirm keeps nobody
//! out.

use crate::common::guess::{KEY, asked_of, had, had_ahead, is_confirmed, is_held, next, set};
use crate::common::{
    BOUND, giving_back, hosts, in_an_hour, quorum_at, record_in, recorded_at, request, seconds, servers,
};
use std::time::{Duration, Instant};
use tenure_core::{Acquire, Acquired, Grant, LeaseStore, Released};
use tenure_redis::QuorumStore;
use tenure_testkit::{RedisOptions, RedisServer, ServerClock};

/// For how long terms follow each other: a guess is too old for a member about once a second.
const TERMS_TIME: Duration = Duration::from_secs(4);

/// As an engine asks: an error has it ask again by the same attempt, and one that is over by the next.
async fn granted_as_to_an_engine(store: &QuorumStore, asked: &mut Acquire) -> Grant {
    let deadline = Instant::now() + BOUND;
    loop {
        match store.acquire(asked).await {
            Ok(Acquired::Granted(grant)) => return grant,
            Ok(Acquired::Superseded) => asked.attempt = asked.attempt.next(),
            told => {
                assert!(Instant::now() < deadline, "nobody is granted a term: {told:?}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// The third has missed the term before, so that it confirms no guess.
async fn with_a_third_that_missed_a_term(asked: &mut Acquire) -> (Vec<RedisServer>, QuorumStore, Grant) {
    let mut servers = servers(5, RedisOptions::durable()).await;
    let store = quorum_at(&hosts(&servers)).await;
    had_ahead(&store, &servers, asked).await;
    let missing = record_in(&servers[2], "job").await;
    let last = had(&store, &servers, asked).await;
    set(&servers[2], &missing).await;
    for server in &mut servers[3..] {
        server.kill();
    }
    (servers, store, last)
}

#[tokio::test]
async fn guess_that_one_of_a_bare_majority_refuses_gives_way_to_the_next_attempt() {
    let mut asked = request("job", "a", seconds(300));
    let (_servers, store, last) = with_a_third_that_missed_a_term(&mut asked).await;
    let guessed = asked.attempt;
    let grant = granted_as_to_an_engine(&store, &mut asked).await;
    assert_eq!(asked.attempt, guessed.next(), "nothing was guessed: {grant:?}");
    assert!(grant.token > next(last.token) && !grant.again, "{grant:?}");
    is_held(&store, &asked, grant.token).await;
}

/// Who guessed was given up before it heard so much, and what it could let go of is let go of: nothing
/// remembers the guess but those that have confirmed it.
#[tokio::test]
async fn guess_of_a_request_that_was_given_up_gives_way_just_so() {
    let mut asked = request("job", "a", seconds(300));
    let (servers, store, last) = with_a_third_that_missed_a_term(&mut asked).await;
    let guess = next(last.token).to_string();
    for server in &servers[..2] {
        let fields = [
            ("incarnation", asked.candidate.incarnation.to_string()),
            ("attempt", asked.attempt.to_string()),
            ("generation", guess.clone()),
            ("previousGeneration", last.token.to_string()),
            ("previousOwner", "a".to_owned()),
            ("previousEnd", "released".to_owned()),
            ("previousAt", "1".to_owned()),
            ("expiresAt", in_an_hour()),
        ];
        asked_of(server, redis::cmd("HDEL").arg(KEY).arg("releasedAt")).await;
        asked_of(server, redis::cmd("HSET").arg(KEY).arg(&fields)).await;
        assert!(is_confirmed(server, &asked).await);
    }
    // Another store, which has guessed nothing itself.
    drop(store);
    let store = quorum_at(&hosts(&servers)).await;
    let guessed = asked.attempt;
    let grant = granted_as_to_an_engine(&store, &mut asked).await;
    assert_eq!(asked.attempt, guessed.next(), "{grant:?}");
    is_held(&store, &asked, grant.token).await;
}

/// Terms that follow each other faster than one in a millisecond fall behind the clocks, until a guess is too
/// far behind one of them, and not yet behind the others.
#[tokio::test]
async fn terms_follow_each_other_though_members_differ_in_what_is_too_old() {
    let clock = ServerClock::new().expect("the library is there");
    clock.set_ahead(0.05).expect("set");
    let mut servers = servers(5, RedisOptions::durable()).await;
    servers[2] = RedisServer::start(RedisOptions::durable().by(&clock))
        .await
        .expect("a server");
    let store = recorded_at(&hosts(&servers)).await;
    for server in &mut servers[3..] {
        server.kill();
    }
    let mut asked = request("job", "a", seconds(300));
    let (began, mut before) = (Instant::now(), None);
    while began.elapsed() < TERMS_TIME {
        let grant = granted_as_to_an_engine(&store, &mut asked).await;
        assert!(Some(grant.token) > before, "{grant:?} after {before:?}");
        before = Some(grant.token);
        let released = store.release(&[giving_back(&asked, grant.token)]).await.remove(0);
        assert_eq!(released, Ok(Released::Vacated));
        asked.attempt = asked.attempt.next();
    }
}
