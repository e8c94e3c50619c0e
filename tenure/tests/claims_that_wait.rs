//! Claims that a transaction of an earlier term keeps waiting: its leader died in it, and the server has not
//! heard of that.
use crate::harness::{Site, soon};
use std::sync::Arc;
use std::time::Duration;
use tenure::contract::{Ask, Asked, Release};
use tenure::mongodb::MongoFence;
use tenure::mongodb::mongodb::{Client as MongoClient, ClientSession, bson::doc};
use tenure::mysql::mysql_async::{Conn, Opts, prelude::Queryable as _};
use tenure::mysql::{MysqlFence, MysqlStore};
use tenure::postgres::tokio_postgres::{Client, NoTls};
use tenure::postgres::{PostgresFence, PostgresStore};
use tenure::{
    Authority, Claimed, Election, Fault, Fence, FenceError, FencingToken, Leadership, LeaseName, Leases,
    ResourceName, SharedStore, Term, Timing, Ttl,
};
use tenure_conformance::strangers::exchange;
use tenure_testkit::{FaultProxy, Mariadb, Postgres, ReplicaSet};

/// More than any fence has connections for claims, twice.
const RESOURCES: usize = 13;

/// How long a claim is made again after faults of no word.
const UNEXPLAINED_TIME_MAX: Duration = Duration::from_secs(30);

fn ledger() -> ResourceName {
    ResourceName::new("ledger").unwrap()
}

fn ledgers() -> Vec<ResourceName> {
    let numbered = |number| ResourceName::new(format!("ledger-{number}")).unwrap();
    (0..RESOURCES).map(numbered).collect()
}

/// What a dead leader has left open, at its server.
enum Open {
    Postgres(Client),
    Mysql(Conn),
    Mongo(Box<ClientSession>),
}

impl Open {
    async fn roll_back(self) {
        match self {
            Self::Postgres(client) => client.batch_execute("ROLLBACK").await.unwrap(),
            Self::Mysql(mut client) => client.query_drop("ROLLBACK").await.unwrap(),
            Self::Mongo(mut session) => session.abort_transaction().await.unwrap(),
        }
    }
}

/// A fence whose marks are claimed by a term that has entered a transaction which nobody ends.
struct LeftOpen {
    fence: Arc<dyn Fence>,
    open: Open,
}

/// In a schema of its own.
async fn in_postgres(schema: &str, resources: &[ResourceName], old: &Term) -> LeftOpen {
    let server = Postgres::shared().await.uri();
    let url = format!("{server}?schema={schema}");
    PostgresStore::init(&url).await.unwrap();
    let fence = PostgresFence::connect(&url, Leases::Elsewhere).await.unwrap();
    let connecting = tenure::postgres::tokio_postgres::connect(&server, NoTls);
    let (client, connection) = connecting.await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN").await.unwrap();
    let entering = format!("SELECT {schema}.enter($1, $2, $3)");
    for resource in resources {
        fence.claim(resource, old).await.unwrap();
        let (lease, token) = (old.lease.as_str(), old.token.signed());
        client
            .execute(&entering, &[&resource.as_str(), &lease, &token])
            .await
            .unwrap();
    }
    LeftOpen {
        fence: Arc::new(fence),
        open: Open::Postgres(client),
    }
}

/// In a database of its own.
async fn in_mariadb(database: &str, resources: &[ResourceName], old: &Term) -> LeftOpen {
    let server = Mariadb::shared().await;
    let create = format!("CREATE DATABASE {database}");
    server.execute(&create).await.unwrap();
    let url = server.uri_of(database);
    MysqlStore::init(&url).await.unwrap();
    let fence = MysqlFence::connect(&url, Leases::Elsewhere).await.unwrap();
    let mut client = Conn::new(Opts::from_url(&url).unwrap()).await.unwrap();
    for resource in resources {
        fence.claim(resource, old).await.unwrap();
    }
    client.query_drop("START TRANSACTION").await.unwrap();
    for resource in resources {
        let (lease, token) = (old.lease.as_str(), old.token.signed());
        let entering = format!("CALL tenure_enter_1('{resource}', '{lease}', {token})");
        client.query_drop(entering).await.unwrap();
    }
    LeftOpen {
        fence: Arc::new(fence),
        open: Open::Mysql(client),
    }
}

