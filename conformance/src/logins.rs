//! Logins that a server refuses while a store is connected.

use crate::asking::name;
use std::time::Duration;
use tenure_core::{Fault, LeaseStore};
use tenure_testkit::eventually_async;

const PATIENCE: Duration = Duration::from_secs(60);

/// Reads, several times at once so that there are too few connections, until one is made and its login
/// refused, as after the password was changed.
///
/// # Panics
/// If none is refused.
pub async fn has_a_login_refused(store: &dyn LeaseStore) {
    let name = name("job");
    eventually_async(PATIENCE, "a login that is refused", async || {
        let (a, b, c, d) = tokio::join!(
            store.get(&name),
            store.get(&name),
            store.get(&name),
            store.get(&name)
        );
        let refused = [a, b, c, d].into_iter().filter_map(Result::err);
        refused
            .map(|error| error.fault)
            .find(|fault| *fault == Fault::Unauthenticated)
    })
    .await;
}
