//! Who leads by the members of before, while others are recorded: nobody comes to lead beside it.

use crate::common::{
    BOUND, connection, giving_back, granted, hosts, random_bits, renewal, request, seconds, servers,
};
use std::cell::Cell;
use std::time::Duration;
use tenure_core::{Acquire, Acquired, FencingToken, LeaseStore, Released};
use tenure_redis::QuorumStore;
use tenure_testkit::Fault::{Delay, Refuse};
use tenure_testkit::{FaultProxy, RedisOptions, RedisServer, eventually_async, in_one_of};

/// How often a machine may be too slow for it.
const ROUNDS_MAX: u32 = 10;

/// Four servers, of which the first three are recorded, under a prefix.
struct Members {
    servers: Vec<RedisServer>,
    prefix: String,
}

impl Members {
    async fn new() -> Self {
        let members = Self {
            servers: servers(4, RedisOptions::default()).await,
            prefix: String::new(),
        };
        members.anew()
    }

    /// The same under another prefix.
    fn anew(self) -> Self {
        Self {
            prefix: format!("beside-{:016x}", random_bits()),
            ..self
        }
    }

    fn url(&self, hosts: &[String]) -> String {
        format!("redis+quorum://{}?prefix={}", hosts.join(","), self.prefix)
    }

    /// A store of these hosts.
    async fn store(&self, hosts: &[String]) -> QuorumStore {
        let url = self.url(hosts);
        eventually_async(BOUND, "a quorum", || QuorumStore::connect(&url)).await
    }

    /// Of the members of before, which are recorded and have no lease.
    async fn before(&self) -> QuorumStore {
        let store = self.store(&hosts(&self.servers[..3])).await;
        let warm = request("warm", "before", seconds(300));
        let token = leading(&store, &warm).await;
        let given = async || store.release(&[giving_back(&warm, token)]).await.remove(0);
        let given = eventually_async(BOUND, "a release", given).await;
        assert_eq!(given, Released::Vacated);
        store
    }

    /// The same, which have a lease by now.
    async fn led(&self) -> (QuorumStore, Acquire, FencingToken) {
        let store = self.before().await;
        let job = request("job", "before", seconds(300));
        let token = leading(&store, &job).await;
        (store, job, token)
    }

    async fn asked<T: redis::FromRedisValue>(&self, server: usize, command: &str, words: &[&str]) -> T {
        let asked = redis::cmd(command).arg(words).to_owned();
        let mut server = connection(&self.servers[server].url()).await;
        asked.query_async(&mut server).await.expect("the test can ask")
    }

    fn key(&self, of: &str) -> String {
        format!("{{{}}}:{of}", self.prefix)
    }

    async fn members(&self, server: usize) -> Option<String> {
        self.asked(server, "HGET", &[&self.key("quorum"), "members"])
            .await
    }

    /// The second member has missed the lease that the others have.
    async fn misses(&self, lease: &str) {
        let key = self.key(&format!("lease:{lease}"));
        let is_there = async || match self
            .asked::<Option<String>>(1, "HGET", &[&key, "generation"])
            .await
        {
            Some(_) => Ok(()),
            None => Err("it is late"),
        };
        eventually_async(BOUND, "the lease in each", is_there).await;
        let _removed: i64 = self.asked(1, "DEL", &[&key]).await;
    }

    /// How many scripts a server has run, or errors it has answered of this kind.
    async fn counted(&self, server: usize, section: &str, of: &str) -> u64 {
        let told: String = self.asked(server, "INFO", &[section]).await;
        let lines = told.lines().filter(|line| line.starts_with(of));
        let counts = lines.filter_map(|line| line.split(['=', ',']).nth(1)?.trim().parse::<u64>().ok());
        counts.sum()
    }
}

async fn leading(store: &QuorumStore, asked: &Acquire) -> FencingToken {
    let asking = async || store.acquire(asked).await.map(granted);
    eventually_async(BOUND, "a term", asking).await.token
}

/// A candidate that was not ended takes the lease after the look at what the members have, and before they
/// are recorded anew.
#[tokio::test]
async fn term_that_begins_while_others_are_recorded_keeps_them_from_being_complete() {
    let mut members = Some(Members::new().await);
    let way = FaultProxy::redis(members.as_ref().unwrap().servers[3].address()).expect("a proxy");
    for _round in 0..ROUNDS_MAX {
        let round = members.take().unwrap().anew();
        if begins_meanwhile(&round, &way).await {
            return;
        }
        members = Some(round);
    }
    panic!("no term began meanwhile, in each of {ROUNDS_MAX} rounds");
}

