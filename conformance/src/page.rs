//! Pages of a model: of its names, and of what is none and stands among them.

use std::collections::{BTreeMap, BTreeSet};
use tenure_core::{Cursor, LeaseName, Page};

/// What stands on a page, in its order: what each key holds, or the key itself where it is no name. And where
/// the next page begins.
pub(crate) type Paged<'a, Slot> = (Vec<Result<(&'a LeaseName, &'a Slot), &'a str>>, Option<Cursor>);

/// Reads a page.
pub(crate) fn page_of<'a, Slot>(
    page: &Page,
    slots: &'a BTreeMap<LeaseName, Slot>,
    strays: &'a BTreeSet<String>,
) -> Paged<'a, Slot> {
    let named = slots.iter().map(|(name, slot)| (name.as_str(), Ok((name, slot))));
    let all = named.chain(strays.iter().map(|stray| (stray.as_str(), Err(stray.as_str()))));
    let mut found: Vec<_> = all.filter(|(key, _)| page.holds(key.as_bytes())).collect();
    found.sort_by_key(|(key, _)| *key);
    let more = found.len() > usize::from(page.limit);
    found.truncate(usize::from(page.limit));
    let last = found.last().map(|(key, _)| Cursor::behind(key));
    (
        found.into_iter().map(|(_, one)| one).collect(),
        last.filter(|_| more),
    )
}
