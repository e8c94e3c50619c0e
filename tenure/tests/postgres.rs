//! Leading through the faults of a real PostgreSQL server and of the network before it.
use std::sync::Arc;
use std::time::Duration;
use tenure::postgres::PostgresStore;
use tenure::{Authority, Cause, Election, Event, SharedStore, Timing, Ttl, clock_now};
use tenure_testkit::{Fault, FaultProxy, Postgres, RequestFault, VanishedHost};

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

/// The primary answers late once, and the next connection begins with another host. Nobody is left at any of these, which
/// is found out of all of them within a moment.
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

/// Nothing says that the connection is gone: the holder counts from before it sent, and stops by itself before the standby has
/// the lease.
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
    let loss = soon("the loss", leadership.lost()).await;
    assert!(
        clock_now() >= leadership.until() && matches!(loss.cause, Cause::Deadline(_)),
        "{loss}"
    );
    assert!(
        proxy.counts().swallowed_requests > swallowed,
        "the renewals went into the hole"
    );
    let (won, _standby) = soon("the take-over", campaign).await.unwrap();
    assert!(won.unwrap().token() > leadership.token());
}
