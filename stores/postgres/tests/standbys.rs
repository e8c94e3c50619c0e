//! A primary and the standby that follows it: which of them is asked, and what a promotion keeps.
use crate::clean_up::unused;
use crate::common::{PATIENCE, Scratch, giving_back, renewal, request, seconds, take, unused_for_a_day};
use crate::fence::{ledger, term};
use tenure_conformance::wire::bounded;
use tenure_core::{
    Acquired, Ask, Asked, Certainty, Cursor, Durability, Fault, Fence, FenceError, LeasePurge, LeaseStore,
    Leases, Page, Purging, Released, Renewed, Verdict,
};
use tenure_postgres::{PostgresFence, PostgresStore};
use tenure_testkit::{FaultProxy, Postgres, eventually_async};
use tokio_postgres::Client;

/// How many looks may be lost with a connection.
const LOST_MAX: u32 = 10;

/// A primary with a synchronous standby, and the store's URL of a schema in both.
pub async fn pair() -> (Postgres, Postgres, String) {
    let primary = Postgres::start().await.unwrap();
    let standby = primary.standby().await.unwrap();
    let synchronous = "ALTER SYSTEM SET synchronous_standby_names = '*'";
    primary.execute(synchronous).await.unwrap();
    primary.execute("SELECT pg_reload_conf()").await.unwrap();
    let scratch = Scratch::on(&primary.uri()).await;
    // Who makes commits wait, and who serves the standby, read the settings a moment later.
    followers(&scratch.client().await, "WHERE sync_state = 'sync'", 1).await;
    let both = format!(
        "postgres://postgres@{},{}/postgres",
        primary.address(),
        standby.address()
    );
    (primary, standby, scratch.url_on(&both, ""))
}

/// The primary dies in the middle of a term, and its synchronous standby takes over: the term goes on, and
/// nothing that was confirmed is lost.
#[tokio::test]
async fn term_outlives_a_primary_whose_standby_is_promoted() {
    let (mut primary, standby, both) = pair().await;
    let store = PostgresStore::connect(&both).await.unwrap();
    assert_eq!(store.traits().durability, Durability::Safe);
    let (held, vacant) = (
        request("held", "a", seconds(300)),
        request("vacant", "a", seconds(300)),
    );
    let token = take(&store, &held).await.token;
    let before = take(&store, &vacant).await.token;
    let released = store.release(&[giving_back(&vacant, before)]).await;
    assert!(released[0].is_ok(), "{released:?}");
    // A release does not wait for the standby; a term does, and brings what came before it with it.
    let renewed = store.renew(&[renewal(&held, token)]).await;
    assert!(matches!(renewed[0], Ok(Renewed::Extended { .. })), "{renewed:?}");
    primary.kill();
    let lost = bounded("without a primary", store.get(&held.name))
        .await
        .unwrap_err();
    assert_eq!(lost.fault, Fault::Unreachable, "{lost}");
    standby.promote().await.unwrap();
    eventually_async(PATIENCE, "a renewal at the new primary", || async {
        let verdict = store.renew(&[renewal(&held, token)]).await.remove(0);
        assert!(!matches!(verdict, Ok(Renewed::Lost(_))), "{verdict:?}");
        matches!(verdict, Ok(Renewed::Extended { .. }))
    })
    .await;
    let rival = store.acquire(&request("held", "b", seconds(300))).await;
    assert!(
        matches!(rival, Ok(Acquired::Held(ref lease)) if lease.token == token),
        "{rival:?}"
    );
    let after = take(&store, &request("vacant", "b", seconds(300))).await.token;
    assert!(after > before, "{after} after {before}");
}

/// What is confirmed is at the synchronous standby, and the other one may be promoted.
#[tokio::test]
async fn asynchronous_standby_beside_a_synchronous_one_is_for_the_fence_alone() {
    let (primary, _standby, both) = pair().await;
    let declared = || async {
        let store = PostgresStore::connect(&both).await.unwrap();
        store.traits().durability
    };
    assert_eq!(declared().await, Durability::Safe);
    let other = primary.standby().await.unwrap();
    let looker = Postgres::client(&primary.uri()).await.unwrap();
    // What keeps the log alone will not be promoted.
    follows_as(&other, &looker, "pg_receivewal").await;
    set(&primary, "synchronous_standby_names = 'walreceiver'").await;
    followers(&looker, "WHERE sync_state = 'async' AND state = 'streaming'", 1).await;
    assert_eq!(declared().await, Durability::Safe);
    follows_as(&other, &looker, "another").await;
    let durability = declared().await;
    assert!(
        matches!(durability, Durability::FenceOnly(why) if why.contains("asynchronously")),
        "{durability:?}"
    );
}

