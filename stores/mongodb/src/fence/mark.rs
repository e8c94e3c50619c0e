//! The documents of a resource: its mark, its stripes, its refusals.

use super::stripes::STRIPES;
use mongodb::bson::{Bson, Document, doc};
use tenure_core::{Fault, FencingToken, LeaseName, REMOVE_MARK, ResourceName, StoreError};

/// A mark that was understood.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The resource.
    pub(super) resource: ResourceName,
    /// Whose tokens these are; `None` until the first claim.
    pub(super) lease: Option<LeaseName>,
    /// The term that claimed last, or what an operator has raised it to.
    pub(super) token: FencingToken,
    /// Whether an operator has raised it, and nobody has claimed since.
    bumped: bool,
}

/// Finds the mark of `resource`, unless the document is something else: then no statement can touch it.
pub(super) fn filter(resource: &ResourceName) -> Document {
    doc! {
        "_id": resource.as_str(),
        "$jsonSchema": {
            "required": ["lease", "token", "stripes", "claimedAt", "previous"],
            "properties": {
                "lease": { "bsonType": ["string", "null"] },
                "token": { "bsonType": "long", "minimum": 1_i64, "maximum": FencingToken::MAX.signed() },
                "stripes": { "enum": [STRIPES] },
                "claimedAt": { "bsonType": "date" },
                "previous": { "bsonType": ["long", "null"] },
                "bumped": { "bsonType": ["long", "null"] },
            },
        },
    }
}

/// Where refusals of `resource` are counted: a document of its own, that no claim and no transaction writes.
pub(super) fn refusals_id(resource: &ResourceName) -> Document {
    doc! { "resource": resource.as_str(), "refusals": true }
}

impl Found {
    /// Who has claimed the mark: nobody, where an operator has raised it.
    pub(super) fn claimant(&self) -> Option<&LeaseName> {
        self.lease.as_ref().filter(|_| !self.bumped)
    }

    /// Reads a mark strictly.
    ///
    /// # Errors
    /// [`Fault::Unreadable`], not applied.
    pub(super) fn read(document: &Document, namespace: &str) -> Result<Self, StoreError> {
        let key = document.get_str("_id").ok();
        let wrong = |field: &str| {
            let key = key.unwrap_or("?").escape_debug();
            StoreError::not_applied(
                Fault::Unreadable,
                format!(
                    "fence \"{key}\" in {namespace}: field \"{field}\" is missing or of a wrong type or value; it \
                     was left as it is; mend it, or {REMOVE_MARK}"
                ),
            )
        };
        let lease = match document.get("lease") {
            Some(Bson::Null) => None,
            Some(Bson::String(name)) => Some(LeaseName::new(name).map_err(|_| wrong("lease"))?),
            _ => return Err(wrong("lease")),
        };
        if !matches!(document.get("claimedAt"), Some(Bson::DateTime(_))) {
            return Err(wrong("claimedAt"));
        }
        // A claim that knows fewer stripes than transactions enter would not stop them.
        if document.get_i32("stripes").ok() != Some(STRIPES) {
            return Err(wrong("stripes"));
        }
        if !matches!(document.get("previous"), Some(Bson::Null | Bson::Int64(_))) {
            return Err(wrong("previous"));
        }
        let token = document.get_i64("token").ok();
        // The token and not a word: a claim by an earlier Tenure raises the mark past it, and knows nothing
        // of it.
        let bumped = match document.get("bumped") {
            None | Some(Bson::Null) => false,
            Some(Bson::Int64(bumped)) => token == Some(*bumped),
            Some(_) => return Err(wrong("bumped")),
        };
        Ok(Self {
            bumped,
            resource: key
                .and_then(|key| ResourceName::new(key).ok())
                .ok_or_else(|| wrong("_id"))?,
            lease,
            token: token
                .and_then(|token| FencingToken::from_signed(token).ok())
                .ok_or_else(|| wrong("token"))?,
        })
    }
}
