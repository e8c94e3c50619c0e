//! A quorum whose members answer late or never, asked by who has little time.

use crate::common::guess::{LATER, had_ahead, three};
use crate::common::{
    BOUND, behind_proxies, connection, given_back_in_each, giving_back, granted, hosts, in_each,
    in_every_member, quorum_at, quorum_through_a_proxy, record_in, renewal, request, seconds, servers, take,
    three_servers, told_held,
};
use std::time::{Duration, Instant};
use tenure_core::{Acquired, Certainty, LeaseStore, Occupancy, Released, Renewed};
use tenure_redis::QuorumStore;
use tenure_testkit::{Fault, FaultProxy, RedisOptions, RedisServer, RequestFault, eventually_async};

/// How often something is tried that has to succeed at the second try, on a machine that may stall now and
/// then.
const TRIES_MAX: usize = 50;

/// The engine gives up long before the store's own bound, and each time it must have learnt whom not to wait
/// for.
#[tokio::test]
async fn frozen_member_stops_no_acquisition_of_who_has_little_time() {
    for (count, frozen) in [(5, 0), (3, 0), (3, 1), (3, 2)] {
        let servers = servers(count, RedisOptions::default()).await;
        let store = quorum_at(&hosts(&servers)).await;
        let warm = request("warm", "a", seconds(300));
        take(&store, &warm).await;
        servers[frozen].freeze();
        let asked = request("job", "a", seconds(300));
        let (mut answer, mut granted, began) = (None, false, Instant::now());
        while !granted && began.elapsed() < BOUND {
            let trying = tokio::time::timeout(Duration::from_millis(200), store.acquire(&asked));
            answer = trying.await.ok();
            granted = matches!(answer, Some(Ok(Acquired::Granted(_))));
        }
        assert!(granted, "member {frozen} of {count} is frozen: {answer:?}");
    }
}

#[tokio::test]
async fn frozen_member_stops_no_renewal_of_who_has_little_time() {
    for frozen in [0, 2] {
        let servers = servers(3, RedisOptions::default()).await;
        let store = quorum_at(&hosts(&servers)).await;
        let asked = request("job", "a", seconds(300));
        let renewals = [renewal(&asked, take(&store, &asked).await.token)];
        let _all = store.renew(&renewals).await;
        servers[frozen].freeze();
        let (mut answer, began) = (None, Instant::now());
        while answer.is_none() && began.elapsed() < BOUND {
            let trying = tokio::time::timeout(Duration::from_millis(40), store.renew(&renewals));
            answer = trying.await.ok().map(|mut answers| answers.remove(0));
        }
        let extended = matches!(answer, Some(Ok(Renewed::Extended { .. })));
        assert!(extended, "member {frozen} is frozen: {answer:?}");
    }
}

/// Of the second lease one member knows that it is over, so that only the frozen one could tell.
#[tokio::test]
async fn lease_that_only_a_frozen_member_could_decide_holds_up_no_other_that_is_renewed_with_it() {
    let servers = three_servers().await;
    let store = quorum_at(&hosts(&servers)).await;
    let leases = ["job", "doubted"].map(|name| request(name, "a", seconds(300)));
    let mut renewals = Vec::new();
    for asked in &leases {
        let token = take(&store, asked).await.token;
        in_each(servers.iter().map(RedisServer::url), asked.name.as_str(), token).await;
        renewals.push(renewal(asked, token));
    }
    let later = [
        ("generation", LATER.to_string()),
        ("incarnation", "0123456789abcdef0123456789abcdef".to_owned()),
        ("expiresAt", "1".to_owned()),
    ];
    let later = redis::cmd("HSET")
        .arg("{tenure}:lease:doubted")
        .arg(&later)
        .to_owned();
    let mut member = connection(&servers[1].url()).await;
    let _new: i64 = later.query_async(&mut member).await.expect("the test can ask");
    servers[2].freeze();
    let (mut answers, began) = (None, Instant::now());
    while answers.is_none() && began.elapsed() < BOUND {
        // Less than a member is waited for that was silent before.
        let trying = tokio::time::timeout(Duration::from_millis(200), store.renew(&renewals));
        answers = trying.await.ok();
    }
    let Some([Ok(Renewed::Extended { .. }), Err(doubt)]) = answers.as_deref() else {
        panic!("it is held up: {answers:?}");
    };
    assert_eq!(doubt.certainty, Certainty::Unknown, "{doubt}");
    assert!(
        doubt
            .message
            .contains("1 of 3 members have extended it, and 2 must agree"),
        "{doubt}"
    );
}

/// A lease in a majority of three whose second member was away when it was taken, and still has what was
/// before. The third is behind a proxy.
struct Outdated {
    store: QuorumStore,
    held: tenure_core::Acquire,
    token: tenure_core::FencingToken,
    proxy: FaultProxy,
    _servers: Vec<RedisServer>,
}

