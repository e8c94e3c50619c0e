//! The short way to take a lease and to give it back: what it must leave to the procedures, and that it
//! writes what they write.
use crate::common::{
    Scratch, family, give_back, giving_back, next, proxied, request, row_locked, seconds, take, warm,
};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Row};
use std::time::Duration;
use tenure_conformance::wire::bounded;
use tenure_core::{
    Acquire, Acquired, Attempt, Certainty, End, Fault, FencingToken, LeaseStore, Released, StoreError,
};
use tenure_testkit::{Mariadb, RequestFault, SqlFamily};
use tokio::time::sleep;

/// Without the procedures the short way takes what is free and what an earlier attempt of its own holds, new
/// and not, and gives back what is its own, and nothing else.
#[tokio::test]
async fn what_is_free_or_its_own_is_taken_and_given_back_without_a_procedure_on_mariadb_alone() {
    let scratch = Scratch::new().await;
    // Each refusal of a store that has not met one of this lease, as that asks the procedure alone from then
    // on.
    let store = scratch.store().await;
    for procedure in ["acquire", "release"] {
        scratch.sql(&format!("DROP PROCEDURE tenure_{procedure}_1")).await;
    }
    let missing =
        |error: &StoreError| (error.fault, error.certainty) == (Fault::Unsupported, Certainty::NotApplied);
    let asked = request("job", "a", seconds(60));
    if family() == SqlFamily::Mysql {
        assert!(missing(&store.acquire(&asked).await.unwrap_err()));
        return;
    }
    let first = take(&store, &asked).await;
    assert_eq!((first.again, first.terms, first.predecessor), (false, 1, None));
    let rival = request("job", "b", seconds(60));
    let later = next(&asked);
    let handed_on = take(&store, &later).await;
    let before = handed_on.predecessor.as_ref().unwrap();
    assert!(!handed_on.again && handed_on.token > first.token && handed_on.terms == 2);
    assert_eq!((before.token, before.end), (first.token, End::Released));
    // By the same attempt, by an earlier one, by another: each is for the procedure to say.
    for asked in [&later, &asked, &rival] {
        let answer = scratch.store().await.acquire(asked).await;
        assert!(matches!(&answer, Err(error) if missing(error)), "{answer:?}");
    }
    let (asked, first) = (later, handed_on);
    let of_another = [
        giving_back(&rival, first.token),
        giving_back(&next(&asked), first.token),
        giving_back(&asked, FencingToken::new(first.token.number() + 1).unwrap()),
    ];
    for release in of_another {
        let answer = scratch.store().await.release(&[release]).await.remove(0);
        assert!(matches!(&answer, Err(error) if missing(error)), "{answer:?}");
    }
    give_back(&store, &asked, first.token).await;
    // It is vacant already, and was its own by this attempt.
    let again = [giving_back(&asked, first.token)];
    let answer = scratch.store().await.release(&again).await.remove(0);
    assert!(matches!(&answer, Err(error) if missing(error)), "{answer:?}");
    let answer = scratch.store().await.acquire(&asked).await;
    assert!(matches!(&answer, Err(error) if missing(error)), "{answer:?}");
    let second = take(&store, &rival).await;
    let before = second.predecessor.unwrap();
    assert!(!second.again && second.token > first.token && second.terms == 3);
    assert_eq!(
        (before.candidate, before.token, before.end),
        (asked.candidate.id.clone(), first.token, End::Released)
    );
    scratch
        .sql("UPDATE tenure_leases SET expires_us = expires_us - 61 * 1000000, acquired_us = acquired_us - 61 * 1000000")
        .await;
    let third = take(&store, &asked).await;
    let before = third.predecessor.unwrap();
    assert!(!third.again && third.token > second.token && third.terms == 4);
    assert_eq!(before.end, End::Expired);
    assert!(before.vacant_for >= Duration::from_secs(1), "{before:?}");
}

