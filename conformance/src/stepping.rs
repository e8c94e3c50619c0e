//! What a step of the server's clock may do to a lease, for every store that judges by it.

use crate::asking::{giving_back, granted, name, renewal, request, seconds, take};
use std::time::Duration;
use tenure_core::{Acquired, LeaseStore, Renewed, StoreError};
use tokio::time::sleep;

/// How often, and for how long, it is looked whether the server goes by the clock that was set.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOKS_MAX: u32 = 600;

/// How often what has failed is asked again: a server may drop its connections when its clock steps.
const TRIES_MAX: u32 = 20;

/// How far the server's clock may be from what was set, in seconds, for the rest of the looks.
const CLOSE: f64 = 5.0;

/// A store whose server's clock the test can set.
pub struct Stepped<S, Set, Shown> {
    /// The store.
    pub store: S,
    /// Sets the clock so many seconds ahead of this machine's.
    pub set: Set,
    /// How far ahead the server goes, in seconds.
    pub shown: Shown,
}

impl<S: LeaseStore, Set: Fn(f64), Shown: AsyncFn() -> f64> Stepped<S, Set, Shown> {
    /// Sets the clock, and waits until the server goes by it: one of its threads may have read the old one
    /// just before.
    async fn set(&self, ahead: f64) {
        (self.set)(ahead);
        let mut close = 0;
        for _look in 0..LOOKS_MAX {
            close = match ((self.shown)().await - ahead).abs() < CLOSE {
                true => close + 1,
                false => 0,
            };
            if close == 3 {
                return;
            }
            sleep(LOOK_EVERY).await;
        }
        panic!("the server's clock was set {ahead} s ahead, and the server does not go by it");
    }

    /// A clock that is set forward ends a lease early, and its term for good.
    ///
    /// # Panics
    /// If it does something else.
    pub async fn clock_set_forward_ends_a_lease_early_and_its_term_for_good(&self) {
        let store = &self.store;
        let first = request("job", "first", seconds(30));
        let token = take(store, &first).await.token;
        self.set(60.0).await;
        let second = request("job", "second", seconds(30));
        let taken = granted(answered(async || store.acquire(&second).await).await);
        assert!(taken.token > token, "{taken:?}");
        // The first knows nothing of it yet, and asks: its term is over, whatever the clock says next.
        self.set(0.0).await;
        let renewed = store.renew(&[renewal(&first, token)]).await.remove(0);
        assert!(!matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        let lease = answered(async || store.get(&name("job")).await).await;
        let lease = lease.expect("a lease");
        assert_eq!(lease.token, taken.token);
    }

    /// One that is set back lets no token fall; the holder goes on renewing, and can give the lease back.
    ///
    /// # Panics
    /// If it does something else.
    pub async fn clock_set_back_lets_no_token_fall_and_its_holder_renew_and_leave(&self) {
        let store = &self.store;
        let mut last = None;
        for ahead in [0.0, -3600.0, 7200.0, -86_400.0] {
            self.set(ahead).await;
            let asked = request("job", "holder", seconds(30));
            // A lease that was given back is free whatever the clock says.
            let taken = answered(async || store.acquire(&asked).await).await;
            let token = granted(taken).token;
            assert!(last.is_none_or(|last| token > last), "{last:?} {token}");
            last = Some(token);
            let other = request("job", "other", seconds(30));
            let other = answered(async || store.acquire(&other).await).await;
            assert!(matches!(other, Acquired::Held(_)), "{other:?}");
            // Back by an hour under a held lease: it renews, and lasts no longer than it asked for from then.
            self.set(ahead - 3600.0).await;
            let renewals = [renewal(&asked, token)];
            let renewed = answered(async || store.renew(&renewals).await.remove(0)).await;
            assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
            let releases = [giving_back(&asked, token)];
            answered(async || store.release(&releases).await.remove(0)).await;
        }
        let lease = answered(async || store.get(&name("job")).await).await;
        let lease = lease.expect("a lease");
        assert!(lease.released && lease.remaining == Duration::ZERO, "{lease:?}");
    }
}

/// The answer, at last.
async fn answered<T>(ask: impl AsyncFn() -> Result<T, StoreError>) -> T {
    let mut tries = 1;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) if tries == TRIES_MAX => panic!("{error}"),
            Err(_) => tries += 1,
        }
        sleep(LOOK_EVERY).await;
    }
}

/// How far ahead of this machine's clock this reading of a server's is, in seconds.
#[must_use]
pub fn ahead(server_ms: u64) -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let here_ms = since.unwrap_or_default().as_millis();
    #[allow(clippy::cast_precision_loss, reason = "to the second is enough")]
    let ahead = (i128::from(server_ms) - here_ms.cast_signed()) as f64 / 1000.0;
    ahead
}