async fn outdated() -> Outdated {
    let mut servers = servers(3, RedisOptions::durable()).await;
    let proxy = FaultProxy::redis(servers[2].address()).expect("a proxy");
    let mut hosts = hosts(&servers);
    hosts[2] = proxy.address().to_string();
    let store = quorum_at(&hosts).await;
    let before = request("job", "before", seconds(300));
    let token = take(&store, &before).await.token;
    // Before the third is slow, renewals have their connection there, and their script.
    let renewed = store.renew(&[renewal(&before, token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let released = store.release(&[giving_back(&before, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    given_back_in_each(servers.iter().map(RedisServer::url), "job").await;
    servers[1].kill();
    let held = request("job", "a", seconds(300));
    let grant = store.acquire(&held).await.map(granted).expect("two of three");
    servers[1].restart().await.expect("restarted");
    Outdated {
        store,
        held,
        token: grant.token,
        proxy,
        _servers: servers,
    }
}

/// Two of three have answered, and do not agree: the third decides, though it is slower.
#[tokio::test]
async fn slow_member_is_waited_for_where_it_decides() {
    let outdated = outdated().await;
    let pause = Duration::from_millis(40);
    outdated.proxy.set(Fault::Delay {
        to_server: pause,
        to_client: pause,
    });
    let lease = outdated.store.get(&outdated.held.name).await.expect("a read");
    let lease = lease.expect("a record");
    assert_eq!(
        (lease.token, lease.occupancy()),
        (outdated.token, Occupancy::Held),
        "{lease:?}"
    );
    // Once: it brings the term to the member that missed it.
    let renewals = [renewal(&outdated.held, outdated.token)];
    let renewed = outdated.store.renew(&renewals).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
}

/// One has extended it, and the silent one may have.
#[tokio::test]
async fn what_a_silent_member_may_have_done_is_not_told_as_undone() {
    let outdated = outdated().await;
    outdated.proxy.set(Fault::HalfOpen);
    let renewals = [renewal(&outdated.held, outdated.token)];
    let error = outdated.store.renew(&renewals).await.remove(0);
    let error = error.expect_err("one of three has extended it");
    assert_eq!(error.certainty, Certainty::Unknown, "{error}");
}

/// What a majority has taken and confirmed waits for nobody else, and so does not learn who is silent: the
/// next renewal is to hear who has lost the term, to bring it there.
#[tokio::test]
async fn slower_member_is_not_given_up_by_who_does_not_wait_for_it() {
    // Where nothing is forgotten, so that the second term is guessed.
    let servers = three().await;
    let mut asked = request("job", "a", seconds(300));
    had_ahead(&quorum_at(&hosts(&servers)).await, &servers, &mut asked).await;
    let later = |pause| Fault::Delay {
        to_server: Duration::ZERO,
        to_client: pause,
    };
    let mut member = connection(&servers[2].url()).await;
    let forget = redis::cmd("DEL").arg("{tenure}:lease:job").to_owned();
    let look = redis::cmd("EXISTS").arg("{tenure}:lease:job").to_owned();
    // A slow machine may be late for that, but not every time.
    for _ in 0..TRIES_MAX {
        let (proxy, store) = quorum_through_a_proxy(&servers, 2).await;
        let mut is_brought = false;
        // Once as it is, so that all scripts are known; then longer than any member is waited for, and less.
        for pauses in [[0, 0], [5_000, 20]] {
            proxy.set(later(Duration::from_millis(pauses[0])));
            let token = take(&store, &asked).await.token;
            in_every_member(&servers, token).await;
            let _gone: i64 = forget.query_async(&mut member).await.expect("the test can ask");
            proxy.set(later(Duration::from_millis(pauses[1])));
            let renewed = store.renew(&[renewal(&asked, token)]).await.remove(0);
            assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
            is_brought = false;
            for _ in 0..20 {
                let known: i64 = look.query_async(&mut member).await.expect("the test can ask");
                if known == 1 {
                    is_brought = true;
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            if pauses == [0, 0] {
                // What is guessed next follows the last term that the member knows.
                let is_known = async || {
                    store.renew(&[renewal(&asked, token)]).await;
                    !record_in(&servers[2], "job").await.is_empty()
                };
                eventually_async(BOUND, "the term in the member that forgot it", is_known).await;
            }
            let released = store.release(&[giving_back(&asked, token)]).await.remove(0);
            assert_eq!(released, Ok(Released::Vacated));
            asked.attempt = asked.attempt.next();
        }
        if is_brought {
            return;
        }
    }
    panic!("no renewal hears the slower member");
}

/// Which answer of the first member is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lost {
    Taking,
    Confirming,
}

/// One member before the others, as somebody was met, and a third that is down: the other alone is no
/// majority.
#[tokio::test]
async fn first_member_whose_answer_is_lost_is_asked_once_more_with_the_others() {
    let mut servers = three_servers().await;
    let (proxies, ours) = behind_proxies(&servers).await;
    let others = quorum_at(&hosts(&servers)).await;
    take(&others, &request("met", "b", seconds(300))).await;
    told_held(&ours, &request("met", "a", seconds(300))).await;
    // So that the servers know all scripts.
    take(&ours, &request("warm", "a", seconds(300))).await;
    servers[2].kill();
    for lost in [Lost::Taking, Lost::Confirming] {
        let mut told = Vec::new();
        // A slow machine may be late for that, but not every time.
        for number in 0..TRIES_MAX {
            let asked = request(&format!("{lost:?}-{number}"), "a", seconds(300));
            // Neither of the two counts as silent.
            let _all = ours.get(&asked.name).await;
            let faults = async {
                if lost == Lost::Confirming {
                    proxies[1].set(Fault::Delay {
                        to_server: Duration::from_millis(200),
                        to_client: Duration::ZERO,
                    });
                    while record_in(&servers[0], asked.name.as_str()).await.is_empty() {
                        tokio::task::yield_now().await;
                    }
                }
                proxies[0].next_requests(1, RequestFault::CutAfter);
            };
            // In this order: what is to be lost first is so before it is asked.
            let ((), answer) = tokio::join!(faults, ours.acquire(&asked));
            let is_lost = proxies[0].faults_left() == 0;
            proxies.iter().for_each(FaultProxy::heal);
            if is_lost && matches!(answer, Ok(Acquired::Granted(_))) {
                told.clear();
                break;
            }
            told.push(answer);
        }
        assert!(told.is_empty(), "{lost:?}: {told:?}");
    }
}