/// What the short way writes of a term is what the procedures write: with whatever Tenure a term was begun,
/// with any it is renewed, ended and followed.
#[tokio::test]
async fn short_way_writes_what_the_procedures_write() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let mut client = scratch.client().await;
    let mut asked = request("short", "holder", seconds(60));
    asked.note = tenure_core::Note::new("für Łukasz").unwrap();
    for end in ["released", "expired", "held", "released"] {
        let token = take(&store, &asked).await.token;
        let call = format!(
            "CALL tenure_acquire_1('whole', 'holder', '{}', {}, 60000, X'{}')",
            asked.candidate.incarnation,
            asked.attempt.number(),
            "66c3bc7220c581756b61737a",
        );
        let row: Row = client.query_first(call).await.unwrap().unwrap();
        let other: i64 = row.get(4).unwrap();
        same(&mut client).await;
        if end == "released" {
            give_back(&store, &asked, token).await;
            let call = format!(
                "CALL tenure_release_1('[[\"77686f6c65\",\"{}\",{other},{}]]')",
                asked.candidate.incarnation,
                asked.attempt.number(),
            );
            let row: Row = client.query_first(call).await.unwrap().unwrap();
            assert_eq!(row.get::<String, _>(1).as_deref(), Some("vacated"));
        } else {
            let expires = if end == "expired" {
                "acquired_us + 1"
            } else {
                "expires_us"
            };
            let ending = format!("UPDATE tenure_leases SET expires_us = {expires}, step_down_us = 1");
            client.query_drop(ending).await.unwrap();
        }
        same(&mut client).await;
        asked = next(&asked);
    }
}

/// Both records are the same but for the moments, and these are as far apart.
async fn same(client: &mut Conn) {
    let look = "SELECT owner, incarnation, attempt, terms, ttl_ms, expires_us - acquired_us, renewed_us, released_us IS NOT NULL, \
         step_down_us IS NOT NULL, note, previous_owner, previous_end, previous_token IS NULL, previous_us IS NULL, \
         token - (acquired_us DIV 1000) < 1000, released_us = expires_us, created_us <= acquired_us, previous_us <= acquired_us, \
         previous_token < token, token >= acquired_us DIV 1000, acquired_us >= created_us FROM tenure_leases ORDER BY name";
    let rows: Vec<Row> = client.query(look).await.unwrap();
    let [one, other] = &rows[..] else {
        panic!("{rows:?}")
    };
    for column in 0..one.len() {
        // How long it was held is each one's own.
        if column == 5 && one.as_ref(7) == Some(&mysql_async::Value::Bytes(b"1".to_vec())) {
            continue;
        }
        if column == 14 {
            continue;
        }
        assert_eq!(
            one.as_ref(column),
            other.as_ref(column),
            "column {column}: {rows:?}"
        );
    }
}

/// Whoever waits for the row of a lease that seemed to have expired finds it renewed.
#[tokio::test]
async fn lease_that_is_renewed_while_its_row_is_locked_is_not_taken() {
    let scratch = Scratch::new().await;
    let store = warm(scratch.store().await).await;
    let mut client = scratch.client().await;
    for round in 0..ROUNDS_MAX {
        let asked = request(&format!("job-{round}"), "holder", seconds(60));
        take(&store, &asked).await;
        let expired = format!(
            "UPDATE tenure_leases SET expires_us = acquired_us WHERE name = '{}'",
            asked.name
        );
        client.query_drop(expired).await.unwrap();
        let mut transaction = row_locked(&mut client, asked.name.as_str()).await;
        let rival = request(asked.name.as_str(), "rival", seconds(60));
        let (taken, ()) = tokio::join!(store.acquire(&rival), async {
            sleep(Duration::from_millis(300)).await;
            let renewed = format!(
                "UPDATE tenure_leases SET expires_us = acquired_us + 600000000 WHERE name = '{}'",
                asked.name
            );
            transaction.query_drop(renewed).await.unwrap();
            transaction.commit().await.unwrap();
        });
        match taken {
            Ok(Acquired::Held(lease)) => {
                assert_eq!(lease.holder, asked.candidate);
                return;
            }
            // On a machine where the wait was too long for it, once more.
            Err(error) if error.fault == Fault::Busy => {}
            taken => panic!("{taken:?}"),
        }
    }
    panic!("no wait was short enough in {ROUNDS_MAX} rounds");
}

