//! The value of a mark, and that of a count of refusals.

use crate::keys::shown;
use serde_json::{Value, json};
use tenure_core::{Fault, FencingToken, LeaseName, ResourceName, StoreError};

/// Whose tokens a mark compares, and the highest that has claimed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MarkValue {
    pub(crate) lease: Option<LeaseName>,
    pub(crate) token: FencingToken,
}

impl MarkValue {
    /// The one form of it: transactions compare its bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let value = match &self.lease {
            Some(lease) => json!({ "lease": lease.as_str(), "token": self.token.number() }),
            None => json!({ "token": self.token.number() }),
        };
        value.to_string().into_bytes()
    }

    /// Reads a mark strictly.
    ///
    /// # Errors
    /// [`Fault::Unreadable`], not applied: it names resource, key and repair.
    pub(crate) fn decode(key: &[u8], resource: &str, value: &[u8]) -> Result<Self, StoreError> {
        let read = || -> Option<Self> {
            let fields: Value = serde_json::from_slice(value).ok()?;
            let lease = match fields.get("lease") {
                None => None,
                Some(lease) => Some(LeaseName::new(lease.as_str()?).ok()?),
            };
            let token = FencingToken::new(fields.get("token")?.as_u64()?).ok()?;
            Some(Self { lease, token })
        };
        // In its one form: what compares it would refuse every other.
        read().filter(|mark| mark.encode() == value).ok_or_else(|| {
            let (key, resource, value) = (shown(key), shown(resource.as_bytes()), shown(value));
            StoreError::not_applied(
                Fault::Unreadable,
                format!(
                    "fence \"{resource}\" at key \"{key}\": its value is {value}, not a mark as Tenure writes it; it was left as \
                     it is; mend or remove it with etcdctl"
                ),
            )
        })
    }
}

/// How often a term was refused, and which was last. What cannot be read counts as nothing: it is for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Count {
    pub(super) refused: u64,
    pub(super) last: Option<FencingToken>,
}

impl Count {
    pub(super) fn encode(self) -> Vec<u8> {
        let last = self.last.map(FencingToken::number);
        json!({ "refused": self.refused, "last": last })
            .to_string()
            .into_bytes()
    }

    pub(super) fn decode(value: &[u8]) -> Self {
        let fields: Value = serde_json::from_slice(value).unwrap_or_default();
        Self {
            refused: fields.get("refused").and_then(Value::as_u64).unwrap_or(0),
            last: fields
                .get("last")
                .and_then(Value::as_u64)
                .and_then(|number| FencingToken::new(number).ok()),
        }
    }
}

/// What an error about this resource is about.
pub(super) fn subject(resource: &ResourceName) -> String {
    format!("fence \"{resource}\"")
}
