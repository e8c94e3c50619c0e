//! What many leases cost the server, counted where it is asked, and what it tells of them.
use crate::common::{PATIENCE, Scratch, giving_back, renewal, request, seconds, take};
use crate::faults::proxied_with;
use std::future::poll_fn;
use tenure_core::{LeaseStore, Released, Renewed};
use tenure_testkit::FaultProxy;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, NoTls};

/// The answers to a batch that is one request at the wire.
async fn by_one_request<T>(proxy: &FaultProxy, batch: impl Future<Output = Vec<T>>) -> Vec<T> {
    let before = proxy.counts().requests;
    let answers = batch.await;
    let asked = proxy.counts().requests - before;
    assert_eq!(asked, 1, "requests for {} leases", answers.len());
    answers
}

/// A thousand leases are one request, with a verdict for each; and so are those of them that are given back.
#[tokio::test]
async fn thousand_leases_are_renewed_and_given_back_by_one_request_each() {
    // Nobody listens, so that no sign of life of that connection comes between.
    let (proxy, scratch, store) = proxied_with("listen=off").await;
    // Whoever takes a lease announces that a moment later, and by a request of its own.
    let taking = scratch.store().await;
    let (mut renewals, mut releases) = (Vec::new(), Vec::new());
    for number in 0..1_000 {
        let asked = request(&format!("lease-{number:04}"), "holder", seconds(300));
        let token = take(&taking, &asked).await.token;
        renewals.push(renewal(&asked, token));
        releases.push(giving_back(&asked, token));
    }
    renewals[77].token = tenure_core::FencingToken::new(1).unwrap();
    // What prepares its statement and opens its connection.
    let warm = store.renew(&renewals[..2]).await;
    assert!(matches!(warm[0], Ok(Renewed::Extended { .. })), "{:?}", warm[0]);
    let _warm = store.release(&releases[..2]).await;
    let renewed = by_one_request(&proxy, store.renew(&renewals)).await;
    assert!(
        matches!(renewed[77], Ok(Renewed::Lost(Some(_)))),
        "{:?}",
        renewed[77]
    );
    let is_extended = |answer: &_| matches!(answer, Ok(Renewed::Extended { .. }));
    assert_eq!(renewed.iter().filter(|answer| is_extended(answer)).count(), 997);
    let released = by_one_request(&proxy, store.release(&releases)).await;
    assert!(released.iter().all(|answer| *answer == Ok(Released::Vacated)));
}

/// A notification is one more lock that commits of all databases take in turn, also where nobody is woken by
/// it.
#[tokio::test]
async fn renewals_notify_nobody_who_listens_and_a_release_does() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let (client, mut connection) = tokio_postgres::connect(&scratch.uri, NoTls).await.unwrap();
    let (tells, mut told) = mpsc::unbounded_channel();
    let listening = tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message {
                let _ = tells.send(notification.payload().to_owned());
            }
        }
    });
    client
        .batch_execute(&format!("LISTEN \"{}.leases\"", scratch.schema))
        .await
        .unwrap();
    let mut hears = async || {
        tokio::time::timeout(PATIENCE, told.recv())
            .await
            .unwrap()
            .unwrap()
    };
    let asked = request("job", "holder", seconds(60));
    let token = take(&store, &asked).await.token;
    // It is announced a moment after it was confirmed.
    assert_eq!(hears().await, format!("taken {token} job"));
    for _time in 0..10 {
        let renewed = store.renew(&[renewal(&asked, token)]).await;
        assert!(
            matches!(renewed[0], Ok(Renewed::Extended { .. })),
            "{:?}",
            renewed[0]
        );
    }
    let released = store.release(&[giving_back(&asked, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    // In the order of the commits: so nothing came of the renewals.
    assert_eq!(hears().await, format!("vacated {token} job"));
    listening.abort();
}
