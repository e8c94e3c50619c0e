//! A server's clock that somebody sets: the lease may end early or late, the token never falls.

mod common;

use common::{Scratch, giving_back, granted, name, renewal, request, seconds, take};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenure_core::{Acquired, LeaseStore, Renewed};
use tenure_testkit::{RedisOptions, RedisServer, ServerClock, eventually_async};

/// A server with a clock of its own, and the store on it.
async fn on_a_clock() -> (RedisServer, ServerClock, Scratch) {
    let clock = ServerClock::new().expect("the library is there");
    let server = RedisServer::start(RedisOptions::durable().by(&clock))
        .await
        .expect("a server starts");
    let scratch = Scratch::on(&server.url());
    (server, clock, scratch)
}

/// Sets the clock, and waits until the server goes by it: one of its threads may have read the old one just before.
async fn set(clock: &ServerClock, scratch: &Scratch, ahead: f64) {
    clock.set_ahead(ahead).expect("set");
    let connection = scratch.connection().await;
    let shown = || async {
        let mut connection = connection.clone();
        for _look in 0..3 {
            let asked = redis::cmd("TIME").query_async(&mut connection).await;
            let (seconds, _micros): (u64, u64) = asked.expect("the test can ask");
            let here = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
            #[allow(clippy::cast_precision_loss, reason = "to the second is enough")]
            let off = seconds as f64 - here.as_secs_f64() - ahead;
            if off.abs() > 5.0 {
                return false;
            }
        }
        true
    };
    eventually_async(Duration::from_secs(30), "the server's clock is set", shown).await;
}

#[tokio::test]
async fn a_clock_set_forward_ends_a_lease_early_and_its_term_for_good() {
    let (_server, clock, scratch) = on_a_clock().await;
    let store = scratch.store().await;
    let first = request("job", "first", seconds(30));
    let token = take(&store, &first).await.token;
    set(&clock, &scratch, 60.0).await;
    let second = request("job", "second", seconds(30));
    let taken = granted(store.acquire(&second).await.expect("an answer"));
    assert!(taken.token > token, "{taken:?}");
    // The first knows nothing of it yet, and asks: its term is over, whatever the clock says next.
    set(&clock, &scratch, 0.0).await;
    let renewed = store.renew(&[renewal(&first, token)]).await.remove(0);
    assert!(!matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let lease = store
        .get(&name("job"))
        .await
        .expect("an answer")
        .expect("a lease");
    assert_eq!(lease.token, taken.token);
}

#[tokio::test]
async fn a_clock_set_back_lets_no_token_fall_and_its_holder_renew_and_leave() {
    let (_server, clock, scratch) = on_a_clock().await;
    let store = scratch.store().await;
    let mut last = None;
    for ahead in [0.0, -3600.0, 7200.0, -86_400.0] {
        set(&clock, &scratch, ahead).await;
        let asked = request("job", "holder", seconds(30));
        // A lease that was given back is free whatever the clock says.
        let token = take(&store, &asked).await.token;
        assert!(last.is_none_or(|last| token > last), "{last:?} {token}");
        last = Some(token);
        let other = store.acquire(&request("job", "other", seconds(30))).await;
        assert!(matches!(other, Ok(Acquired::Held(_))), "{other:?}");
        // Back by an hour under a held lease: it renews, and lasts no longer than it asked for from then.
        set(&clock, &scratch, ahead - 3600.0).await;
        let renewed = store.renew(&[renewal(&asked, token)]).await.remove(0);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        let released = store.release(&[giving_back(&asked, token)]).await.remove(0);
        assert!(released.is_ok(), "{released:?}");
    }
    let lease = store
        .get(&name("job"))
        .await
        .expect("an answer")
        .expect("a lease");
    assert!(lease.released && lease.remaining == Duration::ZERO, "{lease:?}");
}
