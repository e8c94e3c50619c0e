//! What a record must be like for a statement to reach it; the same rules as `decode`'s, in the server's
//! words.
//!
//! Said twice. A statement for one lease says it all in its pipeline: what stands in its filter would be
//! planned each time. One for many leases says what concerns types and ranges of the plain fields in its
//! filter, and whatever lies deeper in its pipeline. (A `$jsonSchema` says it all at once, and costs twice as
//! much on every request.)

use mongodb::bson::{Bson, Document, bson, doc};
use tenure_core::{FencingToken, Ttl};

/// Longest name of a lease, in bytes; the same limit as `LeaseName`'s.
const NAME_BYTES_MAX: i32 = 255;

/// Shortest and longest ttl in milliseconds; the same limits as `Ttl`'s.
const TTL_MS_MIN: i64 = 100;
const TTL_MS_MAX: i64 = 86_400_000;

/// Length of an incarnation: 128 bits in hexadecimal digits.
const INCARNATION_BYTES: i32 = 32;

/// Longest candidate id, in bytes; the same limit as `CandidateId`'s.
const OWNER_BYTES_MAX: i32 = 253;

/// Of these letters names are mostly made, and whatever is made of them is one, unless it is all dots.
const PLAIN: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:@";

/// What `LeaseName::new` and `CandidateId::new` accept, but for the length: no control character, no white
/// space outside, no empty, `.` or `..` part between slashes.
fn name_pattern() -> &'static str {
    r"(?s)\A(?!\p{Z})(?!.*\p{Z}\z)(?!(?:.*/)?\.{0,2}(?:/|\z))[^\p{Cc}]+\z"
}

/// The condition in the filter of a statement for many leases: only records that this crate can read are
/// touched.
///
/// A record that does not match is not found, so no update, however wrong, can reach it. [`fits`] is the
/// other half.
pub(crate) fn readable() -> Document {
    // A type in a filter also matches an array with an element of that type.
    let of = |types: Bson| doc! { "$type": types, "$not": { "$type": "array" } };
    let with = |types: &str, more: Document| {
        let mut condition = of(types.into());
        condition.extend(more);
        condition
    };
    let number = || with("long", doc! { "$gte": 1_i64 });
    let token = || with("long", doc! { "$gte": 1_i64, "$lte": token_max() });
    let mark = || of(bson!(["object", "null"]));
    doc! {
        "owner": with("string", doc! { "$regex": name_pattern() }),
        "incarnation": with("string", doc! { "$regex": r"\A[0-9a-f]{32}\z" }),
        "generation": token(),
        "attempt": number(),
        "terms": number(),
        "ttlMs": with("long", doc! { "$gte": TTL_MS_MIN, "$lte": TTL_MS_MAX }),
        "createdAt": of("date".into()),
        "acquiredAt": of("date".into()),
        "lastRenewedAt": of(bson!(["date", "null"])),
        "expiresAt": of("date".into()),
        "released": mark(),
        "stepDownAsked": mark(),
        "note": of("string".into()),
        "previous": mark(),
    }
}

/// The half of the rules that stands in every pipeline: what lies within `released`, `stepDownAsked` and
/// `previous`, and lengths in bytes. Only for records that are [`readable`] so far. Lists are literals: a
/// list of expressions is built anew for every record.
pub(crate) fn fits() -> Bson {
    fits_beside(&[previous_owner()])
}

/// The same, with the texts in it that are names.
fn fits_beside(names: &[Bson]) -> Bson {
    let types =
        |fields: &[&str]| -> Vec<Bson> { fields.iter().map(|field| bson!({ "$type": *field })).collect() };
    let marked = |mark: [&str; 3]| bson!({ "$in": [types(&mark), { "$literal": [["null", "missing", "missing"], ["object", "long", "date"]] }] });
    let previous = [
        "$previous",
        "$previous.owner",
        "$previous.generation",
        "$previous.end",
        "$previous.at",
    ];
    bson!({ "$and": [
        marked(["$released", "$released.generation", "$released.at"]),
        marked(["$stepDownAsked", "$stepDownAsked.generation", "$stepDownAsked.at"]),
        { "$in": [types(&previous), { "$literal": [
            ["null", "missing", "missing", "missing", "missing"],
            ["object", "string", "long", "string", "date"],
        ] }] },
        { "$in": [{ "$type": "$renewal" }, { "$literal": ["objectId", "null", "missing"] }] },
        // The least and the largest of several numbers pass over those that are missing.
        { "$gte": [{ "$min": ["$released.generation", "$stepDownAsked.generation", "$previous.generation", 1_i64] }, 1_i64] },
        { "$lte": [{ "$max": ["$released.generation", "$stepDownAsked.generation", "$previous.generation", 1_i64] }, token_max()] },
        { "$in": [{ "$ifNull": ["$previous.end", "expired"] }, { "$literal": ["released", "expired"] }] },
        { "$lte": [{ "$max": [{ "$strLenBytes": "$owner" }, { "$strLenBytes": previous_owner() }] }, OWNER_BYTES_MAX] },
        are_names(names),
    ] })
}

