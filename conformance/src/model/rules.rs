//! The rules of the contract, in the order in which the contract states them.

use super::records::{Record, Records, Slot, unreadable};
use crate::page::page_of;
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Ask, Asked, Change, End, Fault, FencingToken, Grant, Lease, LeaseName, LeasePage,
    Listed, Page, Predecessor, Purge, Purged, Purging, Release, Released, Renew, Renewed, StoreError, Ttl,
    WatchEvent, Wish,
};

/// Most records of one page.
const PAGE_MAX: u16 = 1_000;

impl Records {
    /// Takes the lease if it is free; see [`LeaseStore::acquire`](tenure_core::LeaseStore::acquire).
    ///
    /// # Errors
    /// [`Fault::Unreadable`]; [`Fault::Internal`] when the tokens of the name are used up. Not applied.
    pub fn acquire(&mut self, request: &Acquire, now_ms: u64) -> Result<Acquired, StoreError> {
        let asker = Some(request.candidate.incarnation);
        let Some(record) = self.read_for(asker, &request.name, now_ms)?.cloned() else {
            return self.begin(request, None, now_ms);
        };
        let mine = record.holder.incarnation == request.candidate.incarnation;
        if !record.is_held(now_ms) {
            let released = record.released_ms.is_some();
            let too_late =
                record.attempt > request.attempt || (released && record.attempt == request.attempt);
            return if mine && too_late {
                Ok(Acquired::Superseded)
            } else {
                self.begin(request, Some(&record), now_ms)
            };
        }
        if !mine {
            return Ok(Acquired::Held(record.lease(&request.name, now_ms)));
        }
        match record.attempt.cmp(&request.attempt) {
            std::cmp::Ordering::Equal => Ok(self.extend_again(request, record, now_ms)),
            std::cmp::Ordering::Less => self.begin(request, Some(&record), now_ms),
            std::cmp::Ordering::Greater => Ok(Acquired::Superseded),
        }
    }

    fn begin(
        &mut self,
        request: &Acquire,
        last: Option<&Record>,
        now_ms: u64,
    ) -> Result<Acquired, StoreError> {
        let name = &request.name;
        let token = FencingToken::successor(last.map(|record| record.token), now_ms).ok_or_else(|| {
            let message = format!(
                "the tokens of lease \"{name}\" are used up at {}; use another name",
                FencingToken::MAX
            );
            StoreError::not_applied(Fault::Internal, message)
        })?;
        let terms = last.map_or(1, |record| record.terms.saturating_add(1));
        let record = Record {
            holder: request.candidate.clone(),
            token,
            attempt: request.attempt,
            terms,
            ttl: request.ttl,
            began_ms: now_ms,
            renewed_ms: now_ms,
            expires_ms: now_ms + request.ttl.as_millis(),
            released_ms: None,
            asked: false,
            note: request.note.clone(),
        };
        self.write(name, record);
        self.tell(name, Change::Taken, token);
        Ok(Acquired::Granted(Grant {
            token,
            ttl: request.ttl,
            terms,
            again: false,
            predecessor: last.map(|record| predecessor(record, now_ms)),
        }))
    }

    fn extend_again(&mut self, request: &Acquire, mut record: Record, now_ms: u64) -> Acquired {
        extend(&mut record, request.ttl, now_ms);
        let grant = Grant {
            token: record.token,
            ttl: request.ttl,
            terms: record.terms,
            again: true,
            predecessor: None,
        };
        self.write(&request.name, record);
        Acquired::Granted(grant)
    }

    /// Extends one lease; see [`LeaseStore::renew`](tenure_core::LeaseStore::renew).
    ///
    /// # Errors
    /// [`Fault::Unreadable`]. Not applied.
    pub fn renew(&mut self, request: &Renew, now_ms: u64) -> Result<Renewed, StoreError> {
        let Some(record) = self.read_for(Some(request.incarnation), &request.name, now_ms)? else {
            return Ok(Renewed::Lost(None));
        };
        let term = (record.holder.incarnation, record.token, record.attempt);
        let asked = (request.incarnation, request.token, request.attempt);
        if term != asked || !record.is_held(now_ms) {
            return Ok(Renewed::Lost(Some(Box::new(record.lease(&request.name, now_ms)))));
        }
        let mut record = record.clone();
        extend(&mut record, request.ttl, now_ms);
        let wish = if record.asked {
            Wish::StepDown
        } else {
            Wish::Nothing
        };
        self.write(&request.name, record);
        Ok(Renewed::Extended {
            ttl: request.ttl,
            wish,
        })
    }

    /// Gives one lease back; see [`LeaseStore::release`](tenure_core::LeaseStore::release).
    ///
    /// # Errors
    /// [`Fault::Unreadable`]. Not applied.
    pub fn release(&mut self, request: &Release, now_ms: u64) -> Result<Released, StoreError> {
        let Some(record) = self.read_for(Some(request.incarnation), &request.name, now_ms)? else {
            return Ok(Released::NotYours(None));
        };
        let term = (record.holder.incarnation, record.token, record.attempt);
        if term != (request.incarnation, request.token, request.attempt) {
            let now = record.lease(&request.name, now_ms);
            return Ok(Released::NotYours(Some(Box::new(now))));
        }
        if record.released_ms.is_none() {
            let record = Record {
                released_ms: Some(now_ms),
                ..record.clone()
            };
            self.write(&request.name, record);
            self.tell(&request.name, Change::Vacated, request.token);
        }
        Ok(Released::Vacated)
    }

