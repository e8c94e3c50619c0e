//! What a server without room may do to leases, for every store whose tests can take its room away.

use crate::asking::{granted, renewal, request, seconds, take};
use std::time::Duration;
use tenure_core::{Acquired, Certainty, Fault, LeaseStore, Renewed, StoreError};
use tokio::time::sleep;

/// Most leases that are asked for until one is refused: what is left of a page, or of a file's last piece.
const ASKED_MAX: u32 = 2_000;

/// How often, and for how long, it is looked whether the server has found its room.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOKS_MAX: u32 = 300;

/// What becomes of the holders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holders {
    /// They go on renewing: a renewal needs no room.
    Renew,
    /// They are refused as everybody is, and their terms end with their leases.
    AreRefused,
}

/// A store whose server's room the test can take away and give back.
pub struct Filled<S, Fill, Free> {
    /// The store.
    pub store: S,
    /// Takes the room away.
    pub fill: Fill,
    /// Gives it back.
    pub free: Free,
    /// What becomes of who holds a lease.
    pub holders: Holders,
    /// What a refusal says of the way out.
    pub way_out: &'static str,
}

impl<S: LeaseStore, Fill: AsyncFn(), Free: AsyncFn()> Filled<S, Fill, Free> {
    /// Nothing is granted, and it is said so; nothing is lost, and it goes on when there is room.
    ///
    /// # Panics
    /// If it does something else.
    pub async fn server_without_room_grants_nothing_loses_nothing_and_goes_on_later(&self) {
        let store = &self.store;
        let held = request("held", "holder", seconds(300));
        let token = take(store, &held).await.token;
        let renewals = [renewal(&held, token)];
        (self.fill)().await;
        let mut last = 0;
        let refused = loop {
            last += 1;
            let asked = request(&format!("job-{last}"), "a", seconds(300));
            match store.acquire(&asked).await {
                Ok(answer) => drop(granted(answer)),
                Err(error) => break error,
            }
            assert!(last < ASKED_MAX, "{ASKED_MAX} leases were taken without room");
        };
        self.check(&refused);
        let lease = store
            .get(&held.name)
            .await
            .expect("a read needs no room")
            .expect("the record");
        assert_eq!((lease.token, lease.released), (token, false), "{lease:?}");
        let renewed = store.renew(&renewals).await.remove(0);
        match self.holders {
            Holders::Renew => assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}"),
            Holders::AreRefused => self.check(&renewed.expect_err("no room for a renewal")),
        }
        (self.free)().await;
        let refused = request(&format!("job-{last}"), "b", seconds(300));
        let grant = granted(answered(async || store.acquire(&refused).await).await);
        // What was refused was not applied: nobody holds it.
        assert_eq!((grant.terms, grant.predecessor.clone()), (1, None), "{grant:?}");
        // On a connection of their own, which may be found broken only now.
        let renewed = answered(async || store.renew(&renewals).await.remove(0)).await;
        assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
        let other = store.acquire(&request("held", "other", seconds(300))).await;
        assert!(
            matches!(&other, Ok(Acquired::Held(lease)) if lease.token == token),
            "{other:?}"
        );
    }

    fn check(&self, error: &StoreError) {
        assert_eq!(
            (error.fault, error.certainty),
            (Fault::Full, Certainty::NotApplied),
            "{error}"
        );
        assert!(
            error.message.contains(self.way_out) && !error.message.contains('\n'),
            "{error}"
        );
    }
}

/// What is answered once the server has found its room.
async fn answered<T>(ask: impl AsyncFn() -> Result<T, StoreError>) -> T {
    let mut answer = ask().await;
    for _look in 0..LOOKS_MAX {
        if answer.is_ok() {
            break;
        }
        sleep(LOOK_EVERY).await;
        answer = ask().await;
    }
    answer.expect("room again")
}
