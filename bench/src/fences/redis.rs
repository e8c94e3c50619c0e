//! A number in Redis, protected by the script that compares the mark and writes.

use super::register::{NotClaimed, Outcome, Register, Write, claim, resource};
use redis::AsyncCommands as _;
use redis::aio::MultiplexedConnection;
use tenure::contract::Answer;
use tenure::redis::{FencedWrites, RedisFence};
use tenure::{Leases, Term};

const VALUE: &str = "{tenure}:register";
const HISTORY: &str = "{tenure}:history";
/// Number and history without a fence.
const BARE: (&str, &str) = ("{tenure}:bare", "{tenure}:bare-history");

pub struct RedisRegister {
    fence: RedisFence,
    /// What looks, without the fence.
    connection: MultiplexedConnection,
}

impl RedisRegister {
    pub async fn open(url: &str) -> Self {
        let client = redis::Client::open(url).unwrap();
        Self {
            fence: RedisFence::connect(url, Leases::Here).await.unwrap(),
            connection: client.get_multiplexed_async_connection().await.unwrap(),
        }
    }
}

impl Register for RedisRegister {
    fn claim<'a>(&'a self, term: &'a Term) -> Answer<'a, Result<(), NotClaimed>> {
        Box::pin(claim(&self.fence, term))
    }

    fn read<'a>(&'a self, _term: &'a Term) -> Answer<'a, Option<i64>> {
        Box::pin(async {
            let value: Option<i64> = self.connection.clone().get(VALUE).await.ok()?;
            Some(value.unwrap_or(0))
        })
    }

    fn write<'a>(&'a self, term: &'a Term, read: i64) -> Answer<'a, Outcome> {
        Box::pin(async move {
            let (value, note) = ((read + 1).to_string(), format!("{} {read}", term.token));
            let writes = FencedWrites::new()
                .command(&[VALUE], ["SET", VALUE, &value])
                .command(&[HISTORY], ["RPUSH", HISTORY, &note]);
            match self.fence.write(&resource(), term, &writes).await {
                Ok(_) => Outcome::Accepted,
                Err(error) => Outcome::of(&error),
            }
        })
    }

    fn write_bare(&self, read: i64) -> Option<Answer<'_, ()>> {
        Some(Box::pin(async move {
            let note = format!("1 {read}");
            redis::pipe()
                .atomic()
                .set(BARE.0, read + 1)
                .rpush(BARE.1, note)
                .exec_async(&mut self.connection.clone())
                .await
                .unwrap();
        }))
    }

    fn history(&self) -> Answer<'_, Vec<Write>> {
        Box::pin(async {
            let notes: Vec<String> = self.connection.clone().lrange(HISTORY, 0, -1).await.unwrap();
            let write = |note: &String| {
                let (token, read) = note.split_once(' ').unwrap();
                (token.parse().unwrap(), read.parse().unwrap())
            };
            notes.iter().map(write).collect()
        })
    }
}
