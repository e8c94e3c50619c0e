//! Who led when, and how it ended: the last terms of a lease, kept beside it.
//!
//! Each term has a record of its own, a lease `<name>/terms/<slot>` that nobody waits for: its holder is who
//! led, its note says the token and how it ended, and the store's clock says when. The oldest record is used
//! again for a new term.
//!
//! A user's lease may have such a name. What tells the two apart is the note: a record whose note does not
//! say a term as this module writes it is the user's, and is neither used nor hidden; the history has a term
//! less. A user who takes the name of a record of a term gets it with a greater token: it is vacant, or
//! expires within the store's shortest ttl. What is left: a lease whose holder notes the very words of a term
//! is taken for one; and no store writes on condition of a note, so a lease that is taken and given back for
//! the first time between a look here and the request after it is used once, until it is taken again.

mod keep;

use crate::identity;
use crate::lock::{CANDIDATES, Standby};
use crate::registry::SharedStore;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Attempt, CandidateId, Cursor, Fault, FencingToken, Lease, LeaseName, Listed, Note,
    Occupancy, Page, Release, StoreError,
};

/// What is between the name of a lease and the records of its terms.
const TERMS: &str = "/terms/";

/// Terms that are kept of a lease.
pub const TERMS_KEPT: u16 = 20;

/// Records that are read.
const RECORDS_MAX: u16 = 1_000;

/// Records that are tried for a new term: those of terms that have only just begun are not free.
const SLOTS_TRIED_MAX: usize = 3;

/// Before the exit code in a record.
const EXIT: &str = "exit=";

/// Before the number of processes that were left, behind the exit code.
const LEFT: &str = "left=";

/// Longest text about the end of a term that is kept: of up to four bytes each, they leave room in a note.
const END_CHARACTERS_MAX: usize = 200;

/// The last terms of a lease.
///
/// A help for people, never for decisions: a term whose process was killed or cut off has no word of its end,
/// and a term may be missing.
pub struct History {
    store: SharedStore,
    name: LeaseName,
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A term that was noted, to be [ended](History::end).
#[derive(Debug)]
pub struct NotedTerm {
    record: Acquire,
    token: FencingToken,
}

/// A term of the past, or the present one.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PastTerm {
    /// Who led.
    pub holder: CandidateId,
    /// Its token.
    pub token: FencingToken,
    /// When it began, by the store's clock.
    pub began_ago: Duration,
    /// How it ended; none if nothing was said of that.
    pub end: Option<TermEnd>,
}

/// How a term ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TermEnd {
    /// How long it was.
    pub led: Duration,
    /// For people. No program is to read anything out of them.
    pub words: String,
    /// What the work ended with, as an exit code; none where it was ended, or has none.
    pub exit_code: Option<u8>,
    /// How many processes of the work that ended by itself went on, and were ended; none where nobody has
    /// said so, as older versions.
    pub left: Option<usize>,
}

impl TermEnd {
    /// After which time, and in which words.
    pub fn new(led: Duration, words: impl Into<String>) -> Self {
        Self {
            led,
            words: words.into(),
            exit_code: None,
            left: None,
        }
    }

    /// What the work ended with.
    #[must_use]
    pub fn exit_code(self, code: Option<u8>) -> Self {
        Self {
            exit_code: code,
            ..self
        }
    }

    /// How many processes it left. It is kept beside an exit code alone.
    #[must_use]
    pub fn left(self, processes: Option<usize>) -> Self {
        Self {
            left: processes,
            ..self
        }
    }

    /// As a record has it. What a version does not know is a word more for it, before the words for people.
    fn to_note(&self, token: FencingToken) -> Note {
        let left = self.left.map_or(String::new(), |left| format!("{LEFT}{left} "));
        let code = self
            .exit_code
            .map_or(String::new(), |code| format!("{EXIT}{code} {left}"));
        let words = self.words.chars().take(END_CHARACTERS_MAX);
        let words: String = words.map(|c| if c.is_control() { ' ' } else { c }).collect();
        note(format!("{token} ended {} {code}{words}", self.led.as_millis()))
    }

    fn of_note(led: &str, rest: &str) -> Option<Self> {
        let led = Duration::from_millis(led.parse().ok()?);
        let (code, rest) = number_behind(EXIT, rest);
        let (left, words) = match code {
            Some(_) => number_behind(LEFT, rest),
            None => (None, rest),
        };
        Some(Self::new(led, words).exit_code(code).left(left))
    }
}

/// The number in the first word, if that is one behind this; and what is left to read.
fn number_behind<'a, Number: FromStr>(label: &str, text: &'a str) -> (Option<Number>, &'a str) {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    match first.strip_prefix(label).and_then(|number| number.parse().ok()) {
        Some(number) => (Some(number), rest),
        None => (None, text),
    }
}

impl History {
    /// The terms of this lease.
    #[must_use]
    pub fn new(name: LeaseName, store: SharedStore) -> Self {
        Self { name, store }
    }

    /// Whether a lease is such a record, or a place in a queue: Tenure's own, of no use by itself. A user's
    /// lease with the name of one is not.
    #[must_use]
    pub fn is_kept_by_tenure(lease: &Lease) -> bool {
        past_term(lease).is_some() || Standby::read(lease).is_some()
    }

    /// Whether names that begin so are those of such records, or of places in a queue.
    #[must_use]
    pub fn is_of_housekeeping(prefix: &str) -> bool {
        prefix.contains(TERMS) || prefix.contains(CANDIDATES)
    }