/// A row that somebody keeps locked is neither taken nor given back, and that it was not is known.
#[tokio::test]
async fn row_that_is_kept_locked_is_neither_taken_nor_given_back() {
    let scratch = Scratch::new().await;
    let store = warm(scratch.store().await).await;
    let asked = request("job", "holder", seconds(60));
    let token = take(&store, &asked).await.token;
    let mut client = scratch.client().await;
    let busy = |error: StoreError| {
        let told = (error.fault, error.certainty);
        assert_eq!(told, (Fault::Busy, Certainty::NotApplied), "{error}");
    };
    let locked = row_locked(&mut client, "job").await;
    let released = bounded("a release", store.release(&[giving_back(&asked, token)])).await;
    busy(released.into_iter().next().unwrap().unwrap_err());
    locked.rollback().await.unwrap();
    give_back(&store, &asked, token).await;
    let locked = row_locked(&mut client, "job").await;
    let taken = bounded(
        "an acquisition",
        store.acquire(&request("job", "rival", seconds(60))),
    )
    .await;
    busy(taken.unwrap_err());
    locked.rollback().await.unwrap();
    let lease = store.get(&asked.name).await.unwrap().unwrap();
    assert_eq!((lease.token, lease.released), (token, true), "{lease:?}");
}

/// A server that is demoted takes and gives back nothing, on a session that had prepared it, and of a role
/// that may write all the same.
#[tokio::test]
async fn demoted_mysql_neither_takes_nor_gives_back_by_what_was_prepared() {
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let mut client = scratch.client().await;
    let rows = "SELECT * FROM tenure_leases ORDER BY name";
    let held = request("held", "holder", seconds(60));
    let holder = warm(scratch.store().await).await;
    let token = take(&holder, &held).await.token;
    let rival = warm(scratch.store().await).await;
    let before: Vec<Row> = client.query(rows).await.unwrap();
    server.execute("SET GLOBAL read_only = ON").await.unwrap();
    // Each on a session that was used before: a refused one is not used again.
    for error in [
        rival
            .acquire(&request("warm", "b", seconds(60)))
            .await
            .unwrap_err(),
        holder
            .release(&[giving_back(&held, token)])
            .await
            .remove(0)
            .unwrap_err(),
    ] {
        let told = (error.fault, error.certainty);
        assert_eq!(told, (Fault::Unreachable, Certainty::NotApplied), "{error}");
    }
    server.execute("SET GLOBAL read_only = OFF").await.unwrap();
    let after: Vec<Row> = client.query(rows).await.unwrap();
    assert_eq!(format!("{after:?}"), format!("{before:?}"));
}

/// What was taken the short way and is answered with a term before that nobody can read is taken all the
/// same.
#[tokio::test]
async fn what_was_taken_after_a_term_that_cannot_be_read_is_uncertain_in_mysql() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(60));
    let token = take(&store, &asked).await.token;
    give_back(&store, &asked, token).await;
    let drop = match family() {
        SqlFamily::Mariadb => "CONSTRAINT",
        SqlFamily::Mysql => "CHECK",
    };
    scratch
        .sql(&format!(
            "ALTER TABLE tenure_leases DROP {drop} tenure_leases_owner, DROP {drop} tenure_leases_previous; \
             UPDATE tenure_leases SET owner = X'610762'"
        ))
        .await;
    let rival = request("job", "rival", seconds(60));
    let error = store.acquire(&rival).await.unwrap_err();
    let told = (error.fault, error.certainty);
    assert_eq!(told, (Fault::Unreadable, Certainty::Unknown), "{error}");
    assert!(error.message.contains("previous_owner"), "{error}");
    let lease = store.get(&asked.name).await;
    assert!(lease.is_err(), "{lease:?}");
}

