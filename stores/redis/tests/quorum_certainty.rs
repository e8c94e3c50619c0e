//! What a quorum says of an acquisition that failed after its members had done some of it.

use crate::common::{
    Three, connection, giving_back, in_an_hour, in_each, in_every_member, renewal, request, seconds, take,
};
use redis::aio::MultiplexedConnection;
use std::time::Duration;
use tenure_core::{Acquired, Certainty, LeaseStore, Occupancy, Released, Renewed, StoreError};
use tenure_testkit::{Fault, RedisServer, RequestFault, eventually_async};

/// How often something is tried that has to succeed, on a machine that may stall now and then.
const TRIES_MAX: usize = 20;

const RECORD: &str = "{tenure}:lease:job";

impl Three {
    async fn member(&self, member: usize) -> MultiplexedConnection {
        connection(&self.servers[member].url()).await
    }

    /// What a rival's candidacy is in a member, made of the record that is there.
    async fn candidacy_of_a_rival(&self, member: usize) {
        let rival = "0123456789abcdef0123456789abcdef";
        let over = &in_an_hour();
        let fields = [
            RECORD,
            "unconfirmed",
            "later",
            "incarnation",
            rival,
            "expiresAt",
            over,
        ];
        self.asked(member, "HSET", &fields).await;
    }

    /// The token that a member has confirmed.
    async fn confirmed(&self, member: usize) -> Option<String> {
        let look = redis::cmd("HMGET")
            .arg(RECORD)
            .arg(&["unconfirmed", "generation"])
            .to_owned();
        let (unconfirmed, token): (Option<String>, Option<String>) = look
            .query_async(&mut self.member(member).await)
            .await
            .expect("the test can ask");
        token.filter(|_| unconfirmed.is_none())
    }
}

/// One round has a token confirmed by a majority, of which one is not heard; the next finds two members that
/// refuse it.
#[tokio::test]
async fn term_that_an_earlier_round_may_have_begun_is_not_told_as_undone() {
    for _ in 0..TRIES_MAX {
        if let Some(error) = failed_after_a_majority_confirmed().await {
            assert_eq!(error.certainty, Certainty::Unknown, "{error}");
            return;
        }
    }
    panic!("no majority has confirmed in {TRIES_MAX} tries");
}

/// Nothing where the machine was too slow for it.
async fn failed_after_a_majority_confirmed() -> Option<StoreError> {
    let three = Three::behind_a_proxy(0).await;
    let before = request("job", "before", seconds(300));
    let old = take(&three.store, &before).await.token;
    in_every_member(&three.servers, old).await;
    let old = old.to_string();
    for member in 0..3 {
        three.asked(member, "HSET", &[RECORD, "expiresAt", "1"]).await;
    }
    three.candidacy_of_a_rival(2).await;
    // The first member knows the script that takes, and is to be sent the text of the one that confirms.
    let held = request("held", "a", seconds(300));
    let token = take(&three.store, &held).await.token;
    in_each(three.servers.iter().map(RedisServer::url), "held", token).await;
    three.asked(0, "SCRIPT", &["FLUSH"]).await;
    let refused = three.store.acquire(&request("held", "b", seconds(300))).await;
    assert!(matches!(refused, Ok(Acquired::Held(_))), "{refused:?}");
    // It confirms, is not heard, and from then on can not be reached.
    three.proxy.next_commands(1, "EVAL", RequestFault::CutAfter);
    three.proxy.set(Fault::Refuse);
    let new = |token: Option<String>| token.filter(|token| *token != old);
    let failing = async {
        while new(three.confirmed(1).await).is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The third has told by now that there is nothing to confirm in it; what it is asked next it refuses.
        tokio::time::sleep(Duration::from_millis(40)).await;
        three
            .asked(2, "ACL", &["SETUSER", "default", "-eval", "-evalsha"])
            .await;
        std::future::pending::<()>().await;
    };
    let asked = request("job", "a", seconds(300));
    let answer = tokio::select! {
        answer = three.store.acquire(&asked) => answer,
        () = failing => unreachable!("it waits for ever"),
    };
    let error = answer.expect_err("one of three cannot grant it");
    let first = new(three.confirmed(0).await)?;
    let in_majority = three.confirmed(1).await.as_ref() == Some(&first);
    // Busy: it went round as often as it may before the third refused it.
    (in_majority && error.fault != tenure_core::Fault::Busy).then_some(error)
}

/// In the first member a rival has taken the record since, which is no term.
#[tokio::test]
async fn process_that_a_majority_knows_as_the_holder_is_not_told_that_it_is_held() {
    let three = Three::behind_a_proxy(0).await;
    let mut asked = request("job", "a", seconds(300));
    let before = take(&three.store, &asked).await;
    in_every_member(&three.servers, before.token).await;
    three.candidacy_of_a_rival(0).await;
    let lease = three
        .store
        .get(&asked.name)
        .await
        .expect("a read")
        .expect("a record");
    assert_eq!((lease.token, lease.occupancy()), (before.token, Occupancy::Held));
    let again = take(&three.store, &asked).await;
    assert_eq!(
        (again.token, again.again),
        (before.token, true),
        "the same attempt"
    );
    asked.attempt = asked.attempt.next();
    let next = take(&three.store, &asked).await;
    assert!(
        next.token > before.token && !next.again,
        "a later attempt: {next:?}"
    );
}

#[tokio::test]
async fn holder_that_lost_a_majority_to_candidates_is_told_of_no_successor() {
    let three = Three::behind_a_proxy(0).await;
    let held = request("job", "a", seconds(300));
    let term = take(&three.store, &held).await;
    in_every_member(&three.servers, term.token).await;
    for member in [0, 2] {
        three.candidacy_of_a_rival(member).await;
    }
    let renewed = three.store.renew(&[renewal(&held, term.token)]).await.remove(0);
    assert_eq!(renewed, Ok(Renewed::Lost(None)));
}

/// A member that was away has the term still; it is over all the same, and another has begun.
#[tokio::test]
async fn release_of_a_term_that_one_member_has_still_names_the_next_holder() {
    let three = Three::behind_a_proxy(2).await;
    let held = request("job", "a", seconds(300));
    let term = take(&three.store, &held).await;
    in_every_member(&three.servers, term.token).await;
    for member in [0, 1] {
        three.asked(member, "HSET", &[RECORD, "expiresAt", "1"]).await;
    }
    three.proxy.set(Fault::Refuse);
    three.proxy.cut_connections();
    let next = request("job", "b", seconds(300));
    let grant = eventually_async(Duration::from_secs(60), "a term", async || {
        match three.store.acquire(&next).await {
            Ok(Acquired::Granted(grant)) => Ok(grant),
            told => Err(format!("{told:?}")),
        }
    })
    .await;
    three.proxy.heal();
    let released = eventually_async(Duration::from_secs(60), "the member that was away", async || {
        let released = three
            .store
            .release(&[giving_back(&held, term.token)])
            .await
            .remove(0);
        let is_told = three.record(2, "job").await.contains_key("releasedAt");
        is_told.then_some(released)
    })
    .await;
    let Ok(Released::NotYours(Some(now))) = released else {
        panic!("{released:?}")
    };
    assert_eq!(now.token, grant.token);
}
