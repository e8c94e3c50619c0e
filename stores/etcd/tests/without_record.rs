//! A lease that is held, and whose record an operator has removed.
use crate::common::{Scratch, remove, renewal, request, seconds, shared, take};
use std::time::Duration;
use tenure_core::{Acquired, Fault, LeaseStore, Listed, Page, StoreError};
use tenure_testkit::eventually_async;

fn assert_is_held_without_a_record(error: &StoreError) {
    assert_eq!(error.fault, Fault::Unreadable, "{error}");
    for part in ["\"job\"", "held", "stop its holder"] {
        assert!(error.message.contains(part), "{error}");
    }
}

/// Its holder believes in it, and nothing tells it otherwise at once.
#[tokio::test]
async fn lease_whose_record_was_removed_is_nobody_elses_before_its_holder_has_stopped() {
    let scratch = Scratch::new().await;
    let (holder, other) = (scratch.store().await, scratch.store().await);
    // Longer than it takes a loaded machine to look at it from all sides.
    let asked = request("job", "holder", seconds(15));
    let token = take(&holder, &asked).await.token;
    let record = scratch.key("job", "");
    assert_eq!(remove(shared().await, 0, &record, &format!("{record}\0")), 1);

    let next = request("job", "next", seconds(60));
    assert_is_held_without_a_record(&other.acquire(&next).await.unwrap_err());
    assert_is_held_without_a_record(&other.get(&asked.name).await.unwrap_err());
    assert_is_held_without_a_record(
        &holder
            .renew(&[renewal(&asked, token)])
            .await
            .remove(0)
            .unwrap_err(),
    );
    let page = Page {
        prefix: String::new(),
        after: None,
        limit: 10,
    };
    let listed = other.list(&page).await.unwrap().leases.remove(0);
    let Listed::Unreadable { error, .. } = listed else {
        panic!("{listed:?}")
    };
    assert_is_held_without_a_record(&error);

    drop(holder);
    let free = async || match other.acquire(&next).await {
        Ok(Acquired::Granted(grant)) => Some(grant),
        Ok(answer) => panic!("{answer:?}"),
        Err(error) => {
            assert_is_held_without_a_record(&error);
            None
        }
    };
    let grant = eventually_async(Duration::from_secs(60), "it is free", free).await;
    assert!(grant.token > token && grant.predecessor.is_none(), "{grant:?}");
}
