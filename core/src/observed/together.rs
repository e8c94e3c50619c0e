use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Most requests of one batch that are under way at once.
///
/// A batch of hundreds must not cost hundreds of round trips one after the other: the term that it extends is
/// running out. And it must not open hundreds of connections either.
const UNDER_WAY_MAX: usize = 32;

/// Runs futures together, a bounded number at once; answers in their order.
pub(super) async fn together<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut waiting = futures.into_iter().fuse();
    let mut under_way: Vec<(usize, Pin<Box<F>>)> = Vec::new();
    let mut answers: Vec<Option<F::Output>> = Vec::new();
    poll_fn(|context| {
        loop {
            while under_way.len() < UNDER_WAY_MAX
                && let Some(future) = waiting.next()
            {
                under_way.push((answers.len(), Box::pin(future)));
                answers.push(None);
            }
            let before = under_way.len();
            under_way.retain_mut(|(place, future)| match future.as_mut().poll(context) {
                Poll::Ready(answer) => {
                    answers[*place] = Some(answer);
                    false
                }
                Poll::Pending => true,
            });
            if under_way.is_empty() && before < UNDER_WAY_MAX {
                return Poll::Ready(());
            }
            if under_way.len() == before {
                return Poll::Pending;
            }
        }
    })
    .await;
    answers.into_iter().flatten().collect()
}
