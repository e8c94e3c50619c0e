//! What the payments are settled into: rows, balances, a checkpoint and a fence, all in one database.

#[cfg(feature = "mongodb")]
mod mongodb;
mod sqlite;

use crate::Outcome;
use crate::payments::{Batch, Checksum, Payment};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;
use tenure::contract::Answer;
use tenure::{Fence, FenceError, ResourceName, Term};

/// Who writes.
#[derive(Clone, Debug)]
pub struct Writer {
    /// The term that it writes under.
    pub term: Term,
    /// The instance, for people.
    pub instance: String,
}

/// Whether writes go through the fence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fencing {
    /// They do.
    On,
    /// They do not, to show that the check of the ledger notices.
    Off,
}

/// A row of the ledger: a payment, and the term that settled it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// What was settled.
    pub payment: Payment,
    /// By which term.
    pub token: u64,
}

/// A transaction that was committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Committed {
    /// How many payments come before it.
    pub start: u64,
    /// How many it settled.
    pub payments: u64,
    /// By which term.
    pub token: u64,
    /// By which instance.
    pub instance: String,
}

/// Why the ledger did not do what it was asked.
#[derive(Debug)]
pub enum LedgerError {
    /// The fence refused the term, for good: nothing was written.
    Refused(FenceError),
    /// It settles another file of payments, by this checksum; nothing was written.
    OtherFile {
        /// What it settles.
        settles: String,
        /// What was to be settled.
        asked: Checksum,
    },
    /// Something failed. What was to be written may be there, or not: read the checkpoint.
    Trouble(String),
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::OtherFile { settles, asked } => write!(
                f,
                "the ledger settles the file of checksum {settles}, and this one has {asked}: its checkpoint says nothing of it; \
                 use a ledger of its own for each file"
            ),
            Self::Trouble(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for LedgerError {}

impl From<FenceError> for LedgerError {
    fn from(error: FenceError) -> Self {
        match error {
            FenceError::Store(error) => Self::Trouble(error.message),
            refusal => Self::Refused(refusal),
        }
    }
}

/// Whether a ledger that settles the first of these files, if any yet, may settle the other.
fn must_be_its_file(settles: Option<&str>, asked: Checksum) -> Result<(), LedgerError> {
    match settles {
        Some(settles) if settles != asked.to_string() => Err(LedgerError::OtherFile {
            settles: settles.to_owned(),
            asked,
        }),
        Some(_) | None => Ok(()),
    }
}

/// A ledger in one database.
///
/// A payment's number is not unique in it, on purpose: a payment that is settled twice must be seen, not
/// masked. For the same reason the checkpoint moves whatever it was before. What keeps a payment from being
/// settled twice is the fence, and nothing else.
pub trait Ledger: Send {
    /// The fence in the same database; it protects [`resource`].
    fn fence(&self) -> &dyn Fence;

    /// What a term does before it claims the fence.
    fn prepare<'a>(&'a mut self, writer: &'a Writer) -> Answer<'a, Result<(), LedgerError>>;

    /// How many payments of this file are settled, read under the fence: nobody else changes it while the
    /// term lasts. From the first time on the ledger settles this file and no other: a checkpoint is of one
    /// file.
    fn checkpoint<'a>(
        &'a mut self,
        file: Checksum,
        writer: &'a Writer,
    ) -> Answer<'a, Result<u64, LedgerError>>;

    /// Settles a batch: one transaction that enters the fence, writes a row for each payment, changes the
    /// balances and moves the checkpoint.
    fn settle<'a>(&'a mut self, batch: Batch<'a>, writer: &'a Writer) -> Answer<'a, Result<(), LedgerError>>;

    /// How many payments are settled, for whoever looks on.
    fn progress(&self) -> Answer<'_, Result<u64, LedgerError>>;

    /// Shows every row, in any order.
    fn each_row<'a>(&'a self, show: &'a mut (dyn FnMut(Row) + Send)) -> Answer<'a, Result<(), LedgerError>>;

    /// The balance of every account, in cents.
    fn balances(&self) -> Answer<'_, Result<BTreeMap<u32, i64>, LedgerError>>;

    /// Every committed batch, by its start.
    fn batches(&self) -> Answer<'_, Result<Vec<Committed>, LedgerError>>;
}

/// Opens the ledger at a place, and makes its tables where they are missing.
pub async fn open(place: &str, fencing: Fencing) -> Outcome<Box<dyn Ledger>> {
    if !place.starts_with("mongodb://") && !place.starts_with("mongodb+srv://") {
        return Ok(Box::new(sqlite::SqliteLedger::open(place, fencing)?));
    }
    #[cfg(feature = "mongodb")]
    return Ok(Box::new(mongodb::MongoLedger::open(place, fencing).await?));
    #[cfg(not(feature = "mongodb"))]
    Err(WITHOUT_MONGODB.into())
}

/// What the fence protects: all of the ledger.
pub fn resource() -> &'static ResourceName {
    static RESOURCE: LazyLock<ResourceName> =
        LazyLock::new(|| ResourceName::new("ledger").expect("\"ledger\" is a name"));
    &RESOURCE
}

/// What to do about a binary that lacks MongoDB.
#[cfg(not(feature = "mongodb"))]
pub const WITHOUT_MONGODB: &str = "this binary was built without MongoDB; run \
    `cargo run --release -p tenure-settlement --features mongodb -- …`";
