//! A quorum in which a guess comes to nothing: what becomes of the members that have confirmed it.

use crate::common::guess::{
    KEY, LATER, a_and_b, are_ahead, are_at, asked_of, had, had_ahead, is_brought, is_confirmed, is_held,
    next, number, set, three,
};
use crate::common::{
    BOUND, Detours, behind_proxies, giving_back, hosts, in_every_member, quorum_at, record_in, request,
    seconds, take, take_in_time, two_at,
};
use std::time::Duration;
use tenure_core::{Acquire, Acquired, LeaseStore, Released};
use tenure_testkit::{RedisServer, RequestFault, eventually_async};

/// Above what follows the tokens that no clock reaches.
const LATER_STILL: u64 = 2 * LATER;

/// How often something is tried that needs two things to happen at the same time.
const TRIES_MAX: usize = 20;

/// Two members that each is first at one of, the third being down: the first one has missed the second's
/// term, so that each confirms another guess. Nothing where they were not first, on this machine.
async fn split(servers: &mut [RedisServer], asked: &mut [Acquire; 2]) -> Option<(Detours, [Acquired; 2])> {
    let detours = Detours::to(servers).await;
    had_ahead(&detours.stores[0], servers, &mut asked[0]).await;
    let missing = record_in(&servers[0], "job").await;
    // Not so near that what would be found after the first one's guess is the second one's.
    are_at(servers, LATER_STILL).await;
    had(&detours.stores[1], servers, &mut asked[1]).await;
    set(&servers[0], &missing).await;
    servers[2].kill();
    let answers = detours.ask_at_once(servers, asked, is_confirmed).await?;
    Some((detours, answers))
}

