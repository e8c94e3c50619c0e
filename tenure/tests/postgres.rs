//! Leading through the faults of a real PostgreSQL server and of the network before it.
use crate::believed::until_lost;
use std::sync::Arc;
use std::time::Duration;
use tenure::contract::{Departure, Released};
use tenure::postgres::PostgresStore;
use tenure::{
    Authority, Cause, Election, Event, ReleaseOutcome, SharedStore, StoreError, Timing, Ttl, clock_now,
};
use tenure_testkit::{Fault, FaultProxy, Postgres, RequestFault, VanishedHost};
use tokio::sync::broadcast::Receiver;

fn timing() -> Timing {
    Timing::of(Ttl::from_secs(20).unwrap())
}

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(60), future).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("{what}: not within 60 s"),
    }
}

async fn connect(uri: &str) -> SharedStore {
    PostgresStore::init(uri).await.unwrap();
    Arc::new(soon("connecting", PostgresStore::connect(uri)).await.unwrap())
}

fn election(store: SharedStore, candidate: &str, timing: Timing) -> Election {
    Election::builder("job", store)
        .candidate(candidate)
        .timing(timing)
        .build()
        .unwrap()
}

/// A restart of the server, and a cut of every connection, cost no leadership: each is replaced in time.
#[tokio::test]
async fn a_restarted_postgres_and_cut_connections_cost_no_leadership() {
    let mut server = Postgres::start().await.unwrap();
    let proxy = FaultProxy::postgres(server.address()).unwrap();
    let through = format!("postgres://postgres@{}/postgres?sslmode=disable", proxy.address());
    let leader = election(connect(&through).await, "leader", timing());
    let standby = election(connect(&server.uri()).await, "standby", timing());
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let mut events = leader.events();
    let campaign = tokio::spawn(async move { standby.campaign().await.map(|won| won.token()) });
    proxy.next_commands(1, "renew", RequestFault::CutAfter);
    proxy.next_commands(1, "renew", RequestFault::CutBefore);
    tokio::time::sleep(Duration::from_secs(2)).await;
    proxy.cut_connections();
    server.kill();
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.restart().await.unwrap();
    tokio::time::sleep(timing().ttl().duration()).await;
    assert!(
        matches!(leadership.authority(), Authority::Held { .. }),
        "{leadership:?}"
    );
    assert!(!campaign.is_finished(), "the standby leads, too");
    let mut renewals = 0;
    while let Ok(event) = events.try_recv() {
        assert!(!matches!(event, Event::Ended { .. }), "{event:?}");
        renewals += u32::from(matches!(event, Event::Renewed { .. }));
    }
    assert!(renewals >= 2, "{renewals} renewals");
    assert_eq!(proxy.faults_left(), 0, "the faults happened");
    campaign.abort();
}

/// The primary answers late once, and the next connection begins with another host. Nobody is left at any of
/// these, which is found out of all of them within a moment.
#[tokio::test]
async fn a_late_answer_of_postgres_beside_hosts_that_have_vanished_costs_no_leadership() {
    let server = Postgres::start().await.unwrap();
    let vanished = VanishedHost::new().await.unwrap();
    let others = vec![vanished.address().to_string(); 5].join(",");
    let uri = format!("postgres://postgres@{},{others}/postgres", server.address());
    let short = Timing::of(Ttl::from_secs(15).unwrap());
    let leader = election(connect(&uri).await, "leader", short);
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let mut events = leader.events();
    let spare = Duration::from_millis(200);
    for _try in 0..4 {
        soon("a renewal", async {
            while !matches!(events.recv().await.unwrap(), Event::Renewed { .. }) {}
        })
        .await;
        tokio::time::sleep(short.renew_every() - spare).await;
        server.freeze();
        tokio::time::sleep(short.request_timeout() + 2 * spare).await;
        server.thaw();
        tokio::time::sleep(short.ttl().duration()).await;
        assert!(
            matches!(leadership.authority(), Authority::Held { .. }),
            "{leadership:?}"
        );
        let mut failed = 0;
        while let Ok(event) = events.try_recv() {
            assert!(!matches!(event, Event::Ended { .. }), "{event:?}");
            failed += u32::from(matches!(event, Event::RenewalFailed { .. }));
        }
        // None, where this came too late, and the renewal was answered before.
        if failed > 0 {
            return;
        }
    }
    panic!("no renewal was answered late");
}

/// A release is taken up by the standby long before its next look, by notification; also after the listening
/// connection was lost in between.
#[tokio::test]
async fn a_release_wakes_a_standby_through_postgres_also_after_a_cut() {
    let server = Postgres::shared().await;
    let proxy = FaultProxy::postgres(server.address()).unwrap();
    let uri = format!("{}?schema=wakes", server.uri());
    let through = format!(
        "postgres://postgres@{}/postgres?sslmode=disable&schema=wakes",
        proxy.address()
    );
    let long = Timing::of(Ttl::from_secs(120).unwrap());
    let build = |store, candidate| {
        Election::builder("job", store)
            .candidate(candidate)
            .timing(long)
            .build()
            .unwrap()
    };
    let leader = build(connect(&uri).await, "leader");
    let standby = build(connect(&through).await, "standby");
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let campaign = tokio::spawn(async move { standby.campaign().await.map(|won| won.token()) });
    tokio::time::sleep(Duration::from_secs(1)).await;
    proxy.cut_connections();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let token = leadership.token();
    leadership.step_down().await;
    let next = soon("the standby's turn, of a lease of two minutes", campaign)
        .await
        .unwrap()
        .unwrap();
    assert!(next > token);
}

