//! A quorum whose members' requests and replies get lost, or arrive twice: of a minority, and of a majority.

use crate::common::{connection, giving_back, granted, in_each, renewal, request, seconds, take};
use std::collections::BTreeMap;
use std::time::Duration;
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

/// How often something is tried that needs each member to be asked one thing after the other.
const TRIES_MAX: usize = 20;

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
    in_each(hosts.iter().map(|host| format!("redis://{host}")), "warm", token).await;
    let renewed = store.renew(&[renewal(&warm, token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let released = store.release(&[giving_back(&warm, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
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

    fn heal(&self) {
        self.proxies.iter().for_each(FaultProxy::heal);
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
    let mut last = None;
    for members in MINORITIES {
        for fault in [RequestFault::CutBefore, RequestFault::CutAfter] {
            let before = wires.cuts(members);
            wires.set(members, fault);
            let asked = request("job", "holder", seconds(60));
            let grant = bounded("an acquisition", wires.store.acquire(&asked)).await;
            let grant = granted(grant.expect("two of three"));
            assert!(
                last.is_none_or(|last| grant.token > last),
                "{members:?} {fault:?}"
            );
            let renewals = [renewal(&asked, grant.token)];
            let renewed = bounded("a renewal", wires.store.renew(&renewals)).await.remove(0);
            assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
            wires.is_held(&asked, grant.token).await;
            let back = [giving_back(&asked, grant.token)];
            let released = bounded("a release", wires.store.release(&back)).await.remove(0);
            assert_eq!(released, Ok(Released::Vacated), "{members:?} {fault:?}");
            let happened = async || wires.cuts(members) > before;
            eventually_async(BOUND, "the fault", happened).await;
            wires.heal();
            last = Some(grant.token);
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
        wires.heal();
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
        wires.heal();
        let grant = bounded("a term", wires.store.acquire(&asked)).await;
        let grant = granted(grant.expect("all answer again"));
        assert_eq!(grant.terms, 1, "{members:?}: {grant:?}");
        wires.is_held(&asked, grant.token).await;

        let renewals = [renewal(&asked, grant.token)];
        wires.set(members, RequestFault::CutAfter);
        let lost = bounded("the lost replies", wires.store.renew(&renewals)).await;
        let lost = lost[0].as_ref().expect_err("one of three has answered");
        assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
        wires.heal();
        let again = bounded("a renewal", wires.store.renew(&renewals)).await.remove(0);
        assert!(matches!(again, Ok(Renewed::Extended { .. })), "{again:?}");

        let back = [giving_back(&asked, grant.token)];
        wires.set(members, RequestFault::CutAfter);
        let lost = bounded("the lost replies", wires.store.release(&back)).await;
        let lost = lost[0].as_ref().expect_err("one of three has answered");
        assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
        wires.heal();
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
        let mut tries = 0;
        while !is_confirmed_unheard(members).await {
            tries += 1;
            assert!(
                tries < TRIES_MAX,
                "{members:?} were never asked one thing after the other"
            );
        }
    }
}

/// Not where a member that was late was asked for the second before it had answered the first: the proxy knows one request at a time.
async fn is_confirmed_unheard(members: &[usize]) -> bool {
    let wires = wires().await;
    let asked = request("job", "holder", seconds(60));
    for member in members {
        // Members are asked twice: to take it, and to confirm its token. The first arrives twice.
        wires.proxies[*member].next_requests(1, RequestFault::Duplicate);
        wires.proxies[*member].next_requests(1, RequestFault::CutAfter);
    }
    let before = wires.duplicates(members);
    let lost = bounded("the lost replies", wires.store.acquire(&asked)).await;
    let Err(lost) = lost else { return false };
    assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
    // A member that was late has its duplicate after the answer.
    let expected: Vec<u64> = before.iter().map(|before| before + 1).collect();
    if !comes(async || wires.duplicates(members) == expected).await {
        return false;
    }
    wires.heal();
    let lease = wires.direct.get(&asked.name).await.expect("a read");
    let token = lease.expect("a majority has confirmed it").token;
    wires.is_held(&asked, token).await;
    let grant = bounded("the term", wires.store.acquire(&asked)).await;
    let grant = granted(grant.expect("all answer again"));
    assert_eq!((grant.token, grant.again, grant.terms), (token, true, 1));
    true
}

/// Whether this comes to be in a while.
async fn comes(mut happened: impl AsyncFnMut() -> bool) -> bool {
    for _ in 0..100 {
        if happened().await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
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
        wires.heal();
        let lease = wires.direct.get(&asked.name).await.expect("a read");
        let lease = lease.expect("the record");
        assert_eq!((lease.token, lease.terms, lease.released), (grant.token, 1, true));
    }
}

/// All that a term sent to its members arrives once more: when the lease is free, and when it is another's.
#[tokio::test]
async fn late_duplicates_in_a_quorum_revive_no_term_and_end_none() {
    for next in [None, Some("next")] {
        let mut tries = 0;
        while !all_of_a_term_comes_late_again(next).await {
            tries += 1;
            assert!(
                tries < TRIES_MAX,
                "members were never asked one thing after the other"
            );
        }
    }
}

/// Not where a member that was late was asked for the second before it had answered the first: the proxy knows one request at a time.
async fn all_of_a_term_comes_late_again(next: Option<&str>) -> bool {
    let wires = wires().await;
    let all = MAJORITIES[2];
    let asked = request("job", "holder", seconds(60));
    let (before, doubled) = (wires.requests(all), wires.duplicates(all));
    wires.set(all, RequestFault::DuplicateLater(Duration::from_millis(1_500)));
    let grant = take(&wires.store, &asked).await;
    // Else a renewal may come before it, and bring the term.
    wires.have_all(&asked, grant.token).await;
    let renewals = [renewal(&asked, grant.token)];
    let renewed = wires.store.renew(&renewals).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let back = [giving_back(&asked, grant.token)];
    assert_eq!(wires.store.release(&back).await.remove(0), Ok(Released::Vacated));
    let sent = || -> Vec<u64> {
        let now = wires.requests(all);
        now.iter()
            .zip(&before)
            .map(|(now, before)| now - before)
            .collect()
    };
    // Members that nobody waited for have answered by then, too.
    if !comes(async || sent().iter().all(|sent| *sent >= 4)).await {
        return false;
    }
    let expected = sent();
    wires.heal();
    let later = next.map(|next| request("job", next, seconds(60)));
    let held = match &later {
        Some(later) => Some(take(&wires.direct, later).await.token),
        None => None,
    };
    if let (Some(later), Some(token)) = (&later, held) {
        wires.have_all(later, token).await;
    }
    let records = wires.records("job").await;
    let all_again = async || {
        let now = wires.duplicates(all);
        let again = now.iter().zip(&doubled).zip(&expected);
        again
            .into_iter()
            .all(|((now, before), sent)| now - before >= *sent)
    };
    let is_complete = comes(all_again).await;
    assert_eq!(wires.records("job").await, records, "a duplicate was written");
    match (&later, held) {
        (Some(later), Some(token)) => wires.is_held(later, token).await,
        _ => {
            let rival = request("job", "rival", seconds(60));
            let term = take(&wires.direct, &rival).await;
            assert!(term.token > grant.token && term.terms == 2, "{term:?}");
        }
    }
    is_complete
}
