//! The functions that decide of one lease and answer in one value: of which moment they decide, and a set-up
//! without them.
use crate::announced::until_taken;
use crate::common::{Scratch, giving_back, name, renewal, request, seconds, take};
use crate::locked_rows::waited_for;
use std::time::Duration;
use tenure_conformance::wire::bounded;
use tenure_core::{
    Acquired, Certainty, End, Fault, Interest, LeaseStore, Released, Renewed, Scope, StoreError, Verdict,
};
use tenure_postgres::PostgresStore;
use tenure_testkit::{Postgres, ServerClock};
use tokio::time::sleep;

const TAKE: &str = "take(text, text, text, bigint, bigint, text)";
const ACQUIRE: &str = "acquire(text, text, text, bigint, bigint, text)";

/// How often a wait is tried that was too long for the machine.
const ROUNDS_MAX: u32 = 20;

fn is_busy<T>(answer: &Result<T, StoreError>) -> bool {
    matches!(answer, Err(error) if error.fault == Fault::Busy && error.certainty == Certainty::NotApplied)
}

/// A lease that is free, and stays so while its row is waited for: its term is as long as any other.
#[tokio::test]
async fn a_term_that_waited_for_its_row_begins_after_the_wait() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let mut client = scratch.client().await;
    for round in 0..ROUNDS_MAX {
        let free = request(&format!("job-{round}"), "holder", seconds(60));
        let token = take(&store, &free).await.token;
        let released = store.release(&[giving_back(&free, token)]).await.remove(0);
        assert_eq!(released.unwrap(), Released::Vacated);
        let transaction = client.transaction().await.unwrap();
        let lock = format!("SELECT 1 FROM {}.leases FOR UPDATE", scratch.schema);
        transaction.execute(&lock, &[]).await.unwrap();
        let unlocking = async {
            waited_for(&transaction, 1).await;
            sleep(Duration::from_millis(20)).await;
            let moment =
                "SELECT clock_timestamp()::text, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
            let row = transaction.query_one(moment, &[]).await.unwrap();
            (row.get::<_, String>(0), row.get::<_, i64>(1))
        };
        let rival = request(free.name.as_str(), "rival", seconds(60));
        let taking = store.acquire(&rival);
        tokio::pin!(taking);
        let (moment, ms) = tokio::select! {
            biased;
            taken = &mut taking => {
                assert!(is_busy(&taken), "{taken:?}");
                transaction.rollback().await.unwrap();
                continue;
            }
            moment = unlocking => moment,
        };
        transaction.rollback().await.unwrap();
        let taken = taking.await;
        if is_busy(&taken) {
            continue;
        }
        let Ok(Acquired::Granted(grant)) = taken else {
            panic!("{taken:?}")
        };
        assert!(grant.token.signed() >= ms && grant.token > token, "{grant:?}");
        assert_eq!(grant.predecessor.as_ref().map(|before| before.token), Some(token));
        let judged = format!(
            "SELECT acquired_at >= '{moment}'::timestamptz, expires_at = acquired_at + interval '60 s', token \
             FROM {}.leases WHERE name = $1",
            scratch.schema
        );
        let row = client.query_one(&judged, &[&rival.name.as_str()]).await.unwrap();
        let kept = (row.get::<_, bool>(0), row.get::<_, bool>(1), row.get::<_, i64>(2));
        assert_eq!(kept, (true, true, grant.token.signed()));
        return;
    }
    panic!("no wait was short enough in {ROUNDS_MAX} rounds");
}

/// Of a lease that goes from an earlier attempt of a process to a later one nobody could have had a part.
#[tokio::test]
async fn a_lease_that_is_taken_anew_behind_a_wait_for_its_row_was_vacant_for_no_moment() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let mut client = scratch.client().await;
    for round in 0..ROUNDS_MAX {
        let mut held = request(&format!("job-{round}"), "holder", seconds(60));
        let token = take(&store, &held).await.token;
        held.attempt = held.attempt.next();
        let transaction = client.transaction().await.unwrap();
        let lock = format!("SELECT 1 FROM {}.leases FOR UPDATE", scratch.schema);
        transaction.execute(&lock, &[]).await.unwrap();
        let (taken, ()) = tokio::join!(store.acquire(&held), async {
            drop(tokio::time::timeout(Duration::from_secs(2), waited_for(&transaction, 1)).await);
            sleep(Duration::from_millis(20)).await;
            transaction.rollback().await.unwrap();
        });
        if is_busy(&taken) {
            continue;
        }
        let Ok(Acquired::Granted(grant)) = taken else {
            panic!("{taken:?}")
        };
        let before = grant.predecessor.expect("there was one");
        let told = (before.token, before.end, before.vacant_for);
        assert_eq!(told, (token, End::Released, Duration::ZERO));
        return;
    }
    panic!("no wait was short enough in {ROUNDS_MAX} rounds");
}