fn token_max() -> i64 {
    FencingToken::MAX.signed()
}

/// Whether what is held lasts no longer than a lease can: otherwise it is none to others. Whoever holds it
/// puts its expiry right, and all others change nothing of what is held, but for a wish.
pub(crate) fn lasts_no_longer() -> Bson {
    let beyond_ms = i64::try_from(Ttl::BEYOND_MAX.as_millis()).expect("a day");
    // Asked of what may be no record, too: to add what is no number, or ends after all dates, would be an
    // error.
    let ttl_ms = bson!({ "$cond": [
        { "$in": [{ "$type": "$ttlMs" }, { "$literal": ["int", "long"] }] },
        { "$max": [{ "$min": ["$ttlMs", TTL_MS_MAX] }, 0_i64] },
        0_i64,
    ] });
    bson!({ "$lte": ["$expiresAt", { "$add": ["$$NOW", ttl_ms, beyond_ms] }] })
}

/// Of who held it before, or of nobody: a name in any case.
fn previous_owner() -> Bson {
    bson!({ "$ifNull": ["$previous.owner", "nobody"] })
}

/// Whether these texts are what [`name_pattern`] finds, but for their length.
fn are_names(texts: &[Bson]) -> Bson {
    let without = |text: &Bson, letters: &str| bson!({ "$trim": { "input": text, "chars": letters } });
    let mut plain = vec![bson!({ "$eq": [without(&bson!({ "$concat": texts }), PLAIN), ""] })];
    plain.extend(
        texts
            .iter()
            .map(|text| bson!({ "$ne": [without(text, "."), ""] })),
    );
    // A server compiles a pattern with every statement that has one, used or not, unless it depends on the
    // record.
    let pattern = bson!({ "$ifNull": ["$_id.none", name_pattern()] });
    let matched = |text: &Bson| bson!({ "$regexMatch": { "input": text, "regex": &pattern } });
    let matched: Vec<Bson> = texts.iter().map(matched).collect();
    bson!({ "$or": [{ "$and": plain }, { "$and": matched }] })
}

/// The whole as one expression, but for the name, which is the request's: for a statement whose filter says
/// no more than which record.
pub(crate) fn is_record() -> Bson {
    let plain = [
        ("$owner", "string"),
        ("$incarnation", "string"),
        ("$generation", "long"),
        ("$attempt", "long"),
        ("$terms", "long"),
        ("$ttlMs", "long"),
        ("$createdAt", "date"),
        ("$acquiredAt", "date"),
        ("$expiresAt", "date"),
        ("$note", "string"),
    ];
    let found: Vec<Bson> = plain
        .iter()
        .map(|(field, _)| bson!({ "$type": *field }))
        .collect();
    let right: Vec<&str> = plain.iter().map(|(_, kind)| *kind).collect();
    let typed = bson!({ "$eq": [found, { "$literal": right }] });
    let in_range = bson!({ "$and": [
        { "$in": [{ "$type": "$lastRenewedAt" }, { "$literal": ["date", "null"] }] },
        { "$gte": [{ "$min": ["$generation", "$attempt", "$terms"] }, 1_i64] },
        { "$lte": ["$generation", token_max()] },
        { "$gte": ["$ttlMs", TTL_MS_MIN] },
        { "$lte": ["$ttlMs", TTL_MS_MAX] },
        // Trimmed of all its digits nothing is left; a pattern would have to be compiled each time.
        { "$eq": [{ "$strLenBytes": "$incarnation" }, INCARNATION_BYTES] },
        { "$eq": [{ "$trim": { "input": "$incarnation", "chars": "0123456789abcdef" } }, ""] },
        fits_beside(&["$owner".into(), previous_owner()]),
    ] });
    // What is no text has no length, and to ask for it is an error.
    bson!({ "$cond": [typed, in_range, false] })
}

/// Both halves and the name in one filter, for counting; it may not stand in an upsert.
pub(crate) fn understood() -> Document {
    let texts = bson!({ "$eq": [
        [{ "$type": "$_id" }, { "$type": "$owner" }, { "$type": "$note" }],
        ["string", "string", "string"],
    ] });
    let previous = bson!({ "$in": [{ "$type": "$previous.owner" }, ["string", "missing"]] });
    let short = bson!({ "$lte": [{ "$strLenBytes": "$_id" }, NAME_BYTES_MAX] });
    let mut filter = readable();
    filter.insert("_id", doc! { "$type": "string", "$regex": name_pattern() });
    // The server may look at this before it looks at the types in the filter, and lengths of what is no text
    // are an error.
    let safe = bson!({ "$and": [texts, previous] });
    // One that was given back keeps nobody out.
    let credible = bson!({ "$or": [{ "$ne": [{ "$type": "$released" }, "null"] }, lasts_no_longer()] });
    filter.insert(
        "$expr",
        doc! { "$cond": [safe, { "$and": [short, fits(), credible] }, false] },
    );
    filter
}
