//! etcd, alone and a cluster of three: the bare driver takes the lease with one transaction, on a session
//! that it was granted before, and gives it back with another.

use super::compare;
use http::uri::PathAndQuery;
use tenure::etcd::EtcdStore;
use tenure_testkit::{Etcd, EtcdOptions};
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

pub async fn measure(rounds: u32) {
    for (what, options) in [
        ("etcd, one member", EtcdOptions::default()),
        ("etcd, three members", EtcdOptions::three()),
    ] {
        let etcd = Etcd::start(options).await.expect("an etcd server");
        // One member for both: they differ in how far they are from the leader.
        let url = format!("etcd://{}", etcd.address(0));
        let store = EtcdStore::connect(&url).await.unwrap();
        let mut bare = Bare::connect(&etcd.address(0)).await;
        compare(what, rounds, &store, async |_| bare.turn().await).await;
    }
}

pub struct Bare {
    channel: Channel,
    session: i64,
}

impl Bare {
    pub async fn connect(address: &str) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let channel = endpoint.tcp_nodelay(true).connect().await.unwrap();
        let granted: Granted = ask(&channel, "/etcdserverpb.Lease/LeaseGrant", Grant { ttl: 3_600 }).await;
        Self {
            channel,
            session: granted.id,
        }
    }

    pub async fn turn(&mut self) {
        let (record, holder) = (b"bare/record".to_vec(), b"bare/holder".to_vec());
        let free = Compare {
            target: CREATE,
            key: holder.clone(),
            with: Some(Compared::Created(0)),
        };
        let taking = Txn {
            compare: vec![free],
            success: vec![
                Operation::put(
                    record.clone(),
                    br#"{"owner":"bench","incarnation":7}"#.to_vec(),
                    0,
                ),
                Operation::put(holder.clone(), Vec::new(), self.session),
            ],
        };
        let taken: Done = ask(&self.channel, TXN, taking).await;
        assert!(taken.succeeded, "the lease is free");
        // Of the very term.
        let ours = Compare {
            target: MODIFIED,
            key: record,
            with: Some(Compared::Modified(taken.header.unwrap().revision)),
        };
        let vacating = Txn {
            compare: vec![ours],
            success: vec![Operation::delete(holder)],
        };
        let vacated: Done = ask(&self.channel, TXN, vacating).await;
        assert!(vacated.succeeded, "the term is its own");
    }
}

/// Puts these keys in one transaction without a condition.
pub async fn put_all(channel: &Channel, rows: impl IntoIterator<Item = (String, String)>) {
    let put = |(key, value): (String, String)| Operation::put(key.into(), value.into(), 0);
    let putting = Txn {
        compare: Vec::new(),
        success: rows.into_iter().map(put).collect(),
    };
    let done: Done = ask(channel, TXN, putting).await;
    assert!(done.succeeded, "there is no condition");
}

async fn ask<Asked, Answered>(channel: &Channel, path: &'static str, request: Asked) -> Answered
where
    Asked: prost::Message + Send + Sync + 'static,
    Answered: prost::Message + Default + Send + Sync + 'static,
{
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    let codec = ProstCodec::<Asked, Answered>::default();
    let request = tonic::Request::new(request);
    let answer = grpc.unary(request, PathAndQuery::from_static(path), codec).await;
    answer.unwrap().into_inner()
}

const TXN: &str = "/etcdserverpb.KV/Txn";

/// `CompareTarget::CREATE`.
const CREATE: i32 = 1;
/// `CompareTarget::MOD`.
const MODIFIED: i32 = 2;

#[derive(Clone, PartialEq, prost::Message)]
struct Grant {
    #[prost(int64, tag = "1")]
    ttl: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Granted {
    #[prost(int64, tag = "2")]
    id: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Txn {
    #[prost(message, repeated, tag = "1")]
    compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    success: Vec<Operation>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Compare {
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "vec", tag = "3")]
    key: Vec<u8>,
    #[prost(oneof = "Compared", tags = "5, 6")]
    with: Option<Compared>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Compared {
    #[prost(int64, tag = "5")]
    Created(i64),
    #[prost(int64, tag = "6")]
    Modified(i64),
}

#[derive(Clone, PartialEq, prost::Message)]
struct Operation {
    #[prost(oneof = "Kind", tags = "2, 3")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Kind {
    #[prost(message, tag = "2")]
    Put(Put),
    #[prost(message, tag = "3")]
    Delete(Delete),
}

#[derive(Clone, PartialEq, prost::Message)]
struct Put {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
    #[prost(int64, tag = "3")]
    lease: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Delete {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Done {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
    #[prost(bool, tag = "2")]
    succeeded: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Header {
    #[prost(int64, tag = "3")]
    revision: i64,
}

impl Operation {
    fn put(key: Vec<u8>, value: Vec<u8>, lease: i64) -> Self {
        let put = Put { key, value, lease };
        Self {
            kind: Some(Kind::Put(put)),
        }
    }

    fn delete(key: Vec<u8>) -> Self {
        Self {
            kind: Some(Kind::Delete(Delete { key })),
        }
    }
}