/// What was over before the step is not over after it.
#[tokio::test]
async fn a_clock_of_postgres_that_is_set_back_while_a_row_is_waited_for_gives_no_lease_away() {
    let clock = ServerClock::new().unwrap();
    let server = Postgres::by(&clock).await.unwrap();
    let scratch = Scratch::on(&server.uri()).await;
    let store = scratch.store().await;
    let mut client = scratch.client().await;
    for round in 0..ROUNDS_MAX {
        clock.set_ahead(3600.0).unwrap();
        let held = request(&format!("job-{round}"), "holder", seconds(60));
        let token = take(&store, &held).await.token;
        scratch
            .sql("UPDATE {schema}.leases SET expires_at = clock_timestamp()")
            .await;
        let transaction = client.transaction().await.unwrap();
        let lock = format!("SELECT 1 FROM {}.leases FOR UPDATE", scratch.schema);
        transaction.execute(&lock, &[]).await.unwrap();
        let rival = request(held.name.as_str(), "rival", seconds(60));
        let (taken, ()) = tokio::join!(store.acquire(&rival), async {
            drop(tokio::time::timeout(Duration::from_secs(2), waited_for(&transaction, 1)).await);
            clock.set_ahead(0.0).unwrap();
            transaction.rollback().await.unwrap();
        });
        let lease = store.get(&held.name).await.unwrap().unwrap();
        assert_eq!(lease.token, token, "it was given away: {taken:?}");
        match taken {
            Err(error) if error.message.contains("set back") => return,
            // Who waited too long, or was decided of as a whole by the clock that was set back.
            Ok(Acquired::Held(lease)) => assert_eq!(lease.token, token),
            other => assert!(is_busy(&other), "{other:?}"),
        }
    }
    panic!("no wait was short enough in {ROUNDS_MAX} rounds");
}

/// A row that somebody keeps locked is told as busy in time, and one that is free again is given back.
#[tokio::test]
async fn a_lease_whose_row_is_kept_locked_is_not_given_back_and_says_so() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(60));
    let token = take(&store, &asked).await.token;
    let mut client = scratch.client().await;
    let transaction = client.transaction().await.unwrap();
    let lock = format!("SELECT 1 FROM {}.leases FOR UPDATE", scratch.schema);
    transaction.execute(&lock, &[]).await.unwrap();
    let releases = [giving_back(&asked, token)];
    let released = bounded("a release", store.release(&releases)).await.remove(0);
    assert!(is_busy(&released), "{released:?}");
    // By who has seen that it is locked, and waits as long as the ttl allows; not by the server's bound.
    let told = released.unwrap_err().message;
    assert!(!told.contains("55P03"), "{told}");
    transaction.rollback().await.unwrap();
    for _twice in 0..2 {
        let released = store.release(&releases).await.remove(0);
        assert_eq!(released.unwrap(), Released::Vacated);
    }
    let anothers = [giving_back(&request("job", "other", seconds(60)), token)];
    let released = store.release(&anothers).await.remove(0).unwrap();
    assert!(matches!(released, Released::NotYours(Some(_))), "{released:?}");
    let mut unknown = giving_back(&asked, token);
    unknown.name = name("nobodys");
    let released = store.release(&[unknown]).await.remove(0).unwrap();
    assert_eq!(released, Released::NotYours(None));
}

