//! Redis, with each write on disk before it is confirmed, and in memory alone: the bare driver takes the lease with
//! one script on `TIME`, and gives it back with another.

use super::compare;
use redis::Script;
use redis::aio::MultiplexedConnection;
use tenure::redis::RedisStore;
use tenure_testkit::{RedisOptions, RedisServer};

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
}

pub struct Bare {
    connection: MultiplexedConnection,
    take: Script,
    vacate: Script,
}

impl Bare {
    pub async fn connect(url: &str) -> Self {
        let client = redis::Client::open(url).unwrap();
        Self {
            connection: client.get_multiplexed_async_connection().await.unwrap(),
            take: Script::new(TAKE),
            vacate: Script::new(VACATE),
        }
    }

    pub async fn turn(&mut self, attempt: u32) {
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
        let mut vacate = self.vacate.key("bare");
        let vacated: u32 = vacate
            .arg("7")
            .arg(token)
            .arg(attempt)
            .invoke_async(&mut self.connection)
            .await
            .unwrap();
        assert_eq!(vacated, 1);
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

/// Of the very term, and tells who waits.
const VACATE: &str = "
local record = redis.call('HMGET', KEYS[1], 'incarnation', 'generation', 'attempt')
if record[1] ~= ARGV[1] or record[2] ~= ARGV[2] or record[3] ~= ARGV[3] then return 0 end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'expiresAt', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('PUBLISH', KEYS[1], 'vacated')
return 1";
