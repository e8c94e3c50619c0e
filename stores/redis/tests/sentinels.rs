//! Sentinels of which one is lost, or wrong: the others lead to the primary.

use crate::common::{Scratch, connection, granted, renewal, request, seconds, take};
use std::time::Duration;
use tenure_core::{LeaseStore, Renewed, StoreError};
use tenure_testkit::{Fault, FaultProxy, RedisSentinels, eventually_async};

/// What a caller waits: less than one silent sentinel is given.
const PATIENCE: Duration = Duration::from_millis(500);

/// Long, as a busy machine may need it.
const BOUND: Duration = Duration::from_secs(60);

/// The address that stands first in the URL.
fn first_sentinel(set: &RedisSentinels) -> String {
    let url = set.url();
    let hosts = url.trim_start_matches("redis+sentinel://");
    hosts.split(',').next().expect("a sentinel").to_owned()
}

/// The answer, unless the caller gives up before.
async fn patient<T>(asking: impl Future<Output = Result<T, StoreError>>) -> Result<T, String> {
    let answer = tokio::time::timeout(PATIENCE, asking).await;
    answer
        .map_err(|_late| "gave up".to_owned())?
        .map_err(|error| error.to_string())
}

/// One machine had the primary and the first sentinel. With a dial that ended with its caller, nobody would ever ask the
/// second one.
#[tokio::test]
async fn fail_over_is_followed_past_a_silent_sentinel_by_who_has_little_time() {
    let mut set = RedisSentinels::start().await.expect("sentinels");
    let first = first_sentinel(&set);
    let proxy = FaultProxy::redis(first.clone()).expect("a proxy");
    let url = set.url().replace(&first, &proxy.address().to_string());
    let store = Scratch::on(&url).store().await;
    let before = take(&store, &request("job", "a", seconds(300))).await;
    proxy.set(Fault::BlackHole);
    set.servers()[0].freeze();
    let replica = &set.servers()[1];
    eventually_async(BOUND, "a fail-over", || async {
        // Of a primary: its role, how far it is, its replicas.
        let role = replica.ask("ROLE");
        role.is_ok_and(|first| first == "*3")
    })
    .await;
    let other = request("other", "b", seconds(300));
    let after = eventually_async(BOUND, "a term on the new primary", || {
        patient(store.acquire(&other))
    })
    .await;
    let after = granted(after);
    assert!(after.token > before.token);
    // Renewals have a connection of their own, which is made now.
    let asked = proxy.counts().connections;
    let renewals = [renewal(&other, after.token)];
    let renewed = eventually_async(BOUND, "a renewal", || {
        patient(async { store.renew(&renewals).await.remove(0) })
    })
    .await;
    assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
    assert_eq!(
        proxy.counts().connections,
        asked,
        "the silent sentinel was asked before the one that answers"
    );
}

/// It is cut off from the others, and answers.
#[tokio::test]
async fn sentinel_that_names_a_server_that_is_gone_is_asked_last() {
    let mut set = RedisSentinels::start().await.expect("sentinels");
    let first = first_sentinel(&set);
    let store = Scratch::on(&set.url()).store().await;
    let asked = request("job", "a", seconds(300));
    let grant = take(&store, &asked).await;
    let gone = tenure_testkit::free_port().to_string();
    let mut sentinel = connection(&format!("redis://{first}")).await;
    for words in [
        vec!["REMOVE", RedisSentinels::PRIMARY],
        vec!["MONITOR", RedisSentinels::PRIMARY, "127.0.0.1", &gone, "2"],
    ] {
        let done: Result<String, _> = redis::cmd("SENTINEL")
            .arg(&words)
            .query_async(&mut sentinel)
            .await;
        assert_eq!(done.as_deref(), Ok("OK"), "{words:?}");
    }
    let killed = set.servers()[0].ask("CLIENT KILL TYPE normal").expect("asked");
    assert!(killed.starts_with(':'), "{killed}");
    let again = eventually_async(BOUND, "the same term", || store.acquire(&asked)).await;
    assert_eq!(granted(again).token, grant.token);
}
