//! The store's URL: the driver's own, with a few options of ours in its query.

use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tenure_remote::url::{self, split_scheme};

/// Database, where the URL names none.
pub(crate) const DATABASE: &str = "tenure";

/// Collection, where the URL names none.
pub(crate) const COLLECTION: &str = "job_leases";

/// As [`DATABASE`], in the preset for locks.
pub(crate) const LOCKS_DATABASE: &str = "MongoLocks";

/// As [`COLLECTION`], in the preset for locks.
pub(crate) const LOCKS_COLLECTION: &str = "pessimisticLocks";

/// A URL taken apart. Holds the password, so it is never shown: no `Debug`.
pub(crate) struct StoreUrl {
    /// What the driver gets.
    pub(crate) driver: String,
    /// `collection=`.
    pub(crate) collection: Option<String>,
    /// `purgeAfter=`.
    pub(crate) purge_after: Option<Duration>,
}

impl StoreUrl {
    /// Takes our options out of `url`; the rest is the driver's.
    ///
    /// # Errors
    /// [`Fault::Invalid`]: not a MongoDB URL, or one of our options has no sense. The message shows the
    /// option, never the URL.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let scheme = split_scheme("MongoDB", url)?.map(|(scheme, _)| scheme);
        if !matches!(scheme, Some("mongodb" | "mongodb+srv")) {
            return Err(invalid(
                "the MongoDB URL must begin with mongodb:// or mongodb+srv://",
            ));
        }
        let mut parsed = Self {
            driver: url.to_owned(),
            collection: None,
            purge_after: None,
        };
        let Some((address, query)) = url.rsplit_once('?') else {
            return Ok(parsed);
        };
        let mut foreign = Vec::new();
        for option in query.split('&') {
            // In any case, as all options of these URLs.
            let (key, value) = option.split_once('=').unwrap_or_default();
            let is_second = if key.eq_ignore_ascii_case("collection") {
                let name = collection_name(&decoded(value)?)?;
                parsed.collection.replace(name).is_some()
            } else if key.eq_ignore_ascii_case("purgeAfter") {
                let wait = purge_after(&decoded(value)?)?;
                parsed.purge_after.replace(wait).is_some()
            } else {
                foreign.push(option);
                false
            };
            if is_second {
                return Err(invalid(
                    "the MongoDB URL has collection or purgeAfter twice; leave one of them out",
                ));
            }
        }
        parsed.driver = match foreign.is_empty() {
            true => address.to_owned(),
            false => format!("{address}?{}", foreign.join("&")),
        };
        Ok(parsed)
    }

    /// What to say when the driver cannot read the URL, and none of its options is to blame. Not in its own
    /// words: they quote what they stumbled over, and where a URL is cut off or not escaped, that is the
    /// password.
    pub(crate) fn unreadable() -> StoreError {
        invalid(
            "the MongoDB URL cannot be read: write mongodb://user:password@host:port/database?options, check port and \
             options, and percent-encode special characters (such as @ : / ? %) in user and password",
        )
    }
}

/// Checks the name of a collection.
pub(crate) fn collection_name(name: &str) -> Result<String, StoreError> {
    let wrong = name.is_empty()
        || name.len() > COLLECTION_BYTES_MAX
        || name.starts_with("system.")
        || name.starts_with('.')
        || name.ends_with('.')
        || name.contains('$')
        || name.contains(char::is_control);
    if wrong {
        let shown: String = name.chars().take(40).flat_map(char::escape_debug).collect();
        return Err(invalid(&format!(
            "collection \"{shown}\" is no name for a collection: 1 to {COLLECTION_BYTES_MAX} bytes, no $, no control character, not system.*"
        )));
    }
    Ok(name.to_owned())
}

/// Checks how long names that nobody uses are kept.
pub(crate) fn purge_wait(wait: Duration) -> Result<Duration, StoreError> {
    if (PURGE_AFTER_MIN..=PURGE_AFTER_MAX).contains(&wait) {
        return Ok(wait);
    }
    Err(invalid(&format!(
        "purgeAfter {wait:?} is outside 1d to 36500d; 30d suits most, and without it nothing is ever removed"
    )))
}

fn purge_after(text: &str) -> Result<Duration, StoreError> {
    let digits = text.len()
        - text
            .trim_start_matches(|character: char| character.is_ascii_digit())
            .len();
    let (number, unit) = text.split_at(digits);
    let seconds_each = match unit {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(60 * 60),
        "d" => Some(24 * 60 * 60),
        _ => None,
    };
    number
        .parse::<u64>()
        .ok()
        .zip(seconds_each)
        .and_then(|(number, each)| number.checked_mul(each))
        .map(Duration::from_secs)
        .ok_or_else(|| {
            let shown: String = text.chars().take(40).flat_map(char::escape_debug).collect();
            invalid(&format!(
                "purgeAfter \"{shown}\" is no duration; write it like 30d or 36h"
            ))
        })
        .and_then(purge_wait)
}

fn decoded(text: &str) -> Result<String, StoreError> {
    url::decoded(text).ok_or_else(|| invalid("an option in the MongoDB URL is not UTF-8"))
}

pub(crate) fn invalid(message: &str) -> StoreError {
    StoreError::not_applied(Fault::Invalid, message)
}

/// Longest name of a collection, in bytes: with the database's it must stay within the server's 255.
const COLLECTION_BYTES_MAX: usize = 180;

/// Shortest wait before unused names are removed: no term lasts that long without a renewal.
const PURGE_AFTER_MIN: Duration = Duration::from_secs(24 * 60 * 60);

/// Longest wait before unused names are removed: a century.
const PURGE_AFTER_MAX: Duration = Duration::from_secs(36_500 * 24 * 60 * 60);
