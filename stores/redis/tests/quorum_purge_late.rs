//! What comes late to a quorum that was cleaned up: no token is forgotten, and no term revived.

use crate::common::{Three, give_back, given_back_in_each, in_each, name, renewal, request, seconds, take};
use crate::quorum_purge::{BOUND, JOB};
use std::cell::Cell;
use std::time::{Duration, Instant};
use tenure_core::{Acquired, Fault, LeaseStore, Purging, Renewed, Ttl};
use tenure_testkit::{RedisOptions, RedisServer, RequestFault, eventually_async};

#[tokio::test]
async fn attempt_of_before_gets_no_token_below_one_that_was_removed() {
    let mut three = Three::of(RedisOptions::durable(), 2).await;
    let early = request("job", "early", seconds(3_600));
    let low = three.term(&early).await;
    for member in [0, 1] {
        three.asked(member, "DEL", &[JOB]).await;
    }
    let later = request("job", "later", Ttl::MIN);
    let high = take(&three.store, &later).await.token;
    assert!(high > low);
    let urls = || [0, 1].map(|member| three.servers[member].url());
    in_each(urls(), "job", high).await;
    for member in [0, 1] {
        three.set(member, &["expiresAt", "1"]).await;
    }
    three.servers[2].kill();
    three.finds(&[name("job")]).await;
    three.servers[2].restart().await.expect("restarted");
    // The others have nothing to list.
    let answers = async || three.listed().await == [name("job")];
    eventually_async(BOUND, "the member that was away", answers).await;
    let busy = Cell::new(0);
    let grant = eventually_async(BOUND, "a term", async || {
        match three.store.acquire(&early).await {
            Ok(Acquired::Granted(grant)) => Ok(grant),
            // Its members would have been asked for the low one all the time; once, the machine may have
            // stood still.
            Err(error) if error.fault == Fault::Busy => {
                assert_eq!(busy.replace(1), 0, "{error}");
                Err(error.to_string())
            }
            told => Err(format!("{told:?}")),
        }
    })
    .await;
    assert!(grant.token > high, "{} after {high}", grant.token);
}

/// How late it is at first; later, where the machine was too slow for it.
const LATE: Duration = Duration::from_millis(4_000);

/// What of an early term arrives once more, after a later one was cleaned up.
#[derive(Clone, Copy, Debug)]
enum Late {
    /// Its taking and its confirmation.
    Acquisition,
    /// What brings it to a member that has missed it.
    Adoption,
}

#[tokio::test]
async fn what_comes_after_a_clean_up_revives_no_term() {
    for what in [Late::Acquisition, Late::Adoption] {
        let mut late = LATE;
        while !is_harmless(what, late).await {
            late *= 2;
            assert!(late < BOUND, "the machine is too slow");
        }
    }
}

/// Not where it came before what is to come before it.
async fn is_harmless(what: Late, late: Duration) -> bool {
    let three = Three::behind_a_proxy(2).await;
    let again = RequestFault::DuplicateLater(late);
    let early = request("job", "early", seconds(300));
    let began = Instant::now();
    // The member does not know the scripts yet.
    let count = match what {
        Late::Acquisition => {
            three.proxy.next_commands(2, "EVAL", again);
            2
        }
        Late::Adoption => 1,
    };
    let low = three.term(&early).await;
    if let Late::Adoption = what {
        let renewals = [renewal(&early, low)];
        let _extended = three.store.renew(&renewals).await;
        // What extends it is known then, and what brings it is not.
        three.proxy.next_commands(1, "EVAL", again);
        three.asked(2, "DEL", &[JOB]).await;
        let is_brought = async || {
            let _extended = three.store.renew(&renewals).await;
            three.keepers().await == [0, 1, 2]
        };
        eventually_async(BOUND, "the term in the member that missed it", is_brought).await;
    }
    assert_eq!(three.proxy.faults_left(), 0, "nothing is late");
    give_back(&three.store, &early, low).await;
    given_back_in_each(three.servers.iter().map(RedisServer::url), "job").await;
    if began.elapsed() > late / 4 {
        return false;
    }
    let high = three.unused(0..3).await;
    let purged = three.clean_up(Purging::Removes).await;
    if began.elapsed() > late / 2 {
        return false;
    }
    assert!(high > low);
    assert_eq!((purged.unused, purged.removed), (vec![name("job")], 1));
    let arrived = async || three.proxy.counts().duplicated == count;
    eventually_async(BOUND, "the duplicates", arrived).await;
    let record = three.record(2, "job").await;
    match what {
        Late::Acquisition => {
            let left = [&record["generation"], &record["unconfirmed"]];
            assert_eq!(left, [&high.to_string(), "first"], "it was confirmed: {record:?}");
        }
        Late::Adoption => assert!(record.is_empty(), "it was taken in: {record:?}"),
    }
    let next = take(&three.store, &request("job", "next", seconds(300))).await;
    assert!(next.token > high && next.terms == 1, "{next:?} after {high}");
    true
}

/// Each member judges anew in the step that removes.
#[tokio::test]
async fn late_duplicate_of_a_clean_up_leaves_the_next_term_alone() {
    let three = Three::behind_a_proxy(2).await;
    three.unused(0..3).await;
    // The list, the look and the removal.
    let again = RequestFault::DuplicateLater(Duration::from_millis(1_500));
    three.proxy.next_commands(3, "EVALSHA", again);
    let purged = three.clean_up(Purging::Removes).await;
    assert_eq!((purged.removed, three.proxy.faults_left()), (1, 0));
    let next = request("job", "b", seconds(300));
    let token = three.term(&next).await;
    let before = three.record(2, "job").await;
    let arrived = async || three.proxy.counts().duplicated == 3;
    eventually_async(BOUND, "the duplicates", arrived).await;
    assert_eq!(three.record(2, "job").await, before);
    let renewed = three.store.renew(&[renewal(&next, token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
}
