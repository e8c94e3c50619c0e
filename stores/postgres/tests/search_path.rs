//! What others put in a schema of the search path: it decides nothing.
use crate::common::{Scratch, renewal, request, seconds, take};
use crate::fence::{ledger, term};
use std::time::Duration;
use tenure_conformance::wire::bounded;
use tenure_core::{Acquired, Fence, LeaseStore, Renewed};
use tenure_postgres::{PostgresFence, PostgresStore};
use tenure_testkit::Postgres;

/// Operators and functions that fit what Tenure computes with better than the server's own, or as well. Each
/// answers what would end leases at once, or refuse entries.
const OTHERS: &str = "
    CREATE FUNCTION public.wrong(bigint, interval) RETURNS interval LANGUAGE sql AS $$SELECT interval '-1 s'$$;
    CREATE OPERATOR public.* (LEFTARG = bigint, RIGHTARG = interval, FUNCTION = public.wrong);
    CREATE FUNCTION public.wrong(bigint, text) RETURNS text LANGUAGE sql AS $$SELECT '1 nobody'::text$$;
    CREATE OPERATOR public.|| (LEFTARG = bigint, RIGHTARG = text, FUNCTION = public.wrong);
    CREATE FUNCTION public.wrong(bigint, bigint) RETURNS text LANGUAGE sql AS $$SELECT '1 nobody'::text$$;
    CREATE OPERATOR public.|| (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = public.wrong);
    CREATE FUNCTION public.wrong(numeric, integer) RETURNS numeric LANGUAGE sql AS $$SELECT 7::numeric$$;
    CREATE OPERATOR public.* (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = public.wrong);
    CREATE FUNCTION public.wrong(jsonb, jsonb) RETURNS text LANGUAGE sql AS $$SELECT '5'::text$$;
    CREATE OPERATOR public.->> (LEFTARG = jsonb, RIGHTARG = jsonb, FUNCTION = public.wrong);
    CREATE FUNCTION public.hashtextextended(text, integer) RETURNS bigint LANGUAGE sql AS $$SELECT 1 / 0::bigint$$;";

/// A role without a right in Tenure's schema may create in `public`, as everybody may before PostgreSQL 15.
#[tokio::test]
async fn operators_that_others_put_in_the_search_path_decide_nothing() {
    let server = Postgres::shared().await;
    let other = Scratch::bare("").schema;
    server.execute(&format!("CREATE DATABASE {other}")).await.unwrap();
    let uri = server.uri_of(&other);
    let statements = format!(
        "GRANT CREATE ON SCHEMA public TO PUBLIC; CREATE ROLE {other}; SET ROLE {other}; {OTHERS} RESET ROLE"
    );
    Postgres::execute_at(&uri, &statements).await.unwrap();
    // Also who sets the schema up has that search path.
    let scratch = Scratch::on(&uri).await;
    let store = PostgresStore::connect(&scratch.url("")).await.unwrap();
    let asked = request("nightly", "a", seconds(60));
    let grant = take(&store, &asked).await;
    let rival = store.acquire(&request("nightly", "b", seconds(60))).await;
    let Ok(Acquired::Held(lease)) = &rival else {
        panic!("{rival:?}")
    };
    assert!(lease.remaining > Duration::from_secs(30), "{lease:?}");
    let renewed = store.renew(&[renewal(&asked, grant.token)]).await;
    assert!(matches!(renewed[0], Ok(Renewed::Extended { .. })), "{renewed:?}");
    let read = store.get(&asked.name).await.unwrap().unwrap();
    assert!(read.remaining > Duration::from_secs(30), "{read:?}");

    let fence = PostgresFence::beside(&store);
    fence.claim(&ledger(), &term("hourly", 5)).await.unwrap();
    let mut client = scratch.client().await;
    let inside = client.transaction().await.unwrap();
    fence.enter(&inside, &ledger(), &term("hourly", 5)).await.unwrap();
    let asked = "SELECT current_setting('tenure.term')";
    let shown: String = inside.query_one(asked, &[]).await.unwrap().get(0);
    assert_eq!(shown, "5 hourly");
    let (resource, later) = (ledger(), term("hourly", 6));
    let claim = bounded("a claim", fence.claim(&resource, &later));
    let (claimed, ()) = tokio::join!(claim, async { inside.commit().await.unwrap() });
    claimed.unwrap();
    drop((store, fence, client));
    let removal = format!("DROP DATABASE {other} WITH (FORCE)");
    server.execute(&removal).await.unwrap();
    server.execute(&format!("DROP ROLE {other}")).await.unwrap();
}

/// A function with a search path of its own takes that back at its end, and nothing else: its commit waits
/// for the disk.
#[tokio::test]
async fn what_a_decision_sets_lasts_until_its_commit() {
    let scratch = Scratch::new().await;
    let schema = &scratch.schema;
    let mut client = scratch.client().await;
    let path = "SELECT current_setting('search_path')";
    let before: String = client.query_one(path, &[]).await.unwrap().get(0);
    for call in [
        format!("SELECT {schema}.acquire('a', 'a', repeat('a', 32), 1, 60000, '')"),
        format!(
            "SELECT {schema}.renew(ARRAY['a'], ARRAY[repeat('a', 32)], ARRAY[1], ARRAY[1], ARRAY[60000])"
        ),
        format!("SELECT {schema}.claim('a', 'a', 1)"),
        format!("SELECT {schema}.bump('a', NULL, NULL)"),
        format!("SELECT {schema}.take('b', 'a', repeat('a', 32), 1, 60000, '')"),
    ] {
        let transaction = client.transaction().await.unwrap();
        let off = "SET LOCAL synchronous_commit = off";
        transaction.batch_execute(off).await.unwrap();
        transaction.query(&call, &[]).await.unwrap();
        let asked = "SELECT current_setting('synchronous_commit'), current_setting('lock_timeout'), \
                     current_setting('search_path')";
        let row = transaction.query_one(asked, &[]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), "on", "{call}");
        assert_ne!(row.get::<_, &str>(1), "0", "{call}");
        assert_eq!(row.get::<_, &str>(2), before, "{call}");
        transaction.commit().await.unwrap();
    }
}
