//! Recording the members of a quorum anew: what a run that ended half-way leaves, and when it is refused.

use crate::common::{
    BOUND, Record, connection, given_back_in_each, giving_back, granted, hosts, quorum_at, random_bits,
    request, seconds, servers, take,
};
use std::time::Duration;
use tenure_core::{Acquire, Acquired, Fault, FencingToken, LeaseStore, Released};
use tenure_redis::QuorumStore;
use tenure_testkit::Fault::Refuse;
use tenure_testkit::{FaultProxy, RedisOptions, RedisServer, RequestFault, eventually_async, in_one_of};

/// The places of the servers in the list of before, and in the one that is to be recorded: one was exchanged.
const OLD: [usize; 3] = [0, 1, 2];
const NEW: [usize; 3] = [0, 1, 3];

/// When a request comes for the second time.
const LATER: Duration = Duration::from_secs(2);

/// How often a machine may be too slow for it.
const ROUNDS_MAX: u32 = 10;

/// The servers of both lists, each behind a proxy.
struct Exchange {
    servers: Vec<RedisServer>,
    proxies: Vec<FaultProxy>,
}

/// How a run ends: these of the new members do not get what is to be kept in this step, and nobody gets what
/// follows.
#[derive(Clone, Copy, Debug)]
struct Stop {
    step: Step,
    /// By their places in the list.
    missing: [bool; 3],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Who the members are.
    Members = 1,
    /// That all of them keep it, after another look.
    Complete = 3,
}

/// Whatever a run that is killed may leave: each member has got what it was told, or not.
fn stops() -> impl Iterator<Item = Stop> {
    [Step::Members, Step::Complete].into_iter().flat_map(|step| {
        (1..8).map(move |which| Stop {
            step,
            missing: [1, 2, 4].map(|bit| which & bit != 0),
        })
    })
}

impl Exchange {
    async fn new() -> Self {
        let servers = servers(4, RedisOptions::default()).await;
        let proxies = servers
            .iter()
            .map(|server| FaultProxy::redis(server.address()).expect("a proxy"));
        let proxies = proxies.collect();
        Self { servers, proxies }
    }

    fn url(&self, list: [usize; 3], prefix: &str) -> String {
        let hosts = list.map(|place| self.proxies[place].address().to_string());
        format!("redis+quorum://{}?prefix={prefix}", hosts.join(","))
    }

    /// What a server keeps of its quorum.
    async fn kept(&self, place: usize, prefix: &str) -> Record {
        let ask = redis::cmd("HGETALL")
            .arg(format!("{{{prefix}}}:quorum"))
            .to_owned();
        let mut server = connection(&self.servers[place].url()).await;
        ask.query_async(&mut server).await.expect("the test can ask")
    }

    /// Has the old list lead once, and the new one be recorded up to there. The token of that term.
    async fn recorded_half_way(&self, stop: Stop, prefix: &str) -> FencingToken {
        let asking = async || QuorumStore::connect(&self.url(OLD, prefix)).await;
        let old = eventually_async(BOUND, "the old quorum", asking).await;
        let asked = request("job", "before", seconds(300));
        let token = take(&old, &asked).await.token;
        let given = old.release(&[giving_back(&asked, token)]).await.remove(0);
        assert_eq!(given, Ok(Released::Vacated));
        drop(old);
        let before = self.kept(0, prefix).await["members"].clone();
        let halted = async || {
            for (place, missing) in NEW.into_iter().zip(stop.missing) {
                if missing {
                    // What comes first is the look at what they have.
                    self.proxies[place].spare_commands(stop.step as usize, "EVALSHA");
                    self.proxies[place].next_commands(1, "EVALSHA", RequestFault::CutBefore);
                }
            }
            let error = QuorumStore::init(&self.url(NEW, prefix))
                .await
                .expect_err("it ends");
            self.proxies.iter().for_each(FaultProxy::heal);
            match error.message.contains("run this again") && self.is_there(stop, &before, prefix).await {
                true => Ok(()),
                false => Err(format!("{stop:?}: {error}")),
            }
        };
        // On a machine that stands still a member may be late.
        eventually_async(BOUND, "a run that ends there", halted).await;
        token
    }

    /// Whether the members keep what a run leaves that has ended there.
    async fn is_there(&self, stop: Stop, before: &str, prefix: &str) -> bool {
        for (place, missing) in NEW.into_iter().zip(stop.missing) {
            let kept = self.kept(place, prefix).await;
            let is_new = kept.get("members").is_some_and(|members| members != before);
            let is_complete = kept.get("complete").is_some_and(|complete| complete == "1");
            let is_so = match stop.step {
                Step::Members => is_new != missing && !(is_new && is_complete),
                Step::Complete => is_new && is_complete != missing,
            };
            if !is_so {
                return false;
            }
        }
        true
    }

