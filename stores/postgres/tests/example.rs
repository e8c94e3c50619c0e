//! What the README advises to run, run.

#[path = "../examples/fenced.rs"]
#[allow(dead_code, reason = "the tests have their own beginning")]
mod fenced;

use crate::common::Scratch;
use tenure_testkit::Postgres;

/// It ends with a panic where the older term is admitted, or a program that knows of no fence.
#[tokio::test]
async fn the_example_shows_its_refusals_and_leaves_no_table_behind() {
    let server = Postgres::shared().await;
    let database = Scratch::bare("").schema;
    server
        .execute(&format!("CREATE DATABASE {database}"))
        .await
        .unwrap();
    let uri = server.uri_of(&database);
    fenced::run(&uri).await.unwrap();
    let client = Postgres::client(&uri).await.unwrap();
    let left = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'tenure_example_%'";
    let left: i64 = client.query_one(left, &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
}
