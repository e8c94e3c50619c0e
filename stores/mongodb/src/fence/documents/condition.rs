//! The condition and the stamp of a write.

use crate::fence::EnterError;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::{UpdateModifications, WriteModel};
use tenure_core::{Fault, FenceError, FencingToken, StoreError};

/// `field <= token` in what is looked for, and `field = token` in what is written.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    field: String,
    token: FencingToken,
}

impl Condition {
    pub(super) fn new(field: &str, token: FencingToken) -> Self {
        Self {
            field: field.to_owned(),
            token,
        }
    }

    pub(super) fn field(&self) -> &str {
        &self.field
    }

    /// What this term may write: documents that carry its token, an earlier one, or none yet.
    pub(super) fn narrow(&self, filter: Document) -> Document {
        let mine = doc! { "$or": [
            { &self.field: itself("$lte", self.token.signed()) },
            { &self.field: itself("$eq", Bson::Null) },
        ] };
        joined(filter, mine)
    }

    /// What a later term has written.
    pub(super) fn newer(&self, filter: Document) -> Document {
        joined(filter, doc! { &self.field: itself("$gt", self.token.signed()) })
    }

    /// The token of a document; one that is no token is larger than any.
    pub(super) fn token(&self, document: &Document) -> Option<FencingToken> {
        let number = document.get(&self.field)?;
        let token = number.as_i64().or_else(|| number.as_i32().map(i64::from));
        Some(
            token
                .and_then(|token| FencingToken::from_signed(token).ok())
                .unwrap_or(FencingToken::MAX),
        )
    }

    pub(super) fn stamped(&self, mut document: Document) -> Document {
        document.insert(&self.field, self.token.signed());
        document
    }

    pub(super) fn stamp(&self, update: UpdateModifications) -> Result<UpdateModifications, EnterError> {
        match update {
            UpdateModifications::Pipeline(mut stages) => {
                // The last stage: whatever the others make of the field, it holds the token in the end.
                stages.push(doc! { "$set": { &self.field: self.token.signed() } });
                Ok(UpdateModifications::Pipeline(stages))
            }
            UpdateModifications::Document(update) => {
                self.stamp_operators(update).map(UpdateModifications::Document)
            }
            _ => Err(invalid(
                "this kind of update is unknown; give a document or a pipeline",
            )),
        }
    }

    fn stamp_operators(&self, mut update: Document) -> Result<Document, EnterError> {
        for (operator, changes) in &update {
            let Bson::Document(changes) = changes else {
                return Err(invalid(format!(
                    "\"{operator}\" is no update operator; a replacement has a call of its own"
                )));
            };
            if !operator.starts_with('$') {
                return Err(invalid(format!(
                    "\"{operator}\" is no update operator; a replacement has a call of its own"
                )));
            }
            let renamed_to = changes
                .values()
                .filter_map(Bson::as_str)
                .filter(|_| operator == "$rename");
            for path in changes.keys().map(String::as_str).chain(renamed_to) {
                if self.touches(path) {
                    return Err(invalid(format!(
                        "{operator} changes \"{path}\", the field of the fence; leave it to the fence"
                    )));
                }
            }
        }
        let token = self.token.signed();
        match update.get_document_mut("$set") {
            Ok(set) => drop(set.insert(&self.field, token)),
            Err(_) => drop(update.insert("$set", doc! { &self.field: token })),
        }
        Ok(update)
    }

    pub(super) fn model(&self, model: WriteModel) -> Result<WriteModel, EnterError> {
        let mut model = model;
        match &mut model {
            WriteModel::InsertOne(insert) => {
                insert.document = self.stamped(std::mem::take(&mut insert.document));
            }
            WriteModel::UpdateOne(update) => {
                if update.upsert == Some(true) {
                    require_id(&update.filter)?;
                }
                update.filter = self.narrow(std::mem::take(&mut update.filter));
                update.update = self.stamp(update.update.clone())?;
            }
            WriteModel::UpdateMany(update) => {
                if update.upsert == Some(true) {
                    require_id(&update.filter)?;
                }
                update.filter = self.narrow(std::mem::take(&mut update.filter));
                update.update = self.stamp(update.update.clone())?;
            }
            WriteModel::ReplaceOne(replace) => {
                if replace.upsert == Some(true) {
                    require_id(&replace.filter)?;
                }
                replace.filter = self.narrow(std::mem::take(&mut replace.filter));
                replace.replacement = self.stamped(std::mem::take(&mut replace.replacement));
            }
            WriteModel::DeleteOne(delete) => delete.filter = self.narrow(std::mem::take(&mut delete.filter)),
            WriteModel::DeleteMany(delete) => delete.filter = self.narrow(std::mem::take(&mut delete.filter)),
            _ => return Err(invalid("this kind of write is unknown to the fence")),
        }
        Ok(model)
    }

    /// Whether a path is the field, within it, or around it.
    fn touches(&self, path: &str) -> bool {
        let within = |outer: &str, inner: &str| {
            inner
                .strip_prefix(outer)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        within(&self.field, path) || within(path, &self.field)
    }
}

/// What looks for a path and what inserts a key must mean the same field: a replacement that is stamped with
/// the key `a.b` is not found by the path `a.b`, and a stale write would be admitted to it.
pub(super) fn require_field(field: &str) -> Result<(), EnterError> {
    let is_one_key = !field.is_empty() && !field.starts_with('$') && !field.contains(['.', '\0']);
    if is_one_key && field != "_id" {
        return Ok(());
    }
    Err(invalid(format!(
        "\"{}\" is no field for the fence; name one at the top of the document, without . or NUL, not beginning with \
         $, and not _id",
        field.escape_debug()
    )))
}

/// An upsert without the `_id` would make a second document beside one that a later term has written.
pub(super) fn require_id(filter: &Document) -> Result<(), EnterError> {
    let is_one_id = match filter.get("_id") {
        // The server takes these for a search, or for no id.
        None | Some(Bson::RegularExpression(_) | Bson::Array(_) | Bson::Undefined) => false,
        Some(Bson::Document(id)) => !id.keys().any(|key| key.starts_with('$')),
        Some(_value) => true,
    };
    if is_one_id {
        return Ok(());
    }
    Err(invalid(
        "an upsert through the fence needs the _id in its filter, as a value and not as a search",
    ))
}

/// The part of an upsert's filter that finds its document, if there is one.
pub(super) fn by_id(filter: &Document) -> Result<Document, EnterError> {
    require_id(filter)?;
    Ok(doc! { "_id": filter.get("_id").cloned() })
}

/// A request that makes no sense; nothing was sent.
pub(super) fn invalid(message: impl Into<String>) -> EnterError {
    EnterError::Refused(FenceError::Store(StoreError::not_applied(
        Fault::Invalid,
        message,
    )))
}

/// A comparison of the value itself: the server compares an array by any of its elements.
fn itself(comparison: &str, value: impl Into<Bson>) -> Document {
    doc! { comparison: value.into(), "$not": { "$type": "array" } }
}

/// Both conditions. Kept flat where that is possible: the server's planner likes it better.
fn joined(mut filter: Document, condition: Document) -> Document {
    if condition.keys().any(|key| filter.contains_key(key)) {
        return doc! { "$and": [filter, condition] };
    }
    filter.extend(condition);
    filter
}
