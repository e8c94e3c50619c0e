//! Which keys the records of one place have.

use tenure_core::{Cursor, LeaseName, ResourceName};

/// What separates a lease's name from what a key holds of it. No name has a control character, so the keys of
/// a lease stand together, right after its name and before every longer one.
const SEPARATOR: char = '\t';

/// The first byte after the separator.
const AFTER_SEPARATOR: char = '\n';

/// The names of everything under one prefix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

/// What a key of a lease holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// The permanent record: written once a term, so that its revision is the term's token.
    Record,
    /// There as long as the term was not released.
    Term,
    /// There as long as the term is held: it ends with the holder's session.
    Holder,
    /// There if the holder was asked to step down: it ends with the holder's session.
    Wish,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    pub(crate) fn lease(&self, text: &str) -> String {
        format!("{}/lease/{text}", self.prefix)
    }

    /// A key of a lease.
    pub(crate) fn part(&self, name: &LeaseName, part: Part) -> Vec<u8> {
        let key = self.lease(name.as_str());
        match part {
            Part::Record => key,
            Part::Term => format!("{key}{SEPARATOR}term"),
            Part::Holder => format!("{key}{SEPARATOR}holder"),
            Part::Wish => format!("{key}{SEPARATOR}wish"),
        }
        .into_bytes()
    }

    /// All keys of a lease: from, and up to but without.
    pub(crate) fn of_lease(&self, name: &LeaseName) -> (Vec<u8>, Vec<u8>) {
        let key = self.lease(name.as_str());
        let end = format!("{key}{AFTER_SEPARATOR}");
        (key.into_bytes(), end.into_bytes())
    }

    /// All keys of the leases whose names begin with `prefix`, those after `after` alone.
    pub(crate) fn of_leases(&self, prefix: &str, after: Option<&Cursor>) -> (Vec<u8>, Vec<u8>) {
        let (least, end) = with_prefix(&self.lease(prefix));
        let beyond = |after: &Cursor| {
            let separator = [AFTER_SEPARATOR as u8];
            [self.lease("").as_bytes(), after.as_bytes(), &separator].concat()
        };
        (after.map_or_else(Vec::new, beyond).max(least), end)
    }

    /// Behind this key among those of leases, whatever it is.
    pub(crate) fn behind(&self, key: &[u8]) -> Cursor {
        Cursor::behind(key.strip_prefix(self.lease("").as_bytes()).unwrap_or(key))
    }

    /// Behind this key among the notes.
    pub(crate) fn behind_note(&self, key: &[u8]) -> Cursor {
        Cursor::behind(key.strip_prefix(self.unused("").as_slice()).unwrap_or(key))
    }

    /// Which lease a key belongs to, and what it holds of it; the name as it stands there. `None` for a key
    /// that is not of this layout.
    pub(crate) fn read<'k>(&self, key: &'k [u8]) -> Option<(&'k str, Part)> {
        let root = self.lease("");
        let text = std::str::from_utf8(key).ok()?.strip_prefix(root.as_str())?;
        match text.split_once(SEPARATOR) {
            None => Some((text, Part::Record)),
            Some((name, "term")) => Some((name, Part::Term)),
            Some((name, "holder")) => Some((name, Part::Holder)),
            Some((name, "wish")) => Some((name, Part::Wish)),
            Some(_) => None,
        }
    }

    /// Where a clean-up notes that a lease is unused. Not beside the lease's own keys: there readers would
    /// read it, and a service would have the right to write it.
    pub(crate) fn unused(&self, name: &str) -> Vec<u8> {
        format!("{}/unused/{name}", self.prefix).into_bytes()
    }

    /// The notes on the leases whose names begin with `prefix`: those after `after` alone, and up to and with
    /// `last`.
    pub(crate) fn of_unused(
        &self,
        prefix: &str,
        after: Option<&Cursor>,
        last: Option<&Cursor>,
    ) -> (Vec<u8>, Vec<u8>) {
        let (least, end) = with_prefix(&format!("{}/unused/{prefix}", self.prefix));
        let beyond = |place: &Cursor| [&self.unused(""), place.as_bytes(), &[0]].concat();
        let from = after.map_or_else(Vec::new, beyond);
        (from.max(least), last.map_or(end, beyond))
    }

    /// The lease that a note is on, as it stands there.
    pub(crate) fn noted<'k>(&self, key: &'k [u8]) -> Option<&'k str> {
        let root = format!("{}/unused/", self.prefix);
        std::str::from_utf8(key).ok()?.strip_prefix(root.as_str())
    }

    /// The mark of a resource.
    pub(crate) fn mark(&self, resource: &ResourceName) -> Vec<u8> {
        format!("{}/fence/{resource}", self.prefix).into_bytes()
    }

    /// All marks, those after `after` alone.
    pub(crate) fn marks(&self, after: Option<&Cursor>) -> (Vec<u8>, Vec<u8>) {
        let root = format!("{}/fence/", self.prefix);
        let (least, end) = with_prefix(&root);
        // Right after the key itself.
        let beyond = |place: &Cursor| [root.as_bytes(), place.as_bytes(), &[0]].concat();
        let from = after.map_or_else(Vec::new, beyond);
        (from.max(least), end)
    }

    /// The resource of a mark's key, as it stands there.
    pub(crate) fn marked<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        let root = format!("{}/fence/", self.prefix);
        key.strip_prefix(root.as_bytes()).unwrap_or(key)
    }

    /// Where refusals of a resource are counted.
    pub(crate) fn refusals(&self, resource: &ResourceName) -> Vec<u8> {
        format!("{}/refusals/{resource}", self.prefix).into_bytes()
    }

    /// Where refusals are counted of the resources from one to another, as these stand in the keys of their
    /// marks.
    pub(crate) fn refusals_from_to(&self, first: &[u8], last: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let root = format!("{}/refusals/", self.prefix);
        (
            [root.as_bytes(), first].concat(),
            [root.as_bytes(), last, &[0]].concat(),
        )
    }

    /// The resource of a count's key, as it stands there.
    pub(crate) fn counted<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        let root = format!("{}/refusals/", self.prefix);
        key.strip_prefix(root.as_bytes()).unwrap_or(key)
    }

    /// The scratch key of an examination.
    pub(crate) fn scratch(&self, number: u64) -> Vec<u8> {
        format!("{}/examination/{number:016x}", self.prefix).into_bytes()
    }
}

/// Every key that begins with `text`: from, and up to but without.
fn with_prefix(text: &str) -> (Vec<u8>, Vec<u8>) {
    let mut end = text.as_bytes().to_vec();
    // No byte of UTF-8 is 0xff, so the last one can be raised.
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    (text.as_bytes().to_vec(), end)
}

/// Text that a message shows.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars()
        .take(SHOWN_CHARACTERS_MAX)
        .flat_map(char::escape_debug)
        .collect()
}

/// Longest key or value that a message shows, in characters.
const SHOWN_CHARACTERS_MAX: usize = 80;
