//! Reading and writing keys.

use super::ResponseHeader;

/// A key with its value.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(int64, tag = "2")]
    pub(crate) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(crate) mod_revision: i64,
    /// How often it was written since it was made.
    #[prost(int64, tag = "4")]
    pub(crate) version: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub(crate) value: Vec<u8>,
    /// The session that it ends with; 0 for none.
    #[prost(int64, tag = "6")]
    pub(crate) lease: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(crate) limit: i64,
    #[prost(bool, tag = "9")]
    pub(crate) count_only: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) kvs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    pub(crate) more: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(crate) lease: i64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct PutResponse {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DeleteRangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) range_end: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct DeleteRangeResponse {
    #[prost(int64, tag = "2")]
    pub(crate) deleted: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RequestOp {
    #[prost(oneof = "Request", tags = "1, 2, 3, 4")]
    pub(crate) request: Option<Request>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Request {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRangeRequest),
    #[prost(message, tag = "4")]
    Txn(TxnRequest),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResponseOp {
    #[prost(oneof = "Response", tags = "1, 2, 3, 4")]
    pub(crate) response: Option<Response>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Response {
    #[prost(message, tag = "1")]
    Range(RangeResponse),
    #[prost(message, tag = "2")]
    Put(PutResponse),
    #[prost(message, tag = "3")]
    Delete(DeleteRangeResponse),
    #[prost(message, tag = "4")]
    Txn(TxnResponse),
}

/// How it is compared: the protocol's `CompareResult`.
pub(crate) mod result {
    pub(crate) const EQUAL: i32 = 0;
    pub(crate) const LESS: i32 = 2;
}

/// What is compared: the protocol's `CompareTarget`.
pub(crate) mod target {
    pub(crate) const CREATE: i32 = 1;
    pub(crate) const MOD: i32 = 2;
    pub(crate) const VALUE: i32 = 3;
    pub(crate) const LEASE: i32 = 4;
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Compare {
    #[prost(int32, tag = "1")]
    pub(crate) result: i32,
    #[prost(int32, tag = "2")]
    pub(crate) target: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) key: Vec<u8>,
    #[prost(oneof = "Compared", tags = "5, 6, 7, 8")]
    pub(crate) with: Option<Compared>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Compared {
    #[prost(int64, tag = "5")]
    CreateRevision(i64),
    #[prost(int64, tag = "6")]
    ModRevision(i64),
    #[prost(bytes, tag = "7")]
    Value(Vec<u8>),
    #[prost(int64, tag = "8")]
    Lease(i64),
}

impl Compare {
    fn equal(target: i32, key: &[u8], with: Compared) -> Self {
        Self {
            result: result::EQUAL,
            target,
            key: key.to_vec(),
            with: Some(with),
        }
    }

    /// The key was last written by this revision; 0 where there must be no key.
    pub(crate) fn written_at(key: &[u8], revision: i64) -> Self {
        match revision {
            0 => Self::equal(target::CREATE, key, Compared::CreateRevision(0)),
            _ => Self::equal(target::MOD, key, Compared::ModRevision(revision)),
        }
    }

    /// The key was last written by this revision or an earlier one, or is not there.
    pub(crate) fn not_written_after(key: &[u8], revision: i64) -> Self {
        Self {
            result: result::LESS,
            ..Self::equal(
                target::MOD,
                key,
                Compared::ModRevision(revision.saturating_add(1)),
            )
        }
    }

    /// The key has this value.
    pub(crate) fn value(key: &[u8], value: &[u8]) -> Self {
        Self::equal(target::VALUE, key, Compared::Value(value.to_vec()))
    }

    /// The key ends with this session.
    pub(crate) fn ends_with(key: &[u8], session: i64) -> Self {
        Self::equal(target::LEASE, key, Compared::Lease(session))
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub(crate) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(crate) responses: Vec<ResponseOp>,
}

impl RequestOp {
    fn of(request: Request) -> Self {
        Self {
            request: Some(request),
        }
    }

    pub(crate) fn range(key: Vec<u8>, range_end: Vec<u8>) -> Self {
        Self::of(Request::Range(RangeRequest {
            key,
            range_end,
            ..RangeRequest::default()
        }))
    }

    /// `session` is 0 for a key that stays.
    pub(crate) fn put(key: Vec<u8>, value: Vec<u8>, session: i64) -> Self {
        let lease = session;
        Self::of(Request::Put(PutRequest { key, value, lease }))
    }

    pub(crate) fn delete(key: Vec<u8>) -> Self {
        Self::delete_range(key, Vec::new())
    }

    pub(crate) fn delete_range(key: Vec<u8>, range_end: Vec<u8>) -> Self {
        Self::of(Request::Delete(DeleteRangeRequest { key, range_end }))
    }

    pub(crate) fn txn(txn: TxnRequest) -> Self {
        Self::of(Request::Txn(txn))
    }

    /// Whether it reads.
    pub(crate) fn is_range(&self) -> bool {
        matches!(self.request, Some(Request::Range(_)))
    }
}

impl ResponseOp {
    /// The keys of a range; none for another kind of answer.
    pub(crate) fn keys(self) -> Vec<KeyValue> {
        match self.response {
            Some(Response::Range(range)) => range.kvs,
            Some(Response::Put(_) | Response::Delete(_) | Response::Txn(_)) | None => Vec::new(),
        }
    }

    /// The answer of a transaction within a transaction.
    pub(crate) fn txn(self) -> Option<TxnResponse> {
        match self.response {
            Some(Response::Txn(txn)) => Some(txn),
            Some(Response::Put(_) | Response::Delete(_) | Response::Range(_)) | None => None,
        }
    }
}
