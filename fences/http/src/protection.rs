//! What protects which resource, and which requests must show a token.

use http::Method;
use tenure_core::{LeaseName, ResourceName};

/// A resource, and the lease whose terms may change it.
///
/// Tokens of two leases cannot be compared, so a token of any other lease is refused.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Protection {
    /// The resource: what one mark is kept for. Two requests that change the same state must name the same.
    pub resource: ResourceName,
    /// The lease.
    pub lease: LeaseName,
}

/// Whether a request may go without a token. One that shows a token is checked in either case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Need {
    /// It is refused without.
    Required,
    /// It passes without.
    Optional,
}

impl Need {
    /// The default: every method but GET, HEAD, OPTIONS and TRACE needs a token, also one that nobody knows.
    #[must_use]
    pub fn of(method: &Method) -> Self {
        // Not `Method::is_safe`: what it counts as safe changes with the version of `http`.
        if [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE].contains(method) {
            Self::Optional
        } else {
            Self::Required
        }
    }
}
