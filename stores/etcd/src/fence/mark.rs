//! The value of a mark, and that of a count of refusals.

use crate::keys::shown;
use serde_json::{Value, json};
use tenure_core::{
    Fault, FenceError, FencingToken, LeaseName, REMOVE_MARK, ResourceName, StoreError, Term, check_owner,
    decide_entry,
};
pub(super) use tenure_remote::fence_subject as subject;

/// Whose tokens a mark compares, and how high it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MarkValue {
    /// `None` until the first claim.
    pub(crate) lease: Option<LeaseName>,
    /// The term that claimed last, or what an operator has raised it to.
    pub(crate) token: FencingToken,
    /// Whether an operator has raised it, and no term of its lease has claimed since. Without a lease nobody
    /// has, anyway.
    bumped: bool,
}

impl MarkValue {
    /// As a term claims it.
    pub(super) fn claimed(term: &Term) -> Self {
        Self {
            lease: Some(term.lease.clone()),
            token: term.token,
            bumped: false,
        }
    }

    /// As an operator raises it.
    pub(super) fn lifted(lease: Option<LeaseName>, token: FencingToken) -> Self {
        Self {
            bumped: lease.is_some(),
            lease,
            token,
        }
    }

    /// Who has claimed the mark: nobody, where an operator has raised it.
    pub(super) fn claimant(&self) -> Option<&LeaseName> {
        self.lease.as_ref().filter(|_| !self.bumped)
    }

    /// The one form of it: transactions compare its bytes. So no term compares what an operator has raised.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let token = self.token.number();
        let value = match &self.lease {
            Some(lease) if self.bumped => json!({ "bumped": token, "lease": lease.as_str(), "token": token }),
            Some(lease) => json!({ "lease": lease.as_str(), "token": token }),
            None => json!({ "token": token }),
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
            let bumped = fields.get("bumped").is_some();
            Some(Self { lease, token, bumped })
        };
        // In its one form: what compares it would refuse every other.
        read().filter(|mark| mark.encode() == value).ok_or_else(|| {
            let why = format!("its value is {}, not a mark as Tenure writes it", shown(value));
            no_mark(key, resource, &why)
        })
    }
}

/// Of what stands where marks do.
pub(super) fn no_mark(key: &[u8], resource: &str, why: &str) -> StoreError {
    let (key, resource) = (shown(key), shown(resource.as_bytes()));
    StoreError::not_applied(
        Fault::Unreadable,
        format!(
            "fence \"{resource}\" at key \"{key}\": {why}; it was left as it is; mend it with etcdctl, or \
             {REMOVE_MARK}"
        ),
    )
}

/// Whether a term may enter by a mark.
///
/// # Errors
/// As [`decide_entry`].
pub(super) fn decided(
    resource: &ResourceName,
    term: &Term,
    mark: Option<&MarkValue>,
) -> Result<(), FenceError> {
    check_owner(resource, term, mark.and_then(|mark| mark.lease.as_ref()))?;
    let claimant = mark.and_then(MarkValue::claimant);
    decide_entry(resource, term, claimant, mark.map(|mark| mark.token))
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
