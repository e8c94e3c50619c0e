//! What is told of requests that failed: that nothing was applied is said only where it is certain.
use crate::sessions::{TTL_SECS, counted, renewals, take_many};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::{Certainty, LeaseStore};
use tenure_testkit::{RequestFault, eventually_async};

/// For a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The keep-alive is one request, and the reading beside it another, whose failure alone would prove nothing was done. Both
/// ways of renewing: by each lease's own keys, and by what is on the session.
#[tokio::test]
async fn renewal_whose_reading_failed_beside_its_extension_is_unknown() {
    for count in [1, 150] {
        let (proxy, store, direct) = counted().await;
        let (store, other) = (Arc::new(store), direct.store().await);
        let held = take_many(&store, count).await;
        let (name, ttl) = (&held[0].0.name, Duration::from_secs(TTL_SECS));
        let remaining = async || other.get(name).await.unwrap().unwrap().remaining;
        let beat = renewals(&held);
        store.renew(&beat).await.remove(0).unwrap();
        let aged = async || Some(remaining().await).filter(|left| *left <= ttl - Duration::from_secs(2));
        let before = eventually_async(PATIENCE, "a session that is no longer new", aged).await;
        let looked_at = Instant::now();
        proxy.next_requests(2, RequestFault::CutAfter);
        for verdict in store.renew(&beat).await {
            let lost = verdict.unwrap_err();
            assert_eq!(lost.certainty, Certainty::Unknown, "{count}: {lost}");
        }
        // So that this proves something.
        assert!(proxy.counts().cut_after >= 1);
        // Told in whole seconds. However late it is looked at: without the extension these could not be more.
        let extended = async || {
            let since = looked_at.elapsed();
            (remaining().await + since > before + Duration::from_secs(1)).then_some(())
        };
        eventually_async(PATIENCE, "the extension that nobody heard of", extended).await;
    }
}
