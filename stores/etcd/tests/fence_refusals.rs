//! Refusals on their way beside the mark: what they cost, and what is said of them. All fences of servers
//! share that.

use crate::common::{Scratch, range, shared};
use std::time::{Duration, Instant};
use tenure_core::{Fence, FenceError, FencingToken, LeaseName, Leases, ResourceName, Term};
use tenure_etcd::EtcdFence;
use tenure_testkit::{Warnings, eventually_async};

/// For some notes and some lines.
const LONG: Duration = Duration::from_millis(2_500);

/// Far more than there are seconds.
const REFUSALS_MIN: u64 = 50;

#[tokio::test]
async fn writer_that_is_refused_again_and_again_costs_a_note_and_a_line_a_second() {
    // The fence counts on a thread of its own.
    let warnings = Warnings::listen();
    let scratch = Scratch::new().await;
    let fence = EtcdFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    let ledger = ResourceName::new(&scratch.prefix).expect("a name");
    let term = |number| {
        let token = FencingToken::new(number).expect("a token");
        Term::new(LeaseName::new("nightly").expect("a name"), token)
    };
    fence.claim(&ledger, &term(9)).await.expect("a claim");
    let (began, mut refused) = (Instant::now(), 0);
    while began.elapsed() < LONG || refused < REFUSALS_MIN {
        let stale = fence.claim(&ledger, &term(5)).await;
        assert!(matches!(stale, Err(FenceError::Stale { .. })), "{stale:?}");
        refused += 1;
    }
    fence.note_refusals().await;
    eventually_async(Duration::from_secs(20), "the count", || async {
        let mark = fence.mark(&ledger).await.expect("a look").expect("a mark");
        match mark.refused == refused {
            true => Ok(()),
            false => Err(format!("{} of {refused}", mark.refused)),
        }
    })
    .await;
    let seconds = began.elapsed().as_secs();

    let key = format!("{}/refusals/{ledger}", scratch.prefix);
    let counted = range(shared().await, 0, &key, &format!("{key}\0")).remove(0);
    let notes: u64 = counted["version"]
        .as_str()
        .and_then(|writes| writes.parse().ok())
        .expect("a number");
    // The first at once, and the last before the process ends.
    assert!(notes <= seconds + 2, "{notes} notes in {seconds} s");

    let lines = warnings.about(ledger.as_str());
    let counts: Vec<u64> = lines
        .iter()
        .filter_map(|line| line.split("refusals=").nth(1)?.split(' ').next()?.parse().ok())
        .collect();
    assert_eq!(counts.iter().sum::<u64>(), refused, "{lines:#?}");
    assert!(
        counts.len() > 1 && counts.len() as u64 <= seconds + 2,
        "{lines:#?}"
    );
}