/// A request that was granted and is repeated, late or not, makes no term that nobody knows of.
#[tokio::test]
async fn repeated_request_takes_nothing_twice_whichever_way_it_goes() {
    let scratch = Scratch::new().await;
    let store = warm(scratch.store().await).await;
    let asked = request("job", "holder", seconds(60));
    let first = take(&store, &asked).await;
    let again = take(&store, &asked).await;
    assert!(again.again && again.token == first.token, "{again:?}");
    give_back(&store, &asked, first.token).await;
    give_back(&store, &asked, first.token).await;
    assert_eq!(store.acquire(&asked).await, Ok(Acquired::Superseded));
    let later = next(&asked);
    let second = take(&store, &later).await;
    assert!(second.token > first.token);
    let expired = "UPDATE tenure_leases SET expires_us = acquired_us WHERE name = 'job'";
    scratch.sql(expired).await;
    assert_eq!(store.acquire(&asked).await, Ok(Acquired::Superseded));
    let third = take(&store, &later).await;
    assert!(!third.again && third.token > second.token, "{third:?}");
    let other = Acquire {
        attempt: Attempt::new(7).unwrap(),
        ..asked
    };
    assert!(take(&store, &other).await.token > third.token);
}

/// The procedure finds that a lease is held without a lock, where the short way would lock its row: of many
/// who wait, nobody is in the way of a renewal. And who asks once more for what was done before waits for one
/// answer, not for two.
#[tokio::test]
async fn who_has_found_a_lease_held_or_heard_nothing_asks_the_procedure_at_once() {
    let (proxy, scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let rival = request("job", "rival", seconds(60));
    let token = take(&store, &asked).await.token;
    let requests_of = async |asked: &Acquire| {
        let before = proxy.counts().requests;
        let answer = store.acquire(asked).await.unwrap();
        let granted = matches!(answer, Acquired::Granted(_));
        (proxy.counts().requests - before, granted)
    };
    let of_a_first_look = match family() {
        SqlFamily::Mariadb => 2,
        SqlFamily::Mysql => 1,
    };
    assert_eq!(requests_of(&rival).await, (of_a_first_look, false));
    for _ in 0..2 {
        assert_eq!(requests_of(&rival).await, (1, false));
    }
    give_back(&store, &asked, token).await;
    assert_eq!(requests_of(&rival).await, (1, true));
    let token = take(&store, &rival).await.token;
    give_back(&store, &rival, token).await;
    let rival = next(&rival);
    proxy.next_commands(1, "tenure_acquire_1", RequestFault::CutAfter);
    let lost = store.acquire(&rival).await.unwrap_err();
    assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
    assert_eq!(requests_of(&rival).await, (1, true));
    let release = [giving_back(&rival, take(&store, &rival).await.token)];
    proxy.next_commands(1, "tenure_release_1", RequestFault::CutAfter);
    let lost = store.release(&release).await.remove(0).unwrap_err();
    assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
    let before = proxy.counts().requests;
    assert_eq!(store.release(&release).await, [Ok(Released::Vacated)]);
    assert_eq!(proxy.counts().requests - before, 1);
    scratch.sql("DROP PROCEDURE tenure_acquire_1").await;
    // Free again, it is taken by the short way where there is one.
    let taken = store.acquire(&next(&rival)).await;
    assert_eq!(taken.is_ok(), family() == SqlFamily::Mariadb, "{taken:?}");
}

/// How often a machine may be too slow for what a test must meet.
const ROUNDS_MAX: u32 = 5;
