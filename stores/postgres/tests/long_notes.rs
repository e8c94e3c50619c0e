//! Notes that somebody has written who is not held to their length.
use crate::common::{PATIENCE, Scratch, name, renewal, request, seconds, take};
use tenure_core::{Acquired, LeaseStore as _, Listed, Occupancy, Page, Renewed};
use tenure_postgres::PostgresStore;

/// As every candidate of the schema may: it is the one column without a rule.
const TEN_MEGABYTES: &str = "UPDATE {schema}.leases SET note = repeat('\\', 10000000) WHERE name = 'long'";

#[tokio::test]
async fn row_with_a_note_of_ten_megabytes_is_listed_renewed_and_taken_over() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    // On a thread of its own: whoever does not come to the note's end waits for nothing, and cannot be given
    // up.
    let (done, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(use_row(&scratch, &store));
        let _ = done.send(());
    });
    let done = tokio::time::timeout(PATIENCE, told).await;
    done.expect("it is used in time").expect("it is used like others");
}

async fn use_row(scratch: &Scratch, store: &PostgresStore) {
    let holder = request("long", "holder", seconds(60));
    let rival = request("long", "rival", seconds(60));
    let token = take(store, &holder).await.token;
    scratch.sql(TEN_MEGABYTES).await;
    let all = Page::first("", 10);
    let listed = store.list(&all).await.unwrap().leases;
    let [Listed::Lease(lease)] = &listed[..] else {
        panic!("{listed:?}");
    };
    // Each is two in the table.
    assert_eq!(lease.note.as_str(), "\\".repeat(1024));
    let renewed = store.renew(&[renewal(&holder, token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let found = store.acquire(&rival).await.unwrap();
    assert!(matches!(found, Acquired::Held(_)), "{found:?}");
    scratch
        .sql("UPDATE {schema}.leases SET expires_at = clock_timestamp() WHERE name = 'long'")
        .await;
    let lost = store.renew(&[renewal(&holder, token)]).await.remove(0);
    let lease = store.get(&name("long")).await.unwrap().unwrap();
    assert_eq!(lease.occupancy(), Occupancy::Expired, "{lost:?}");
    assert!(take(store, &rival).await.token > token);
}
