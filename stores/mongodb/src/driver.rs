//! The driver's options: what the URL says of them, what the store needs of them, and what it does not take.

use crate::fault::{Deed, store_error};
use crate::tls_files;
use crate::unread_options;
use crate::url::{StoreUrl, invalid};
use crate::watch::WATCHES_MAX;
use mongodb::error::ErrorKind;
use mongodb::options::{Acknowledgment, ClientOptions, ServerAddress, WriteConcern};
use std::time::Duration;
use tenure_core::StoreError;

/// Longest name of a database that the server takes, in bytes. One that is longer would stand in every
/// message.
const DATABASE_BYTES_MAX: usize = 63;

/// How long a request waits for a primary to be found, unless the URL has `serverSelectionTimeoutMS`. The
/// driver's own 30 s would be the whole lease.
pub(crate) const SELECTION_TIME_MAX: Duration = Duration::from_secs(2);

/// Longest such wait. With the time for a request it is what the server is told to wait for a majority, in
/// milliseconds of 32 bits; a day is as good.
const SELECTION_TIME_MOST: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the driver waits for a connection, unless the URL has `connectTimeoutMS`; together with the
/// heartbeat it is how long a frozen server goes unnoticed. The driver's own is 10 s.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(2);

/// How often the driver looks at servers that do not push their state, unless the URL has
/// `heartbeatFrequencyMS`. The driver's own is 10 s.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Connections beyond those of the watches, so that no number of watches can make a renewal wait. They are
/// made when they are needed. A smaller `maxPoolSize` of the URL is raised to the sum.
const CONNECTIONS_FOR_REQUESTS: usize = 16;

/// Reads the driver's part of the URL; of a `mongodb+srv:` one, by asking the DNS.
pub(crate) async fn driver_options(url: &str) -> Result<ClientOptions, StoreError> {
    // The driver cuts a text two bytes after each % of user and password. Within a character that panics, and
    // the panic quotes what it cut: the password.
    let cut_within_a_character = |rest: &str| rest.len() >= 2 && !rest.is_char_boundary(2);
    if url.split('%').skip(1).any(cut_within_a_character) {
        return Err(StoreUrl::unreadable());
    }
    let options = match ClientOptions::parse(url).await {
        Ok(options) => options,
        Err(error) if matches!(&*error.kind, ErrorKind::DnsResolve { .. }) => {
            return Err(store_error(
                &error,
                Deed::Read,
                "the host of the MongoDB URL",
                "DNS",
            ));
        }
        Err(_quotes_the_url) => return Err(unread_options::named(url).await),
    };
    // Both stand in every message, which is one line.
    let shown = hosts(&options.hosts) + options.default_database.as_deref().unwrap_or_default();
    if shown.contains(char::is_control) {
        return Err(StoreUrl::unreadable());
    }
    let database = options.default_database.as_deref().unwrap_or_default();
    if database.len() > DATABASE_BYTES_MAX {
        return Err(invalid(&format!(
            "the database in the MongoDB URL has a name of {} bytes; {DATABASE_BYTES_MAX} are the most that MongoDB takes",
            database.len()
        )));
    }
    refuse_weak(options.write_concern.as_ref())?;
    tls_files::check(&options)?;
    Ok(options)
}

/// Sets what the store needs of the driver; answers how long a primary is looked for.
///
/// # Errors
/// [`Fault::Invalid`](tenure_core::Fault::Invalid) where that is longer than a server could be told to wait
/// for a majority.
pub(crate) fn settle(options: &mut ClientOptions) -> Result<Duration, StoreError> {
    options.retry_writes = Some(false);
    options.retry_reads = Some(false);
    options.connect_timeout.get_or_insert(CONNECTION_TIME_MAX);
    options.heartbeat_freq.get_or_insert(HEARTBEAT);
    let connections = WATCHES_MAX + CONNECTIONS_FOR_REQUESTS;
    let connections = u32::try_from(connections).expect("a small sum");
    options.max_pool_size = Some(options.max_pool_size.unwrap_or(0).max(connections));
    options.app_name.get_or_insert_with(|| "tenure".to_owned());
    let selection = *options.server_selection_timeout.get_or_insert(SELECTION_TIME_MAX);
    if selection > SELECTION_TIME_MOST {
        return Err(invalid(&format!(
            "serverSelectionTimeoutMS in the MongoDB URL is {selection:?}; {SELECTION_TIME_MOST:?} are the most, and 2000 suits most",
        )));
    }
    Ok(selection)
}

/// A URL that asks for less than we promise is a misunderstanding that must not pass in silence.
fn refuse_weak(concern: Option<&WriteConcern>) -> Result<(), StoreError> {
    let Some(concern) = concern else {
        return Ok(());
    };
    let asked = match &concern.w {
        None | Some(Acknowledgment::Majority) => None,
        Some(Acknowledgment::Nodes(count)) => Some(format!("w={count}")),
        // Not its name: in a URL whose password has an unescaped question mark it is a part of that.
        Some(_tag) => Some("w by the name of a tag".to_owned()),
    };
    if let Some(asked) = asked {
        return Err(invalid(&format!(
            "the MongoDB URL asks for {asked}; leases need w=majority, or a fail-over takes them back: remove the option"
        )));
    }
    match concern.journal {
        Some(false) => Err(invalid(
            "the MongoDB URL asks for journal=false; leases need the journal, or a crash takes them back: remove the option",
        )),
        Some(true) | None => Ok(()),
    }
}

pub(crate) fn hosts(addresses: &[ServerAddress]) -> String {
    let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    shown.join(",")
}
