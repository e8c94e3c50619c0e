//! A set-up beside those who use the tables: what it waits for, and who goes on meanwhile.
use crate::common::{Scratch, giving_back, renewal, request, seconds, take};
use tenure_conformance::wire::bounded;
use tenure_core::{Certainty, Fault, LeaseStore, Renewed};
use tenure_postgres::PostgresStore;

/// As a dump, which reads the tables as long as it takes.
#[tokio::test]
async fn a_set_up_beside_an_open_reader_of_the_leases_waits_for_nobody_and_stops_no_lease() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let asked = request("nightly", "a", seconds(60));
    let beat = [renewal(&asked, take(&store, &asked).await.token)];
    let mut client = scratch.client().await;
    let reader = client.transaction().await.unwrap();
    let read = format!("SELECT FROM {}.leases", scratch.schema);
    reader.execute(&read, &[]).await.unwrap();
    let url = scratch.url("");
    let (set_up, renewed) = tokio::join!(bounded("a set-up", PostgresStore::init(&url)), store.renew(&beat));
    set_up.unwrap();
    assert!(matches!(renewed[0], Ok(Renewed::Extended { .. })), "{renewed:?}");
    take(&store, &request("other", "a", seconds(60))).await;
    reader.rollback().await.unwrap();
}

/// What has to change a table gives up, and so does who asks for a lease behind it or behind whoever keeps
/// the whole table.
#[tokio::test]
async fn who_keeps_the_whole_table_of_leases_is_waited_for_within_a_bound() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    // A session looks at the table for its type, the first time, before a bound is set.
    let before = request("other", "a", seconds(60));
    let token = take(&store, &before).await.token;
    store.release(&[giving_back(&before, token)]).await[0]
        .as_ref()
        .unwrap();
    scratch
        .sql("DROP TRIGGER tell_of_removal ON {schema}.leases")
        .await;
    let mut client = scratch.client().await;
    let keeper = client.transaction().await.unwrap();
    let lock = format!("LOCK TABLE {}.leases IN ACCESS EXCLUSIVE MODE", scratch.schema);
    keeper.batch_execute(&lock).await.unwrap();
    let (url, asked) = (scratch.url(""), request("nightly", "a", seconds(60)));
    let (set_up, acquired) = tokio::join!(
        bounded("a set-up", PostgresStore::init(&url)),
        bounded("an acquisition", store.acquire(&asked))
    );
    for error in [set_up.unwrap_err(), acquired.unwrap_err()] {
        let told = (error.fault, error.certainty);
        assert_eq!(told, (Fault::Busy, Certainty::NotApplied), "{error}");
    }
    keeper.rollback().await.unwrap();
    PostgresStore::init(&url).await.unwrap();
    take(&store, &asked).await;
}
