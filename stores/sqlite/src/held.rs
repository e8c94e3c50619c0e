//! The terms that a handle holds, as far as it knows.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tenure_core::{FencingToken, LeaseName};

/// Most that are told apart. There are several then, whatever becomes of the others.
const TERMS_MAX: usize = 1 << 18;

/// The latest term of each lease that was granted here, until it is known to be given back or lost. A release
/// may overtake an older renewal, and the next term an answer about the last: so each is told of by its
/// token, and not counted.
///
/// By the hashes of names: a process may hold a hundred thousand. Two that are alike are one, and that is
/// most unlikely.
#[derive(Default)]
pub(crate) struct HeldTerms {
    hashing: RandomState,
    tokens: Mutex<HashMap<u64, FencingToken>>,
}

impl HeldTerms {
    /// A term was granted.
    pub(crate) fn begin(&self, name: &LeaseName, token: FencingToken) {
        let mut tokens = self.tokens();
        if tokens.len() < TERMS_MAX {
            tokens.insert(self.hashing.hash_one(name), token);
        }
    }

    /// This very term was given back, or lost.
    pub(crate) fn end(&self, name: &LeaseName, token: FencingToken) {
        let name = self.hashing.hash_one(name);
        let mut tokens = self.tokens();
        if tokens.get(&name) == Some(&token) {
            tokens.remove(&name);
        }
    }

    /// Whether there is more than one, so that one may have to be renewed while another is granted.
    pub(crate) fn are_several(&self) -> bool {
        self.tokens().len() > 1
    }

    fn tokens(&self) -> MutexGuard<'_, HashMap<u64, FencingToken>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