/// In a database of its own.
async fn in_mongodb(database: &str, resources: &[ResourceName], old: &Term) -> LeftOpen {
    let set = ReplicaSet::shared().await.uri();
    let client = MongoClient::with_uri_str(set).await.unwrap();
    let database = client.database(database);
    let fence = MongoFence::new(&database, Leases::Elsewhere);
    for resource in resources {
        fence.claim(resource, old).await.unwrap();
    }
    let mut session = client.start_session().await.unwrap();
    session.start_transaction().await.unwrap();
    for resource in resources {
        fence.enter(&mut session, resource, old).await.unwrap();
    }
    let accounts = database.collection("account");
    let written = accounts.insert_one(doc! { "_id": 1 }).session(&mut session);
    written.await.unwrap();
    LeftOpen {
        fence: Arc::new(fence),
        open: Open::Mongo(Box::new(session)),
    }
}

fn is_kept_waiting(claimed: &Result<Claimed, FenceError>) -> bool {
    claimed.as_ref().is_err_and(|error| !error.ends_a_claim())
}

fn by_an_earlier(leadership: &tenure::Leadership) -> Term {
    Term::new(leadership.name().clone(), FencingToken::new(1).unwrap())
}

/// Each fence says in words of its own that it is kept waiting.
#[tokio::test]
async fn leader_claims_when_the_transaction_of_a_dead_one_is_over_at_last() {
    let site = Site::new();
    let leader = site.election("leader");
    let leadership = &soon("the campaign", leader.campaign()).await.unwrap();
    let (old, ledger) = (&by_an_earlier(leadership), &ledger());
    let in_turn = async |left: LeftOpen| {
        let LeftOpen { fence, open } = left;
        let claiming = leadership.claim(fence.as_ref(), ledger);
        let ending = async {
            // Begun later, so that the leader's own was refused before.
            tokio::time::sleep(Duration::from_millis(500)).await;
            let refused = fence.claim(ledger, &leadership.term()).await;
            assert!(is_kept_waiting(&refused), "{refused:?}");
            open.roll_back().await;
        };
        let (claimed, ()) = soon("the claim", async { tokio::join!(claiming, ending) }).await;
        claimed
    };
    let one = std::slice::from_ref(ledger);
    let raised = Ok(Claimed::Raised {
        from: Some(old.token),
    });
    let claimed = in_turn(in_postgres("claim_waits", one, old).await).await;
    assert_eq!(claimed, raised, "PostgreSQL");
    let claimed = in_turn(in_mariadb("claim_waits", one, old).await).await;
    assert_eq!(claimed, raised, "MariaDB");
    // The first try has raised the mark, and waits for what has entered beside it.
    let claimed = in_turn(in_mongodb("claim_waits", one, old).await).await;
    assert_eq!(claimed, Ok(Claimed::Already), "MongoDB");
}

/// A host that is lost may have left a transaction that has entered many. Their claims wait for each other,
/// too: a fence has few connections for them.
#[tokio::test]
async fn claims_of_many_resources_wait_for_the_transaction_of_a_dead_one() {
    let site = Site::new();
    let leader = site.election("leader");
    let leadership = &soon("the campaign", leader.campaign()).await.unwrap();
    let (old, ledgers) = (&by_an_earlier(leadership), &ledgers());
    let (last, others) = ledgers.split_last().unwrap();
    let all_wait = async |left: LeftOpen| {
        let LeftOpen { fence, open } = left;
        let claims = others
            .iter()
            .map(|resource| leadership.claim(fence.as_ref(), resource));
        let ending = async {
            let crowded = fence.claim(last, &leadership.term()).await;
            open.roll_back().await;
            crowded
        };
        let all = soon("the claims", async { tokio::join!(all_of(claims), ending) });
        let (claimed, crowded) = all.await;
        let raised = Ok(Claimed::Raised {
            from: Some(old.token),
        });
        assert!(claimed.iter().all(|claimed| *claimed == raised), "{claimed:?}");
        let Err(FenceError::Store(crowded)) = crowded else {
            panic!("it was kept by the transaction: {crowded:?}");
        };
        assert_eq!(crowded.fault, Fault::Busy, "{crowded}");
        assert!(crowded.message.contains("other claims"), "{crowded}");
    };
    let left = in_postgres("claims_wait", ledgers, old).await;
    all_wait(left).await;
    let left = in_mariadb("claims_wait", ledgers, old).await;
    all_wait(left).await;
}

