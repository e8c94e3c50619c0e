//! One answer for many who ask the same.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// Something that many ask for at once, and that is asked once for all who came before it began.
pub(crate) struct Shared<T> {
    /// What the next time comes to, for all who wait for that.
    next: Mutex<Arc<OnceCell<T>>>,
    turn: tokio::sync::Mutex<()>,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self {
            next: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }
}

impl<T: Clone> Shared<T> {
    /// What `ask` comes to: this one, or another's that began after this was called.
    pub(crate) async fn ask(&self, ask: impl Future<Output = T>) -> T {
        let ours = Arc::clone(&self.next.lock().unwrap_or_else(PoisonError::into_inner));
        let _turn = self.turn.lock().await;
        // Whoever comes from here on waits for a later one. If it was begun and given up, it is begun anew.
        {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            if Arc::ptr_eq(&next, &ours) {
                *next = Arc::default();
            }
        }
        ours.get_or_init(|| ask).await.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::Shared;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::sync::Semaphore;
    use tokio::task::yield_now;

    /// Whoever comes while it is being asked must not be told what was so before they came.
    #[tokio::test]
    async fn those_who_come_while_it_is_asked_share_the_next_answer() {
        let (shared, begun, may_end) = (
            Arc::new(Shared::<u32>::default()),
            Arc::new(AtomicU32::new(0)),
            Arc::new(Semaphore::new(0)),
        );
        let asking = || {
            let (shared, begun, may_end) = (Arc::clone(&shared), Arc::clone(&begun), Arc::clone(&may_end));
            tokio::spawn(async move {
                let ask = async {
                    let number = begun.fetch_add(1, Ordering::SeqCst) + 1;
                    may_end.acquire().await.expect("it is never closed").forget();
                    number
                };
                shared.ask(ask).await
            })
        };
        let settle = async || {
            for _ in 0..10 {
                yield_now().await;
            }
        };
        let first = asking();
        settle().await;
        let (second, given_up, third) = (asking(), asking(), asking());
        settle().await;
        assert_eq!(begun.load(Ordering::SeqCst), 1, "one at a time");
        may_end.add_permits(1);
        assert_eq!(first.await.expect("an answer"), 1);
        given_up.abort();
        settle().await;
        // Whoever began it may leave: another of those who wait for it begins it anew.
        second.abort();
        settle().await;
        may_end.add_permits(1);
        assert_eq!(third.await.expect("an answer"), 3);
        may_end.add_permits(1);
        assert_eq!(
            asking().await.expect("an answer"),
            4,
            "and it is asked anew afterwards"
        );
    }
}
