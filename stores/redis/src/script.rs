//! The scripts: each is one atomic step of the server, by its clock.

use crate::record::FIELDS;
use crate::words::Words;
use redis::Cmd;
use std::fmt::Display;
use std::sync::LazyLock;
use tenure_core::{FencingToken, Ttl};

/// Takes a lease.
pub(crate) static ACQUIRE: LazyLock<Script> = LazyLock::new(|| on_records(include_str!("lua/acquire.lua")));
/// Extends leases.
pub(crate) static RENEW: LazyLock<Script> = LazyLock::new(|| on_records(include_str!("lua/renew.lua")));
/// Gives leases back.
pub(crate) static RELEASE: LazyLock<Script> = LazyLock::new(|| on_records(include_str!("lua/release.lua")));
/// Leaves a wish.
pub(crate) static ASK: LazyLock<Script> = LazyLock::new(|| on_records(include_str!("lua/ask.lua")));
/// Reads a record.
pub(crate) static GET: LazyLock<Script> = LazyLock::new(|| on_records(include_str!("lua/get.lua")));
/// Reads a page of records.
pub(crate) static LIST: LazyLock<Script> = LazyLock::new(|| on_records(include_str!("lua/list.lua")));
/// Removes what nobody uses.
pub(crate) static PURGE: LazyLock<Script> = LazyLock::new(|| on_records(include_str!("lua/purge.lua")));

/// Gives a store its id.
pub(crate) static STORE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/store.lua").to_owned()));

/// Has a member keep who it is, and who the members of its quorum are.
pub(crate) static MEMBERSHIP: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/membership.lua").to_owned()));

/// Which rights of who leads a user lacks.
pub(crate) static RIGHTS: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/rights.lua").to_owned()));

/// Takes a record in a member of a quorum.
pub(crate) static TAKE: LazyLock<Script> =
    LazyLock::new(|| on_records_of_member(include_str!("lua/quorum_take.lua")));
/// Gives what was taken its token.
pub(crate) static CONFIRM: LazyLock<Script> =
    LazyLock::new(|| on_records_of_member(include_str!("lua/quorum_confirm.lua")));
/// Lets go of what was taken.
pub(crate) static UNDO: LazyLock<Script> = LazyLock::new(|| on_records(include_str!("lua/quorum_undo.lua")));

/// Reads terms for members that missed them.
pub(crate) static TERM: LazyLock<Script> = LazyLock::new(|| on_records(include_str!("lua/quorum_term.lua")));
/// Takes terms in that were missed.
pub(crate) static ADOPT: LazyLock<Script> =
    LazyLock::new(|| on_records_of_member(include_str!("lua/quorum_adopt.lua")));
/// Removes what nobody uses from a member.
pub(crate) static PURGE_MEMBER: LazyLock<Script> =
    LazyLock::new(|| on_records(include_str!("lua/quorum_purge.lua")));

/// For scripts that have written nothing.
pub(crate) const STILL_RULES: &str = include_str!("lua/still_rules.lua");

/// Names in which nothing can be wrong but their length.
const PLAIN: &str = "'^[a-z0-9A-Z_:@-][a-z0-9A-Z_:@.-]*$'";
/// Those in which there may be an empty part besides, or one that begins with a dot.
const WITH_SLASHES: &str = "'^[a-z0-9A-Z_:@-][a-z0-9A-Z_:@./-]*[a-z0-9A-Z_:@.-]$'";

/// A script, and the hash by which a server knows it.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    text: String,
    hash: String,
}

impl Script {
    pub(crate) fn new(text: String) -> Self {
        Self {
            hash: redis::Script::new(&text).get_hash().to_owned(),
            text,
        }
    }
}

