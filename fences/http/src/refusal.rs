//! Why a request is not let in.

use crate::gate::Superseded;
use crate::header::HeaderError;
use std::fmt;
use std::time::Duration;
use tenure_core::{FencingToken, Horizon, LeaseName, NameError, ResourceName, StoreError};

/// Why a request was not let in. In every case but [`Superseded`](Self::Superseded) the inner service was not
/// called: nothing was done.
///
/// Effect on authority: none by itself; but a [`Stale`](Self::Stale) term has certainly been succeeded, and
/// its work must end.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The method needs a token, and there is none. 428.
    Missing {
        /// The protected resource.
        resource: ResourceName,
        /// The lease whose token is needed.
        lease: LeaseName,
    },
    /// The header is not clear. 400.
    Malformed(HeaderError),
    /// The request names no resource that there could be. 400.
    NoResource(NameError),
    /// The token is of a lease that does not protect the resource: the two cannot be compared. 403.
    Foreign {
        /// The protected resource.
        resource: ResourceName,
        /// The token.
        token: FencingToken,
        /// The lease that it is of.
        lease: LeaseName,
        /// The lease that protects the resource.
        owner: LeaseName,
    },
    /// No store can have granted this token yet: it would refuse every real term after it. 403.
    Future {
        /// The protected resource.
        resource: ResourceName,
        /// The token.
        token: FencingToken,
        /// What the fence knows of the tokens that exist.
        horizon: Horizon,
    },
    /// A later term has claimed the resource. 409. Trying again is useless.
    Stale {
        /// The protected resource.
        resource: ResourceName,
        /// The refused token.
        token: FencingToken,
        /// The mark that refused it.
        mark: FencingToken,
    },
    /// A later term has claimed after this request was admitted and before all of its body was there, and the
    /// handler has failed for that; or before the handler took it, and it was not called. 409. What the
    /// handler did before, it did in time. Trying again is useless.
    Superseded(Superseded),
    /// Requests of older terms are still inside after the wait. 503, come again: the mark has been raised, so
    /// no further ones get in.
    OlderInside {
        /// The protected resource.
        resource: ResourceName,
        /// The token that waited.
        token: FencingToken,
        /// How many requests of older terms are inside.
        inside: usize,
        /// How long it waited.
        waited: Duration,
    },
    /// Too many are inside or wait at the gate. 503, come again.
    Crowded {
        /// The protected resource.
        resource: ResourceName,
    },
    /// The fence's store does not answer. 503, come again.
    Unavailable {
        /// The protected resource.
        resource: ResourceName,
        /// What the store said: for the log, not for the client.
        error: StoreError,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { resource, lease } => write!(
                f,
                "refused: \"{resource}\" is changed only with a token of lease \"{lease}\"; send the header \
                 Fencing-Token with the token of your term"
            ),
            Self::Superseded(superseded) => superseded.fmt(f),
            Self::Malformed(error) => write!(f, "refused: {error}"),
            Self::NoResource(error) => write!(f, "refused: {error}"),
            Self::Foreign {
                resource,
                token,
                lease,
                owner,
            } => write!(
                f,
                "refused: token {token} is of lease \"{lease}\", but \"{resource}\" is protected by lease \
                 \"{owner}\"; send a token of that one"
            ),
            Self::Stale {
                resource,
                token,
                mark,
            } => write!(
                f,
                "refused: token {token} is stale for \"{resource}\", which admits none below {mark}; stop this work"
            ),
            Self::Future {
                resource,
                token,
                horizon,
            } => write!(
                f,
                "refused: token {token} is from the future for \"{resource}\": none above {} can exist yet; check \
                 where it comes from",
                horizon.token()
            ),
            Self::OlderInside {
                resource,
                token,
                inside,
                waited,
            } => write!(
                f,
                "token {token} has claimed \"{resource}\", but {inside} requests of older terms have not ended \
                 within {waited:?}; send it again"
            ),
            Self::Crowded { resource } => write!(
                f,
                "too many requests are inside or wait at the fence of \"{resource}\"; send it again"
            ),
            // The store's own words may name a file or a server: they stay in the log.
            Self::Unavailable { resource, .. } => write!(
                f,
                "the fence of \"{resource}\" cannot be asked; nothing was done; send it again"
            ),
        }
    }
}

impl std::error::Error for Refusal {}
