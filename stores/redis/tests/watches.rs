//! Watches through a proxy that cuts them off or swallows what they say.

use crate::common::proxied;
use tenure_conformance::wire;
use tenure_core::Fault;

#[tokio::test]
async fn broken_watch_of_redis_says_so_and_the_next_one_hears() {
    let (proxy, _scratch, store) = proxied().await;
    wire::broken_watch_says_so_and_the_next_one_hears(&store, &proxy, Fault::TimedOut).await;
}
