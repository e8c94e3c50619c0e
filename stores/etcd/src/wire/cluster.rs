//! Credentials, and how a member stands.

use super::ResponseHeader;

/// Holds the password, so it is never shown.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) password: String,
}

impl std::fmt::Debug for AuthenticateRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuthenticateRequest")
    }
}

/// Holds a secret, so it is never shown.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct AuthenticateResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(string, tag = "2")]
    pub(crate) token: String,
}

impl std::fmt::Debug for AuthenticateResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuthenticateResponse")
    }
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct StatusRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
    /// In bytes.
    #[prost(int64, tag = "3")]
    pub(crate) db_size: i64,
    /// The member that leads; 0 for none.
    #[prost(uint64, tag = "4")]
    pub(crate) leader: u64,
    /// A member that has no vote yet, and answers nothing.
    #[prost(bool, tag = "10")]
    pub(crate) is_learner: bool,
}

/// `GET` of every alarm, which is what zeros ask for.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct AlarmRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AlarmResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) alarms: Vec<AlarmMember>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct AlarmMember {
    #[prost(int32, tag = "2")]
    pub(crate) alarm: i32,
}

/// The alarm of a member that is out of space.
pub(crate) const NOSPACE: i32 = 1;

/// The alarm of a member whose data differ from the others'.
pub(crate) const CORRUPT: i32 = 2;
