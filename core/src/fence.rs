use crate::store::Answer;
use crate::{FencingToken, ResourceName, StoreError};
use std::fmt;

/// What a claim found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Claimed {
    /// The mark was raised to this term's token, from this one (`None`: the resource had none).
    Raised {
        /// The mark before.
        from: Option<FencingToken>,
    },
    /// This term had claimed the resource before.
    Already,
}

/// Why a fence did not admit a term.
///
/// Effect on authority: none by itself; but a stale term has certainly been succeeded, and its work must end.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum FenceError {
    /// A later term has claimed the resource: the write was refused, and so will be every other of this term.
    Stale {
        /// The protected resource.
        resource: ResourceName,
        /// The refused token.
        token: FencingToken,
        /// The mark that refused it.
        mark: FencingToken,
    },
    /// This term has not claimed the resource. Claim first, then read, then write: without the claim, an
    /// older term may still change what was read, and an accepted write is lost.
    Unclaimed {
        /// The protected resource.
        resource: ResourceName,
        /// The token that has not claimed.
        token: FencingToken,
    },
    /// The store of the fence failed.
    Store(StoreError),
}

impl fmt::Display for FenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale {
                resource,
                token,
                mark,
            } => write!(
                f,
                "refused: token {token} is stale for \"{resource}\", which term {mark} has claimed; stop this work"
            ),
            Self::Unclaimed { resource, token } => write!(
                f,
                "refused: token {token} has not claimed \"{resource}\"; claim the fence before reading what will be changed"
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FenceError {}

impl From<StoreError> for FenceError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The data path's refusal of old terms: a mark per resource that only rises.
///
/// Two steps, in this order:
/// 1. **claim**, once per term, before the term first reads the state that it will change;
/// 2. **enter**, in the very transaction that writes: it admits the term that holds the mark and refuses any
///    other, and conflicts with a claim that happens meanwhile. Transactions differ from store to store, so
///    `enter` belongs to each fence's own type.
///
/// Both are needed. With a check beside the write instead of in its transaction, stale writes get in. Without
/// the claim before the first read, accepted writes are lost.
pub trait Fence: Send + Sync {
    /// Raises the mark of `resource` to `token`. Idempotent for one token.
    ///
    /// # Errors
    /// [`FenceError::Stale`] if the mark is higher: this term is over, whatever it believes.
    fn claim<'a>(
        &'a self,
        resource: &'a ResourceName,
        token: FencingToken,
    ) -> Answer<'a, Result<Claimed, FenceError>>;

    /// The mark of `resource`; `None` if nobody ever claimed it.
    ///
    /// # Errors
    /// [`FenceError::Store`].
    fn mark<'a>(&'a self, resource: &'a ResourceName)
    -> Answer<'a, Result<Option<FencingToken>, FenceError>>;
}
