//! Attempts whose members have confirmed different tokens for them, as links broke and healed meanwhile.

use crate::common::{
    connection, granted, hosts, in_every_member, quorum_at, renewal, request, seconds, take,
};
use std::time::{Duration, Instant};
use tenure_core::{Acquire, Acquired, FencingToken, Grant, LeaseStore, Renewed};
use tenure_redis::QuorumStore;
use tenure_testkit::{RedisOptions, RedisServer};

/// What a member has of the lease beside the attempt that was granted everywhere.
#[derive(Clone, Copy, Debug)]
enum Has {
    /// The attempt, with a token that is so much higher.
    Confirmed(i64),
    /// A term of somebody else, with a token that is so much higher. It is over.
    Other(i64),
    /// Nothing to say.
    Down,
}

/// Three members, of which `has` tells what each has of the attempt, and what the attempt was granted before:
/// a token that no clock has come to yet, so that none is too old, however slow the machine is.
async fn members(has: [Has; 3]) -> (Vec<RedisServer>, QuorumStore, Acquire, Grant) {
    members_from(LATER, has).await
}

/// The same, with a token that is so much higher than what the clocks gave.
async fn members_from(higher: i64, has: [Has; 3]) -> (Vec<RedisServer>, QuorumStore, Acquire, Grant) {
    let mut servers = Vec::new();
    for _ in has {
        servers.push(
            RedisServer::start(RedisOptions::default())
                .await
                .expect("a server"),
        );
    }
    let hosts: Vec<String> = servers.iter().map(RedisServer::address).collect();
    let url = format!("redis+quorum://{}", hosts.join(","));
    let store = QuorumStore::connect(&url).await.expect("the quorum connects");
    let asked = request("job", "a", seconds(300));
    let mut before = take(&store, &asked).await;
    in_every_member(&servers, before.token).await;
    before.token = above(before.token, higher);
    for (server, has) in servers.iter_mut().zip(has) {
        let token = |more: i64| above(before.token, more).to_string();
        let fields = match has {
            Has::Confirmed(more) => vec![("generation", token(more))],
            Has::Other(more) => {
                let other = "0123456789abcdef0123456789abcdef".to_owned();
                let over = "1".to_owned();
                vec![
                    ("generation", token(more)),
                    ("incarnation", other),
                    ("expiresAt", over),
                ]
            }
            Has::Down => {
                server.kill();
                continue;
            }
        };
        let set = redis::cmd("HSET")
            .arg("{tenure}:lease:job")
            .arg(&fields)
            .to_owned();
        let mut member = connection(&server.url()).await;
        let _new: i64 = set.query_async(&mut member).await.expect("the test can ask");
    }
    (servers, store, asked, before)
}

fn above(token: FencingToken, more: i64) -> FencingToken {
    FencingToken::new(token.number().saturating_add_signed(more)).expect("a token")
}

async fn acquire(store: &QuorumStore, asked: &Acquire, case: impl std::fmt::Debug) -> Acquired {
    let limit = Duration::from_secs(20);
    let answer = tokio::time::timeout(limit, store.acquire(asked)).await;
    let answer = answer.unwrap_or_else(|_| panic!("{case:?} takes too long"));
    answer.unwrap_or_else(|error| panic!("{case:?}: {error}"))
}

async fn is_held(store: &QuorumStore, asked: &Acquire, token: FencingToken) -> bool {
    let renewed = store.renew(&[renewal(asked, token)]).await.remove(0);
    matches!(renewed, Ok(Renewed::Extended { .. }))
}

/// Far above the clock, so that no floor hides what is chosen.
const LATER: i64 = 1_000_000_000;

/// An hour before the clock.
const LONG_AGO: i64 = -3_600_000;

/// The first member held the attempt while it ran out in the others, where somebody else's term came and
/// went.
#[tokio::test]
async fn older_token_of_the_first_member_keeps_no_majority_from_a_new_one() {
    for later in [LATER, 0] {
        let case = [Has::Confirmed(0), Has::Other(later), Has::Other(later)];
        let (_servers, store, asked, before) = members(case).await;
        let grant = granted(acquire(&store, &asked, case).await);
        assert!(grant.token > above(before.token, later), "{case:?}: {grant:?}");
        assert!(!grant.again, "{case:?}: {grant:?}");
        assert!(is_held(&store, &asked, grant.token).await, "{case:?}");
    }
}

#[tokio::test]
async fn token_that_a_majority_has_confirmed_for_an_attempt_is_its_token() {
    for (case, more) in [
        ([Has::Confirmed(0), Has::Confirmed(1), Has::Confirmed(1)], 1),
        ([Has::Confirmed(1), Has::Confirmed(0), Has::Confirmed(0)], 0),
        ([Has::Confirmed(0), Has::Confirmed(0), Has::Other(LATER)], 0),
        ([Has::Other(LATER), Has::Confirmed(0), Has::Confirmed(0)], 0),
        ([Has::Other(-1), Has::Confirmed(0), Has::Other(-1)], 0),
        ([Has::Other(-1), Has::Confirmed(0), Has::Down], 0),
    ] {
        let (_servers, store, asked, before) = members(case).await;
        let grant = granted(acquire(&store, &asked, case).await);
        assert_eq!(grant.token, above(before.token, more), "{case:?}");
        assert!(grant.again, "{case:?}: {grant:?}");
        assert!(is_held(&store, &asked, grant.token).await, "{case:?}");
    }
}

