use mongodb::bson::{Document, doc};

/// Longest name of a lease, in bytes; the same limit as `LeaseName`'s.
const NAME_BYTES_MAX: i32 = 255;

/// Longest candidate id, in bytes; the same limit as `CandidateId`'s. The schema can only count
/// characters, so every pipeline checks the bytes too.
pub(crate) const OWNER_BYTES_MAX: i32 = 253;

/// Longest note, in bytes. As with the owner, the schema counts characters.
pub(crate) const NOTE_BYTES_MAX: i32 = 1024;

/// What `LeaseName::new` and `CandidateId::new` accept, but for the length: no control character, no white
/// space outside, no empty, `.` or `..` part between slashes.
pub(crate) fn name_pattern() -> &'static str {
    r"(?s)\A(?!\p{Z})(?!.*\p{Z}\z)(?!(?:.*/)?\.{0,2}(?:/|\z))[^\p{Cc}]+\z"
}

/// The condition in every writing statement's filter: only records that this crate can read are touched.
///
/// A record that does not match is not found, so no update, however wrong, can reach it; an upsert on it
/// fails with a duplicate key.
pub(crate) fn readable() -> Document {
    doc! { "$jsonSchema": schema() }
}

/// Keys that are lease names, judged as `LeaseName::new` does.
pub(crate) fn nameable() -> Document {
    doc! {
        "_id": { "$type": "string", "$regex": name_pattern() },
        "$expr": { "$cond": [
            { "$eq": [{ "$type": "$_id" }, "string"] },
            { "$lte": [{ "$strLenBytes": "$_id" }, NAME_BYTES_MAX] },
            false,
        ] },
    }
}

fn schema() -> Document {
    let number = doc! { "bsonType": "long", "minimum": 1_i64 };
    let date = doc! { "bsonType": "date" };
    let name = |bytes_max: i32| {
        doc! { "bsonType": "string", "minLength": 1, "maxLength": bytes_max, "pattern": name_pattern() }
    };
    let mark = doc! {
        "bsonType": ["object", "null"],
        "required": ["generation", "at"],
        "properties": { "generation": number.clone(), "at": date.clone() },
    };
    doc! {
        "required": [
            "owner", "incarnation", "generation", "attempt", "terms", "ttlMs", "createdAt", "acquiredAt",
            "lastRenewedAt", "expiresAt", "released", "stepDownAsked", "note", "previous",
        ],
        "properties": {
            "owner": name(OWNER_BYTES_MAX),
            "incarnation": { "bsonType": "string", "pattern": r"\A[0-9a-f]{32}\z" },
            "generation": number.clone(),
            "attempt": number.clone(),
            "terms": number.clone(),
            "ttlMs": { "bsonType": "long", "minimum": 100_i64, "maximum": 86_400_000_i64 },
            "createdAt": date.clone(),
            "acquiredAt": date.clone(),
            "lastRenewedAt": { "bsonType": ["date", "null"] },
            "expiresAt": date.clone(),
            "released": mark.clone(),
            "stepDownAsked": mark,
            "note": { "bsonType": "string", "maxLength": NOTE_BYTES_MAX },
            "previous": {
                "bsonType": ["object", "null"],
                "required": ["owner", "generation", "end", "at"],
                "properties": {
                    "owner": name(OWNER_BYTES_MAX),
                    "generation": number.clone(),
                    "end": { "enum": ["released", "expired"] },
                    "at": date,
                },
            },
            "renewal": { "bsonType": ["objectId", "null"] },
            "purgeAt": { "bsonType": ["date", "null"] },
        },
    }
}