async fn begins_meanwhile(members: &Members, way: &FaultProxy) -> bool {
    let store = members.before().await;
    let old = members.members(0).await;
    let mut changed = hosts(&members.servers[..2]);
    changed.push(way.address().to_string());
    let url = members.url(&changed);
    let job = request("job", "before", seconds(300));
    let looked = async || members.counted(0, "commandstats", "cmdstat_eval").await;
    let before = looked().await;
    // All are looked at before one is recorded anew.
    way.set(Delay {
        to_server: Duration::from_millis(60),
        to_client: Duration::ZERO,
    });
    let is_over = Cell::new(false);
    let recording = async {
        let recorded = QuorumStore::init(&url).await;
        is_over.set(true);
        recorded
    };
    let asking = async {
        while looked().await == before && !is_over.get() {
            tokio::task::yield_now().await;
        }
        store.acquire(&job).await
    };
    let (recorded, asked) = tokio::join!(recording, asking);
    way.heal();
    let is_led = matches!(asked, Ok(Acquired::Granted(_)));
    let Err(error) = recorded else {
        assert!(!is_led, "recorded beside a lease that is held");
        return false;
    };
    let is_anew = members.members(0).await != old;
    if !(is_led && is_anew && error.message.contains("is held")) {
        return false;
    }
    // Whatever it has left, nobody leads by it, and no next run passes, before that term is over.
    assert!(members.members(3).await.is_some(), "{error}");
    let next = QuorumStore::init(&url).await;
    assert!(next.is_err(), "the next run passes beside a lease that is held");
    true
}

/// What a run leaves that has found such a term is completed by nobody before it is over: the members keep
/// the new list, and the lease is in one of them, and in one that was left out.
#[tokio::test]
async fn members_that_were_recorded_half_way_are_not_complete_beside_a_lease_of_before() {
    let members = Members::new().await;
    let (store, job, token) = members.led().await;
    members.misses("job").await;
    let places = [0, 1, 3];
    let changed = places.map(|place| members.servers[place].address());
    let ids = places.map(|place| format!("{:032x}", place + 1));
    let pairs: Vec<String> = ids
        .iter()
        .zip(&changed)
        .map(|(id, host)| format!("{id}={host}"))
        .collect();
    let list = pairs.join(" ");
    for (place, id) in places.into_iter().zip(&ids) {
        let key = members.key("quorum");
        let words = [&*key, "member", id, "members", &list, "complete", "0"];
        let _set: i64 = members.asked(place, "HSET", &words).await;
    }
    let rival = request("job", "after", seconds(300));
    let other = members.store(&changed).await;
    let error = other.acquire(&rival).await.expect_err("two lead");
    assert!(error.message.contains("\"job\" is held"), "{error}");
    let error = QuorumStore::init(&members.url(&changed))
        .await
        .expect_err("two lead");
    assert!(error.message.contains("\"job\" is held"), "{error}");
    let given = async || store.release(&[giving_back(&job, token)]).await.remove(0);
    let given = eventually_async(BOUND, "a release", given).await;
    assert_eq!(given, Released::Vacated);
    assert!(leading(&other, &rival).await > token);
}

/// As one whose memory was full when it was dialled, before anybody had told who the members are: it may be
/// none of them.
#[tokio::test]
async fn server_that_could_not_keep_who_it_is_counts_for_no_lease() {
    let members = Members::new().await;
    let _led = members.led().await;
    members.misses("job").await;
    let ways = [0, 1].map(|place| FaultProxy::redis(members.servers[place].address()).expect("a proxy"));
    let mut others: Vec<String> = ways.iter().map(|way| way.address().to_string()).collect();
    others.push(members.servers[3].address());
    ways[0].set(Refuse);
    let rival = request("job", "after", seconds(300));
    let round = async || {
        let full = async |bytes: &str| {
            let _set: String = members.asked(3, "CONFIG", &["SET", "maxmemory", bytes]).await;
        };
        full("1").await;
        ways[1].set(Delay {
            to_server: Duration::from_millis(15),
            to_client: Duration::ZERO,
        });
        let connected = QuorumStore::connect(&members.url(&others)).await;
        ways[1].heal();
        full("0").await;
        // Where it was dialled after the others it is refused at once, and else when it is asked again.
        let other = match connected {
            Ok(other) => other,
            Err(error) => return error.message.contains("is no member of the quorum"),
        };
        for _again in 0..3 {
            let asked = other.acquire(&rival).await;
            assert!(!matches!(asked, Ok(Acquired::Granted(_))), "two lead");
        }
        true
    };
    in_one_of(ROUNDS_MAX, "it was dialled too late", round).await;
}

/// What was recorded anew looks whether anybody leads: a term that came to a member after that would not be
/// seen.
#[tokio::test]
async fn member_that_was_recorded_anew_takes_in_no_term_by_the_list_of_before() {
    let members = Members::new().await;
    let (store, job, token) = members.led().await;
    // It has connections to all, and for renewals, too.
    let renewed = async || store.renew(&[renewal(&job, token)]).await.remove(0);
    let _renewed = eventually_async(BOUND, "a renewal", renewed).await;
    let key = members.key("quorum");
    let id = format!("{:032x}", 7);
    let words = [&*key, "member", &*id, "members", &*format!("{id}=elsewhere:1")].map(str::to_owned);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let _set: i64 = members.asked(1, "HSET", &words).await;
    members.misses("job").await;
    let told = async || {
        let _renewed = store.renew(&[renewal(&job, token)]).await;
        match members.counted(1, "errorstats", "errorstat_OTHERQUORUM").await {
            0 => {
                let key = members.key("lease:job");
                let taken: Option<String> = members.asked(1, "HGET", &[&key, "generation"]).await;
                assert_eq!(taken, None, "it has taken it in");
                Err("it was not brought")
            }
            _ => Ok(()),
        }
    };
    eventually_async(BOUND, "a term that is brought", told).await;
    let taken: Option<String> = members
        .asked(1, "HGET", &[&members.key("lease:job"), "generation"])
        .await;
    assert_eq!(taken, None);
}
