//! Many requests at once through a pooler with few connections, beside clients that leave it in the middle:
//! who gets an answer to another's request does not take it for its own.

use crate::common::{
    PATIENCE, Scratch, give_back, giving_back, random_bits, renewal, request, seconds, take,
};
use crate::meddling::{Meddling, meddling};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Certainty, Fault, Lease, LeaseStore, Page, Released, Renewed, StoreError,
};
use tenure_postgres::PostgresStore;
use tenure_testkit::{PgBouncer, Postgres, eventually_async};
use tokio::task::JoinSet;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls};

/// Clients of the pooler, each a process.
const PROCESSES: usize = 4;
/// Of each process, all at once; and how often it takes each.
const LEASES: usize = 24;
const ROUNDS: u64 = 10;
/// Statements that one such client has under way.
const PIPELINED: i64 = 64;
/// How often so many ask, until the pooler has given one the answer to another.
const TRIES_MAX: u32 = 5;
/// Clients that leave in the middle, one after another.
const LEAVING: u64 = 200;

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_a_pooler_in_the_middle_leaves_no_answer_to_others() {
    let pooled = Pooled::start().await;
    let leaving = tokio::spawn(leave_in_the_middle(pooled.url.clone()));
    let astray = pooled.contend().await;
    leaving.abort();
    assert_eq!(astray, 0, "answers that were to others");
}

/// A program of somebody else's, with the same user, may do what this one does not.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_believes_an_answer_to_another_that_a_pooler_gives_it() {
    let pooled = Pooled::start().await;
    // What is believed is checked in it. Debian 12's pooler gives an answer or more to others each time, or
    // nearly.
    for _try in 0..TRIES_MAX {
        let leaving = tokio::spawn(pipeline_and_leave(pooled.uri.clone()));
        let astray = pooled.contend().await;
        leaving.abort();
        if astray > 0 {
            return;
        }
    }
    // Another pooler may do it right: then its neighbours, which confuse answers themselves, are all that is
    // shown.
    eprintln!("NOT RUN: this pooler has given no answer to another in {TRIES_MAX} tries");
}

/// The end of a request: its wish to be synchronised.
const END: &[u8] = b"S\0\0\0\x04";
/// Parsed, bound, without rows, done, ready for more.
const UPDATED: &[u8] = b"1\0\0\0\x042\0\0\0\x04n\0\0\0\x04C\0\0\0\x0dUPDATE 1\0Z\0\0\0\x05I";

/// An update answers with no row, and a look of this program's never does: it is not read as "there is
/// nothing".
#[tokio::test]
async fn empty_answer_to_another_is_not_told_as_nothing_found() {
    let scratch = Scratch::new().await;
    // Requests that are yet to be answered with the answer to an update.
    let left = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&left);
    let take_one =
        move || counted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    let confused = meddling(Postgres::shared().await.address(), move |request| {
        match request.ends_with(END) && take_one().is_ok() {
            true => Meddling::Answers(UPDATED),
            false => Meddling::Nothing,
        }
    });
    let (address, connections) = confused.await;
    let url = scratch.url_on(&format!("postgres://postgres@{address}/postgres"), "listen=off");
    let store = PostgresStore::connect(&format!("{url}&sslmode=disable"))
        .await
        .unwrap();
    let asked = request("job", "holder", seconds(300));
    // By another store, which announces the term when it likes.
    let beat = [renewal(&asked, take(&scratch.store().await, &asked).await.token)];
    let page = Page::first("", 10);
    let extended = || async { matches!(store.renew(&beat).await.remove(0), Ok(Renewed::Extended { .. })) };
    assert!(extended().await);
    for look in ["one", "all"] {
        left.store(1, Ordering::SeqCst);
        let found = match look {
            "one" => store.get(&asked.name).await.map(|lease| format!("{lease:?}")),
            _ => store.list(&page).await.map(|page| format!("{page:?}")),
        };
        let error = found.unwrap_err();
        assert_eq!(
            (error.fault, error.certainty, left.load(Ordering::SeqCst)),
            (Fault::Internal, Certainty::Unknown, 0),
            "{error}"
        );
        // Also that of the renewals is another.
        let before = connections.load(Ordering::SeqCst);
        assert!(extended().await);
        assert_eq!(connections.load(Ordering::SeqCst), before + 1);
        assert!(store.get(&asked.name).await.unwrap().is_some());
        assert_eq!(store.list(&page).await.unwrap().leases.len(), 1);
    }
}

