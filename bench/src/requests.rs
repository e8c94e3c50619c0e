//! What an idle standby and a leader cost: requests per ttl, beside the watch.

use crate::counting::Counting;
use crate::figures::judge;
use std::sync::Arc;
use tenure::sqlite::SqliteStore;
use tenure::{Election, Timing, Ttl};
use tenure_testkit::ScratchDir;

pub async fn measure(ttls: u32) {
    let folder = ScratchDir::new("bench-requests");
    let open = || {
        Arc::new(Counting::new(Arc::new(
            SqliteStore::open(folder.join("leases.db")).unwrap(),
        )))
    };
    let timing = Timing::of(Ttl::from_secs(3).unwrap());
    let build = |store, candidate| {
        Election::builder("bench", store)
            .candidate(candidate)
            .timing(timing)
            .build()
            .unwrap()
    };
    let (leader_store, standby_store) = (open(), open());
    let leader = build(leader_store.clone(), "leader");
    let leadership = leader.campaign().await.unwrap();
    let standby = build(standby_store.clone(), "standby");
    let campaign = tokio::spawn(async move { standby.campaign().await.map(|_| standby) });
    // What campaigns begin with does not count as idling.
    tokio::time::sleep(timing.ttl().duration() * 2).await;
    let (leader_before, standby_before) = (leader_store.requests(), standby_store.requests());
    tokio::time::sleep(timing.ttl().duration() * ttls).await;
    let per_ttl = |now: u32, before: u32| f64::from(now - before) / f64::from(ttls);
    let standby_cost = per_ttl(standby_store.requests(), standby_before);
    let leader_cost = per_ttl(leader_store.requests(), leader_before);
    campaign.abort();
    leadership.step_down().await;
    println!(
        "requests over {ttls} ttls of {}, renewed every {:?}:",
        timing.ttl(),
        timing.renew_every()
    );
    judge("  idle standby, requests per ttl", standby_cost, 1.0, "");
    judge(
        "  leader, requests per renewal",
        leader_cost / 3.0,
        1.0 + 1.0 / f64::from(3 * ttls),
        "",
    );
}
