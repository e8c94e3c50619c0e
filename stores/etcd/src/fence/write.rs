//! Changing data behind the fence: compared and written in one transaction.

use super::Ruled;
use super::mark::{MarkValue, decided, subject};
use crate::site::{Site, transact};
use crate::wire::kv::{Compare, RequestOp, TxnRequest};
use tenure_core::{ResourceName, StoreError, Term};
use tenure_remote::Deed;

/// A transaction of the user's own, to be made behind the fence.
///
/// Servers take 128 conditions, of which the fence's own is one, and as many operations, unless they are told
/// otherwise. No key may be written twice.
#[derive(Clone, Default, Debug)]
pub struct FencedTransaction {
    conditions: Vec<Compare>,
    operations: Vec<RequestOp>,
}

/// What became of a transaction whose term was admitted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fenced {
    /// It was made.
    Written {
        /// The revision that made it.
        revision: u64,
        /// The values of the keys that it read, in their order; `None` for a key that is not there.
        read: Vec<Option<Vec<u8>>>,
    },
    /// A condition of the transaction's own did not hold: nothing was changed.
    ConditionFailed,
}

/// What another client of etcd must compare for its transaction to be behind the fence: that the value of a
/// key is equal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FenceCondition {
    /// The key of the mark.
    pub key: Vec<u8>,
    /// Its value while the term holds it, byte for byte.
    pub value: Vec<u8>,
}

impl FencedTransaction {
    /// Without any operation.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Only if the key has this value.
    #[must_use]
    pub fn if_value(mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.conditions.push(Compare::value(key.as_ref(), value.as_ref()));
        self
    }

    /// Only if there is no such key.
    #[must_use]
    pub fn if_absent(mut self, key: impl AsRef<[u8]>) -> Self {
        self.conditions.push(Compare::written_at(key.as_ref(), 0));
        self
    }

    /// Writes a key.
    #[must_use]
    pub fn put(mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        self.operations.push(RequestOp::put(key.into(), value.into(), 0));
        self
    }

    /// Removes a key.
    #[must_use]
    pub fn delete(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.operations.push(RequestOp::delete(key.into()));
        self
    }

    /// Reads a key.
    #[must_use]
    pub fn get(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.operations.push(RequestOp::range(key.into(), Vec::new()));
        self
    }
}

impl Site {
    /// What a term's transactions compare.
    pub(super) fn condition(&self, resource: &ResourceName, term: &Term) -> FenceCondition {
        FenceCondition {
            key: self.keys.mark(resource),
            value: MarkValue::claimed(term).encode(),
        }
    }

    pub(super) async fn write(
        &self,
        resource: &ResourceName,
        term: &Term,
        transaction: &FencedTransaction,
    ) -> Result<Ruled<Fenced>, StoreError> {
        let FenceCondition { key, value } = self.condition(resource, term);
        let mut compare = vec![Compare::value(&key, &value)];
        compare.extend(transaction.conditions.iter().cloned());
        let request = TxnRequest {
            compare,
            success: transaction.operations.clone(),
            failure: vec![RequestOp::range(key.clone(), Vec::new())],
        };
        let answer = transact(&self.requests, &request).await;
        let answer = answer.map_err(|failure| failure.error(Deed::Write, &subject(resource), &self.place))?;
        if answer.succeeded {
            let reads = |operation: &&RequestOp| operation.is_range();
            let ranges = transaction
                .operations
                .iter()
                .zip(answer.responses)
                .filter(|(operation, _)| reads(operation));
            let read = ranges
                .map(|(_, response)| response.keys().into_iter().next().map(|row| row.value))
                .collect();
            let revision = answer.header.map_or(0, |header| header.revision);
            return Ok(Ruled::Admitted(Fenced::Written {
                revision: u64::try_from(revision).unwrap_or(0),
                read,
            }));
        }
        let row = answer
            .responses
            .into_iter()
            .next()
            .map(|response| response.keys());
        let row = row.and_then(|rows| rows.into_iter().next());
        let mark = row
            .map(|row| MarkValue::decode(&row.key, resource.as_str(), &row.value))
            .transpose()?;
        Ok(match decided(resource, term, mark.as_ref()) {
            Err(error) => Ruled::refused(mark.map(|mark| mark.token), error),
            Ok(()) => Ruled::Admitted(Fenced::ConditionFailed),
        })
    }
}