/// What is granted to another attempt of the same process, to which a pooler owes the answer, is not this
/// one's.
#[tokio::test]
async fn grant_of_another_attempt_is_not_believed() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let client = scratch.client().await;
    let first = request("first", "holder", seconds(300));
    let token = take(&store, &first).await.token;
    give_back(&store, &first, token).await;
    // One that has no record yet, and one that is free, which is another statement.
    let unknown = |error: StoreError| {
        let told = (error.fault, error.certainty);
        assert_eq!(told, (Fault::Internal, Certainty::Unknown), "{error}");
    };
    for (function, name) in [("acquire", "job"), ("take", "first")] {
        rewritten(
            &client,
            &scratch,
            function,
            "lease.attempt::bigint",
            "(lease.attempt + 1)::bigint",
        )
        .await;
        let mut asked = request(name, "holder", seconds(300));
        asked.attempt = asked.attempt.next();
        unknown(store.acquire(&asked).await.unwrap_err());
    }
    // Nor is a term that another gave back.
    let second = request("second", "holder", seconds(300));
    let by_hand = "INSERT INTO {schema}.leases (name, owner, incarnation, token, attempt, terms, ttl_ms, created_at, acquired_at, \
                   expires_at, note) SELECT 'second', 'holder', '{incarnation}', 7, 1, 1, 1000, now(), now(), now(), ''";
    let incarnation = second.candidate.incarnation.to_string();
    scratch.sql(&by_hand.replace("{incarnation}", &incarnation)).await;
    let held = store.get(&second.name).await.unwrap().unwrap();
    rewritten(
        &client,
        &scratch,
        "give_back",
        "lease.token::bigint",
        "(lease.token + 1)::bigint",
    )
    .await;
    let released = store.release(&[giving_back(&second, held.token)]).await.remove(0);
    unknown(released.unwrap_err());
}

/// Who asks for a lease, or has lost it, is shown who holds it: what is said of another lease is not taken
/// for that.
#[tokio::test]
async fn what_is_said_of_another_lease_is_not_believed() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let client = scratch.client().await;
    let held = request("job", "holder", seconds(300));
    let token = take(&store, &held).await.token;
    let rival = request("job", "rival", seconds(300));
    let (beat, release) = ([renewal(&rival, token)], [giving_back(&rival, token)]);
    assert!(matches!(store.acquire(&rival).await, Ok(Acquired::Held(_))));
    assert!(matches!(store.renew(&beat).await[0], Ok(Renewed::Lost(Some(_)))));
    assert!(matches!(
        store.release(&release).await[0],
        Ok(Released::NotYours(Some(_)))
    ));
    for function in ["acquire", "renew", "release"] {
        rewritten(&client, &scratch, function, "lease.name::text", "'another'::text").await;
        rewritten(&client, &scratch, function, "asked.name::text", "'another'::text").await;
    }
    for error in [
        store.acquire(&rival).await.map(drop).unwrap_err(),
        store.renew(&beat).await.remove(0).map(drop).unwrap_err(),
        store.release(&release).await.remove(0).map(drop).unwrap_err(),
    ] {
        let told = (error.fault, error.certainty);
        assert_eq!(told, (Fault::Internal, Certainty::Unknown), "{error}");
    }
}

/// What is said to another of the very lease may be true of that one alone: that it has lost it, that
/// somebody holds it, that it is superseded, or that there is no such lease.
#[tokio::test]
async fn what_is_said_to_another_is_not_taken_for_the_end_of_a_term() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let client = scratch.client().await;
    let held = request("job", "holder", seconds(300));
    take(&store, &held).await;
    let later = Acquire {
        attempt: held.attempt.next(),
        ..held.clone()
    };
    let token = take(&store, &later).await.token;
    assert_eq!(store.acquire(&held).await, Ok(Acquired::Superseded));
    // Each is shown as if that other were who asks here.
    let anothers = request("job", "another", seconds(300));
    let shown = format!("'{}'::text", anothers.candidate.incarnation);
    for function in ["acquire", "renew", "release"] {
        rewritten(&client, &scratch, function, "lease.incarnation::text", &shown).await;
    }
    let term = Acquire {
        attempt: later.attempt,
        ..anothers.clone()
    };
    let (beat, release) = ([renewal(&term, token)], [giving_back(&term, token)]);
    let answers = [
        store.acquire(&anothers).await.map(drop),
        store.acquire(&held).await.map(drop),
        store.renew(&beat).await.remove(0).map(drop),
        store.release(&release).await.remove(0).map(drop),
    ];
    let nobodys = request("nobodys", "holder", seconds(300));
    let (beat, release) = ([renewal(&nobodys, token)], [giving_back(&nobodys, token)]);
    assert_eq!(store.renew(&beat).await, [Ok(Renewed::Lost(None))]);
    for function in ["renew", "release"] {
        rewritten(&client, &scratch, function, "asked.name::text", "'another'::text").await;
    }
    let of_what_is_gone = [
        store.renew(&beat).await.remove(0).map(drop),
        store.release(&release).await.remove(0).map(drop),
    ];
    for answer in answers.into_iter().chain(of_what_is_gone) {
        let error = answer.unwrap_err();
        let told = (error.fault, error.certainty);
        assert_eq!(told, (Fault::Internal, Certainty::Unknown), "{error}");
    }
}

/// Has a function answer with something of the record that is another's.
async fn rewritten(client: &Client, scratch: &Scratch, function: &str, own: &str, anothers: &str) {
    let asked = "SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
                 WHERE n.nspname = $1 AND p.proname = $2";
    let row = client
        .query_one(asked, &[&scratch.schema, &function])
        .await
        .unwrap();
    let other = row.get::<_, String>(0).replace(own, anothers);
    client.batch_execute(&other).await.unwrap();
}

