//! Work of a request that is done in parts.

use std::future::Future;
use tokio::task::JoinSet;

/// Does all of it, `at_once` of it at a time; what it came to, in the order in which that was known. What
/// panicked is left out. Whatever is under way ends with the caller.
pub(crate) async fn side_by_side<Work>(
    works: impl IntoIterator<Item = Work, IntoIter: Send>,
    at_once: usize,
) -> Vec<Work::Output>
where
    Work: Future<Output: Send> + Send + 'static,
{
    let mut works = works.into_iter();
    let mut under_way: JoinSet<Work::Output> = works.by_ref().take(at_once).collect();
    let mut done = Vec::new();
    while let Some(ended) = under_way.join_next().await {
        if let Some(next) = works.next() {
            under_way.spawn(next);
        }
        done.extend(ended.ok());
    }
    done
}
