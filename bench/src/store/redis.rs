//! Redis, with each write on disk before it is confirmed, and in memory alone: the bare driver takes the
//! lease with one script on `TIME`, and gives it back with another.

use super::compare;
use crate::server::{quorum_url, redis_quorum};
use redis::Script;
use redis::aio::MultiplexedConnection;
use tenure::redis::{QuorumStore, RedisStore};
use tenure_testkit::{RedisOptions, RedisServer};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

pub async fn measure(rounds: u32) {
    for (what, options) in [
        ("Redis, each write on disk", RedisOptions::durable()),
        ("Redis, in memory", RedisOptions::default()),
    ] {
        let server = RedisServer::start(options).await.expect("a Redis server");
        let store = RedisStore::connect(&server.url()).await.unwrap();
        let mut bare = Bare::connect(&server.url()).await;
        compare(what, rounds, &store, async |round| bare.turn(round).await).await;
    }
    let five = redis_quorum().await;
    let store = QuorumStore::connect(&quorum_url(&five)).await.unwrap();
    let mut bare = BareQuorum::connect(&five).await;
    let what = "Redis, a quorum of five, each write on disk";
    compare(what, rounds / 4, &store, async |round| bare.turn(round).await).await;
}

/// The same scripts on five servers at once, and between them the token: the highest of a majority, written
/// back to a majority before it is used. Redlock with a token that rises, whichever majority answers, does no
/// less.
pub struct BareQuorum {
    members: Vec<Bare>,
    /// Those that nobody waits for; ended with this, before their servers are.
    turns: JoinSet<()>,
}

impl BareQuorum {
    pub async fn connect(servers: &[RedisServer]) -> Self {
        let mut members = Vec::new();
        for server in servers {
            members.push(Bare::connect(&server.url()).await);
        }
        Self {
            members,
            turns: JoinSet::new(),
        }
    }

    /// Each step is over when a majority has taken it.
    pub async fn turn(&mut self, attempt: u32) {
        while let Some(ended) = self.turns.try_join_next() {
            ended.expect("a late member answers, too");
        }
        let majority = self.members.len() / 2 + 1;
        let (tell_taken, mut taken) = mpsc::unbounded_channel();
        let (tell_raised, mut raised) = mpsc::unbounded_channel();
        let (tell_vacated, mut vacated) = mpsc::unbounded_channel();
        let (choose, chosen) = watch::channel(None);
        let (finish, finished) = watch::channel(false);
        for member in &self.members {
            let mut member = member.clone();
            let (mut chosen, mut finished) = (chosen.clone(), finished.clone());
            let (taken, raised, vacated) = (tell_taken.clone(), tell_raised.clone(), tell_vacated.clone());
            self.turns.spawn(async move {
                let _late = taken.send(member.take(attempt).await);
                let token = chosen.wait_for(Option::is_some).await.map(|token| *token);
                let token = token.ok().flatten().expect("chosen before it is dropped");
                member.raise(token, attempt).await;
                let _late = raised.send(());
                drop(finished.wait_for(|finished| *finished).await);
                member.vacate(token, attempt).await;
                let _late = vacated.send(());
            });
        }
        let mut highest = 0;
        for _member in 0..majority {
            highest = highest.max(taken.recv().await.unwrap());
        }
        choose.send_replace(Some(highest));
        for _member in 0..majority {
            raised.recv().await.unwrap();
        }
        finish.send_replace(true);
        for _member in 0..majority {
            vacated.recv().await.unwrap();
        }
    }
}

#[derive(Clone)]
pub struct Bare {
    connection: MultiplexedConnection,
    take: Script,
    raise: Script,
    vacate: Script,
}

impl Bare {
    pub async fn connect(url: &str) -> Self {
        let client = redis::Client::open(url).unwrap();
        Self {
            connection: client.get_multiplexed_async_connection().await.unwrap(),
            take: Script::new(TAKE),
            raise: Script::new(RAISE),
            vacate: Script::new(VACATE),
        }
    }

    pub async fn turn(&mut self, attempt: u32) {
        let token = self.take(attempt).await;
        assert!(self.vacate(token, attempt).await, "it was taken");
    }

    async fn take(&mut self, attempt: u32) -> u64 {
        let mut take = self.take.key("bare");
        let (token, owner, _remaining): (u64, String, i64) = take
            .arg("bench")
            .arg("7")
            .arg(attempt)
            .arg(30_000)
            .invoke_async(&mut self.connection)
            .await
            .unwrap();
        assert_eq!(owner, "bench");
        token
    }

    /// Gives what was taken by this attempt its token.
    async fn raise(&mut self, token: u64, attempt: u32) {
        let mut raise = self.raise.key("bare");
        raise
            .arg("7")
            .arg(attempt)
            .arg(token)
            .invoke_async::<()>(&mut self.connection)
            .await
            .unwrap();
    }

    /// Whether it was this very term's.
    async fn vacate(&mut self, token: u64, attempt: u32) -> bool {
        let mut vacate = self.vacate.key("bare");
        vacate
            .arg("7")
            .arg(token)
            .arg(attempt)
            .invoke_async(&mut self.connection)
            .await
            .unwrap()
    }
}

/// Server's clock, token, owner, attempt, expiry: what a lease cannot do without.
const TAKE: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local record = redis.call('HMGET', KEYS[1], 'owner', 'generation', 'expiresAt', 'createdAt')
if record[3] and tonumber(record[3]) > now then
  return { record[2], record[1], tonumber(record[3]) - now }
end
local token = math.max((tonumber(record[2]) or 0) + 1, now)
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'incarnation', ARGV[2], 'attempt', ARGV[3], 'generation', token,
  'expiresAt', now + ARGV[4], 'ttlMs', ARGV[4], 'createdAt', record[4] or now)
redis.call('PUBLISH', KEYS[1], 'taken')
return { token, ARGV[1], ARGV[4] }";

/// Of the very attempt.
const RAISE: &str = "
local record = redis.call('HMGET', KEYS[1], 'incarnation', 'attempt')
if record[1] ~= ARGV[1] or record[2] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'generation', ARGV[3])
return 1";

/// Of the very term, and tells who waits.
const VACATE: &str = "
local record = redis.call('HMGET', KEYS[1], 'incarnation', 'generation', 'attempt')
if record[1] ~= ARGV[1] or record[2] ~= ARGV[2] or record[3] ~= ARGV[3] then return 0 end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'expiresAt', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('PUBLISH', KEYS[1], 'vacated')
return 1";