/// As the role of the README's set-up, unless it is given what the declaration asks for.
#[tokio::test]
async fn standby_of_which_the_role_is_not_shown_how_it_follows_is_for_the_fence_alone() {
    let (primary, _standby, both) = pair().await;
    let (_, schema) = both.split_once("schema=").unwrap();
    let run = async |sql: &str| Postgres::execute_at(&primary.uri(), sql).await.unwrap();
    run(&format!(
        "CREATE ROLE lean LOGIN; GRANT USAGE ON SCHEMA {schema} TO lean; \
         GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {schema} TO lean"
    ))
    .await;
    let declared = async || {
        let url = both.replace("postgres://postgres@", "postgres://lean@");
        let store = PostgresStore::connect(&url).await.unwrap();
        store.traits().durability
    };
    let durability = declared().await;
    assert!(
        matches!(durability, Durability::FenceOnly(why) if why.contains("GRANT pg_monitor")),
        "{durability:?}"
    );
    run("GRANT pg_monitor TO lean").await;
    assert_eq!(declared().await, Durability::Safe);
}

/// What keeps the server's log is no standby, also where none is named: there is nobody to fail over to.
#[tokio::test]
async fn keeper_of_the_log_is_no_standby() {
    let primary = Postgres::start().await.unwrap();
    let keeper = primary.standby().await.unwrap();
    let scratch = Scratch::on(&primary.uri()).await;
    let looker = scratch.client().await;
    follows_as(&keeper, &looker, "pg_receivewal").await;
    // Nor in the eyes of who is not shown more of it.
    let grants = "CREATE ROLE looking LOGIN; GRANT USAGE ON SCHEMA {schema} TO looking; \
                  GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO looking";
    scratch.sql(grants).await;
    let urls = [
        scratch.url(""),
        scratch.url_on(&primary.uri_as("looking", None, "postgres"), ""),
    ];
    let declared = async |url: &str| PostgresStore::connect(url).await.unwrap().traits().durability;
    for url in &urls {
        assert_eq!(declared(url).await, Durability::Safe);
    }
    follows_as(&keeper, &looker, "another").await;
    for url in &urls {
        let durability = declared(url).await;
        assert!(matches!(durability, Durability::FenceOnly(_)), "{durability:?}");
    }
}

/// Has a server follow its primary by this name.
async fn follows_as(follower: &Postgres, primary: &Client, name: &str) {
    let client = Postgres::client(&follower.uri()).await.unwrap();
    let row = client.query_one("SHOW primary_conninfo", &[]).await.unwrap();
    let conninfo: String = row.get(0);
    let unnamed = conninfo
        .split(" application_name=")
        .next()
        .unwrap()
        .replace('\'', "''");
    let all: i64 = primary
        .query_one("SELECT count(*) FROM pg_stat_replication", &[])
        .await
        .unwrap()
        .get(0);
    set(
        follower,
        &format!("primary_conninfo = '{unnamed} application_name={name}'"),
    )
    .await;
    let shown = format!("WHERE application_name = '{name}' AND state = 'streaming'");
    followers(primary, &shown, 1).await;
    // The one by its earlier name may be seen for a moment yet.
    followers(primary, "", all).await;
}

pub async fn set(server: &Postgres, setting: &str) {
    server
        .execute(&format!("ALTER SYSTEM SET {setting}"))
        .await
        .unwrap();
    server.execute("SELECT pg_reload_conf()").await.unwrap();
}

/// What is notified keeps every other notification of the server waiting until its commit is through: a
/// release would be held up by the wish for it.
#[tokio::test]
async fn wish_and_clean_up_that_wait_for_no_standby_hold_no_release_up() {
    let server = Postgres::start().await.unwrap();
    let scratch = Scratch::on(&server.uri()).await;
    unused(&scratch, &["unused"]).await;
    let store = scratch.store().await;
    let asked = request("job", "a", seconds(300));
    let token = take(&store, &asked).await.token;
    set(&server, "synchronous_standby_names = 'nobody'").await;
    let in_force = "SELECT current_setting('synchronous_standby_names') = 'nobody'";
    eventually_async(PATIENCE, "the setting", || scratch.value::<bool>(in_force)).await;
    let wish = Ask {
        name: asked.name.clone(),
        token,
    };
    let noted = bounded("a wish", store.ask(&wish)).await;
    assert_eq!(noted, Ok(Asked::Noted));
    let released = bounded("a release", store.release(&[giving_back(&asked, token)])).await;
    assert_eq!(released, [Ok(Released::Vacated)]);
    let removing = unused_for_a_day(Purging::Removes);
    let purged = bounded("a clean-up", store.purge(&removing)).await.unwrap();
    assert_eq!(purged.removed, 1);
}

