//! A URL that ties all requests to one server, as `mongosh` prints it: a fail-over is not followed.

use crate::fault::{Deed, store_error};
use crate::site::{Site, Topology};
use crate::url::StoreUrl;
use mongodb::Client;
use mongodb::bson::{Document, doc};
use mongodb::options::ClientOptions;
use tenure_core::{Fault, StoreError};

/// What that means where the server is of a replica set.
pub(crate) const TIED: &str =
    "directConnection=true in the URL ties this to one server: a fail-over is not followed";

/// What to do about it.
pub(crate) const UNTIE: &str = "remove directConnection=true from the URL";

/// A client of these options that goes on with the set that it meets now.
///
/// Of a server that it is tied to, the driver asks the set's name only if it was told one. A member that is
/// started without its set, as for maintenance, would go on to renew, and confirm at once, what its set has
/// given to another meanwhile.
///
/// # Errors
/// Of whoever does not say what it is.
pub(crate) async fn client_of_one_set(
    options: &mut ClientOptions,
    place: &str,
) -> Result<Client, StoreError> {
    let client = client(options)?;
    if options.direct_connection != Some(true) || options.repl_set_name.is_some() {
        return Ok(client);
    }
    let hello = hello(&client, place).await?;
    match hello.get_str("setName") {
        Err(_of_none) => Ok(client),
        Ok(name) => {
            options.repl_set_name = Some(name.to_owned());
            self::client(options)
        }
    }
}

fn client(options: &ClientOptions) -> Result<Client, StoreError> {
    Client::with_options(options.clone()).map_err(|_quotes_the_url| StoreUrl::unreadable())
}

/// Asks a server what it is.
pub(crate) async fn hello(client: &Client, place: &str) -> Result<Document, StoreError> {
    let admin = client.database("admin");
    let told = admin.run_command(doc! { "hello": 1 }).await;
    told.map_err(|error| store_error(&error, Deed::Read, "connecting", place))
}

/// Notes whether the URL of a store that was opened, or was not, ties it to one server, and says so. No
/// error: behind a tunnel there may be no other way.
pub(crate) fn tied(opened: Result<Site, StoreError>, options: &ClientOptions) -> Result<Site, StoreError> {
    if options.direct_connection != Some(true) {
        return opened;
    }
    let mut site = opened.map_err(|mut error| {
        if error.fault == Fault::Unreachable {
            error.message.push_str(&format!("; {TIED}; {UNTIE}"));
        }
        error
    })?;
    site.is_tied = true;
    if site.is_tied_to_a_member() {
        tracing::warn!(place = %site.place, "{TIED}; {UNTIE}");
    }
    Ok(site)
}

impl Site {
    /// Whether only one member of a replica set is ever asked. A server that is alone, or a router, is no
    /// member.
    pub(crate) fn is_tied_to_a_member(&self) -> bool {
        self.is_tied && matches!(self.topology, Topology::ReplicaSet { .. })
    }
}
