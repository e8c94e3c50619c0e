//! What an acquisition of a quorum leaves in its members that comes to no term.

use crate::common::{
    connection, granted, in_each, in_every_member, renewal, request, seconds, take, take_in_time, told_held,
};
use std::time::{Duration, Instant};
use tenure_core::{Acquire, Acquired, Certainty, Grant, LeaseStore, Occupancy, Renewed};
use tenure_redis::QuorumStore;
use tenure_testkit::{Fault, FaultProxy, RedisOptions, RedisServer, RequestFault, eventually_async};

/// How long something is waited for, on a loaded machine. The ttl is longer.
const BOUND: Duration = Duration::from_secs(60);

/// How long nothing is heard of what is not to come.
const QUIET: Duration = Duration::from_millis(1_500);

/// Three members, each behind a proxy, and two stores: one through the proxies, one beside them.
struct Three {
    servers: Vec<RedisServer>,
    proxies: Vec<FaultProxy>,
    store: QuorumStore,
    direct: QuorumStore,
}

impl Three {
    async fn start() -> Self {
        let (mut servers, mut proxies) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let server = RedisServer::start(RedisOptions::default()).await;
            let server = server.expect("a server");
            proxies.push(FaultProxy::redis(server.address()).expect("a proxy"));
            servers.push(server);
        }
        let direct = servers.iter().map(RedisServer::address).collect();
        let through = proxies.iter().map(|proxy| proxy.address().to_string()).collect();
        Self {
            direct: connect(direct, "beside").await,
            store: connect(through, "through").await,
            servers,
            proxies,
        }
    }

    /// In how many members the lease is taken, and not confirmed.
    async fn taken(&self) -> usize {
        let mut taken = 0;
        for server in &self.servers {
            let look = redis::cmd("HGET")
                .arg("{tenure}:lease:job")
                .arg("unconfirmed")
                .to_owned();
            let mut member = connection(&server.url()).await;
            let field: Option<String> = look.query_async(&mut member).await.expect("the test can ask");
            taken += usize::from(field.is_some());
        }
        taken
    }

    fn heal(&self) {
        self.proxies.iter().for_each(FaultProxy::heal);
    }

    fn requests(&self) -> Vec<u64> {
        let requests = |proxy: &FaultProxy| proxy.counts().requests;
        self.proxies.iter().map(requests).collect()
    }

    /// How many requests each member gets from one who is told that the lease is held, and after what time
    /// that is told.
    async fn sent_by_who_is_refused(&self) -> (Vec<u64>, Duration) {
        tokio::time::sleep(QUIET).await;
        let (before, began) = (self.requests(), Instant::now());
        let refused = self.store.acquire(&request("job", "a", seconds(300))).await;
        let took = began.elapsed();
        assert!(matches!(refused, Ok(Acquired::Held(_))), "{refused:?}");
        tokio::time::sleep(QUIET).await;
        let sent = self
            .requests()
            .iter()
            .zip(before)
            .map(|(now, before)| now - before)
            .collect();
        (sent, took)
    }

    /// Nobody asks for it through the proxies any more, and a rival gets it.
    async fn is_free(&self, case: impl std::fmt::Debug) -> Grant {
        let rival = request("job", "rival", seconds(300));
        eventually_async(BOUND, &format!("the lease, {case:?}"), async || {
            match self.direct.acquire(&rival).await {
                Ok(Acquired::Granted(grant)) => Ok(grant),
                told => Err(format!("{told:?}")),
            }
        })
        .await
    }

    async fn is_held(&self, asked: &Acquire, grant: &Grant) {
        let lease = self.direct.get(&asked.name).await.expect("a read");
        let lease = lease.expect("a record");
        assert_eq!((lease.token, lease.occupancy()), (grant.token, Occupancy::Held));
        let renewed = self.store.renew(&[renewal(asked, grant.token)]).await.remove(0);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        told_held(&self.direct, &request("job", "rival", seconds(300))).await;
    }
}

/// Whose connections are there, and whose servers know the scripts by which a lease is taken.
async fn connect(hosts: Vec<String>, warm: &str) -> QuorumStore {
    let url = format!("redis+quorum://{}", hosts.join(","));
    let store = eventually_async(BOUND, "a quorum", || QuorumStore::connect(&url)).await;
    let token = take(&store, &request(warm, "warm", seconds(300))).await.token;
    // A majority is enough for a grant: what a late member is still asked would meet the faults of the test.
    in_each(hosts.iter().map(|host| format!("redis://{host}")), warm, token).await;
    store
}

#[tokio::test]
async fn what_was_taken_unheard_in_a_majority_holds_nobody_up() {
    for members in [&[0, 1][..], &[1, 2], &[0, 1, 2]] {
        let three = Three::start().await;
        for member in members {
            three.proxies[*member].set(Fault::EveryRequest(RequestFault::CutAfter));
        }
        let asked = request("job", "a", seconds(300));
        let lost = three.store.acquire(&asked).await;
        let lost = lost.expect_err("one of three has answered");
        assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
        three.heal();
        three.is_free(members).await;
    }
}

