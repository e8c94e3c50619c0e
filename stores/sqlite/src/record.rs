//! One row of the `lease` table: how it is read, and what makes it unreadable.

use crate::clock::Reading;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use std::time::Duration;
use tenure_core::{
    Attempt, Candidate, CandidateId, FencingToken, Incarnation, Lease, LeaseName, Moment, Note, Ttl, Wish,
};

/// The columns that [`Record::read`] expects, in its order.
macro_rules! record_columns {
    () => {
        "name, owner, incarnation, token, attempt, terms, ttl_ms, boot_id, \
         acquired_ns, renewed_ns, expires_ns, released, wish, note, version"
    };
}
pub(crate) use record_columns;

/// How the table spells [`Wish::StepDown`].
pub(crate) const WISH_STEP_DOWN: &str = "step-down";
/// How the table spells [`Wish::Nothing`].
pub(crate) const WISH_NOTHING: &str = "nothing";

/// Longest boot id that is believed, in bytes; the kernel's has 36.
const BOOT_ID_BYTES_MAX: usize = 64;

/// Allowed error of two clocks' rates against each other, in parts per million.
const CLOCK_RATE_ERROR_PPM: u64 = 500;

/// A lease as its row says.
pub(crate) struct Record {
    pub(crate) name: LeaseName,
    pub(crate) holder: Candidate,
    pub(crate) token: FencingToken,
    pub(crate) attempt: Attempt,
    pub(crate) terms: u64,
    pub(crate) ttl: Ttl,
    pub(crate) boot_id: Box<str>,
    pub(crate) acquired: Moment,
    pub(crate) renewed: Moment,
    /// When it ends; in a released record, when it ended.
    pub(crate) expires: Moment,
    pub(crate) released: bool,
    pub(crate) wish: Wish,
    pub(crate) note: Note,
    /// Rises with every write of the row.
    pub(crate) version: i64,
}

/// Why a row cannot be understood: the column, and what is wrong with it.
#[derive(Debug)]
pub(crate) struct RecordFault(pub(crate) String);

/// Whose clock the times of a record were read from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// Ours: this boot of this machine.
    Ours,
    /// Another boot, or another machine's: its times mean nothing here.
    Foreign,
}

impl Record {
    /// Reads a row of `record_columns!()`.
    ///
    /// Nothing is taken on trust: people edit tables, and a wrong token that is believed is worse than none.
    pub(crate) fn read(row: &Row<'_>) -> Result<Self, RecordFault> {
        // The only errors of SQLite here are wrong column numbers, which `record_columns!()` rules out.
        let column = |number: usize| row.get_ref(number).unwrap_or(ValueRef::Null);
        let name = text("name", column(0))?;
        let owner = text("owner", column(1))?;
        let incarnation = text("incarnation", column(2))?;
        let token = integer("token", column(3))?;
        let attempt = positive("attempt", column(4))?;
        let ttl_ms = positive("ttl_ms", column(6))?;
        let boot_id = text("boot_id", column(7))?;
        let released = integer("released", column(11))?;
        let wish = text("wish", column(12))?;
        let note = text("note", column(13))?;
        if boot_id.is_empty() || boot_id.len() > BOOT_ID_BYTES_MAX {
            return Err(wrong("boot_id", boot_id, "is not an id of 1 to 64 bytes"));
        }
        let record = Self {
            name: LeaseName::new(name).map_err(|error| RecordFault(error.to_string()))?,
            holder: Candidate {
                id: CandidateId::new(owner).map_err(|error| RecordFault(format!("owner: {error}")))?,
                incarnation: incarnation
                    .parse::<Incarnation>()
                    .map_err(|expected| wrong("incarnation", incarnation, expected))?,
            },
            token: FencingToken::from_signed(token).map_err(|error| wrong("token", token, error))?,
            attempt: Attempt::new(attempt)
                .ok_or_else(|| wrong("attempt", attempt, "is outside 1 to 2^63 - 1"))?,
            terms: positive("terms", column(5))?,
            ttl: Ttl::from_millis(ttl_ms).map_err(|error| RecordFault(format!("ttl_ms: {error}")))?,
            boot_id: boot_id.into(),
            acquired: moment("acquired_ns", column(8))?,
            renewed: moment("renewed_ns", column(9))?,
            expires: moment("expires_ns", column(10))?,
            released: match released {
                0 => false,
                1 => true,
                other => return Err(wrong("released", other, "is neither 0 nor 1")),
            },
            wish: match wish {
                WISH_NOTHING => Wish::Nothing,
                WISH_STEP_DOWN => Wish::StepDown,
                other => return Err(wrong("wish", other, "is neither \"nothing\" nor \"step-down\"")),
            },
            note: Note::beginning_of(note),
            version: integer("version", column(14))?,
        };
        record.check_order()
    }