/// A script that reads records as strictly as `record.rs`, and knows how to ask whether the server still
/// rules.
fn on_records(body: &str) -> Script {
    let reading = include_str!("lua/record.lua")
        .replace("STILL_RULES", STILL_RULES)
        .replace("HIGHEST_REMOVED", include_str!("lua/quorum_removed.lua"));
    let mut text = format!("{reading}\n{body}");
    for (place, field) in FIELDS.iter().enumerate() {
        text = text.replace(&format!("r.{field}"), &format!("r[{}]", place + 1));
    }
    let names = format!("'{}'", FIELDS.join("', '"));
    let text = text.replace("FIELDS", &names);
    let text = text.replace("PLAIN", PLAIN).replace("WITH_SLASHES", WITH_SLASHES);
    let text = text.replace("BEYOND_TTL_MAX_MS", &Ttl::BEYOND_MAX.as_millis().to_string());
    Script::new(with_token_max(&text))
}

/// A text with the largest token in it.
pub(crate) fn with_token_max(text: &str) -> String {
    text.replace("TOKEN_MAX", &FencingToken::MAX.to_string())
}

/// The same, by which a term comes to one member of a quorum.
fn on_records_of_member(body: &str) -> Script {
    on_records(&format!("{}{body}", include_str!("lua/quorum_member.lua")))
}

/// What a script is run with.
#[derive(Clone, Default, Debug)]
pub(crate) struct Arguments {
    /// Those of the user's after ours.
    pub(crate) keys: Words,
    pub(crate) values: Words,
}

impl Arguments {
    /// With these keys.
    pub(crate) fn on(keys: impl IntoIterator<Item = String>) -> Self {
        let mut arguments = Self::default();
        keys.into_iter().for_each(|key| arguments.keys.push(key));
        arguments
    }

    /// One more value.
    #[must_use]
    pub(crate) fn with(mut self, value: impl Display) -> Self {
        self.push(value);
        self
    }

    /// One more value.
    pub(crate) fn push(&mut self, value: impl Display) {
        self.values.push(value);
    }

    /// By the script's hash, which the server knows once it has run it.
    pub(crate) fn by_hash(&self, script: &Script) -> Cmd {
        self.command("EVALSHA", &script.hash)
    }

    /// With the script's text.
    pub(crate) fn by_text(&self, script: &Script) -> Cmd {
        self.command("EVAL", &script.text)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        const COUNT_DIGITS: usize = 4;
        let words = self.keys.iter().chain(self.values.iter());
        let mut command = Cmd::with_capacity(
            3 + self.keys.len() + self.values.len(),
            name.len() + script.len() + COUNT_DIGITS + self.keys.length() + self.values.length(),
        );
        command.arg(name).arg(script).arg(self.keys.len());
        words.for_each(|word| {
            command.arg(word);
        });
        command
    }
}

#[cfg(test)]
mod tests {
    use super::{
        ACQUIRE, ADOPT, ASK, CONFIRM, GET, LIST, PURGE, PURGE_MEMBER, RELEASE, RENEW, TAKE, TERM, UNDO,
    };
    use crate::record::FIELDS;

    #[test]
    fn no_fields_name_begins_like_anothers() {
        for (place, field) in FIELDS.iter().enumerate() {
            let alike = FIELDS[place + 1..]
                .iter()
                .find(|other| other.starts_with(field) || field.starts_with(**other));
            assert_eq!(alike, None, "\"{field}\" would be put in its place");
        }
    }

    /// A name that is none of a record's would be read as nothing, and not be missed.
    #[test]
    fn scripts_read_nothing_of_a_record_but_its_fields() {
        for script in [
            &ACQUIRE,
            &ADOPT,
            &ASK,
            &CONFIRM,
            &GET,
            &LIST,
            &PURGE,
            &PURGE_MEMBER,
            &RELEASE,
            &RENEW,
            &TAKE,
            &TERM,
            &UNDO,
        ] {
            for line in script
                .text
                .lines()
                .filter(|line| !line.trim_start().starts_with("--"))
            {
                let named = line.match_indices("r.").filter(|(at, _)| {
                    let before = line[..*at].chars().next_back();
                    !before.is_some_and(|before| before.is_alphanumeric() || before == '_')
                });
                for (at, _) in named {
                    assert!(line[at..].starts_with("r.err"), "no field of a record: {line}");
                }
            }
        }
    }
}
