use mongodb::bson::{Bson, Document, doc};
use tenure_core::{Fault, FencingToken, ResourceName, StoreError};

/// A mark that was understood.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// The term that claimed last.
    pub(super) token: FencingToken,
}

/// Finds the mark of `resource`, unless the document is something else: then no statement can touch it.
pub(super) fn filter(resource: &ResourceName) -> Document {
    let number = |minimum: i64| doc! { "bsonType": "long", "minimum": minimum };
    doc! {
        "_id": resource.as_str(),
        "$jsonSchema": {
            "required": ["token", "entries", "claimedAt", "enteredAt", "previous"],
            "properties": {
                "token": number(1),
                "entries": { "bsonType": "long", "minimum": 0_i64, "maximum": i64::MAX - 1 },
                "claimedAt": { "bsonType": "date" },
                "enteredAt": { "bsonType": ["date", "null"] },
                "previous": { "bsonType": ["long", "null"] },
            },
        },
    }
}

impl Mark {
    /// Reads a mark strictly.
    ///
    /// # Errors
    /// [`Fault::Unreadable`], not applied.
    pub(super) fn read(document: &Document, namespace: &str) -> Result<Self, StoreError> {
        let wrong = |field: &str| {
            let key: String = match document.get_str("_id") {
                Ok(key) => key.escape_debug().to_string(),
                Err(_) => "?".to_owned(),
            };
            StoreError::not_applied(
                Fault::Unreadable,
                format!(
                    "fence \"{key}\" in {namespace}: field \"{field}\" is missing or of a wrong type or value; it \
                     was left as it is; mend or remove the document"
                ),
            )
        };
        let date = |field: &str| match document.get(field) {
            Some(Bson::DateTime(_)) => Ok(()),
            _ => Err(wrong(field)),
        };
        date("claimedAt")?;
        if !matches!(document.get("enteredAt"), Some(Bson::Null)) {
            date("enteredAt")?;
        }
        if !document
            .get_i64("entries")
            .is_ok_and(|entries| (0..i64::MAX).contains(&entries))
        {
            return Err(wrong("entries"));
        }
        if !matches!(document.get("previous"), Some(Bson::Null | Bson::Int64(_))) {
            return Err(wrong("previous"));
        }
        let token = document
            .get_i64("token")
            .ok()
            .and_then(|token| FencingToken::from_signed(token).ok());
        token.map(|token| Self { token }).ok_or_else(|| wrong("token"))
    }
}