/// A pooler with fewer connections than its clients have.
struct Pooled {
    direct: Arc<PostgresStore>,
    uri: String,
    url: String,
    _pooler: PgBouncer,
}

impl Pooled {
    async fn start() -> Self {
        let scratch = Scratch::new().await;
        let pooler = PgBouncer::start(Postgres::shared().await, 3).await.unwrap();
        let uri = pooler.uri_of("postgres");
        Self {
            direct: Arc::new(scratch.store().await),
            url: scratch.url_on(&uri, "listen=off"),
            uri,
            _pooler: pooler,
        }
    }

    /// Has many leases be taken and given back at once by several processes. How many were
    /// answered what others had asked.
    async fn contend(&self) -> usize {
        let mut contending = JoinSet::new();
        for process in 0..PROCESSES {
            let look = || PostgresStore::connect(&self.url);
            let store = eventually_async(PATIENCE, "a store that is answered itself", look).await;
            let store = Arc::new(store);
            for lease in 0..LEASES {
                let (store, direct) = (store.clone(), self.direct.clone());
                let name = format!("{process}-{lease}-{:x}", random_bits());
                contending.spawn(async move { take_and_give_back(&store, &direct, &name).await });
            }
        }
        contending.join_all().await.into_iter().sum()
    }
}

/// Processes that ask much at once and are gone before it is answered, one after another.
async fn leave_in_the_middle(url: String) {
    for pause in (0..LEAVING).map(|turn| Duration::from_micros(300 * (turn % 20))) {
        let Ok(store) = PostgresStore::connect(&url).await else {
            continue;
        };
        let (store, mut asking) = (Arc::new(store), JoinSet::new());
        for _ in 0..LEASES {
            let asked = request(&format!("{:x}", random_bits()), "gone", seconds(300));
            let store = store.clone();
            asking.spawn(async move { store.acquire(&asked).await.map(drop) });
        }
        tokio::time::sleep(pause).await;
        asking.shutdown().await;
    }
}

/// Clients that send many statements without waiting for the answers, and are gone. So many and no more, as
/// they would keep a slow machine's pooler from everybody else.
async fn pipeline_and_leave(uri: String) {
    for pause in (0..LEAVING).map(|turn| Duration::from_micros(300 * (turn % 20))) {
        let Ok((client, connection)) = tokio_postgres::connect(&uri, NoTls).await else {
            continue;
        };
        let connection = tokio::spawn(connection);
        let (client, mut asking) = (Arc::new(client), JoinSet::new());
        for number in 0..PIPELINED {
            let client = client.clone();
            asking.spawn(async move {
                client
                    .query_typed("SELECT $1", &[(&number, Type::INT8)])
                    .await
                    .map(drop)
            });
        }
        tokio::time::sleep(pause).await;
        // Without the farewell that the driver says when its client is dropped.
        connection.abort();
        asking.shutdown().await;
    }
}

/// How many answers were to others' requests; what was believed was right.
async fn take_and_give_back(store: &PostgresStore, direct: &PostgresStore, name: &str) -> usize {
    let mut asked = request(name, "holder", seconds(300));
    let mut astray = 0;
    for _round in 0..ROUNDS {
        let mut may_be_applied = false;
        let grant = loop {
            match store.acquire(&asked).await {
                Ok(Acquired::Granted(grant)) => break grant,
                Ok(other) => panic!("{name}: nobody else wants it: {other:?}"),
                Err(error) => {
                    may_be_applied |= error.certainty == Certainty::Unknown;
                    astray += is_astray(&error);
                }
            }
        };
        assert!(
            may_be_applied || !grant.again,
            "{name}: it was said not to be applied"
        );
        let lease = looked_at(direct, &asked).await;
        assert_eq!(lease.token, grant.token, "{name}: it is another's token");
        match store.renew(&[renewal(&asked, grant.token)]).await.remove(0) {
            Ok(renewed) => assert!(matches!(renewed, Renewed::Extended { .. }), "{name}: {renewed:?}"),
            Err(error) => astray += is_astray(&error),
        }
        loop {
            match store.release(&[giving_back(&asked, grant.token)]).await.remove(0) {
                Ok(released) => break assert_eq!(released, Released::Vacated, "{name}"),
                Err(error) => astray += is_astray(&error),
            }
        }
        let lease = looked_at(direct, &asked).await;
        assert!(lease.released, "{name}: what was released was another's");
        asked.attempt = asked.attempt.next();
    }
    astray
}

/// The record, as who goes round the pooler sees it: so many look at once that one may be late.
async fn looked_at(direct: &PostgresStore, asked: &Acquire) -> Lease {
    let look = || direct.get(&asked.name);
    eventually_async(PATIENCE, "a look round the pooler", look)
        .await
        .unwrap()
}

/// A time-out is the machine's, and a connection that ends the pooler's.
fn is_astray(error: &StoreError) -> usize {
    usize::from(error.fault == Fault::Internal)
}
