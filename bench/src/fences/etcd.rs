//! A number in etcd, protected by the transaction that compares the mark and writes.

use super::register::{NotClaimed, Outcome, Register, Write, claim, resource};
use crate::store::etcd::put_all;
use http::uri::PathAndQuery;
use std::sync::atomic::{AtomicU64, Ordering};
use tenure::contract::Answer;
use tenure::etcd::{EtcdFence, Fenced, FencedTransaction};
use tenure::{Leases, Term};
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

const VALUE: &str = "bench/value";
/// What the keys of the history begin with, and the end of their range.
const HISTORY: (&str, &str) = ("bench/history/", "bench/history0");
/// The key without a fence, and what those of its history begin with.
const BARE: (&str, &str) = ("bench/bare", "bench/bare-history/");

pub struct EtcdRegister {
    fence: EtcdFence,
    /// What looks, without the fence.
    channel: Channel,
    /// Writes of this register: each notes itself under a key of its own.
    attempts: AtomicU64,
}

impl EtcdRegister {
    pub async fn open(url: &str) -> Self {
        let members = url.strip_prefix("etcd://").unwrap();
        let member = members.split(',').next().unwrap();
        let endpoint = Endpoint::from_shared(format!("http://{member}")).unwrap();
        Self {
            fence: EtcdFence::connect(url, Leases::Here).await.unwrap(),
            channel: endpoint.tcp_nodelay(true).connect().await.unwrap(),
            attempts: AtomicU64::new(0),
        }
    }

    /// The keys of a range, as the cluster agrees on them now.
    async fn range(&self, key: &str, end: &str) -> Option<Vec<KeyValue>> {
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(usize::MAX);
        grpc.ready().await.ok()?;
        let request = Range {
            key: key.into(),
            range_end: end.into(),
        };
        let path = PathAndQuery::from_static("/etcdserverpb.KV/Range");
        let codec = ProstCodec::<Range, Found>::default();
        let answer = grpc.unary(tonic::Request::new(request), path, codec).await;
        Some(answer.ok()?.into_inner().kvs)
    }
}

impl Register for EtcdRegister {
    fn claim<'a>(&'a self, term: &'a Term) -> Answer<'a, Result<(), NotClaimed>> {
        Box::pin(claim(&self.fence, term))
    }

    fn read<'a>(&'a self, _term: &'a Term) -> Answer<'a, Option<i64>> {
        Box::pin(async {
            let found = self.range(VALUE, "").await?;
            Some(found.first().map_or(0, |row| number(&row.value)))
        })
    }

    fn write<'a>(&'a self, term: &'a Term, read: i64) -> Answer<'a, Outcome> {
        Box::pin(async move {
            let attempt = self.attempts.fetch_add(1, Ordering::SeqCst);
            // No two processes write with one token.
            let note = format!("{}{}/{attempt}", HISTORY.0, term.token);
            let transaction = FencedTransaction::new()
                .put(VALUE, (read + 1).to_string())
                .put(note, read.to_string());
            match self.fence.write(&resource(), term, &transaction).await {
                Ok(Fenced::Written { .. }) => Outcome::Accepted,
                Ok(Fenced::ConditionFailed) => panic!("it has no condition but the fence's"),
                Err(error) => Outcome::of(&error),
            }
        })
    }

    fn write_bare(&self, read: i64) -> Option<Answer<'_, ()>> {
        Some(Box::pin(async move {
            let rows = [
                (BARE.0.to_owned(), (read + 1).to_string()),
                (format!("{}1/{read}", BARE.1), read.to_string()),
            ];
            put_all(&self.channel, rows).await;
        }))
    }

    fn history(&self) -> Answer<'_, Vec<Write>> {
        Box::pin(async {
            let mut notes = self.range(HISTORY.0, HISTORY.1).await.unwrap();
            notes.sort_by_key(|note| note.mod_revision);
            let write = |note: &KeyValue| {
                let key = std::str::from_utf8(&note.key).unwrap();
                let token = key.split('/').nth(2).unwrap();
                (token.parse().unwrap(), number(&note.value))
            };
            notes.iter().map(write).collect()
        })
    }
}

fn number(value: &[u8]) -> i64 {
    std::str::from_utf8(value).unwrap().parse().unwrap()
}

#[derive(Clone, PartialEq, prost::Message)]
struct Range {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    range_end: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Found {
    #[prost(message, repeated, tag = "2")]
    kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(int64, tag = "3")]
    mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    value: Vec<u8>,
}