/// Nothing says that the connection is gone: the holder counts from before it sent, and stops by itself
/// before the standby has the lease.
#[tokio::test]
async fn a_silent_postgres_ends_the_term_at_its_deadline_and_the_standby_takes_over() {
    let server = Postgres::shared().await;
    let uri = format!("{}?schema=silenced", server.uri());
    let proxy = FaultProxy::postgres(server.address()).unwrap();
    let through = format!(
        "postgres://postgres@{}/postgres?sslmode=disable&schema=silenced",
        proxy.address()
    );
    let short = Timing::of(Ttl::from_secs(4).unwrap());
    let leader = election(connect(&through).await, "leader", short);
    let standby = election(connect(&uri).await, "standby", short);
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let campaign = tokio::spawn(async move { (standby.campaign().await, standby) });
    proxy.set(Fault::BlackHole);
    let swallowed = proxy.counts().swallowed_requests;
    let (until, loss) = soon("the loss", until_lost(&leadership)).await;
    assert!(
        clock_now() >= until && matches!(loss.cause, Cause::Deadline(_)),
        "{loss}"
    );
    assert!(
        proxy.counts().swallowed_requests > swallowed,
        "the renewals went into the hole"
    );
    let (won, _standby) = soon("the take-over", campaign).await.unwrap();
    assert!(won.unwrap().token() > leadership.token());
}

/// Why the next release failed, and for how long the lease may be held then.
async fn failed_release(events: &mut Receiver<Event>) -> (StoreError, Duration) {
    soon("a release that fails", async {
        loop {
            if let Event::ReleaseFailed { error, remaining, .. } = events.recv().await.unwrap() {
                return (error, remaining);
            }
        }
    })
    .await
}

/// What became of the release in the end.
async fn departed(events: &mut Receiver<Event>) -> Departure {
    soon("the end of the release", async {
        loop {
            if let Event::Departed { departure, .. } = events.recv().await.unwrap() {
                return departure;
            }
        }
    })
    .await
}

/// The disk is full for whoever changes a lease: the server says what it says then.
#[tokio::test]
async fn a_release_that_a_full_postgres_refuses_is_told_with_the_reason_and_made_when_there_is_room() {
    let server = Postgres::shared().await;
    let store = connect(&format!("{}?schema=full_at_the_end", server.uri())).await;
    let leader = election(store, "leader", timing());
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let mut events = leader.events();
    server
        .execute(
            "CREATE FUNCTION full_at_the_end.no_room() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END $$;
             CREATE TRIGGER no_room BEFORE UPDATE ON full_at_the_end.leases
             FOR EACH ROW EXECUTE FUNCTION full_at_the_end.no_room()",
        )
        .await
        .unwrap();
    let release = tokio::spawn(leadership.step_down());
    let (error, remaining) = failed_release(&mut events).await;
    assert_eq!(error.fault, tenure::contract::Fault::Full, "{error}");
    assert!(error.message.contains("no space left on device"), "{error}");
    let ttl = timing().ttl().duration();
    assert!(remaining > Duration::ZERO && remaining < 2 * ttl, "{remaining:?}");
    server
        .execute("DROP TRIGGER no_room ON full_at_the_end.leases")
        .await
        .unwrap();
    let outcome = soon("the release", release).await.unwrap();
    assert_eq!(outcome, ReleaseOutcome::Released);
    assert_eq!(
        departed(&mut events).await,
        Departure::Answered(Released::Vacated)
    );
}

/// Only a person can mend that, so it is told at once, with the time for which the lease may be held.
#[tokio::test]
async fn a_role_of_postgres_that_has_lost_its_rights_is_told_why_its_release_failed() {
    let server = Postgres::shared().await;
    let schema = "rights_at_the_end";
    connect(&format!("{}?schema={schema}", server.uri())).await;
    server
        .execute(&format!(
            "CREATE ROLE {schema} LOGIN;
             GRANT USAGE ON SCHEMA {schema} TO {schema};
             GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {schema} TO {schema}"
        ))
        .await
        .unwrap();
    let uri = format!(
        "postgres://{schema}@{}/postgres?sslmode=disable&schema={schema}",
        server.address()
    );
    let store = Arc::new(soon("connecting", PostgresStore::connect(&uri)).await.unwrap());
    let leader = election(store, "leader", timing());
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let mut events = leader.events();
    let revoked = format!("REVOKE UPDATE ON {schema}.leases FROM {schema}");
    server.execute(&revoked).await.unwrap();
    let outcome = soon("the release", leadership.step_down()).await;
    let (error, remaining) = failed_release(&mut events).await;
    assert_eq!(error.fault, tenure::contract::Fault::Forbidden, "{error}");
    assert!(remaining >= timing().ttl().duration(), "{remaining:?}");
    assert_eq!(outcome, ReleaseOutcome::Unconfirmed(error.clone()));
    let told = Departure::Unconfirmed { error, remaining };
    assert_eq!(departed(&mut events).await, told);
}
