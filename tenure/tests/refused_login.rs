//! Who was let in once, and is refused for a while: as where a directory behind the store is away, or a
//! password is changed in the store before it is changed where candidates have it from.
use std::sync::Arc;
use std::time::Duration;
use tenure::contract::Fault;
use tenure::{Cause, Election, Event, SharedStore, Timing, Ttl};
use tokio::sync::broadcast::Receiver;

const RIGHT: &str = "right";

fn election(store: SharedStore, candidate: &str) -> Election {
    Election::builder("job", store)
        .candidate(candidate)
        .timing(Timing::of(Ttl::from_secs(10).unwrap()))
        .build()
        .unwrap()
}

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(60), future).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("{what}: not within 60 s"),
    }
}

/// Waits for this event, before which no campaign ends.
async fn hear(events: &mut Receiver<Event>, what: &str, is_it: impl Fn(&Event) -> bool) {
    soon(what, async {
        loop {
            let event = events.recv().await.unwrap();
            assert!(!matches!(event, Event::CampaignEnded { .. }), "{event:?}");
            if is_it(&event) {
                return;
            }
        }
    })
    .await;
}

fn is_refused_login(event: &Event) -> bool {
    matches!(event, Event::AttemptFailed { error, .. } if error.fault == Fault::Unauthenticated)
}

/// All are refused, the leader until its term has ended: both stay candidates, say why they wait, and lead
/// when they are let in.
async fn candidates_outlast_it(
    stores: [SharedStore; 2],
    refuse: impl AsyncFnOnce(),
    admit: impl AsyncFnOnce(),
) {
    let [leader, standby] = stores;
    let (leader, standby) = (election(leader, "leader"), election(standby, "standby"));
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let token = leadership.token();
    let (mut of_leader, mut of_standby) = (leader.events(), standby.events());
    let mut waiting = tokio::spawn(async move { standby.campaign().await });
    hear(&mut of_standby, "a standby", |event| {
        matches!(event, Event::Standby { .. })
    })
    .await;
    refuse().await;
    let loss = soon("the loss", leadership.lost()).await;
    assert!(matches!(loss.cause, Cause::Deadline(_)), "{loss}");
    drop(leadership);
    let mut again = tokio::spawn(async move { leader.campaign().await });
    hear(&mut of_leader, "a refusal of the leader", is_refused_login).await;
    hear(&mut of_standby, "a refusal of the standby", is_refused_login).await;
    admit().await;
    let leads = async {
        tokio::select! {
            won = &mut again => won,
            won = &mut waiting => won,
        }
    };
    let won = soon("the next term", leads).await.unwrap().unwrap();
    assert!(won.token() > token);
    again.abort();
    waiting.abort();
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn candidates_on_postgres_outlast_a_login_that_is_refused() {
    use tenure::postgres::PostgresStore;
    use tenure_testkit::Postgres;

    let server = Postgres::with_passwords().await.unwrap();
    PostgresStore::init(&server.uri()).await.unwrap();
    let rights = "GRANT USAGE ON SCHEMA tenure TO app; \
                  GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA tenure TO app";
    server
        .execute(&format!("CREATE ROLE app LOGIN PASSWORD '{RIGHT}'; {rights}"))
        .await
        .unwrap();
    let uri = server.uri_as("app", Some(RIGHT), "postgres");
    let store = async || {
        let store = soon("connecting", PostgresStore::connect(&uri)).await.unwrap();
        Arc::new(store) as SharedStore
    };
    let stores = [store().await, store().await];
    let refuse = async || {
        // First, and committed: who is ended connects at once.
        server.execute("ALTER ROLE app PASSWORD 'another'").await.unwrap();
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'";
        server.execute(end).await.unwrap();
    };
    let admit = async || {
        let changed = format!("ALTER ROLE app PASSWORD '{RIGHT}'");
        server.execute(&changed).await.unwrap();
    };
    candidates_outlast_it(stores, refuse, admit).await;
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn candidates_on_redis_outlast_a_login_that_is_refused() {
    use tenure::redis::RedisStore;
    use tenure_testkit::{RedisOptions, RedisServer};

    let server = RedisServer::start(RedisOptions::durable()).await.unwrap();
    let ask = |command: &str| {
        let answer = server.ask(command).unwrap();
        assert!(!answer.starts_with('-'), "{command}: {answer}");
    };
    ask(&format!("ACL SETUSER app on >{RIGHT} allkeys allchannels +@all"));
    let url = format!("redis://app:{RIGHT}@{}", server.address());
    let store = async || {
        let store = soon("connecting", RedisStore::connect(&url)).await.unwrap();
        Arc::new(store) as SharedStore
    };
    let stores = [store().await, store().await];
    let refuse = async || {
        ask("ACL SETUSER app resetpass >another");
        ask("CLIENT KILL USER app");
    };
    let admit = async || ask(&format!("ACL SETUSER app resetpass >{RIGHT}"));
    candidates_outlast_it(stores, refuse, admit).await;
}
