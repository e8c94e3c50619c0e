//! Waits that nobody goes on with: their futures are there, and are polled no more.
use crate::harness::{Site, soon};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tenure::Fairness;
use tenure::core::Page;
use tenure_testkit::eventually_async;

#[tokio::test]
async fn a_waiter_that_is_not_polled_any_more_holds_no_queue_up_for_ever() {
    let site = Site::new();
    let fair = |id| site.manager_builder(id).fairness(Fairness::Fair).build().unwrap();
    let (holder, ours, theirs) = (fair("holder"), fair("ours"), fair("theirs"));
    // Else its turn would come while it is polled.
    let turn = soon("the turn", holder.turn("a")).await.unwrap();
    let mut waiting = pin!(ours.lock("a"));
    poll_fn(|context| {
        assert!(waiting.as_mut().poll(context).is_pending(), "it is held");
        Poll::Ready(())
    })
    .await;
    let page = Page {
        prefix: "a/".to_owned(),
        after: None,
        limit: 2,
    };
    let store = site.store();
    let are_in_the_queue = || async { store.list(&page).await.unwrap().leases.len() == 2 };
    eventually_async(Duration::from_secs(20), "it has its place", are_in_the_queue).await;
    drop(turn);
    soon("who came later", theirs.lock("a")).await.unwrap();
}