/// What lets go of it is lost, too, until the members can be reached again.
#[tokio::test]
async fn what_was_taken_in_members_that_went_away_is_let_go_of_when_they_are_back() {
    let three = Three::start().await;
    for member in [0, 1] {
        three.proxies[member].next_requests(1, RequestFault::CutAfter);
        three.proxies[member].set(Fault::EveryRequest(RequestFault::CutBefore));
    }
    let asked = request("job", "a", seconds(300));
    let lost = three.store.acquire(&asked).await;
    lost.expect_err("one of three has answered");
    let cut = async || {
        [0, 1]
            .iter()
            .all(|member| three.proxies[*member].counts().cut_before > 0)
    };
    eventually_async(BOUND, "what lets go of it", cut).await;
    let rival = request("job", "rival", seconds(300));
    let answer = three.direct.acquire(&rival).await;
    assert!(
        !matches!(answer, Ok(Acquired::Granted(_))),
        "nothing was taken: {answer:?}"
    );
    three.heal();
    three.is_free("healed").await;
}

/// Who asked has lost patience when a majority was taken, and none has confirmed yet.
#[tokio::test]
async fn what_was_taken_by_an_acquisition_that_was_given_up_holds_nobody_up() {
    let mut pause = Duration::from_millis(100);
    loop {
        let three = Three::start().await;
        for proxy in &three.proxies {
            proxy.set(Fault::Delay {
                to_server: Duration::ZERO,
                to_client: pause,
            });
        }
        let asked = request("job", "a", seconds(300));
        let is_cut_short = tokio::select! {
            answer = three.store.acquire(&asked) => {
                let _term = granted(answer.expect("all answer"));
                false
            }
            () = async { while three.taken().await < 2 {} } => true,
        };
        three.heal();
        // Who looked too late has seen a term begin.
        if is_cut_short {
            assert_eq!(three.is_free("given up").await.terms, 1);
            return;
        }
        pause *= 2;
        assert!(pause < BOUND, "the machine is too slow");
    }
}

/// The same attempt is asked for again, and gets its term; what lets go of the first try arrives once more
/// after that.
#[tokio::test]
async fn letting_go_of_a_try_ends_no_term_of_the_same_attempt() {
    let three = Three::start().await;
    for proxy in &three.proxies[..2] {
        proxy.next_requests(1, RequestFault::CutAfter);
        // The servers do not know the script that lets go yet.
        let late = RequestFault::DuplicateLater(Duration::from_millis(2_000));
        proxy.next_commands(1, "EVAL", late);
    }
    let asked = request("job", "a", seconds(300));
    let lost = three.store.acquire(&asked).await;
    lost.expect_err("one of three has answered");
    let sent = async || three.proxies[..2].iter().all(|proxy| proxy.faults_left() == 0);
    eventually_async(BOUND, "what lets go of it", sent).await;
    let grant = take(&three.store, &asked).await;
    three.is_held(&asked, &grant).await;
    let doubled = async || {
        three.proxies[..2]
            .iter()
            .all(|proxy| proxy.counts().duplicated == 1)
    };
    eventually_async(BOUND, "the same, late", doubled).await;
    three.is_held(&asked, &grant).await;
}

#[tokio::test]
async fn next_try_ends_the_letting_go_of_the_one_before() {
    let three = Three::start().await;
    for proxy in &three.proxies[..2] {
        proxy.set(Fault::EveryRequest(RequestFault::CutBefore));
    }
    let asked = request("job", "a", seconds(300));
    let lost = three.store.acquire(&asked).await;
    lost.expect_err("one of three has answered");
    let rounds = || three.proxies[0].counts().cut_before;
    let tried = rounds();
    // It goes on while nobody asks again.
    eventually_async(BOUND, "another round", async || rounds() > tried).await;
    // The first cannot be reached yet.
    three.proxies[1].heal();
    let grant = take_in_time(&three.store, &asked).await;
    tokio::time::sleep(QUIET).await;
    let tried = rounds();
    tokio::time::sleep(2 * QUIET).await;
    assert_eq!(rounds(), tried, "something is still let go of");
    three.heal();
    three.is_held(&asked, &grant).await;
}

/// The next try finds the members away that the one before has taken, and leaves nothing itself: what that
/// one left is still let go of.
#[tokio::test]
async fn next_try_that_reaches_nobody_forgets_nothing_of_the_one_before() {
    let three = Three::start().await;
    for proxy in &three.proxies[..2] {
        proxy.set(Fault::EveryRequest(RequestFault::CutAfter));
    }
    let asked = request("job", "a", seconds(300));
    let lost = three.store.acquire(&asked).await;
    lost.expect_err("one of three has answered");
    // Refused at once: of this try, nothing is in doubt.
    for proxy in &three.proxies {
        proxy.set(Fault::Refuse);
        proxy.cut_connections();
    }
    let lost = three.store.acquire(&asked).await;
    lost.expect_err("nobody is there");
    assert!(three.taken().await >= 2, "nothing is left of the first try");
    three.heal();
    three.is_free("after a try that reached nobody").await;
}

#[tokio::test]
async fn who_is_refused_has_nothing_to_let_go_of() {
    let three = Three::start().await;
    let holder = request("job", "holder", seconds(300));
    let token = take(&three.direct, &holder).await.token;
    in_every_member(&three.servers, token).await;
    // So that the servers know the script that reads.
    three.direct.get(&holder.name).await.expect("a read");
    // At first all are asked for it, and nobody else. From then on one is, and all who holds it.
    assert_eq!(three.sent_by_who_is_refused().await.0, [1, 1, 1]);
    let deadline = Instant::now() + BOUND;
    let mut sent = loop {
        let (sent, took) = three.sent_by_who_is_refused().await;
        // The first is not waited for any longer than that; then the others are asked as well.
        if took < Duration::from_millis(250) {
            break sent;
        }
        assert!(Instant::now() < deadline, "the machine is too slow");
    };
    // The first of those that were not late the time before.
    sent.sort_unstable();
    assert_eq!(sent, [1, 1, 2]);
}