    /// Notes that a term has begun: two requests, and one for each record that cannot be understood, which
    /// stays as it is.
    ///
    /// # Errors
    /// The store did not note it.
    pub async fn begin(
        &self,
        holder: &CandidateId,
        token: FencingToken,
    ) -> Result<Option<NotedTerm>, StoreError> {
        let Records {
            leases: mut records,
            unread,
            ..
        } = self.records().await?;
        // Those that were never used first, then the oldest. What stands in a slot that was not read, nobody
        // knows.
        let slots = (0..TERMS_KEPT).map(|slot| format!("{}{TERMS}{slot:02}", self.name));
        let mut unused: Vec<String> = slots
            .filter(|slot| unread.as_ref().is_none_or(|end| Cursor::behind(slot) <= *end))
            .filter(|slot| !records.iter().any(|record| record.name.as_str() == slot))
            .collect();
        records.retain(|record| past_term(record).is_some() && record.occupancy() != Occupancy::Held);
        records.sort_by_key(|record| record.token);
        unused.extend(records.iter().map(|record| record.name.to_string()));
        let mut tried = 0;
        for slot in unused {
            // A name that is too long has no history.
            let Ok(name) = LeaseName::new(slot) else {
                return Ok(None);
            };
            let record = Acquire {
                name,
                candidate: identity::candidate(holder.clone()),
                attempt: Attempt::FIRST,
                ttl: self.store.traits().ttl_min,
                note: note(format!("{token} began")),
            };
            match self.store.acquire(&record).await {
                Ok(Acquired::Granted(_)) => return Ok(Some(NotedTerm { record, token })),
                Ok(_) => tried += 1,
                // Looked at as one that was never used: it is for a person to mend, and the history has a
                // term less.
                Err(error) if error.fault == Fault::Unreadable => {}
                Err(error) => return Err(error),
            }
            if tried == SLOTS_TRIED_MAX {
                break;
            }
        }
        Ok(None)
    }

    /// Notes how a term has ended: three requests.
    ///
    /// # Errors
    /// The store did not note it.
    pub async fn end(&self, noted: NotedTerm, end: &TermEnd) -> Result<(), StoreError> {
        let NotedTerm { mut record, token } = noted;
        // Somebody may have taken it for a lease of their own, or for a later term: that one counts.
        let found = self.store.get(&record.name).await?;
        if found.is_some_and(|found| found.holder.incarnation != record.candidate.incarnation) {
            return Ok(());
        }
        record.attempt = record.attempt.next();
        record.note = end.to_note(token);
        if let Acquired::Granted(grant) = self.store.acquire(&record).await? {
            let release = Release {
                name: record.name,
                incarnation: record.candidate.incarnation,
                token: grant.token,
                attempt: record.attempt,
            };
            self.store
                .release(&[release])
                .await
                .into_iter()
                .collect::<Result<Vec<_>, _>>()?;
        }
        Ok(())
    }

    /// The terms that are kept, the latest first.
    ///
    /// # Errors
    /// The store cannot be read. A record that cannot be understood, or not be told now, is left out:
    /// [`unreadable`](Self::unreadable).
    pub async fn read(&self) -> Result<Vec<PastTerm>, StoreError> {
        let records = self.records().await?;
        let mut terms: Vec<_> = records.leases.iter().filter_map(past_term).collect();
        terms.sort_by_key(|term| std::cmp::Reverse(term.token));
        Ok(terms)
    }

    /// The keys, as the store shows them, of what stands among the records of this history and cannot be
    /// understood, or not be told now: terms may be missing from what [`read`](Self::read) answers.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn unreadable(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.records().await?.unreadable)
    }

    async fn records(&self) -> Result<Records, StoreError> {
        // All there are, and whatever else stands between them.
        let page = Page::first(format!("{}{TERMS}", self.name), RECORDS_MAX);
        let found = self.store.list(&page).await?;
        let is_of_this = |lease: &Lease| {
            let slot = lease.name.as_str().strip_prefix(&page.prefix);
            slot.is_some_and(is_slot)
        };
        let mut records = Records {
            leases: Vec::new(),
            unreadable: Vec::new(),
            unread: found.next,
        };
        for listed in found.leases {
            match listed {
                Listed::Lease(lease) if is_of_this(&lease) => records.leases.push(lease),
                Listed::Lease(_) => {}
                Listed::Unreadable { key, .. } => records.unreadable.push(key),
            }
        }
        Ok(records)
    }
}

/// What stands where the terms of a lease are noted.
struct Records {
    /// All leases with names of slots, whoever's they are.
    leases: Vec<Lease>,
    unreadable: Vec<String>,
    /// Behind it nothing was read.
    unread: Option<Cursor>,
}

/// Two digits, as [`History::begin`] writes them.
fn is_slot(text: &str) -> bool {
    text.len() == 2 && text.parse::<u16>().is_ok_and(|slot| slot < TERMS_KEPT)
}

fn has_slot(name: &str) -> bool {
    name.rsplit_once(TERMS).is_some_and(|(_, slot)| is_slot(slot))
}

/// Bounded by its parts.
fn note(text: String) -> Note {
    Note::new(text).unwrap_or_default()
}

/// The term of which this is the record; none if it is a user's lease, whatever its name. Binaries of every
/// version must write and read the same notes: a record that is not understood is nobody's to use again.
fn past_term(record: &Lease) -> Option<PastTerm> {
    if !has_slot(record.name.as_str()) {
        return None;
    }
    let mut words = record.note.as_str().splitn(4, ' ');
    let token = words.next()?.parse().ok()?;
    let end = match (words.next()?, words.next(), words.next()) {
        ("began", None, None) => None,
        ("ended", Some(led), rest) => Some(TermEnd::of_note(led, rest.unwrap_or_default())?),
        _ => return None,
    };
    let led = end.as_ref().map_or(Duration::ZERO, |end| end.led);
    Some(PastTerm {
        holder: record.holder.id.clone(),
        token,
        began_ago: record.held_for + led,
        end,
    })
}
