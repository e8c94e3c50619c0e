use super::super::records::{Records, Slot};
use crate::model::Defect;
use tenure_core::{
    Cursor, Fault, Lease, LeaseName, LeasePage, Listed, Occupancy, Page, Selection, StoreError,
};

impl Defect {
    /// The rule for reading a lease, broken.
    pub(super) fn get(
        self,
        records: &mut Records,
        name: &LeaseName,
        now_ms: u64,
    ) -> Result<Option<Lease>, StoreError> {
        let answer = records.get(name, now_ms);
        match (self, answer) {
            (Self::UnreadableIsMissing, Err(_)) => Ok(None),
            (Self::FarOffExpiryIsBelieved, Err(_)) => {
                let record = records.read(name)?;
                Ok(record.map(|record| record.lease(name, now_ms)))
            }
            (Self::UnreadableIsNameless, Err(_)) => {
                let message = "a record cannot be understood; remove or rename it";
                Err(StoreError::not_applied(Fault::Unreadable, message))
            }
            (Self::ExpiredIsMissing, Ok(Some(lease))) if lease.occupancy() == Occupancy::Expired => Ok(None),
            (Self::RemainingNeverFalls, Ok(Some(mut lease))) if lease.occupancy() == Occupancy::Held => {
                lease.remaining = lease.ttl.duration();
                Ok(Some(lease))
            }
            (Self::TermAgeStartsAgain, Ok(Some(mut lease))) => {
                lease.held_for = lease.renewed_ago;
                Ok(Some(lease))
            }
            (Self::RenewalAgeIsTermAge, Ok(Some(mut lease))) => {
                lease.renewed_ago = lease.held_for;
                Ok(Some(lease))
            }
            (Self::ReadsMakeRecord, Ok(None)) => {
                let slot = Slot::Foreign("read".to_owned());
                records.slots.insert(name.clone(), slot);
                Ok(None)
            }
            (Self::ReadsWrite, answer) => {
                self.edit(records, name, |record| record.renewed_ms = now_ms);
                answer
            }
            (_, answer) => answer,
        }
    }

    /// The rule for reading a page, broken.
    pub(super) fn list(self, records: &Records, page: &Page, now_ms: u64) -> Result<LeasePage, StoreError> {
        match self {
            Self::ListFoldsCase => Ok(in_order_of(records, page, now_ms, |name| name.to_lowercase())),
            Self::ListInUtf16Order => {
                let units = |name: &str| name.encode_utf16().collect::<Vec<u16>>();
                Ok(in_order_of(records, page, now_ms, units))
            }
            Self::ListPrefixIsPattern => {
                let everything = Page {
                    prefix: String::new(),
                    ..page.clone()
                };
                let mut answer = records.list(&everything, now_ms)?;
                let pattern = format!("{}%", page.prefix);
                answer.leases.retain(|one| is_like(key(one), &pattern));
                Ok(answer)
            }
            Self::ListOfEverythingIsEmpty if page.prefix.is_empty() => {
                let (leases, next) = (Vec::new(), None);
                Ok(LeasePage { leases, next })
            }
            Self::ListTakesAnyLimit => {
                let limit = page.limit.clamp(1, 1_000);
                records.list(
                    &Page {
                        limit,
                        ..page.clone()
                    },
                    now_ms,
                )
            }
            Self::ListSkipsBetweenPages if page.after.is_some() => {
                let mut answer = records.list(page, now_ms)?;
                if !answer.leases.is_empty() {
                    answer.leases.remove(0);
                }
                Ok(answer)
            }
            _ => {
                let mut answer = records.list(page, now_ms)?;
                self.spoil_page(page, &mut answer);
                Ok(answer)
            }
        }
    }

    fn spoil_page(self, page: &Page, answer: &mut LeasePage) {
        let unreadable = |one: &Listed| matches!(one, Listed::Unreadable { .. });
        match self {
            Self::ListPromisesAnotherPage if answer.leases.len() == usize::from(page.limit) => {
                answer.next = answer.leases.last().map(|one| Cursor::behind(key(one)));
            }
            Self::ListEndsAtNoName => {
                answer.next = answer.next.take().filter(is_behind_a_name);
            }
            Self::ListHidesVacant => {
                answer
                    .leases
                    .retain(|one| !matches!(one, Listed::Lease(lease) if lease.released));
            }
            Self::ListOfHeldHidesHeld if page.selection == Selection::Held => {
                answer
                    .leases
                    .retain(|one| matches!(one, Listed::Lease(lease) if lease.released));
            }
            Self::ListHidesUnreadable => answer.leases.retain(|one| !unreadable(one)),
            Self::ListEndsAtUnreadable => {
                if let Some(end) = answer.leases.iter().position(unreadable) {
                    answer.leases.truncate(end + 1);
                    answer.next = None;
                }
            }
            _ => {}
        }
    }
}

fn key(one: &Listed) -> &str {
    match one {
        Listed::Lease(lease) => lease.name.as_str(),
        Listed::Unreadable { key, .. } => key,
    }
}

pub(super) fn is_behind_a_name(place: &Cursor) -> bool {
    LeaseName::new(place.as_text()).is_ok()
}

/// A page in another order than that of bytes.
fn in_order_of<Key: Ord>(
    records: &Records,
    page: &Page,
    now_ms: u64,
    order: impl Fn(&str) -> Key,
) -> LeasePage {
    let whole = Page {
        after: None,
        limit: 1_000,
        ..page.clone()
    };
    let mut leases = records
        .list(&whole, now_ms)
        .expect("1,000 is a valid limit")
        .leases;
    leases.sort_by_key(|one| order(key(one)));
    if let Some(after) = &page.after {
        leases.retain(|one| order(key(one)) > order(after.as_text()));
    }
    let more = leases.len() > usize::from(page.limit);
    leases.truncate(usize::from(page.limit));
    let last = leases.last().map(|one| Cursor::behind(key(one)));
    LeasePage {
        leases,
        next: last.filter(|_| more),
    }
}

/// Whether `text` matches a pattern of SQL's `LIKE`: `%` is any text, `_` is any character.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => text.is_empty(),
        Some('%') => text
            .char_indices()
            .map(|(at, _)| at)
            .chain([text.len()])
            .any(|at| is_like(&text[at..], rest.as_str())),
        Some(wanted) => {
            let mut characters = text.chars();
            characters
                .next()
                .is_some_and(|found| wanted == '_' || wanted == found)
                && is_like(characters.as_str(), rest.as_str())
        }
    }
}
