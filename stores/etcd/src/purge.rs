//! Removing the records that nobody uses, a page at a time: noted at one visit, removed at a later one.

use crate::fault::Failure;
use crate::found::Found;
use crate::keys::Part;
use crate::look::Rows;
use crate::record::wall_clock_ms;
use crate::site::{PARTS_MAX, Site, transact};
use crate::unused::Unused;
use crate::wire::kv::{Compare, KeyValue, RangeRequest, RangeResponse, RequestOp, TxnRequest};
use crate::wire::path;
use std::collections::BTreeMap;
use tenure_core::{Cursor, LeaseName, Purge, Purged, Purging, StoreError};
use tenure_remote::Deed;

/// What errors are about.
const SUBJECT: &str = "the clean-up of leases";

/// Most records that one transaction removes. They are side by side in it, and not each in a transaction of
/// its own within: servers such as 3.4.23 do not look for the rights to those.
const REMOVALS_MAX: usize = PARTS_MAX / CONDITIONS;

/// What is compared of each.
const CONDITIONS: usize = 4;

/// Most notes that are read for each name: the others are on names that are gone.
const NOTES_OF_NAME_MAX: i64 = 2;

/// What is there under a name.
#[derive(Default)]
struct Seen {
    rows: Rows,
    note: Option<KeyValue>,
}

/// A record that nobody has used for long enough.
struct Removal {
    name: LeaseName,
    found: Found,
    note_revision: i64,
}

impl Site {
    /// Reads a page and what was noted of it, removes what has stayed unused since, and notes what is unused
    /// now. A name that is held, or gone, has its note taken away. What cannot be understood stays as it is,
    /// with its note.
    pub(crate) async fn purge(&self, request: &Purge) -> Result<Purged, StoreError> {
        let (seen, next) = self.seen_to_purge(request).await?;
        // After the reading: what is noted is as old as it says, or older.
        let now_ms = wall_clock_ms();
        let (mut unused, mut notes) = (Vec::new(), Vec::new());
        for (name, Seen { rows, note }) in seen {
            let (Ok(found), Ok(name)) = (Found::read(&self.keys, &name, &rows), LeaseName::new(name)) else {
                continue;
            };
            let key = self.keys.unused(name.as_str());
            let (Some(now), Some(record)) = (Unused::seen(&found, now_ms), &found.record) else {
                if note.is_some() {
                    notes.push(RequestOp::delete(key));
                }
                continue;
            };
            let noted = note.as_ref().and_then(|row| Unused::decode(&row.value));
            match noted.and_then(|noted| noted.age(&now)) {
                None => notes.push(RequestOp::put(key, now.encode(), 0)),
                Some(age) if age >= request.unused_at_least(record.record.ttl) => unused.push(Removal {
                    name,
                    found,
                    note_revision: note.map_or(0, |row| row.mod_revision),
                }),
                Some(_young) => {}
            }
        }
        let removed = match request.purging {
            Purging::OnlyLooks => 0,
            Purging::Removes => {
                // First, and apart: a server that is full can still remove.
                let removed = self.remove(&unused).await?;
                for part in notes.chunks(PARTS_MAX) {
                    self.change(Vec::new(), part.to_vec()).await?;
                }
                removed
            }
        };
        Ok(Purged {
            unused: unused.into_iter().map(|removal| removal.name).collect(),
            removed,
            next,
        })
    }

    /// The names of a page, of leases and of notes, and where the next begins.
    async fn seen_to_purge(
        &self,
        request: &Purge,
    ) -> Result<(BTreeMap<String, Seen>, Option<Cursor>), StoreError> {
        let page = request.page();
        let (rows, mut next) = self.rows(&page, SUBJECT).await?;
        let (key, range_end) = self
            .keys
            .of_unused(&page.prefix, page.after.as_ref(), next.as_ref());
        let range = RangeRequest {
            key,
            range_end,
            limit: i64::from(page.limit) * NOTES_OF_NAME_MAX,
            count_only: false,
        };
        let failed = |failure: Failure| failure.error(Deed::Read, SUBJECT, &self.place);
        let notes: RangeResponse = self.requests.unary(path::RANGE, &range).await.map_err(failed)?;
        let seen = rows
            .into_iter()
            .map(|(name, rows)| (name, Seen { rows, note: None }));
        let mut seen: BTreeMap<String, Seen> = seen.collect();
        let last = notes.kvs.last().map(|note| self.keys.behind_note(&note.key));
        for note in notes.kvs {
            if let Some(name) = self.keys.noted(&note.key).map(str::to_owned) {
                seen.entry(name).or_default().note = Some(note);
            }
        }
        if notes.more {
            // Whether there is a note on what comes after was not read.
            seen.retain(|name, _| last.as_ref().is_some_and(|last| Cursor::behind(name) <= *last));
            next = last;
        }
        Ok((seen, next))
    }

    /// Removes records, each only if it is as it was seen; how many were removed.
    async fn remove(&self, removals: &[Removal]) -> Result<u64, StoreError> {
        let mut removed = 0;
        for part in removals.chunks(REMOVALS_MAX) {
            if self.remove_together(part).await? {
                removed += part.len();
                continue;
            }
            // One of them was used meanwhile.
            for one in part.chunks(1) {
                removed += usize::from(self.remove_together(one).await?);
            }
        }
        Ok(u64::try_from(removed).unwrap_or(u64::MAX))
    }

    /// Removes all of these, with everything that belongs to each, or none.
    async fn remove_together(&self, removals: &[Removal]) -> Result<bool, StoreError> {
        let (mut compare, mut success) = (Vec::new(), Vec::new());
        for Removal {
            name,
            found,
            note_revision,
        } in removals
        {
            let (note, part) = (self.keys.unused(name.as_str()), |part| self.keys.part(name, part));
            let conditions: [Compare; CONDITIONS] = [
                Compare::written_at(&part(Part::Record), found.record_revision),
                Compare::written_at(&part(Part::Term), found.term_revision),
                Compare::written_at(&part(Part::Holder), 0),
                Compare::written_at(&note, *note_revision),
            ];
            compare.extend(conditions);
            let (from, end) = self.keys.of_lease(name);
            success.extend([RequestOp::delete_range(from, end), RequestOp::delete(note)]);
        }
        let done = self.change(compare, success).await?;
        if done {
            for removal in removals {
                self.known.forget(&removal.name);
            }
        }
        Ok(done)
    }

    async fn change(&self, compare: Vec<Compare>, success: Vec<RequestOp>) -> Result<bool, StoreError> {
        let request = TxnRequest {
            compare,
            success,
            failure: Vec::new(),
        };
        let answer = transact(&self.requests, &request).await;
        let answer = answer.map_err(|failure| failure.error(Deed::Write, SUBJECT, &self.place))?;
        Ok(answer.succeeded)
    }
}
