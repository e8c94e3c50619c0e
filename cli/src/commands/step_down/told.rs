//! What is said of a term that has ended, and of who is next.

use crate::arguments::Form;
use crate::commands::look::Viewed;
use crate::output::{clean, line};
use serde_json::{Value, json};
use std::fmt;
use tenure::LeaseName;
use tenure::contract::{Lease, Occupancy};

/// How a term has ended, as far as the record tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum How {
    /// Its holder gave it back.
    Released,
    /// It was vacated by force, without its holder.
    Vacated,
    /// Nobody has renewed it: its holder has not answered, and may work on.
    Expired,
    /// Another term has begun, or the record is gone.
    Unknown,
}

impl How {
    fn word(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Vacated => "vacated",
            Self::Expired => "expired",
            Self::Unknown => "unknown",
        }
    }
}

/// A term that has ended.
pub(super) struct Ended {
    /// The lease, as it was held.
    pub(super) before: Lease,
    pub(super) how: How,
}

impl Ended {
    /// Judges by the record as it is now.
    pub(super) fn judge(before: Lease, now: Option<&Lease>) -> Self {
        let same = now.filter(|now| now.token == before.token);
        let how = match same.map(Lease::occupancy) {
            Some(Occupancy::Vacant) => How::Released,
            Some(Occupancy::Expired) => How::Expired,
            Some(Occupancy::Held) | None => How::Unknown,
        };
        Self { before, how }
    }

    fn in_json(&self) -> Value {
        json!({
            "holder": self.before.holder.id.as_str(),
            "token": self.before.token.number(),
            "how": self.how.word(),
        })
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (holder, token) = (&self.before.holder, self.before.token);
        match self.how {
            How::Released => write!(f, "{holder} (token {token}) has stepped down"),
            How::Vacated => write!(f, "term {token} of {holder} was vacated"),
            How::Expired => write!(
                f,
                "term {token} has expired: {holder} has not answered, and only a fence keeps its late writes out"
            ),
            How::Unknown => write!(f, "term {token} of {holder} has ended"),
        }
    }
}

/// What has become of the lease, for people or programs.
pub(super) fn told(name: &LeaseName, ended: Option<&Ended>, successor: Option<&Lease>, form: Form) -> String {
    match form {
        Form::Json => {
            let successor = successor.map(
                |successor| json!({"holder": successor.holder.id.as_str(), "token": successor.token.number()}),
            );
            let ended = ended.map(Ended::in_json);
            format!(
                "{}\n",
                json!({"name": name.as_str(), "never_taken": false, "ended": ended, "successor": successor})
            )
        }
        Form::Text => {
            let next = successor.map(|next| format!("{} holds it now, token {}", next.holder, next.token));
            let told = match (ended, next) {
                (None, None) => "nobody holds it".to_owned(),
                (None, Some(next)) => next,
                (Some(ended), None) => format!("{ended}; nobody has taken it yet"),
                (Some(ended), Some(next)) => format!("{ended}; {next}"),
            };
            line(&format!("lease \"{name}\": {told}"))
        }
    }
}

/// What to say of a lease that has no record.
pub(super) fn never_taken(name: &LeaseName, store: &Viewed, form: Form) -> String {
    match form {
        Form::Json => format!(
            "{}\n",
            json!({"name": name.as_str(), "never_taken": true, "ended": null, "successor": null})
        ),
        Form::Text => line(&format!("lease \"{name}\": never taken in {}", store.shown())),
    }
}

/// What to say when another than the one who was called has the lease, or nobody.
pub(super) fn not_taken_over(ended: Option<&Ended>, to: &str, waited: &str, now: Option<&Lease>) -> String {
    let (to, ended) = (clean(to), ended.map(|ended| format!("{ended}, but ")));
    let now = now.map_or("nobody holds it".to_owned(), |now| {
        format!("{} holds it, token {}", now.holder, now.token)
    });
    format!(
        "{}{to} has not taken over after {waited}; {now}",
        ended.unwrap_or_default()
    )
}
