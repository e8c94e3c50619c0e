//! Elections on an etcd that is out of space, and what is counted of it.
use crate::harness::counted::{counted, number};
use std::sync::Arc;
use std::time::Duration;
use tenure::etcd::EtcdStore;
use tenure::{Authority, Election, Timing, TimingOptions};
use tenure_testkit::{Etcd, EtcdOptions, eventually, eventually_async};

const BOUND: Duration = Duration::from_secs(60);

/// Renewed often, so that a full etcd is asked soon; and a renewal may take seconds, which is what a disk may
/// be busy for.
fn timing() -> Timing {
    let options = TimingOptions {
        renew_every: Some(Duration::from_secs(1)),
        ..TimingOptions::new(Duration::from_secs(60))
    };
    options.check().unwrap()
}

async fn election(etcd: &Etcd, lease: &str) -> Election {
    let store = EtcdStore::connect(&etcd.url()).await.unwrap();
    Election::builder(lease, Arc::new(store))
        .candidate("ada")
        .timing(timing())
        .build()
        .unwrap()
}

#[tokio::test]
async fn full_etcd_is_counted_as_full_and_elects_again_when_there_is_room() {
    let counted = counted();
    let options = EtcdOptions::default().with("--quota-backend-bytes 4194304");
    let etcd = Etcd::start(options).await.unwrap();
    let (leader, candidate) = (
        election(&etcd, "held-while-full").await,
        election(&etcd, "free-while-full").await,
    );
    let leadership = leader.campaign().await.unwrap();
    etcd.fill().unwrap();
    let renewals = || number(&counted, "lease_renewals{lease=\"held-while-full\"}");
    let full = || {
        let line = "lease_acquisition_failures{lease=\"free-while-full\",reason=\"full\"}";
        number(&counted, line)
    };
    let before = renewals();
    let campaign = tokio::spawn(async move { (candidate.campaign().await, candidate) });
    eventually_async(BOUND, "attempts that are counted as full", || async {
        full() >= 2
    })
    .await;
    eventually_async(BOUND, "renewals", || async { renewals() >= before + 3 }).await;
    assert!(!campaign.is_finished(), "a full etcd has elected somebody");
    assert!(matches!(leadership.authority(), Authority::Held { .. }));
    // One that was slow is counted, too, and says nothing of what is full.
    for count in [
        "lease_renewal_failures{lease=\"held-while-full\",reason=\"full\"}",
        "lease_terms_ended{lease=\"held-while-full\"",
        "lease_terms_begun{lease=\"free-while-full\"",
    ] {
        let page = counted.render();
        let mut counts = page.lines().filter(|line| line.starts_with(count));
        assert!(counts.all(|line| line.ends_with(" 0")), "{page}");
    }
    etcd.make_room().unwrap();
    let (won, _candidate) = tokio::time::timeout(BOUND, campaign).await.unwrap().unwrap();
    assert!(matches!(won.unwrap().authority(), Authority::Held { .. }));
    let begun = "lease_terms_begun{lease=\"free-while-full\",after=\"vacant\"}";
    eventually(BOUND, "the term that is counted", || number(&counted, begun) == 1);
}