/// It answers like any other server, and what it says may be old.
#[tokio::test]
async fn standby_of_postgres_that_is_given_instead_of_the_primary_is_refused() {
    let primary = Postgres::start().await.unwrap();
    let scratch = Scratch::on(&primary.uri()).await;
    let standby = primary.standby().await.unwrap();
    let url = scratch.url_on(&standby.uri(), "");
    for refused in [
        PostgresStore::connect(&url).await.map(drop),
        PostgresStore::init(&url).await,
    ] {
        let error = refused.unwrap_err();
        assert_eq!(
            (error.fault, error.certainty),
            (Fault::ReadOnly, Certainty::NotApplied),
            "{error}"
        );
        for said in [
            standby.address().as_str(),
            "replica",
            "name the primary in the URL",
        ] {
            assert!(error.message.contains(said), "{error}");
        }
        assert!(!error.message.contains('\n'), "{error}");
    }
    // Beside the primary, in any order, it is passed by.
    let both = format!(
        "postgres://postgres@{},{}/postgres",
        standby.address(),
        primary.address()
    );
    let store = PostgresStore::connect(&scratch.url_on(&both, "")).await.unwrap();
    take(&store, &request("job", "holder", seconds(60))).await;
}

/// The address in the URL leads to a standby by now: what that says of a mark may be old, and a stale term
/// would be told that it may go on.
#[tokio::test]
async fn marks_of_postgres_are_not_told_by_a_standby() {
    let primary = Postgres::start().await.unwrap();
    let scratch = Scratch::on(&primary.uri()).await;
    let standby = primary.standby().await.unwrap();
    let proxy = FaultProxy::postgres(primary.address()).unwrap();
    let led = format!("postgres://postgres@{}/postgres", proxy.address());
    let fence = PostgresFence::connect(&scratch.url_on(&led, ""), Leases::Here)
        .await
        .unwrap();
    let (resource, claimed) = (ledger(), term("nightly", 5));
    fence.claim(&resource, &claimed).await.unwrap();
    let looker = scratch.client().await;
    let caught_up = "WHERE replay_lsn >= pg_current_wal_insert_lsn()";
    followers(&looker, caught_up, 1).await;
    proxy.lead_to(standby.address());
    proxy.cut_connections();
    for told in [
        answered(async || fence.check(&resource, &claimed).await).await,
        answered(async || fence.mark(&resource).await.map(drop)).await,
        answered(async || fence.marks(Some(&Cursor::from(&resource))).await.map(drop)).await,
    ] {
        assert_eq!(unreachable(told), Said::ByReplica);
    }
    let claims = async || {
        let mut told = Vec::new();
        for asked in [
            &claimed,
            &term("nightly", 4),
            &term("nightly", 6),
            &term("another", 7),
        ] {
            let claim = answered(async || fence.claim(&resource, asked).await.map(drop)).await;
            told.push(unreachable(claim));
        }
        told
    };
    assert_eq!(claims().await, [Said::NoPrimary; 4]);
    // The function of an earlier set-up answers all but those that would raise the mark.
    scratch.sql(include_str!("earlier/fences.sql")).await;
    followers(&looker, caught_up, 1).await;
    let answered_all_the_same = [Said::ByReplica, Said::ByReplica, Said::NoPrimary, Said::ByReplica];
    assert_eq!(claims().await, answered_all_the_same);
    proxy.lead_to(primary.address());
    proxy.cut_connections();
    let told = answered(async || fence.check(&resource, &claimed).await).await;
    assert_eq!(told, Ok(()));
}

/// What a server is, by its own words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    /// It has answered, and that does not count.
    ByReplica,
    /// It has refused to answer.
    NoPrimary,
}

/// What was said in place of an answer, and that nothing was done.
fn unreachable(told: Result<(), FenceError>) -> Said {
    let Err(FenceError::Store(error)) = told else {
        panic!("{told:?}")
    };
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Unreachable, Certainty::NotApplied),
        "{error}"
    );
    match error.message.contains("a replica answered") {
        true => Said::ByReplica,
        false => {
            assert!(error.message.contains("no primary any more"), "{error}");
            Said::NoPrimary
        }
    }
}