    /// Times that contradict each other come from another hand; believed, they could block a name for ever.
    fn check_order(self) -> Result<Self, RecordFault> {
        if self.version < 1 || self.version == i64::MAX {
            return Err(wrong("version", self.version, "is outside 1 to 2^63 - 2"));
        }
        if self.renewed < self.acquired {
            return Err(RecordFault("renewed_ns is before acquired_ns".to_owned()));
        }
        if self.expires > self.renewed.after(self.ttl.duration()) {
            return Err(RecordFault(
                "expires_ns is later than renewed_ns and ttl_ms".to_owned(),
            ));
        }
        Ok(self)
    }

    /// Whose times these are. A record from the future of our own clock was not timed by it either.
    pub(crate) fn era(&self, clock: Reading<'_>) -> Era {
        if *self.boot_id == *clock.boot_id && self.renewed <= clock.now {
            Era::Ours
        } else {
            Era::Foreign
        }
    }

    /// How long a record of another boot must stay unchanged before it may be claimed: its own full ttl by
    /// the fastest clock its holder may have, and a millisecond for rounding.
    pub(crate) fn observation(&self) -> Duration {
        let ttl = self.ttl.duration();
        let rate_error = Duration::from_nanos(self.ttl.as_millis() * CLOCK_RATE_ERROR_PPM);
        ttl + rate_error + Duration::from_millis(1)
    }

    /// Time until it may be taken; zero if it may be now. `first_seen` is when this boot first saw this
    /// version of a foreign record.
    pub(crate) fn remaining(&self, clock: Reading<'_>, first_seen: Option<Moment>) -> Duration {
        if self.released {
            return Duration::ZERO;
        }
        match self.era(clock) {
            Era::Ours => self.expires.since(clock.now),
            Era::Foreign => {
                let seen_for = first_seen.map_or(Duration::ZERO, |seen| clock.now.since(seen));
                self.observation().saturating_sub(seen_for)
            }
        }
    }

    /// As the contract shows it. The ages of a foreign record count from its first sighting: no clock here
    /// knows more.
    pub(crate) fn into_lease(self, clock: Reading<'_>, first_seen: Option<Moment>) -> Lease {
        let remaining = self.remaining(clock, first_seen);
        let (began, renewed) = match self.era(clock) {
            Era::Ours => (self.acquired, self.renewed),
            Era::Foreign => {
                let seen = first_seen.unwrap_or(clock.now);
                (seen, seen)
            }
        };
        Lease {
            name: self.name,
            holder: self.holder,
            token: self.token,
            attempt: self.attempt,
            terms: self.terms,
            ttl: self.ttl,
            remaining,
            released: self.released,
            held_for: clock.now.since(began),
            renewed_ago: clock.now.since(renewed),
            asked_to_step_down: self.wish == Wish::StepDown,
            note: self.note,
        }
    }
}

fn text<'a>(column: &str, value: ValueRef<'a>) -> Result<&'a str, RecordFault> {
    match value {
        ValueRef::Text(bytes) => {
            std::str::from_utf8(bytes).map_err(|_| RecordFault(format!("{column} is not UTF-8")))
        }
        other => Err(wrong(column, other.data_type(), "where text belongs")),
    }
}

fn integer(column: &str, value: ValueRef<'_>) -> Result<i64, RecordFault> {
    match value {
        ValueRef::Integer(number) => Ok(number),
        other => Err(wrong(column, other.data_type(), "where a whole number belongs")),
    }
}

fn positive(column: &str, value: ValueRef<'_>) -> Result<u64, RecordFault> {
    let number = integer(column, value)?;
    match u64::try_from(number) {
        Ok(positive) if positive >= 1 => Ok(positive),
        _ => Err(wrong(column, number, "is below 1")),
    }
}

fn moment(column: &str, value: ValueRef<'_>) -> Result<Moment, RecordFault> {
    let number = integer(column, value)?;
    u64::try_from(number)
        .map(Moment::from_nanos)
        .map_err(|_| wrong(column, number, "is negative"))
}

/// At most 40 characters of a foreign value: it may be a novel.
fn wrong(column: &str, value: impl std::fmt::Display, why: impl std::fmt::Display) -> RecordFault {
    let shown: String = value
        .to_string()
        .chars()
        .take(40)
        .flat_map(char::escape_debug)
        .collect();
    RecordFault(format!("{column} {shown}: {why}"))
}

/// A moment as the table keeps it.
pub(crate) fn stored(moment: Moment) -> i64 {
    i64::try_from(moment.as_nanos()).unwrap_or(i64::MAX)
}
