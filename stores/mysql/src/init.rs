//! Setting a database up, for its owner.

use crate::SYSTEM;
use crate::connect::{CONNECT_TIME_MAX, bounded, site};
use crate::fault::{store_error, timed_out};
use crate::schema::{script, statements};
use crate::store::MysqlStore;
use crate::url::StoreUrl;
use mysql_async::prelude::Queryable as _;
use std::time::Duration;
use tenure_core::StoreError;
use tenure_remote::{Deed, OwnThread};

/// How long a set-up may take: it may wait for who uses the tables.
const SETUP_TIME_MAX: Duration = Duration::from_secs(30);

impl MysqlStore {
    /// Makes the tables and procedures of leases and fences in the database of `url`, where they are missing. Repeatable;
    /// what is there stays. For the database's owner: who runs candidates needs less.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and [`Fault::Forbidden`](tenure_core::Fault::Forbidden) for who may not create them.
    /// What was made before it failed stays, is used by nothing, and is found by the next set-up.
    pub async fn init(url: &str) -> Result<(), StoreError> {
        let url = StoreUrl::parse(url)?;
        let thread = OwnThread::start(SYSTEM)?;
        thread.run(set_up(url)).await?
    }

    /// The statements that [`init`](Self::init) runs, for who wants to read them, or to have them run by somebody else with
    /// the command-line client.
    ///
    /// # Errors
    /// [`Fault::Invalid`](tenure_core::Fault::Invalid) for a URL that cannot be read.
    pub fn init_statements(url: &str) -> Result<String, StoreError> {
        StoreUrl::parse(url)?;
        Ok(script())
    }
}

async fn set_up(url: StoreUrl) -> Result<(), StoreError> {
    let place = url.place();
    let mut site = site(url);
    bounded(place.clone(), site.recognise()).await?;
    let mut conn = site.dial.open("the set-up").await?;
    let running = async {
        for statement in statements() {
            conn.query_drop(statement).await?;
        }
        conn.disconnect().await
    };
    let late = |_| {
        let allowed = SETUP_TIME_MAX + CONNECT_TIME_MAX;
        timed_out(Deed::Write, "the set-up", &place, allowed)
    };
    tokio::time::timeout(SETUP_TIME_MAX, running)
        .await
        .map_err(late)?
        .map_err(|error| store_error(&error, Deed::Write, "the set-up", &place))
}
