//! Watches through a proxy that cuts them off or swallows what they say, and beside other databases.

use crate::common::{Scratch, name, proxied, request, seconds, shared, take, warm_up};
use futures_util::future::join_all;
use std::time::Duration;
use tenure_conformance::wire;
use tenure_core::{Change, Interest, LeaseStore, Scope, WatchEvent};
use tenure_testkit::{Fault, FaultProxy, RedisBuild, eventually_async};

/// What is told is told at once; the rest is for a loaded machine.
const BOUND: Duration = Duration::from_secs(30);

#[tokio::test]
async fn broken_watch_of_redis_says_so_and_the_next_one_hears() {
    let (proxy, _scratch, store) = proxied().await;
    wire::broken_watch_says_so_and_the_next_one_hears(&store, &proxy, tenure_core::Fault::TimedOut).await;
}

/// A reader that is too slow is told of a gap, and of what comes after it. What it has missed is kept for
/// nobody.
#[tokio::test]
async fn slow_reader_of_redis_is_told_of_a_gap() {
    let scratch = Scratch::on(&shared(RedisBuild::Redis).await.url());
    let (store, writer) = (scratch.store().await, scratch.store().await);
    let mut watch = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .expect("a watch");
    let mut leases = (0..).map(|number| request(&format!("job/{number}"), "a", seconds(300)));
    let heard = async {
        let mut gaps = 0;
        while gaps == 0 {
            // Side by side, as each is written to the disk before it is answered.
            for _ in 0..10 {
                let some: Vec<_> = leases.by_ref().take(50).collect();
                join_all(some.iter().map(|asked| take(&writer, asked))).await;
            }
            // Nobody reads meanwhile; on a machine where it was not long enough, once more.
            tokio::time::sleep(Duration::from_millis(300)).await;
            while let Ok(event) = tokio::time::timeout(Duration::from_millis(100), watch.next()).await {
                gaps += u32::from(event.expect("the watch goes on") == WatchEvent::Gap);
            }
        }
        let asked = request("later", "a", seconds(300));
        let token = Some(take(&writer, &asked).await.token);
        let (name, change) = (asked.name, Change::Taken);
        let taken = WatchEvent::Changed { name, change, token };
        while watch.next().await.expect("the watch goes on") != taken {}
    };
    let heard = tokio::time::timeout(4 * BOUND, heard).await;
    heard.expect("the gap and what follows are told");
}

/// How often something is tried that has to succeed, on a machine that may stall now and then.
const TRIES_MAX: usize = 4;

/// The connection of the requests is silent, on which it looks whether the record is there still.
#[tokio::test]
async fn watch_hears_while_it_waits_for_what_it_looks_for() {
    let server = shared(RedisBuild::Redis).await;
    let direct = Scratch::on(&server.url());
    let writer = direct.store().await;
    for number in 0..TRIES_MAX {
        // What is connected first goes through both, and what comes later through the first alone.
        let behind = FaultProxy::redis(server.address()).expect("a proxy");
        let proxy = FaultProxy::redis(behind.address().to_string()).expect("a proxy");
        let place = Scratch {
            url: format!("redis://{}", proxy.address()),
            prefix: direct.prefix.clone(),
        };
        let store = place.store().await;
        warm_up(&store).await;
        proxy.lead_to(server.address());
        let asked = request(&format!("job-{number}"), "a", seconds(300));
        let scope = Scope::Name(asked.name.clone());
        let mut watch = store.watch(&scope, Interest::Everything).await.expect("a watch");
        // The first look is over by then, and the next comes after two seconds.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let before = proxy.counts().requests;
        behind.set(Fault::Hold);
        let hearing = async {
            // That of who asks, which is given up before the look is; and the one with which the look begins.
            let looks = async || proxy.counts().requests >= before + 2;
            eventually_async(BOUND, "the next look", looks).await;
            let token = Some(take(&writer, &asked).await.token);
            let (name, change) = (asked.name.clone(), Change::Taken);
            let taken = WatchEvent::Changed { name, change, token };
            assert_eq!(watch.next().await, Ok(taken));
        };
        tokio::select! {
            () = hearing => return,
            given_up = store.get(&asked.name) => assert!(given_up.is_err(), "{given_up:?}"),
        }
    }
    panic!("heard only after the look in {TRIES_MAX} tries");
}

/// The server tells every message to whoever listens, whatever the database: one lease's greater token would
/// end the term of the other, time and again.
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
            watches.push(
                stores[own]
                    .watch(&scope, Interest::Everything)
                    .await
                    .expect("a watch"),
            );
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
            watches.push(store.watch(&scope, Interest::Everything).await.expect("a watch"));
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
