//! Watches through a proxy that cuts them off or swallows what they say, and beside other databases.

use crate::common::{Scratch, name, proxied, request, seconds, shared, take};
use std::time::Duration;
use tenure_conformance::wire;
use tenure_core::{Change, Fault, LeaseStore, Scope, WatchEvent};
use tenure_testkit::RedisBuild;

/// What is told is told at once; the rest is for a loaded machine.
const BOUND: Duration = Duration::from_secs(30);

#[tokio::test]
async fn broken_watch_of_redis_says_so_and_the_next_one_hears() {
    let (proxy, _scratch, store) = proxied().await;
    wire::broken_watch_says_so_and_the_next_one_hears(&store, &proxy, Fault::TimedOut).await;
}

/// The server tells every message to whoever listens, whatever the database: one lease's greater token would end the term of the
/// other, time and again.
#[tokio::test]
async fn watch_hears_nothing_of_the_same_lease_in_another_database() {
    let scratch = Scratch::on(&shared(RedisBuild::Redis).await.url());
    let mut stores = Vec::new();
    for database in ["", "/3", "/4"] {
        let url = format!("{}{database}", scratch.url);
        let place = Scratch {
            url,
            prefix: scratch.prefix.clone(),
        };
        stores.push(place.store().await);
    }
    for own in 0..stores.len() {
        let lease = format!("job-{own}");
        let name = name(&lease);
        let mut watches = Vec::new();
        for scope in [Scope::Name(name.clone()), Scope::Prefix("job".to_owned())] {
            watches.push(stores[own].watch(&scope).await.expect("a watch"));
        }
        // Its own comes last: whatever the others tell comes before.
        let others = (0..stores.len()).filter(|other| *other != own);
        let mut token = None;
        for place in others.chain([own]) {
            token = Some(
                take(&stores[place], &request(&lease, "a", seconds(300)))
                    .await
                    .token,
            );
        }
        for mut watch in watches {
            let told = tokio::time::timeout(BOUND, watch.next()).await;
            let (name, change) = (name.clone(), Change::Taken);
            let taken = WatchEvent::Changed { name, change, token };
            assert_eq!(told.expect("it is told"), Ok(taken), "of store {own}");
        }
    }
}

/// They are the prefix's own characters, and choose nothing.
#[tokio::test]
async fn watch_hears_its_leases_though_their_prefix_looks_like_a_pattern() {
    for prefix in ["a*?", "[b]", "c^\\"] {
        let scratch = Scratch::on(&shared(RedisBuild::Redis).await.url());
        let escaped: String = format!("{prefix}{}", scratch.prefix)
            .bytes()
            .map(|byte| format!("%{byte:02x}"))
            .collect();
        let place = Scratch {
            prefix: escaped,
            ..scratch
        };
        let store = place.store().await;
        let asked = request("job", "a", seconds(300));
        let mut watches = Vec::new();
        for scope in [Scope::Name(asked.name.clone()), Scope::Prefix(String::new())] {
            watches.push(store.watch(&scope).await.expect("a watch"));
        }
        let token = Some(take(&store, &asked).await.token);
        for mut watch in watches {
            let told = tokio::time::timeout(BOUND, watch.next()).await;
            let (name, change) = (asked.name.clone(), Change::Taken);
            let taken = WatchEvent::Changed { name, change, token };
            assert_eq!(told.expect("it is told"), Ok(taken), "{prefix}");
        }
    }
}
