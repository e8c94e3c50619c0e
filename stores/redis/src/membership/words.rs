//! What is said of a server that does not count, and the way out.

use super::Roster;
use crate::url::invalid;
use tenure_core::StoreError;

/// The way out, where the hosts are those that are meant.
pub(super) const REPAIR: &str = "to have other members, end all candidates, wait for the longest ttl, and run `tenure store init` with their URL";

/// The way out of a server that counts twice.
pub(crate) const TWINS_REPAIR: &str =
    "a quorum's URL names each of its servers once, whatever names they have";

/// The way out, where one server alone is wrong, as when it was restored from a backup, or has a copy of
/// another's data.
const ONE_WRONG: &str = "if this server alone is wrong, remove its key that ends with \":quorum\"";

pub(super) fn other_quorum(host: &str, theirs: &Roster, ours: &str) -> StoreError {
    let mut named: Vec<&str> = ours.split(',').collect();
    named.sort_unstable();
    if theirs.hosts() == named.join(",") {
        return invalid(&format!(
            "{host} is a member of the quorum {ours}, which was recorded anew since; start this process again, or, if that is told \
             again, run `tenure store init` once more"
        ));
    }
    invalid(&format!(
        "{host} is a member of the quorum {}, and the URL's is {ours}: candidates that name other members may both lead; name the \
         same, or, {REPAIR}; {ONE_WRONG}",
        theirs.hosts()
    ))
}

pub(super) fn stranger(host: &str, ours: &Roster) -> StoreError {
    invalid(&format!(
        "{host} is no member of the quorum {}, as the others know it: candidates that name other members may both lead; name the \
         same, or, {REPAIR}",
        ours.hosts()
    ))
}

pub(super) fn twins(one: &str, other: &str) -> StoreError {
    invalid(&format!(
        "the members {one} and {other} are one server, or one has a copy of the other's data; {TWINS_REPAIR}; {ONE_WRONG}"
    ))
}
