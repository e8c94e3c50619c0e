//! A quorum whose members' requests and replies get lost, or arrive twice: of a minority, and of a majority.

use crate::common::{
    connection, given_back_in_each, giving_back, granted, in_each, renewal, request, seconds, take,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tenure_conformance::wire::{BOUND, bounded};
use tenure_core::{Acquired, Certainty, LeaseStore, Occupancy, Released, Renewed};
use tenure_redis::QuorumStore;
use tenure_testkit::{Fault, FaultProxy, RedisOptions, RedisServer, RequestFault, eventually_async};

/// Three members, each behind a proxy, and two stores: one through the proxies, one beside them.
struct Wires {
    servers: Vec<RedisServer>,
    proxies: Vec<FaultProxy>,
    store: QuorumStore,
    direct: QuorumStore,
}

/// How late a member may be before it is asked once more.
const LATE: Duration = Duration::from_secs(1);

/// When a duplicate comes: the next term is there by then.
const LATER: Duration = Duration::from_millis(1_500);

/// Which members meet a fault: each minority, the member that is asked first among them, and the majorities.
const MINORITIES: [&[usize]; 3] = [&[0], &[1], &[2]];
const MAJORITIES: [&[usize]; 3] = [&[0, 1], &[1, 2], &[0, 1, 2]];

async fn connect(hosts: Vec<String>) -> QuorumStore {
    let url = format!("redis+quorum://{}", hosts.join(","));
    let store = eventually_async(BOUND, "a quorum", || QuorumStore::connect(&url)).await;
    // So that connections are there, and servers know the scripts.
    let warm = request("warm", "warm", seconds(60));
    let token = take(&store, &warm).await.token;
    // Else a renewal may come before it, and bring the term, which the faults of the test would meet.
    let urls = || hosts.iter().map(|host| format!("redis://{host}"));
    in_each(urls(), "warm", token).await;
    let renewed = store.renew(&[renewal(&warm, token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let released = store.release(&[giving_back(&warm, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    given_back_in_each(urls(), "warm").await;
    store
}

async fn wires() -> Wires {
    let (mut servers, mut proxies) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let server = RedisServer::start(RedisOptions::default())
            .await
            .expect("a server");
        proxies.push(FaultProxy::redis(server.address()).expect("a proxy"));
        servers.push(server);
    }
    let through = proxies.iter().map(|proxy| proxy.address().to_string()).collect();
    Wires {
        direct: connect(servers.iter().map(RedisServer::address).collect()).await,
        store: connect(through).await,
        servers,
        proxies,
    }
}

impl Wires {
    fn set(&self, members: &[usize], fault: RequestFault) {
        for member in members {
            self.proxies[*member].set(Fault::EveryRequest(fault));
        }
    }

    /// No request meets a fault any more, and each member is reached: whoever uses a connection that was cut
    /// is the first to notice, and that shall be nobody of the test.
    async fn heal(&self) {
        self.proxies.iter().for_each(FaultProxy::heal);
        eventually_async(BOUND, "all members", || self.reaches_all()).await;
    }

    async fn reaches_all(&self) -> bool {
        let asked = request("warm", "warm", seconds(60));
        let Ok(Acquired::Granted(grant)) = self.store.acquire(&asked).await else {
            return false;
        };
        let token = Some(grant.token.to_string());
        let have_it = async || {
            let records = self.records("warm").await;
            records.iter().all(|record| {
                record.get("generation") == token.as_ref() && !record.contains_key("unconfirmed")
            })
        };
        let reached = comes(LATE, have_it).await;
        let released = self
            .store
            .release(&[giving_back(&asked, grant.token)])
            .await
            .remove(0);
        reached && released == Ok(Released::Vacated)
    }

    /// How many requests were lost, or their replies.
    fn cuts(&self, members: &[usize]) -> Vec<u64> {
        let cuts = |member: &usize| {
            let counts = self.proxies[*member].counts();
            counts.cut_before + counts.cut_after
        };
        members.iter().map(cuts).collect()
    }

    fn requests(&self, members: &[usize]) -> Vec<u64> {
        let requests = |member: &usize| self.proxies[*member].counts().requests;
        members.iter().map(requests).collect()
    }

    fn duplicates(&self, members: &[usize]) -> Vec<u64> {
        let duplicates = |member: &usize| self.proxies[*member].counts().duplicated;
        members.iter().map(duplicates).collect()
    }

    /// What each member has of the lease.
    async fn records(&self, lease: &str) -> Vec<BTreeMap<String, String>> {
        let mut records = Vec::new();
        for server in &self.servers {
            let ask = redis::cmd("HGETALL")
                .arg(format!("{{tenure}}:lease:{lease}"))
                .to_owned();
            let mut member = connection(&server.url()).await;
            records.push(ask.query_async(&mut member).await.expect("the test can ask"));
        }
        records
    }

    /// Waits until each member has confirmed this term: a majority is enough for a grant.
    async fn have_all(&self, asked: &tenure_core::Acquire, token: tenure_core::FencingToken) {
        in_each(
            self.servers.iter().map(RedisServer::url),
            asked.name.as_str(),
            token,
        )
        .await;
    }

    /// The term of `asked` is there, and nobody else's.
    async fn is_held(&self, asked: &tenure_core::Acquire, token: tenure_core::FencingToken) {
        let lease = self.direct.get(&asked.name).await.expect("a read");
        let lease = lease.expect("the record");
        assert_eq!((lease.token, lease.occupancy()), (token, Occupancy::Held));
        let rival = request(asked.name.as_str(), "rival", seconds(60));
        let answer = self.direct.acquire(&rival).await;
        assert!(matches!(answer, Ok(Acquired::Held(_))), "two hold it: {answer:?}");
    }
}

#[tokio::test]
async fn what_a_minority_loses_costs_a_quorum_nothing() {
    let wires = wires().await;
    for (number, members) in MINORITIES.into_iter().enumerate() {
        for fault in [RequestFault::CutBefore, RequestFault::CutAfter] {
            let before = wires.cuts(members);
            wires.set(members, fault);
            // Each time another, as who has missed a release keeps the lease from everybody when another
            // minority fails.
            let name = format!("job-{number}-{fault:?}");
            let mut last = None;
            for _term in 0..2 {
                let asked = request(&name, "holder", seconds(60));
                let grant = bounded("an acquisition", wires.store.acquire(&asked)).await;
                let grant = granted(grant.expect("two of three"));
                assert!(last.is_none_or(|last| grant.token > last), "{name}");
                let renewals = [renewal(&asked, grant.token)];
                let renewed = bounded("a renewal", wires.store.renew(&renewals)).await.remove(0);
                assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
                wires.is_held(&asked, grant.token).await;
                let back = [giving_back(&asked, grant.token)];
                let released = bounded("a release", wires.store.release(&back)).await.remove(0);
                assert_eq!(released, Ok(Released::Vacated), "{name}");
                last = Some(grant.token);
            }
            let happened = async || wires.cuts(members) > before;
            eventually_async(BOUND, "the fault", happened).await;
            wires.heal().await;
        }
    }
}

#[tokio::test]
async fn requests_that_a_majority_never_got_leave_nothing() {
    let wires = wires().await;
    for (number, members) in MAJORITIES.into_iter().enumerate() {
        let asked = request(&format!("job-{number}"), "holder", seconds(60));
        wires.set(members, RequestFault::CutBefore);
        let lost = bounded("the lost requests", wires.store.acquire(&asked)).await;
        let lost = lost.expect_err("two of three got nothing");
        assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
        // Whatever the third had was given up: nobody waits for it.
        let rival = request(asked.name.as_str(), "rival", seconds(60));
        let next = take(&wires.direct, &rival).await;
        assert_eq!(next.terms, 1, "{members:?}");
        wires.heal().await;
        let answer = bounded("an answer", wires.store.acquire(&asked)).await;
        assert!(matches!(answer, Ok(Acquired::Held(_))), "{members:?}: {answer:?}");
        wires.is_held(&rival, next.token).await;
    }
}

#[tokio::test]
async fn lost_replies_of_a_majority_are_resolved_by_asking_again() {
    let wires = wires().await;
    for (number, members) in MAJORITIES.into_iter().enumerate() {
        let asked = request(&format!("job-{number}"), "holder", seconds(60));
        wires.set(members, RequestFault::CutAfter);
        let lost = bounded("the lost replies", wires.store.acquire(&asked)).await;
        let lost = lost.expect_err("one of three has answered");
        assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
        wires.heal().await;
        let grant = bounded("a term", wires.store.acquire(&asked)).await;
        let grant = granted(grant.expect("all answer again"));
        assert_eq!(grant.terms, 1, "{members:?}: {grant:?}");
        wires.is_held(&asked, grant.token).await;

        let renewals = [renewal(&asked, grant.token)];
        wires.set(members, RequestFault::CutAfter);
        let lost = bounded("the lost replies", wires.store.renew(&renewals)).await;
        let lost = lost[0].as_ref().expect_err("one of three has answered");
        assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
        wires.heal().await;
        let again = bounded("a renewal", wires.store.renew(&renewals)).await.remove(0);
        assert!(matches!(again, Ok(Renewed::Extended { .. })), "{again:?}");

        let back = [giving_back(&asked, grant.token)];
        wires.set(members, RequestFault::CutAfter);
        let lost = bounded("the lost replies", wires.store.release(&back)).await;
        let lost = lost[0].as_ref().expect_err("one of three has answered");
        assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
        wires.heal().await;
        let again = bounded("a release", wires.store.release(&back)).await.remove(0);
        assert_eq!(again, Ok(Released::Vacated), "{members:?}");
        let next = take(&wires.direct, &request(asked.name.as_str(), "next", seconds(60))).await;
        assert!(
            next.token > grant.token && next.terms == 2,
            "{members:?}: {next:?}"
        );
    }
}

/// A majority has the term, and its candidate was not told: the same attempt has it, and nobody else.
#[tokio::test]
async fn term_that_a_majority_confirmed_unheard_is_its_attempts() {
    for members in MAJORITIES {
        let wires = wires().await;
        let asked = request("job", "holder", seconds(60));
        for member in members {
            // Members are asked twice: to take it, and to confirm its token. The first arrives twice.
            wires.proxies[*member].next_requests(1, RequestFault::Duplicate);
            wires.proxies[*member].next_requests(1, RequestFault::CutAfter);
        }
        let before = wires.duplicates(members);
        let lost = bounded("the lost replies", wires.store.acquire(&asked)).await;
        let lost = lost.expect_err("one of three has answered");
        assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
        // A member that was late has its duplicate after the answer.
        let happened = async || {
            let expected = before.iter().map(|before| before + 1).collect::<Vec<_>>();
            wires.duplicates(members) == expected && wires.cuts(members).iter().all(|cuts| *cuts == 1)
        };
        eventually_async(BOUND, "the faults", happened).await;
        wires.heal().await;
        let lease = wires.direct.get(&asked.name).await.expect("a read");
        let token = lease.expect("a majority has confirmed it").token;
        wires.is_held(&asked, token).await;
        let grant = bounded("the term", wires.store.acquire(&asked)).await;
        let grant = granted(grant.expect("all answer again"));
        assert_eq!((grant.token, grant.again, grant.terms), (token, true, 1));
    }
}

/// Whether this comes to be in this time.
async fn comes(limit: Duration, mut happened: impl AsyncFnMut() -> bool) -> bool {
    let limit = Instant::now() + limit;
    while Instant::now() < limit {
        if happened().await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    false
}

#[tokio::test]
async fn requests_that_arrive_twice_in_a_quorum_have_one_term() {
    let wires = wires().await;
    for (number, members) in MINORITIES.into_iter().chain(MAJORITIES).enumerate() {
        let asked = request(&format!("job-{number}"), "holder", seconds(60));
        let before = wires.duplicates(members);
        wires.set(members, RequestFault::Duplicate);
        let grant = take(&wires.store, &asked).await;
        assert_eq!((grant.terms, grant.again), (1, false), "{members:?}");
        let renewals = [renewal(&asked, grant.token)];
        let renewed = wires.store.renew(&renewals).await.remove(0);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        wires.is_held(&asked, grant.token).await;
        let back = [giving_back(&asked, grant.token)];
        assert_eq!(wires.store.release(&back).await.remove(0), Ok(Released::Vacated));
        let doubled = async || {
            wires
                .duplicates(members)
                .iter()
                .zip(&before)
                .all(|(now, before)| now > before)
        };
        eventually_async(BOUND, "a duplicate in each member", doubled).await;
        wires.heal().await;
        let lease = wires.direct.get(&asked.name).await.expect("a read");
        let lease = lease.expect("the record");
        assert_eq!((lease.token, lease.terms, lease.released), (grant.token, 1, true));
    }
}

/// All that a term sent to its members arrives once more: when the lease is free, and when it is another's.
#[tokio::test]
async fn late_duplicates_in_a_quorum_revive_no_term_and_end_none() {
    for next in [None, Some("next")] {
        let wires = wires().await;
        let all = MAJORITIES[2];
        let asked = request("job", "holder", seconds(60));
        let (before, doubled) = (wires.requests(all), wires.duplicates(all));
        wires.set(all, RequestFault::DuplicateLater(LATER));
        let grant = take(&wires.store, &asked).await;
        // Else a renewal may come before it, and bring the term.
        wires.have_all(&asked, grant.token).await;
        let renewals = [renewal(&asked, grant.token)];
        let renewed = wires.store.renew(&renewals).await.remove(0);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        let back = [giving_back(&asked, grant.token)];
        assert_eq!(wires.store.release(&back).await.remove(0), Ok(Released::Vacated));
        // Members that nobody waited for are asked all the same.
        let since =
            |now: Vec<u64>, then: &[u64]| now.iter().zip(then).map(|(now, then)| now - then).collect();
        let sent = || -> Vec<u64> { since(wires.requests(all), &before) };
        eventually_async(BOUND, "all requests", async || {
            sent().iter().all(|sent| *sent >= 4)
        })
        .await;
        wires.proxies.iter().for_each(FaultProxy::heal);
        let later = next.map(|next| request("job", next, seconds(60)));
        let held = match &later {
            Some(later) => Some(take(&wires.direct, later).await.token),
            None => None,
        };
        if let (Some(later), Some(token)) = (&later, held) {
            wires.have_all(later, token).await;
        }
        let records = wires.records("job").await;
        let again = || -> Vec<u64> { since(wires.duplicates(all), &doubled) };
        eventually_async(BOUND, "the duplicates", async || again() == sent()).await;
        assert_eq!(wires.records("job").await, records, "a duplicate was written");
        match (&later, held) {
            (Some(later), Some(token)) => wires.is_held(later, token).await,
            _ => {
                let rival = request("job", "rival", seconds(60));
                let term = take(&wires.direct, &rival).await;
                assert!(term.token > grant.token && term.terms == 2, "{term:?}");
            }
        }
    }
}
