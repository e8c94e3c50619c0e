//! Tokens of credentials that run out, or that a server has forgotten: nobody notices.
use crate::common::{giving_back, renewal, request, seconds, take};
use crate::connect::with_users;
use std::time::Duration;
use tenure_core::{Change, Interest, LeaseStore, Released, Renewed, Scope, WatchEvent};
use tenure_etcd::EtcdStore;
use tenure_testkit::eventually_async;

const PATIENCE: Duration = Duration::from_secs(30);

/// What the server lets a token live that is not used.
const TOKEN_TIME: Duration = Duration::from_secs(1);

#[tokio::test]
async fn token_that_has_run_out_costs_nothing() {
    let mut etcd = with_users("--auth-token-ttl 1").await;
    let url = format!("etcd://service:hunter2%40@{}", etcd.address(0));
    let store = EtcdStore::connect(&url).await.unwrap();
    let asked = request("job", "holder", seconds(60));
    let token = take(&store, &asked).await.token;
    let beat = [renewal(&asked, token)];
    let scope = Scope::Name(asked.name.clone());
    let mut watch = store.watch(&scope, Interest::Everything).await.unwrap();
    for _time in 0..2 {
        let renewed = store.renew(&beat).await.remove(0);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        let lease = store.get(&asked.name).await.unwrap().unwrap();
        assert_eq!(lease.token, token);
        drop(store.watch(&scope, Interest::Everything).await.unwrap());
        tokio::time::sleep(3 * TOKEN_TIME).await;
    }
    let other = take(&store, &request("other", "holder", seconds(60))).await;
    assert!(other.token > token);
    let released = store.release(&[giving_back(&asked, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    let told = tokio::time::timeout(PATIENCE, watch.next())
        .await
        .expect("in time");
    assert!(
        matches!(
            &told,
            Ok(WatchEvent::Changed {
                change: Change::Vacated,
                ..
            })
        ),
        "{told:?}"
    );
    // A server that was started again knows none.
    etcd.restart(0).await.unwrap();
    let again = request("job", "holder-again", seconds(60));
    let next = eventually_async(PATIENCE, "a term", || store.acquire(&again)).await;
    let next = crate::common::granted(next).token;
    let told = tokio::time::timeout(PATIENCE, watch.next())
        .await
        .expect("in time");
    assert!(
        matches!(&told, Ok(WatchEvent::Changed { change: Change::Taken, token, .. }) if *token == Some(next)),
        "{told:?}"
    );
}
