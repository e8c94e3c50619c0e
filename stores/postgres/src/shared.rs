//! What is made once for all who need it, and goes on being made when they give up.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tenure_core::{Fault, StoreError};
use tokio::sync::watch;

/// A place for one thing: nothing, or what is in use, or the making of it.
///
/// Whoever asks meanwhile waits for the same making. It belongs to none of them: the engine's patience may be
/// shorter than what one dead host is given, and a dial that ended with it would never come to the next host.
pub(crate) struct Shared<T>(Mutex<Option<Making<T>>>);

/// What it comes to. Nothing yet, while it goes on.
type Making<T> = watch::Receiver<Option<Result<T, StoreError>>>;

/// How it stands with a place, for who looks on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing<T> {
    Empty,
    UnderWay,
    Made(T),
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone + Send + Sync + 'static> Shared<T> {
    /// What is there and usable, or what the making under way comes to, or else a new one.
    ///
    /// # Errors
    /// As a making that began after this was called: what an earlier one fails of may be over already.
    pub(crate) async fn get<M>(
        &self,
        is_usable: impl Fn(&T) -> bool,
        make: impl Fn() -> M,
    ) -> Result<T, StoreError>
    where
        M: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let (joined, is_new) = self.join(&is_usable, &make);
        match ended(joined).await {
            Err(_earlier) if !is_new => ended(self.join(&is_usable, &make).0).await,
            made => made,
        }
    }

    /// The making, and whether it begins with this.
    fn join<M>(&self, is_usable: impl Fn(&T) -> bool, make: impl Fn() -> M) -> (Making<T>, bool)
    where
        M: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let mut place = self.lock();
        let fit = |making: &&mut Making<T>| match &*making.borrow() {
            // Without a word more to come, it broke off.
            None => making.has_changed().is_ok(),
            Some(Ok(made)) => is_usable(made),
            Some(Err(_)) => false,
        };
        if let Some(making) = place.as_mut().filter(fit) {
            return (making.clone(), false);
        }
        // Let go of first: it counts against the server's limit, and those who still wait on it keep it.
        *place = None;
        let (end, making) = watch::channel(None);
        let work = make();
        tokio::spawn(async move {
            // Refused if nobody wants it any more: then it is let go of.
            drop(end.send(Some(work.await)));
        });
        (place.insert(making).clone(), true)
    }

    pub(crate) fn standing(&self) -> Standing<T> {
        match self.lock().as_ref().map(|making| making.borrow().clone()) {
            None | Some(Some(Err(_))) => Standing::Empty,
            Some(None) => Standing::UnderWay,
            Some(Some(Ok(made))) => Standing::Made(made),
        }
    }

    /// Lets go of it; who asks next has another made.
    pub(crate) fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Making<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn ended<T: Clone>(mut making: Making<T>) -> Result<T, StoreError> {
    let made = making.wait_for(Option::is_some).await.ok();
    let broken = || StoreError::not_applied(Fault::Internal, ": connecting broke off; ask again");
    made.and_then(|made| made.clone())
        .unwrap_or_else(|| Err(broken()))
}