/// Side by side, on this task.
async fn all_of<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut waiting: Vec<_> = futures.map(Box::pin).collect();
    let mut ended: Vec<Option<T>> = waiting.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (place, future) in ended.iter_mut().zip(&mut waiting) {
            if place.is_none()
                && let std::task::Poll::Ready(outcome) = future.as_mut().poll(context)
            {
                *place = Some(outcome);
            }
        }
        match ended.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    ended.into_iter().flatten().collect()
}

/// Claims what a transaction keeps, while `ending` befalls the term; the claim has ended then, in vain.
async fn claim_ends_by(
    schema: &str,
    ending: impl AsyncFnOnce(&Leadership, SharedStore),
) -> (Election, Leadership) {
    let site = Site::new();
    // One that is renewed soon, and then heard to be over.
    let leader = Site::election_of(site.store(), "leader", Timing::of(Ttl::from_secs(6).unwrap()));
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let (old, ledger) = (by_an_earlier(&leadership), &ledger());
    let left = in_postgres(schema, std::slice::from_ref(ledger), &old).await;
    let claiming = leadership.claim(left.fence.as_ref(), ledger);
    let ending = ending(&leadership, site.store());
    let (claimed, ()) = soon("the claim's end", async { tokio::join!(claiming, ending) }).await;
    assert!(is_kept_waiting(&claimed), "{claimed:?}");
    left.open.roll_back().await;
    (leader, leadership)
}

#[tokio::test]
async fn claim_that_waits_ends_with_its_term() {
    let losing = claim_ends_by("claim_ends", async |leadership, operator| {
        let name = LeaseName::new(leadership.name().as_str()).unwrap();
        let lease = operator.get(&name).await.unwrap().unwrap();
        let release = Release {
            name,
            incarnation: lease.holder.incarnation,
            token: lease.token,
            attempt: lease.attempt,
        };
        operator.release(&[release]).await.remove(0).unwrap();
    });
    let (_leader, leadership) = losing.await;
    assert_eq!(leadership.authority(), Authority::None);
}

/// It begins nothing new.
#[tokio::test]
async fn claim_that_waits_ends_with_the_wish_to_step_down() {
    let asking = claim_ends_by("claim_steps_down", async |leadership, operator| {
        let (name, token) = (leadership.name().clone(), leadership.token());
        assert_eq!(operator.ask(&Ask { name, token }).await.unwrap(), Asked::Noted);
    });
    let (_leader, leadership) = asking.await;
    let authority = leadership.authority();
    assert!(matches!(authority, Authority::Ending { .. }), "{authority:?}");
}

/// Somebody's table of that name: a person must act, and learns it at once.
#[tokio::test]
async fn claim_that_only_a_person_can_help_does_not_wait() {
    let site = Site::new();
    let leader = site.election("leader");
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let set = ReplicaSet::shared().await.uri();
    let client = MongoClient::with_uri_str(set).await.unwrap();
    let database = client.database("claim_of_no_mark");
    let strange = doc! { "_id": "ledger", "token": "a text" };
    database.collection("fences").insert_one(strange).await.unwrap();
    let fence = MongoFence::new(&database, Leases::Elsewhere);
    let refused = soon("the refusal", leadership.claim(&fence, &ledger())).await;
    let Err(FenceError::Store(error)) = refused else {
        panic!("it is no mark: {refused:?}");
    };
    assert_eq!(error.fault, Fault::Unreadable, "{error}");
}

