//! A fail-over that loses what the primary had confirmed: tokens rise all the same, and the fence decides.

use crate::common::{Scratch, connection, granted, renewal, request, seconds, take};
use std::time::Duration;
use tenure_core::{Fence, FenceError, LeaseStore, Leases, Renewed, ResourceName, Term};
use tenure_redis::{FencedWrites, RedisFence};
use tenure_testkit::{RedisSentinels, RedisServer, eventually_async};

/// Long, as a busy machine may need it.
const BOUND: Duration = Duration::from_secs(60);

async fn ask(server: &RedisServer, words: &[&str]) -> String {
    let asked = redis::cmd(words[0]).arg(&words[1..]).to_owned();
    let answer: redis::Value = asked
        .query_async(&mut connection(&server.url()).await)
        .await
        .expect("the test can ask");
    redis::from_redis_value(answer).expect("text")
}

/// Nothing more reaches the replica, which stays one that may be promoted.
async fn stop_replication(primary: &RedisServer, replica: &RedisServer) {
    // The primary has no password, and lets nobody in with one.
    ask(replica, &["CONFIG", "SET", "masterauth", "wrong"]).await;
    eventually_async(BOUND, "a replica that is cut off", async || {
        let killed = redis::cmd("CLIENT").arg(&["KILL", "TYPE", "replica"]).to_owned();
        let _killed: redis::Value = killed
            .query_async(&mut connection(&primary.url()).await)
            .await
            .expect("the test can ask");
        ask(replica, &["INFO", "replication"])
            .await
            .contains("master_link_status:down")
    })
    .await;
}

#[tokio::test]
async fn fail_over_that_loses_a_confirmed_term_lets_no_token_fall_and_the_fence_refuses_the_lost_one() {
    let mut set = RedisSentinels::start().await.expect("sentinels");
    let scratch = Scratch::on(&set.url());
    let store = scratch.store().await;
    let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    let ledger = ResourceName::new("ledger").expect("a name");
    let data = format!("{{{}}}:balance", scratch.prefix);
    let adds = FencedWrites::new().command(&[&data], ["INCR", &data]);

    let [primary, replica] = set.servers();
    stop_replication(primary, replica).await;
    let lost = request("job", "a", seconds(600));
    let token = take(&store, &lost).await.token;
    let lost_term = Term::new(lost.name.clone(), token);
    fence.claim(&ledger, &lost_term).await.expect("a claim");
    fence
        .write(&ledger, &lost_term, &adds)
        .await
        .expect("it is admitted");
    set.servers()[0].kill();

    let next = request("job", "b", seconds(600));
    let grant = eventually_async(BOUND, "a term on the new primary", || async {
        store.acquire(&next).await.map(granted)
    })
    .await;
    assert!(grant.token > token, "{grant:?} after {token}");
    assert_eq!(grant.terms, 1, "the new primary knows the lost term: {grant:?}");
    let renewed = eventually_async(BOUND, "an answer of the new primary", async || {
        store.renew(&[renewal(&lost, token)]).await.remove(0)
    })
    .await;
    assert!(matches!(renewed, Renewed::Lost(_)), "{renewed:?}");

    // Its claim is lost as well: it is nobody's there, before the next claim and after.
    let write = async |term: &Term| fence.write(&ledger, term, &adds).await;
    let before = eventually_async(BOUND, "an answer of the fence's", || async {
        match write(&lost_term).await {
            Err(FenceError::Store(error)) => Err(error.to_string()),
            told => Ok(told),
        }
    })
    .await;
    assert!(matches!(before, Err(FenceError::Unclaimed { .. })), "{before:?}");
    let term = Term::new(next.name.clone(), grant.token);
    fence.claim(&ledger, &term).await.expect("a claim");
    let after = write(&lost_term).await;
    assert!(matches!(after, Err(FenceError::Stale { .. })), "{after:?}");
    assert_eq!(
        write(&term).await.expect("it is admitted"),
        vec![redis::Value::Int(1)]
    );
}
