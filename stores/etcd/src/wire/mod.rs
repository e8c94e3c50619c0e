//! etcd's messages, as far as the store uses them: what a generator would make of `rpc.proto` and `kv.proto`,
//! written out, so that a build needs no `protoc`. Names and numbers are the protocol's; a field that is
//! never read is left out, which the encoding allows.

pub(crate) mod cluster;
pub(crate) mod kv;
pub(crate) mod lease;
pub(crate) mod watch;

/// What every answer begins with.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct ResponseHeader {
    /// Whose member answered.
    #[prost(uint64, tag = "1")]
    pub(crate) cluster_id: u64,
    /// Who answered.
    #[prost(uint64, tag = "2")]
    pub(crate) member_id: u64,
    /// The revision of the key space when the request was applied.
    #[prost(int64, tag = "3")]
    pub(crate) revision: i64,
    /// The term of the consensus, as the answering member knows it.
    #[prost(uint64, tag = "4")]
    pub(crate) raft_term: u64,
}

/// What a request is answered with. Within another answer it has no header.
pub(crate) trait Answer: prost::Message + Default + 'static {
    fn header(&self) -> Option<ResponseHeader>;
}

macro_rules! answers {
    ($($answer:ty),* $(,)?) => {
        $(impl Answer for $answer {
            fn header(&self) -> Option<ResponseHeader> {
                self.header
            }
        })*
    };
}

answers! {
    cluster::AlarmResponse,
    cluster::AuthenticateResponse,
    cluster::StatusResponse,
    kv::RangeResponse,
    kv::TxnResponse,
    lease::LeaseGrantResponse,
    lease::LeaseKeepAliveResponse,
    lease::LeaseRevokeResponse,
    lease::LeaseTimeToLiveResponse,
    watch::WatchResponse,
}

/// The kinds of request, by their path.
pub(crate) mod path {
    pub(crate) const RANGE: &str = "/etcdserverpb.KV/Range";
    pub(crate) const TXN: &str = "/etcdserverpb.KV/Txn";
    pub(crate) const LEASE_GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
    pub(crate) const LEASE_REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
    pub(crate) const LEASE_KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
    pub(crate) const LEASE_TIME_TO_LIVE: &str = "/etcdserverpb.Lease/LeaseTimeToLive";
    pub(crate) const WATCH: &str = "/etcdserverpb.Watch/Watch";
    pub(crate) const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";
    pub(crate) const STATUS: &str = "/etcdserverpb.Maintenance/Status";
    pub(crate) const ALARM: &str = "/etcdserverpb.Maintenance/Alarm";
}