/// Each member has confirmed another one's guess, and none of them for a majority: neither may hold the lease
/// up for its ttl.
#[tokio::test]
async fn two_that_guess_at_once_end_with_one_holder_and_keep_nobody_out() {
    for _ in 0..TRIES_MAX {
        let mut servers = three().await;
        let third = quorum_at(&hosts(&servers)).await;
        let mut asked = ["a", "b"].map(|label| request("job", label, seconds(300)));
        // The stores live on: they let go of what is left behind the answers.
        let Some((_stores, answers)) = split(&mut servers, &mut asked).await else {
            continue;
        };
        if let [Acquired::Granted(_), _] | [_, Acquired::Granted(_)] = answers {
            // It was late, and found what the other had let go of.
            continue;
        }
        assert_eq!(
            answers[0],
            Acquired::Superseded,
            "the lower one goes on: {answers:?}"
        );
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

/// Somebody else's in every member but one, which has not heard of that. Both go on: that one takes the term
/// in, and the loser is told who has the lease, and gets it by the same attempt when it is given back.
#[tokio::test]
async fn guess_in_a_member_that_knows_of_no_holder_ends_no_term_and_is_given_back() {
    for deaf in 0..3 {
        let mut servers = three().await;
        let (ours, others) = two_at(&servers).await;
        let (mut a, b) = a_and_b();
        let last = had_ahead(&ours, &servers, &mut a).await;
        let before = record_in(&servers[deaf], "job").await;
        let held = take(&others, &b).await;
        in_every_member(&servers, held.token).await;
        set(&servers[deaf], &before).await;
        match ours.acquire(&a).await.expect("answered") {
            Acquired::Held(lease) => assert_eq!(lease.token, held.token),
            told => panic!("it is held: {told:?}"),
        }
        assert_eq!(
            number(&servers[deaf], "generation").await,
            next(last.token).number(),
            "nothing was guessed"
        );
        // Not shown as a term, nor counted as one.
        let is_none = async || {
            let left = record_in(&servers[deaf], "job").await;
            left.contains_key("unconfirmed") && left["terms"] == before["terms"]
        };
        eventually_async(BOUND, "a member that lets go of the guess", is_none).await;
        is_held(&others, &b, held.token).await;
        is_brought(&others, &servers[deaf], &b, held.token).await;
        let other = (deaf + 1) % 3;
        servers[other].kill();
        is_held(&others, &b, held.token).await;
        let released = others.release(&[giving_back(&b, held.token)]).await.remove(0);
        assert_eq!(released, Ok(Released::Vacated));
        let grant = take_in_time(&ours, &a).await;
        assert_eq!((grant.terms, grant.again), (held.terms + 1, false), "{grant:?}");
        is_held(&ours, &a, grant.token).await;
    }
}

/// What lets go of a guess comes once more when its attempt has been granted a term.
#[tokio::test]
async fn letting_go_of_a_guess_ends_no_term_of_the_same_attempt() {
    let servers = three().await;
    let (proxies, ours) = behind_proxies(&servers).await;
    let others = quorum_at(&hosts(&servers)).await;
    let (mut a, b) = a_and_b();
    had(&ours, &servers, &mut a).await;
    let before = record_in(&servers[1], "job").await;
    let held = take(&others, &b).await;
    in_every_member(&servers, held.token).await;
    set(&servers[1], &before).await;
    // The servers do not know the script that lets go yet.
    proxies[1].next_commands(
        1,
        "EVAL",
        RequestFault::DuplicateLater(Duration::from_millis(2_000)),
    );
    let answer = ours.acquire(&a).await.expect("answered");
    assert!(matches!(answer, Acquired::Held(_)), "{answer:?}");
    let sent = async || proxies[1].faults_left() == 0;
    eventually_async(BOUND, "what lets go of it", sent).await;
    let released = others.release(&[giving_back(&b, held.token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    let grant = take(&ours, &a).await;
    in_every_member(&servers, grant.token).await;
    let doubled = async || proxies[1].counts().duplicated == 1;
    eventually_async(BOUND, "the duplicate", doubled).await;
    in_every_member(&servers, grant.token).await;
    is_held(&ours, &a, grant.token).await;
}

/// The process has died that guessed: its guess runs out as what any candidate has taken.
#[tokio::test]
async fn guess_of_a_process_that_died_keeps_no_member_from_the_term_of_another() {
    for ahead in [false, true] {
        let servers = three().await;
        let (ours, others) = two_at(&servers).await;
        let (mut a, b) = a_and_b();
        had(&ours, &servers, &mut a).await;
        if ahead {
            are_ahead(&servers).await;
            had(&quorum_at(&hosts(&servers)).await, &servers, &mut a).await;
        }
        let guessed = had(&ours, &servers, &mut a).await;
        let guess = next(guessed.token).to_string();
        let held = take(&others, &b).await;
        in_every_member(&servers, held.token).await;
        let fields = [
            ("incarnation", a.candidate.incarnation.to_string()),
            ("attempt", a.attempt.to_string()),
            ("generation", guess),
            ("expiresAt", "1".to_owned()),
        ];
        asked_of(&servers[0], redis::cmd("HSET").arg(KEY).arg(&fields)).await;
        is_brought(&others, &servers[0], &b, held.token).await;
    }
}

/// What it is granted then is held by the member, too, that has confirmed the guess.
#[tokio::test]
async fn guess_that_is_too_low_for_members_is_used_by_nobody_who_knows_more() {
    for higher in [&[0][..], &[2], &[0, 1], &[0, 1, 2]] {
        let mut servers = three().await;
        let store = quorum_at(&hosts(&servers)).await;
        let mut asked = request("job", "a", seconds(300));
        had(&store, &servers, &mut asked).await;
        for member in higher {
            are_ahead(&servers[*member..=*member]).await;
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
        if higher.len() > 1 {
            is_brought(&store, &servers[2], &asked, next.token).await;
            servers[0].kill();
            is_held(&store, &asked, next.token).await;
        }
    }
}

/// The member that has confirmed the guess takes in the higher token that its attempt was granted, and holds
/// nobody up where that was over before.
#[tokio::test]
async fn member_that_has_confirmed_a_lower_guess_goes_on_with_what_its_attempt_was_granted() {
    for is_renewed in [true, false] {
        let mut servers = three().await;
        let store = quorum_at(&hosts(&servers)).await;
        let mut asked = request("job", "a", seconds(300));
        let last = had_ahead(&store, &servers, &mut asked).await;
        are_at(&servers[..2], LATER_STILL).await;
        let grant = take(&store, &asked).await;
        assert!(grant.token.number() > LATER_STILL, "{grant:?}");
        assert_eq!(
            number(&servers[2], "generation").await,
            next(last.token).number(),
            "nothing was guessed"
        );
        if is_renewed {
            is_brought(&store, &servers[2], &asked, grant.token).await;
            servers[0].kill();
            is_held(&store, &asked, grant.token).await;
        } else {
            let released = store.release(&[giving_back(&asked, grant.token)]).await.remove(0);
            assert_eq!(released, Ok(Released::Vacated));
            servers[0].kill();
            let rival = request("job", "rival", seconds(300));
            let others = &store;
            let token = eventually_async(BOUND, "a term", async || match others.acquire(&rival).await {
                Ok(Acquired::Granted(grant)) => Ok(grant.token),
                told => Err(format!("{told:?}")),
            })
            .await;
            is_held(&store, &rival, token).await;
        }
    }
}