    /// A term of who names these servers, whichever one of them is away; nothing if that leads to none.
    async fn led(
        &self,
        list: [usize; 3],
        asked: &Acquire,
        prefix: &str,
    ) -> Option<(QuorumStore, FencingToken)> {
        for away in [None, Some(list[0]), Some(list[1]), Some(list[2])] {
            if let Some(away) = away {
                self.proxies[away].set(Refuse);
                self.proxies[away].cut_connections();
            }
            let led = async {
                let store = QuorumStore::connect(&self.url(list, prefix)).await.ok()?;
                match store.acquire(asked).await.ok()? {
                    Acquired::Granted(grant) => Some((store, grant.token)),
                    _ => None,
                }
            };
            let led = led.await;
            self.proxies.iter().for_each(FaultProxy::heal);
            if led.is_some() {
                return led;
            }
        }
        None
    }

    /// Whether all of the new members keep one list, and that it is complete.
    async fn is_recorded(&self, prefix: &str) -> bool {
        let mut kept = Vec::new();
        for place in NEW {
            kept.push(self.kept(place, prefix).await);
        }
        let is_alike = |one: &Record| one["complete"] == "1" && one["members"] == kept[0]["members"];
        kept.iter().all(is_alike)
    }

    /// Has the run be made once more, after which the new list leads, and nobody beside it by the old one.
    async fn is_finished(&self, last: FencingToken, prefix: &str) {
        let again = async || QuorumStore::init(&self.url(NEW, prefix)).await;
        eventually_async(BOUND, "the next run", again).await;
        assert!(self.is_recorded(prefix).await);
        let asking = async || QuorumStore::connect(&self.url(NEW, prefix)).await;
        let new = eventually_async(BOUND, "the new quorum", asking).await;
        let asked = request("job", "after", seconds(300));
        let seen = eventually_async(BOUND, "a read", async || new.get(&asked.name).await).await;
        assert_eq!(seen.expect("the term of before is known").token, last);
        let asking = async || new.acquire(&asked).await.map(granted);
        let next = eventually_async(BOUND, "a term", asking).await;
        assert!(next.token > last, "{} after {last}", next.token);
        let old = request("job", "old", seconds(300));
        assert!(self.led(OLD, &old, prefix).await.is_none(), "both lists lead");
    }
}

#[tokio::test]
async fn members_that_were_recorded_half_way_are_recorded_by_the_next_run() {
    let exchange = Exchange::new().await;
    for (number, stop) in stops().enumerate() {
        let prefix = format!("finished-{number}");
        let last = exchange.recorded_half_way(stop, &prefix).await;
        exchange.is_finished(last, &prefix).await;
    }
}

/// Whoever comes first, and whichever member is away.
#[tokio::test]
async fn while_the_members_are_recorded_half_way_no_two_lead_by_both_lists() {
    let exchange = Exchange::new().await;
    for (number, stop) in stops().enumerate() {
        for [first, second] in [[OLD, NEW], [NEW, OLD]] {
            let prefix = format!("led-{number}-by-{}", first[2]);
            let last = exchange.recorded_half_way(stop, &prefix).await;
            let [one, other] = ["one", "other"].map(|label| request("job", label, seconds(300)));
            let leads = async || {
                if let Some(led) = exchange.led(first, &one, &prefix).await {
                    return Ok((led, &one, second, &other));
                }
                let led = exchange.led(second, &other, &prefix).await;
                led.map(|led| (led, &other, first, &one)).ok_or("nobody leads")
            };
            let ((store, token), leading, others, rival) = eventually_async(BOUND, "a term", leads).await;
            assert!(token > last, "{stop:?}: {token} after {last}");
            let rival = exchange.led(others, rival, &prefix).await;
            assert!(rival.is_none(), "{stop:?}: both lists lead");
            // Somebody leads; by the new list only where it needs no recording any more.
            match QuorumStore::init(&exchange.url(NEW, &prefix)).await {
                Ok(()) => assert!(exchange.is_recorded(&prefix).await, "{stop:?}"),
                Err(error) => assert_eq!(error.fault, Fault::Invalid, "{error}"),
            }
            let given = async || store.release(&[giving_back(leading, token)]).await.remove(0);
            let given = eventually_async(BOUND, "a release", given).await;
            assert_eq!(given, Released::Vacated);
            exchange.is_finished(token, &prefix).await;
        }
    }
}

/// As of a run that was ended, and whose last request was still under way.
#[tokio::test]
async fn what_a_run_says_late_completes_no_list_where_another_was_recorded_since() {
    let exchange = Exchange::new().await;
    for step in [Step::Members, Step::Complete] {
        let run = || said_late(&exchange, step);
        in_one_of(ROUNDS_MAX, "the next run was later", run).await;
    }
    let run = || completed_late(&exchange);
    in_one_of(ROUNDS_MAX, "the next run was later", run).await;
}

