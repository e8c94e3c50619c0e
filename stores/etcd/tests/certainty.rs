//! What is told of requests that failed: that nothing was applied is said only where it is certain.
use crate::sessions::{TTL_SECS, counted, renewals, take_many};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::{Certainty, LeaseStore};
use tenure_testkit::{RequestFault, eventually_async};

/// For a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The keep-alive is one request, and the reading beside it another, whose failure alone would prove nothing
/// was done. Both ways of renewing: by each lease's own keys, and by what is on the session.
#[tokio::test]
async fn renewal_whose_reading_failed_beside_its_extension_is_unknown() {
    for count in [1, 150] {
        let (proxy, store, direct) = counted().await;
        let (store, other) = (Arc::new(store), direct.store().await);
        let held = take_many(&store, count).await;
        let (name, ttl) = (&held[0].0.name, Duration::from_secs(TTL_SECS));
        let remaining = async || other.get(name).await.unwrap().unwrap().remaining;
        let aged = async || Some(remaining().await).filter(|left| *left <= ttl - Duration::from_secs(2));
        let beat = renewals(&held);
        // The two requests are on their way at once. Where the reading's answer comes first, its cut may stop
        // the keep-alive.
        let extended_unheard = async || {
            let renewed = async || store.renew(&beat).await.remove(0);
            eventually_async(PATIENCE, "a renewal after the cut", renewed).await;
            let before = eventually_async(PATIENCE, "a session that is no longer new", aged).await;
            let looked_at = Instant::now();
            proxy.next_requests(2, RequestFault::CutAfter);
            for verdict in store.renew(&beat).await {
                let lost = verdict.unwrap_err();
                assert_eq!(lost.certainty, Certainty::Unknown, "{count}: {lost}");
            }
            proxy.heal();
            // Told in whole seconds. However late it is looked at: without the extension these could not be
            // more.
            let more = async || remaining().await + looked_at.elapsed() > before + Duration::from_secs(1);
            let until = looked_at + Duration::from_secs(1);
            while !more().await && Instant::now() < until {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            more().await
        };
        // So that this proves something.
        eventually_async(PATIENCE, "an extension that nobody heard of", extended_unheard).await;
        assert!(proxy.counts().cut_after >= 1);
    }
}