    /// Leaves a wish; see [`LeaseStore::ask`](tenure_core::LeaseStore::ask).
    ///
    /// # Errors
    /// [`Fault::Unreadable`]. Not applied.
    pub fn ask(&mut self, request: &Ask, now_ms: u64) -> Result<Asked, StoreError> {
        let held = self
            .read_for(None, &request.name, now_ms)?
            .filter(|record| record.token == request.token && record.is_held(now_ms));
        let Some(record) = held.cloned() else {
            return Ok(Asked::NotHeld);
        };
        self.write(
            &request.name,
            Record {
                asked: true,
                ..record
            },
        );
        self.tell(&request.name, Change::Asked, request.token);
        Ok(Asked::Noted)
    }

    /// Reads one lease; see [`LeaseStore::get`](tenure_core::LeaseStore::get).
    ///
    /// # Errors
    /// [`Fault::Unreadable`].
    pub fn get(&self, name: &LeaseName, now_ms: u64) -> Result<Option<Lease>, StoreError> {
        let record = self.read_for(None, name, now_ms)?;
        Ok(record.map(|record| record.lease(name, now_ms)))
    }

    /// Reads a page; see [`LeaseStore::list`](tenure_core::LeaseStore::list).
    ///
    /// # Errors
    /// [`Fault::Invalid`] for a limit outside 1 ..= 1,000.
    pub fn list(&self, page: &Page, now_ms: u64) -> Result<LeasePage, StoreError> {
        if !(1..=PAGE_MAX).contains(&page.limit) {
            let message = format!("a page of {} leases is outside 1 to {PAGE_MAX}", page.limit);
            return Err(StoreError::not_applied(Fault::Invalid, message));
        }
        let (found, next) = page_of(page, &self.slots, &self.strays);
        let leases = found.into_iter().map(|found| match found {
            Ok((name, slot)) => listed(name, slot, now_ms),
            Err(stray) => unreadable_at(stray),
        });
        let leases = leases.collect();
        Ok(LeasePage { leases, next })
    }

    /// Removes a record behind the store's back, as a clean-up would.
    pub fn purge(&mut self, name: &LeaseName) {
        if self.slots.remove(name).is_some() {
            self.events.push(WatchEvent::Changed {
                name: name.clone(),
                change: Change::Vacated,
                token: None,
            });
        }
    }

    /// Removes what nobody uses of a page; see [`LeasePurge::purge`](tenure_core::LeasePurge::purge).
    ///
    /// # Errors
    /// [`Fault::Invalid`] for a page outside its bounds.
    pub fn clean_up(&mut self, request: &Purge, now_ms: u64) -> Result<Purged, StoreError> {
        request.check()?;
        let page = request.page();
        let LeasePage { leases, next } = self.list(&page, now_ms)?;
        let names = leases.into_iter().filter_map(|listed| match listed {
            Listed::Lease(lease) => Some(lease.name),
            Listed::Unreadable { .. } => None,
        });
        let unused: Vec<LeaseName> = names
            .filter(|name| self.is_unused(name, request, now_ms))
            .collect();
        let mut removed = 0;
        if request.purging == Purging::Removes {
            for name in &unused {
                self.purge(name);
                removed += 1;
            }
        }
        Ok(Purged {
            unused,
            removed,
            next,
        })
    }

    fn is_unused(&self, name: &LeaseName, request: &Purge, now_ms: u64) -> bool {
        let Some(Slot::Own(record)) = self.slots.get(name) else {
            return false;
        };
        let ended_ms = record.released_ms.unwrap_or(record.expires_ms);
        let unused_for = Duration::from_millis(now_ms.saturating_sub(ended_ms));
        !record.is_held(now_ms)
            && unused_for >= request.unused_at_least(record.ttl)
            && record.token.number() < now_ms
    }

    fn tell(&mut self, name: &LeaseName, change: Change, token: FencingToken) {
        self.events.push(WatchEvent::Changed {
            name: name.clone(),
            change,
            token: Some(token),
        });
    }
}

fn extend(record: &mut Record, ttl: Ttl, now_ms: u64) {
    record.ttl = ttl;
    record.renewed_ms = now_ms;
    record.expires_ms = now_ms + ttl.as_millis();
}

fn predecessor(last: &Record, now_ms: u64) -> Predecessor {
    let (end, ended_ms) = match last.released_ms {
        Some(released_ms) => (End::Released, released_ms),
        None => (End::Expired, last.expires_ms.min(now_ms)),
    };
    Predecessor {
        candidate: last.holder.id.clone(),
        token: last.token,
        end,
        vacant_for: Duration::from_millis(now_ms.saturating_sub(ended_ms)),
    }
}

fn listed(name: &LeaseName, slot: &Slot, now_ms: u64) -> Listed {
    match slot {
        Slot::Own(record) if record.lasts_too_long(now_ms) => unreadable_at(name.as_str()),
        Slot::Own(record) => Listed::Lease(record.lease(name, now_ms)),
        Slot::Foreign(_) => unreadable_at(name.as_str()),
    }
}

fn unreadable_at(key: &str) -> Listed {
    Listed::Unreadable {
        key: key.escape_debug().to_string(),
        error: unreadable(key),
    }
}