/// The next run has come no further than to the member that both lists share: who names the new list must not
/// lead by what is said of the old one, which the others still keep.
async fn completed_late(exchange: &Exchange) -> bool {
    let prefix = format!("completed-{:016x}", random_bits());
    let shared = &exchange.proxies[0];
    let before = shared.counts().duplicated;
    shared.spare_commands(Step::Complete as usize, "EVALSHA");
    shared.next_commands(1, "EVALSHA", RequestFault::DuplicateLater(LATER));
    let recorded = QuorumStore::init(&exchange.url(OLD, &prefix)).await;
    for place in [NEW[1], NEW[2]] {
        exchange.proxies[place].spare_commands(Step::Members as usize, "EVALSHA");
        exchange.proxies[place].next_commands(1, "EVALSHA", RequestFault::CutBefore);
    }
    let again = QuorumStore::init(&exchange.url(NEW, &prefix)).await;
    let is_in_time = shared.counts().duplicated == before;
    let [one, other] = [exchange.kept(0, &prefix).await, exchange.kept(1, &prefix).await];
    let is_begun = one.get("members") != other.get("members");
    if recorded.is_err() || again.is_ok() || !is_in_time || !is_begun {
        exchange.proxies.iter().for_each(FaultProxy::heal);
        return false;
    }
    let duplicated = async || shared.counts().duplicated > before;
    eventually_async(BOUND, "what comes late", duplicated).await;
    exchange.proxies.iter().for_each(FaultProxy::heal);
    assert_eq!(exchange.kept(0, &prefix).await["complete"], "0");
    true
}

/// Whether that came after the next run had ended.
async fn said_late(exchange: &Exchange, step: Step) -> bool {
    let prefix = format!("late-{:016x}", random_bits());
    let shared = &exchange.proxies[0];
    let before = shared.counts().duplicated;
    shared.spare_commands(step as usize, "EVALSHA");
    shared.next_commands(1, "EVALSHA", RequestFault::DuplicateLater(LATER));
    let recorded = QuorumStore::init(&exchange.url(OLD, &prefix)).await;
    let again = QuorumStore::init(&exchange.url(NEW, &prefix)).await;
    let is_in_time = shared.counts().duplicated == before;
    let duplicated = async || shared.counts().duplicated > before;
    if recorded.is_err() || again.is_err() || !is_in_time {
        shared.heal();
        return false;
    }
    eventually_async(BOUND, "what comes late", duplicated).await;
    let [one, other] = [exchange.kept(0, &prefix).await, exchange.kept(1, &prefix).await];
    assert_eq!(
        (&one["members"], &one["complete"]),
        (&other["members"], &other["complete"])
    );
    let [one, other] = ["one", "other"].map(|label| request("job", label, seconds(300)));
    let leads = async || exchange.led(NEW, &one, &prefix).await.ok_or("nobody leads");
    let _led = eventually_async(BOUND, "a term", leads).await;
    assert!(
        exchange.led(OLD, &other, &prefix).await.is_none(),
        "both lists lead"
    );
    true
}

/// A majority of the old list has it, of which one is in the new one: whoever leads would go on beside who
/// leads by the others.
#[tokio::test]
async fn lease_that_one_member_alone_has_keeps_the_members_from_being_recorded_anew() {
    let servers = servers(4, RedisOptions::default()).await;
    let mut names = hosts(&servers);
    let away = FaultProxy::redis(servers[0].address()).expect("a proxy");
    names[0] = away.address().to_string();
    let old = quorum_at(&names[..3]).await;
    let warm = request("warm", "a", seconds(300));
    let token = take(&old, &warm).await.token;
    let given = old.release(&[giving_back(&warm, token)]).await.remove(0);
    assert_eq!(given, Ok(Released::Vacated));
    given_back_in_each(servers[..3].iter().map(RedisServer::url), "warm").await;
    away.set(Refuse);
    away.cut_connections();
    let held = request("job", "a", seconds(300));
    let asking = async || old.acquire(&held).await.map(granted);
    let token = eventually_async(BOUND, "a term", asking).await.token;
    away.heal();
    let changed = [names[0].clone(), names[1].clone(), names[3].clone()];
    let url = format!("redis+quorum://{}", changed.join(","));
    let told = async || match QuorumStore::init(&url).await {
        Ok(()) => panic!("somebody leads"),
        // On a machine that stands still a member may be late.
        Err(error) if error.message.contains("and all must") => Err(error),
        Err(error) => Ok(error),
    };
    let error = eventually_async(BOUND, "an answer", told).await;
    assert!(error.message.contains("\"job\" is held"), "{error}");
    let given = async || old.release(&[giving_back(&held, token)]).await.remove(0);
    let given = eventually_async(BOUND, "a release", given).await;
    assert_eq!(given, Released::Vacated);
    eventually_async(BOUND, "nobody leads", async || QuorumStore::init(&url).await).await;
}