/// One member alone has it, from before an outage. The others may have had terms since that they have
/// forgotten, and marks were bumped above it.
#[tokio::test]
async fn old_token_that_one_member_has_confirmed_is_no_others_any_more() {
    for (case, is_superseded) in [
        ([Has::Confirmed(0), Has::Other(-1), Has::Other(-1)], false),
        ([Has::Other(-1), Has::Other(-1), Has::Confirmed(0)], false),
        // Both that are there would have to confirm one token, and one has confirmed this.
        ([Has::Confirmed(0), Has::Other(-1), Has::Down], true),
    ] {
        let (_servers, store, mut asked, before) = members_from(LONG_AGO, case).await;
        let clock = above(before.token, -LONG_AGO);
        if is_superseded {
            assert_eq!(
                acquire(&store, &asked, case).await,
                Acquired::Superseded,
                "{case:?}"
            );
            asked.attempt = asked.attempt.next();
        }
        let grant = granted(acquire(&store, &asked, case).await);
        assert!(grant.token >= clock && !grant.again, "{case:?}: {grant:?}");
        assert!(is_held(&store, &asked, grant.token).await, "{case:?}");
    }
}

/// It is held there, so that no term was between.
#[tokio::test]
async fn old_token_that_a_majority_has_confirmed_stays_its_attempts() {
    let case = [Has::Confirmed(0), Has::Confirmed(0), Has::Other(-1)];
    let (_servers, store, asked, before) = members_from(LONG_AGO, case).await;
    let grant = granted(acquire(&store, &asked, case).await);
    assert_eq!((grant.token, grant.again), (before.token, true), "{grant:?}");
}

/// Repeating it would hold the lease up for ever: only a later attempt can have one token in a majority.
#[tokio::test]
async fn attempt_that_no_majority_can_agree_on_is_superseded_and_the_next_is_granted() {
    for case in [
        [Has::Confirmed(0), Has::Confirmed(1), Has::Other(LATER)],
        [Has::Confirmed(0), Has::Confirmed(1), Has::Down],
        [Has::Confirmed(0), Has::Other(LATER), Has::Down],
    ] {
        let (_servers, store, mut asked, before) = members(case).await;
        let answer = acquire(&store, &asked, case).await;
        assert_eq!(answer, Acquired::Superseded, "{case:?}");
        asked.attempt = asked.attempt.next();
        let grant = granted(acquire(&store, &asked, case).await);
        assert!(grant.token > before.token && !grant.again, "{case:?}: {grant:?}");
        assert!(is_held(&store, &asked, grant.token).await, "{case:?}");
    }
}

/// The third has confirmed the same as the first, and is not heard: where nobody was told of the term it is
/// nobody's, and ends at once when that is back.
#[tokio::test]
async fn term_that_an_unheard_member_completed_for_a_superseded_attempt_is_given_back() {
    let case = [Has::Confirmed(0), Has::Confirmed(1), Has::Confirmed(0)];
    let (servers, _, asked, _) = members(case).await;
    // As if what granted it had not been heard.
    let store = quorum_at(&hosts(&servers)).await;
    servers[2].freeze();
    let answer = acquire(&store, &asked, case).await;
    assert_eq!(answer, Acquired::Superseded);
    servers[2].thaw();
    let rival = request("job", "rival", seconds(300));
    tenure_testkit::eventually_async(Duration::from_secs(60), "a term of a rival", async || match store
        .acquire(&rival)
        .await
    {
        Ok(Acquired::Granted(_)) => Ok(()),
        told => Err(format!("{told:?}")),
    })
    .await;
}

/// The same where it was granted: whoever asks once more, though it believes the term, ends with no less than
/// it has.
#[tokio::test]
async fn request_that_is_made_again_and_is_split_ends_no_term_that_it_was_granted() {
    let case = [Has::Confirmed(0), Has::Confirmed(1), Has::Confirmed(0)];
    let (servers, store, asked, granted) = members(case).await;
    servers[2].freeze();
    for _ in 0..2 {
        let answer = acquire(&store, &asked, case).await;
        assert_eq!(answer, Acquired::Superseded);
    }
    servers[2].thaw();
    let others = quorum_at(&hosts(&servers)).await;
    let began = Instant::now();
    // What would end it is sent at once, and then again to the member that was away.
    while began.elapsed() < Duration::from_secs(4) {
        assert!(is_held(&store, &asked, granted.token).await, "it is given back");
        let rival = others.acquire(&request("job", "rival", seconds(300))).await;
        assert!(
            !matches!(rival, Ok(Acquired::Granted(_))),
            "two hold it: {rival:?}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
