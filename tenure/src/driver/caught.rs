//! A panic of the store's, where nothing else would tell that no answer comes any more.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// Waits for an answer; `None` if there was a panic instead.
pub(super) async fn caught<T>(answering: impl Future<Output = T>) -> Option<T> {
    let mut answering = pin!(answering);
    poll_fn(|context| {
        let poll = catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(context)));
        poll.map_or(Poll::Ready(None), |poll| poll.map(Some))
    })
    .await
}