/// Its server was upgraded, restored or made anew: by this fence no claim ever comes through, and one that is
/// opened anew claims at once.
#[tokio::test]
async fn claim_by_a_fence_of_a_server_that_is_another_now_does_not_wait() {
    let site = Site::new();
    let leader = site.election("leader");
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let (ours, another) = (Postgres::shared().await, Postgres::start().await.unwrap());
    let proxy = FaultProxy::postgres(ours.address()).unwrap();
    let url_at = |uri: &str| format!("{uri}?schema=claim_of_another");
    for server in [ours, &another] {
        PostgresStore::init(&url_at(&server.uri())).await.unwrap();
    }
    let url = url_at(&format!("postgres://postgres@{}/postgres", proxy.address()));
    let fence = PostgresFence::connect(&url, Leases::Elsewhere).await.unwrap();
    exchange(&proxy, another.address()).await;
    let refused = soon("the refusal", leadership.claim(&fence, &ledger())).await;
    let Err(FenceError::Store(error)) = refused else {
        panic!("it is another server: {refused:?}");
    };
    assert_eq!(error.fault, Fault::AnotherStore, "{error}");
    let anew = PostgresFence::connect(&url, Leases::Elsewhere).await.unwrap();
    let claimed = soon("the claim", leadership.claim(&anew, &ledger())).await;
    assert_eq!(claimed, Ok(Claimed::Raised { from: None }));
}

/// A fence whose set-up somebody has changed.
async fn changed(schema: &str, statements: &str) -> PostgresFence {
    let server = Postgres::shared().await;
    let url = format!("{}?schema={schema}", server.uri());
    PostgresStore::init(&url).await.unwrap();
    let fence = PostgresFence::connect(&url, Leases::Elsewhere).await.unwrap();
    let statements = statements.replace("{schema}", schema);
    server.execute(&statements).await.unwrap();
    fence
}

/// As where a later set-up decides otherwise: the error says what a person must do.
#[tokio::test]
async fn claim_that_the_server_decides_otherwise_does_not_wait() {
    let site = Site::new();
    let leader = site.election("leader");
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let raises_none = "CREATE OR REPLACE FUNCTION {schema}.claim(asked_resource text, asked_lease text, asked_token bigint) \
                       RETURNS TABLE (found_lease text, found_token bigint, granted_token bigint, clock_ms bigint, raised boolean) \
                       LANGUAGE sql AS 'SELECT NULL::text, NULL::bigint, NULL::bigint, \
                       (extract(epoch FROM clock_timestamp()) * 1000)::bigint, false'";
    let fence = changed("claim_otherwise", raises_none).await;
    let refused = soon("the refusal", leadership.claim(&fence, &ledger())).await;
    let Err(FenceError::Store(error)) = refused else {
        panic!("it was not raised: {refused:?}");
    };
    assert_eq!(error.fault, Fault::Unsupported, "{error}");
    assert!(error.message.contains("tenure store init"), "{error}");
}

/// It would lead, and keep the work from everybody.
#[tokio::test]
async fn claim_that_fails_by_what_the_fence_has_no_word_for_waits_for_a_while_only() {
    let site = Site::new();
    let leader = site.election("leader");
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let fails = "CREATE FUNCTION {schema}.fails() RETURNS trigger LANGUAGE plpgsql \
                 AS $$ BEGIN RAISE EXCEPTION 'not on Sundays'; END $$; \
                 CREATE TRIGGER fails BEFORE INSERT OR UPDATE ON {schema}.fences \
                 FOR EACH ROW EXECUTE FUNCTION {schema}.fails()";
    let fence = changed("claim_fails", fails).await;
    let ledger = &ledger();
    let claiming = leadership.claim(&fence, ledger);
    let Ok(refused) = tokio::time::timeout(UNEXPLAINED_TIME_MAX * 3, claiming).await else {
        panic!("it waits still");
    };
    let Err(FenceError::Store(error)) = refused else {
        panic!("a trigger refuses it: {refused:?}");
    };
    assert_eq!(error.fault, Fault::Internal, "{error}");
    let authority = leadership.authority();
    assert!(matches!(authority, Authority::Held { .. }), "{authority:?}");
}