/// The same of leases: who holds one, and whether it is held at all.
#[tokio::test]
async fn leases_of_postgres_are_not_told_by_a_standby() {
    let primary = Postgres::start().await.unwrap();
    let scratch = Scratch::on(&primary.uri()).await;
    let standby = primary.standby().await.unwrap();
    let proxy = FaultProxy::postgres(primary.address()).unwrap();
    let led = format!("postgres://postgres@{}/postgres", proxy.address());
    let url = scratch.url_on(&led, "");
    let store = PostgresStore::connect(&url).await.unwrap();
    let asked = request("job", "holder", seconds(300));
    take(&store, &asked).await;
    // A set-up from before it takes leases by the function that looks first.
    let take_of_one = "DROP FUNCTION {schema}.take(text, text, text, bigint, bigint, text)";
    scratch.sql(take_of_one).await;
    let longer = PostgresStore::connect(&url).await.unwrap();
    let looker = scratch.client().await;
    followers(&looker, "WHERE replay_lsn >= pg_current_wal_insert_lsn()", 1).await;
    proxy.lead_to(standby.address());
    proxy.cut_connections();
    let all = Page::first("", 10);
    let nobodys = request("nobodys", "holder", seconds(300)).name;
    let told = [
        answered(async || store.get(&asked.name).await.map(drop).map_err(FenceError::Store)).await,
        answered(async || store.get(&nobodys).await.map(drop).map_err(FenceError::Store)).await,
        answered(async || store.list(&all).await.map(drop).map_err(FenceError::Store)).await,
    ];
    for told in told {
        assert_eq!(unreachable(told), Said::ByReplica);
    }
    let rival = request("job", "rival", seconds(300));
    let told = answered(async || longer.acquire(&rival).await.map(drop).map_err(FenceError::Store)).await;
    assert_eq!(unreachable(told), Said::NoPrimary);
}

/// What a server says: a look or two are lost with the connection that was cut under them.
async fn answered(look: impl AsyncFn() -> Result<(), FenceError>) -> Result<(), FenceError> {
    let mut told = look().await;
    for _again in 0..LOST_MAX {
        match &told {
            Err(FenceError::Store(error)) if error.message.contains("the connection failed") => {}
            Ok(()) | Err(_) => break,
        }
        told = look().await;
    }
    told
}

/// An asynchronous standby is promoted that has not got the last writes: what it has not got is lost, tokens
/// rise all the same, and the store has said before that only the fence can be relied on.
#[tokio::test]
async fn standby_of_postgres_that_lacks_the_last_writes_lets_no_token_fall() {
    let mut primary = Postgres::start().await.unwrap();
    let standby = primary.standby().await.unwrap();
    let scratch = Scratch::on(&primary.uri()).await;
    let looker = scratch.client().await;
    // To the last word, also of what does not wait for the disk.
    let caught_up = "WHERE replay_lsn >= pg_current_wal_insert_lsn()";
    followers(&looker, caught_up, 1).await;
    let both = format!(
        "postgres://postgres@{},{}/postgres",
        primary.address(),
        standby.address()
    );
    let store = PostgresStore::connect(&scratch.url_on(&both, "")).await.unwrap();
    let Durability::FenceOnly(why) = store.traits().durability else {
        panic!("an asynchronous standby follows")
    };
    assert!(why.contains("asynchronously"), "{why}");
    let findings = store.examine().await.unwrap();
    assert!(
        findings
            .iter()
            .any(|finding| finding.subject == "durability" && finding.verdict == Verdict::Warning),
        "{findings:?}"
    );
    let asked = |lease, label| request(lease, label, seconds(300));
    let (kept, handed) = (asked("kept", "a"), asked("handed", "a"));
    let beat = [renewal(&kept, take(&store, &kept).await.token)];
    let before = take(&store, &handed).await.token;
    let released = store.release(&[giving_back(&handed, before)]).await;
    assert!(released[0].is_ok(), "{released:?}");
    followers(&looker, caught_up, 1).await;
    let unfollow = "ALTER SYSTEM SET primary_conninfo = ''";
    standby.execute(unfollow).await.unwrap();
    standby.execute("SELECT pg_reload_conf()").await.unwrap();
    followers(&looker, "", 0).await;
    let lost = [asked("handed", "b"), asked("new", "b")];
    let mut tokens = Vec::new();
    for lost in &lost {
        tokens.push(take(&store, lost).await.token);
    }
    assert!(tokens[0] > before);
    primary.kill();
    standby.promote().await.unwrap();
    eventually_async(PATIENCE, "a renewal at the new primary", || async {
        let verdict = store.renew(&beat).await.remove(0);
        assert!(!matches!(verdict, Ok(Renewed::Lost(_))), "{verdict:?}");
        matches!(verdict, Ok(Renewed::Extended { .. }))
    })
    .await;
    for (lost, token) in lost.iter().zip(tokens) {
        let renewed = store.renew(&[renewal(lost, token)]).await.remove(0);
        assert!(matches!(renewed, Ok(Renewed::Lost(_))), "{renewed:?}");
        let next = take(&store, &asked(lost.name.as_str(), "c")).await;
        assert!(!next.again && next.token > token, "{next:?} after {token}");
    }
}

/// Waits until the primary has so many of these followers.
async fn followers(primary: &Client, which: &str, count: i64) {
    let look = format!("SELECT count(*) FROM pg_stat_replication {which}");
    eventually_async(PATIENCE, "the followers of the primary", || async {
        primary.query_one(&look, &[]).await.unwrap().get::<_, i64>(0) == count
    })
    .await;
}
