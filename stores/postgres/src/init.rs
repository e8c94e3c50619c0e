//! Setting a schema up, for its owner.

use crate::SYSTEM;
use crate::connect::{CONNECT_TIME_MAX, bounded, site};
use crate::dial::about;
use crate::fault::{Deed, line, timed_out};
use crate::schema::statements;
use crate::store::PostgresStore;
use crate::url::StoreUrl;
use std::time::Duration;
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::OwnThread;
use tokio_postgres::error::SqlState;

/// How long a set-up may take: it may wait for another one, and for who uses the tables.
const SETUP_TIME_MAX: Duration = Duration::from_secs(30);

impl PostgresStore {
    /// Makes the schema of `url` with its tables and functions, or brings an older one up to date.
    /// Repeatable; leases and marks that are there stay. For the schema's owner: who runs candidates needs
    /// less.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and [`Fault::Forbidden`] for who may not create it;
    /// then nothing was changed: the set-up is one transaction.
    pub async fn init(url: &str) -> Result<(), StoreError> {
        let url = StoreUrl::parse(url)?;
        let thread = OwnThread::start(SYSTEM)?;
        thread.run(set_up(url)).await?
    }

    /// The statements that [`init`](Self::init) runs, for who wants to read them, or to have them run by
    /// somebody else.
    ///
    /// # Errors
    /// [`Fault::Invalid`](tenure_core::Fault::Invalid) for a URL that cannot be read.
    pub fn init_statements(url: &str) -> Result<String, StoreError> {
        Ok(statements(&StoreUrl::parse(url)?.schema))
    }
}

async fn set_up(url: StoreUrl) -> Result<(), StoreError> {
    let text = statements(&url.schema);
    let place = url.place();
    let mut site = site(url)?;
    bounded(place.clone(), site.recognise()).await?;
    let live = site.dial.open().await.map_err(about("the set-up"))?;
    let late = |_| {
        timed_out(
            Deed::Write,
            "the set-up",
            &place,
            SETUP_TIME_MAX + CONNECT_TIME_MAX,
        )
    };
    tokio::time::timeout(SETUP_TIME_MAX, live.client.batch_execute(&text))
        .await
        .map_err(late)?
        .map_err(|error| {
            in_the_way(&error, &place).unwrap_or_else(|| site.refused(&error, Deed::Write, "the set-up"))
        })
}

/// What a set-up meets that is of another kind or has other columns is not Tenure's: what is said of it
/// elsewhere, to run the set-up, would lead here again.
fn in_the_way(error: &tokio_postgres::Error, place: &str) -> Option<StoreError> {
    let answer = error.as_db_error()?;
    let code = answer.code();
    if !code.code().starts_with("42") || *code == SqlState::INSUFFICIENT_PRIVILEGE {
        return None;
    }
    let why = format!(
        "{} ({}); another program has something of that name there: give the leases a schema of their own, by schema= in the URL",
        line(answer.message()),
        code.code()
    );
    Some(Deed::Write.error(
        Fault::Unsupported,
        Certainty::NotApplied,
        "the set-up",
        place,
        why,
    ))
}