/// What is locked no more is as good as what never was: an announcement and a renewal lock the row, and are
/// over by then.
#[tokio::test]
async fn what_was_announced_and_renewed_is_given_back_without_the_longer_function() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(60));
    let mut watch = store
        .watch(&Scope::Name(asked.name.clone()), Interest::Everything)
        .await
        .unwrap();
    let token = take(&store, &asked).await.token;
    // The store's own announcement is over when it is heard.
    assert_eq!(until_taken(&mut watch).await, Some(token));
    scratch
        .sql(&format!("SELECT {{schema}}.announce('job', {token})"))
        .await;
    let renewed = store.renew(&[renewal(&asked, token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    scratch
        .sql("ALTER FUNCTION {schema}.release RENAME TO release_not")
        .await;
    let released = store.release(&[giving_back(&asked, token)]).await.remove(0);
    assert_eq!(released.unwrap(), Released::Vacated);
}

/// The two functions that take a lease write the same, and the one that looks and waits is asked only where
/// the other cannot tell.
#[tokio::test]
async fn what_is_free_or_its_own_is_taken_as_the_longer_function_takes_it() {
    let (quick, whole) = (Scratch::new().await, Scratch::new().await);
    whole.sql(&format!("DROP FUNCTION {{schema}}.{TAKE}")).await;
    let (store, longer) = (quick.store().await, whole.store().await);
    let mut asked = request("job", "holder", seconds(60));
    for kept in [&store, &longer] {
        take(kept, &asked).await;
    }
    quick
        .sql(&format!(
            "ALTER FUNCTION {{schema}}.{ACQUIRE} RENAME TO acquire_not"
        ))
        .await;
    let (mut of_quick, mut of_whole) = (quick.client().await, whole.client().await);
    for end in ["released", "expired", "held", "released"] {
        for (scratch, kept) in [(&quick, &store), (&whole, &longer)] {
            let expired =
                "UPDATE {schema}.leases SET step_down_asked_at = acquired_at, expires_at = acquired_at";
            match end {
                "released" => {
                    let token = kept.get(&asked.name).await.unwrap().unwrap().token;
                    let released = kept.release(&[giving_back(&asked, token)]).await.remove(0);
                    assert_eq!(released.unwrap(), Released::Vacated);
                }
                "expired" => scratch.sql(expired).await,
                _held => {}
            }
        }
        asked.attempt = asked.attempt.next();
        let mut taken = Vec::new();
        for (scratch, client, kept) in [(&quick, &mut of_quick, &store), (&whole, &mut of_whole, &longer)] {
            let grant = take(kept, &asked).await;
            let row = client.query_one(&written(scratch), &[]).await.unwrap();
            let before = grant.predecessor.expect("there was one");
            taken.push((grant.again, grant.terms, before.end, row.get::<_, String>(0)));
        }
        assert_eq!(taken[0], taken[1], "{end}");
    }
}

/// What a record says but for its moments and tokens, and how these stand to each other.
fn written(scratch: &Scratch) -> String {
    format!(
        "SELECT concat_ws(' ', owner, attempt, terms, ttl_ms, expires_at - acquired_at, renewed_at IS NULL, released_at IS NULL, \
         step_down_asked_at IS NULL, note, previous_owner, previous_end, previous_token < token, previous_at <= acquired_at, \
         token >= floor(extract(epoch FROM acquired_at) * 1000)) FROM {}.leases",
        scratch.schema
    )
}

/// Of an earlier Tenure, or with functions that the role may not call: leases are kept as well, and an
/// operator is told.
#[tokio::test]
async fn a_set_up_without_the_quick_functions_keeps_leases_and_is_told_of() {
    const GIVE_BACK: &str = "give_back(text, text, bigint, bigint)";
    let lacking = Scratch::new().await;
    lacking
        .sql(&format!(
            "DROP FUNCTION {{schema}}.{TAKE}; DROP FUNCTION {{schema}}.{GIVE_BACK}"
        ))
        .await;
    let half = Scratch::new().await;
    half.sql(&format!("DROP FUNCTION {{schema}}.{GIVE_BACK}")).await;
    let forbidden = Scratch::new().await;
    let role = forbidden.schema.clone();
    forbidden
        .sql(&format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {{schema}} TO {role}; \
             GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {{schema}} TO {role}; \
             REVOKE EXECUTE ON FUNCTION {{schema}}.{TAKE} FROM PUBLIC"
        ))
        .await;
    let by_role = Postgres::shared().await.uri_as(&role, None, "postgres");
    for (scratch, url) in [
        (&lacking, lacking.url("")),
        (&half, half.url("")),
        (&forbidden, forbidden.url_on(&by_role, "")),
    ] {
        let store = PostgresStore::connect(&url).await.unwrap();
        let asked = request("job", "holder", seconds(60));
        let token = take(&store, &asked).await.token;
        let rival = store.acquire(&request("job", "rival", seconds(60))).await;
        assert!(matches!(rival, Ok(Acquired::Held(_))), "{rival:?}");
        let renewed = store.renew(&[renewal(&asked, token)]).await.remove(0);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        let released = store.release(&[giving_back(&asked, token)]).await.remove(0);
        assert_eq!(released.unwrap(), Released::Vacated);
        let findings = store.examine().await.unwrap();
        let found = findings
            .iter()
            .find(|finding| finding.subject == "set-up")
            .unwrap();
        let verdict = match scratch.schema == forbidden.schema {
            true => Verdict::Good,
            false => Verdict::Warning,
        };
        assert_eq!(found.verdict, verdict, "{found:?}");
        if verdict == Verdict::Warning {
            assert!(found.detail.contains("give_back"), "{found:?}");
            let repair = found.repair.as_deref().unwrap_or_default();
            assert!(repair.contains("tenure store init"), "{found:?}");
        }
    }
}
