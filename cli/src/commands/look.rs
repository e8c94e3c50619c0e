//! Reading the leases that were asked for.

use crate::arguments::Selection;
use crate::exit::{Code, Failure};
use crate::output::{Row, Rows, clean};
use crate::place::Place;
use serde_json::{Value, json};
use std::future::Future;
use std::time::{Duration, Instant};
use tenure::contract::{Fault, Listed, Page, Scope};
use tenure::{LeaseName, LeaseStore, SharedStore, StoreError};

/// Leases that are read at once.
const PAGE: u16 = 1_000;

/// Longest wait for one answer of the store, for a person who waits at a terminal. It is above the stores'
/// own limits, whose messages say more.
pub(crate) const ANSWER_WAIT_MAX: Duration = Duration::from_secs(10);

/// The store that is looked at.
pub(crate) struct Viewed {
    /// `None` where nobody has made its file yet.
    pub(crate) store: Option<SharedStore>,
    kind: &'static str,
    pub(crate) location: String,
}

impl Viewed {
    /// Opens it, where there is something to open.
    ///
    /// # Errors
    /// What the store says.
    pub(crate) async fn open(store: Option<&str>) -> Result<Self, Failure> {
        let place = Place::find(store)?;
        if let Some(path) = place.unused() {
            return Ok(Self {
                store: None,
                kind: "sqlite",
                location: path.display().to_string(),
            });
        }
        let store = place.open().await?;
        let traits = store.traits();
        Ok(Self {
            store: Some(store),
            kind: traits.kind,
            location: traits.location,
        })
    }

    /// Which it is, for people: the default one is another for each user.
    pub(crate) fn shown(&self) -> String {
        match self.store {
            Some(_) => self.place(),
            None => format!("{}, which nobody has made yet", self.place()),
        }
    }

    /// Which it is, whether or not it is there.
    pub(crate) fn place(&self) -> String {
        format!("{} at {}", self.kind, clean(&self.location))
    }

    /// Which it is, for programs.
    pub(crate) fn in_json(&self) -> Value {
        json!({"kind": self.kind, "location": self.location})
    }
}

/// Which leases, with names that were checked.
#[derive(Clone, Debug)]
pub(crate) enum Chosen {
    /// These.
    Names(Vec<LeaseName>),
    /// All whose names begin so.
    Prefix {
        /// The text.
        prefix: String,
        /// Whether what Tenure keeps by itself is among them.
        housekeeping: bool,
    },
}

impl Chosen {
    /// Checks the names.
    ///
    /// # Errors
    /// The first that cannot be one.
    pub(crate) fn new(selection: Selection) -> Result<Self, Failure> {
        Ok(match selection {
            Selection::Prefix { prefix, housekeeping } => Self::Prefix { prefix, housekeeping },
            Selection::Names(names) => {
                let names: Result<Vec<_>, _> = names.iter().map(LeaseName::new).collect();
                Self::Names(names?)
            }
        })
    }

    /// What tells of them.
    pub(crate) fn scopes(&self) -> Vec<Scope> {
        match self {
            Self::Prefix { prefix, .. } => vec![Scope::Prefix(prefix.clone())],
            Self::Names(names) => names.iter().cloned().map(Scope::Name).collect(),
        }
    }

    /// Reads them, as [`read`](Self::read) does.
    ///
    /// # Errors
    /// As there.
    pub(crate) async fn read_in(&self, viewed: &Viewed) -> Result<Rows, Failure> {
        match (&viewed.store, self) {
            (Some(store), _) => self.read(&**store).await,
            (None, Self::Names(names)) => Ok(names.iter().cloned().map(Row::Never).collect()),
            (None, Self::Prefix { .. }) => Ok(Rows::new()),
        }
    }

    /// Reads them.
    ///
    /// # Errors
    /// The store cannot be read. A record that cannot be understood is a row, not an error, and so is a lease
    /// of which the store cannot tell while it tells of another.
    pub(crate) async fn read(&self, store: &dyn LeaseStore) -> Result<Rows, Failure> {
        match self {
            Self::Prefix { prefix, housekeeping } => {
                let mut rows = all(store, prefix).await?;
                rows.retain(|row| *housekeeping || !row.is_kept_by_tenure());
                Ok(rows)
            }
            Self::Names(names) => each(store, names).await,
        }
    }
}

/// Waits for an answer of the store, but not for ever.
pub(crate) async fn answer<T>(asking: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    tokio::time::timeout(ANSWER_WAIT_MAX, asking)
        .await
        .unwrap_or_else(|_| {
            Err(StoreError::unknown(
                Fault::TimedOut,
                format!("the store did not answer within {ANSWER_WAIT_MAX:?}; is it reachable?"),
            ))
        })
}

/// The exit code after showing these rows: a record that is damaged comes before what the store cannot tell
/// now.
pub(crate) fn code_of(rows: &[Row]) -> u8 {
    let codes = rows.iter().filter_map(|row| match row {
        Row::Unreadable { error, .. } => Some(Code::from(error.fault)),
        Row::Lease(_) | Row::Never(_) => None,
    });
    let codes: Vec<Code> = codes.collect();
    let damaged = codes.iter().find(|code| **code == Code::Unreadable);
    damaged.or(codes.first()).map_or(0, |code| code.number())
}

/// Of several, one that cannot be told keeps no other from being shown: of a quorum, too few members may
/// agree on one lease alone.
async fn each(store: &dyn LeaseStore, names: &[LeaseName]) -> Result<Rows, Failure> {
    let mut rows = Rows::new();
    let mut first: Option<(StoreError, Instant)> = None;
    let mut is_any_told = false;
    for name in names {
        let row = one(store, name).await;
        is_any_told |= row.is_ok();
        rows.push(row.or_else(|error| {
            let (first, since) = first.get_or_insert_with(|| (error.clone(), Instant::now()));
            // It is the store that is away, and many names are not to be waited for one after the other.
            match since.elapsed() < ANSWER_WAIT_MAX {
                true => Ok(Row::Unreadable {
                    key: name.to_string(),
                    error,
                }),
                false => Err(first.clone()),
            }
        })?);
    }
    match first {
        Some((error, _)) if !is_any_told => Err(error.into()),
        Some(_) | None => Ok(rows),
    }
}

async fn one(store: &dyn LeaseStore, name: &LeaseName) -> Result<Row, StoreError> {
    match answer(store.get(name)).await {
        Ok(Some(lease)) => Ok(Row::Lease(Box::new(lease))),
        Ok(None) => Ok(Row::Never(name.clone())),
        Err(error) if error.fault == Fault::Unreadable => Ok(Row::Unreadable {
            key: name.to_string(),
            error,
        }),
        Err(error) => Err(error),
    }
}

async fn all(store: &dyn LeaseStore, prefix: &str) -> Result<Rows, Failure> {
    let mut page = Page::first(prefix, PAGE);
    let mut rows = Rows::new();
    loop {
        let read = answer(store.list(&page)).await?;
        rows.extend(read.leases.into_iter().map(|listed| match listed {
            Listed::Lease(lease) => Row::Lease(Box::new(lease)),
            Listed::Unreadable { key, error } => Row::Unreadable { key, error },
        }));
        if read.next.is_none() {
            return Ok(rows);
        }
        page.after = read.next;
    }
}
