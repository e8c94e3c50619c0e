//! What an election hears by its watch, whatever it was when that began.
use crate::harness::told::Told;
use crate::harness::{Site, enduring_timing, soon, timing};
use tenure::contract::{Ask, Asked, WatchEvent};
use tenure::{Election, LeaseName, SharedStore, Timing, Ttl};

/// It hears by it that somebody asks it to step down, for as long as it leads.
#[tokio::test]
async fn the_watch_of_a_leader_that_has_waited_goes_on() {
    let site = Site::new();
    let before = soon("the term before", site.election("before").campaign())
        .await
        .unwrap();
    let store = Told::over(site.store());
    let election = Site::election_of(store.clone(), "leader", enduring_timing());
    let (leadership, hints) = tokio::join!(soon("the campaign", election.campaign()), async {
        let hints = store.teller().await;
        soon("the release", before.step_down()).await;
        hints.send(WatchEvent::Gap).await.unwrap();
        hints
    });
    let leadership = leadership.unwrap();
    // One that nobody needs ends after a ttl, with the next beat.
    tokio::time::sleep(2 * election.timing().ttl().duration()).await;
    assert!(!hints.is_closed());
    drop(leadership);
}

/// It is a connection that is kept busy, on some stores.
#[tokio::test]
async fn the_watch_of_an_election_that_neither_campaigns_nor_leads_ends_after_a_ttl() {
    let site = Site::new();
    let store = Told::over(site.store());
    let election = Site::election_of(store.clone(), "led", timing());
    let (leadership, hints) = tokio::join!(soon("the campaign", election.campaign()), store.teller());
    soon("the release", leadership.unwrap().step_down()).await;
    soon("its end", hints.closed()).await;
    // It campaigns with another one.
    let before = soon("the term before", site.election("before").campaign())
        .await
        .unwrap();
    let (leadership, ()) = tokio::join!(soon("the campaign", election.campaign()), async {
        let hints = soon("a watch", store.teller()).await;
        assert!(!hints.is_closed());
        soon("the release", before.step_down()).await;
        hints.send(WatchEvent::Gap).await.unwrap();
    });
    drop(leadership.unwrap());
}

/// No renewal and no expiry tells anybody anything within a test.
fn election(store: SharedStore, candidate: &str) -> Election {
    Election::builder("job", store)
        .candidate(candidate)
        .timing(Timing::of(Ttl::from_secs(3600).unwrap()))
        .build()
        .unwrap()
}

/// One that has waited before it leads, too.
#[tokio::test]
async fn a_wish_that_came_in_a_gap_of_the_watch_is_heard_by_who_stood_by_before() {
    let site = Site::new();
    let before = election(site.store(), "before");
    let before = soon("the term before", before.campaign()).await.unwrap();
    let store = Told::over(site.store());
    let ours = election(store.clone(), "ours");
    let (leadership, hints) = tokio::join!(soon("the campaign", ours.campaign()), async {
        let hints = store.teller().await;
        soon("the release", before.step_down()).await;
        hints.send(WatchEvent::Gap).await.unwrap();
        hints
    });
    let leadership = leadership.unwrap();
    let (name, token) = (LeaseName::new("job").unwrap(), leadership.token());
    assert_eq!(
        site.store().ask(&Ask { name, token }).await.unwrap(),
        Asked::Noted
    );
    hints.send(WatchEvent::Gap).await.unwrap();
    soon("the wish", leadership.interrupted()).await;
}

/// In a store that keeps the wish in the record of a lease that was given back.
#[cfg(feature = "nats")]
#[tokio::test]
async fn who_led_before_looks_after_a_gap_whatever_the_last_term_was_asked() {
    use tenure::contract::{Event, Occupancy};
    let server = tenure_testkit::NatsServer::start(tenure_testkit::NatsOptions::default());
    let server = soon("a server", server).await.unwrap();
    let url = server.url();
    let connect = async || {
        let store = soon("a connection", tenure::nats::NatsStore::connect(&url)).await;
        let store: SharedStore = std::sync::Arc::new(store.unwrap());
        store
    };
    let store = Told::over(connect().await);
    let ours = election(store.clone(), "ours");
    let leadership = soon("the first term", ours.campaign()).await.unwrap();
    let hints = soon("its watch", store.teller()).await;
    soon("the release", leadership.step_down()).await;
    let theirs = election(connect().await, "theirs");
    let leadership = soon("the second term", theirs.campaign()).await.unwrap();
    let mut events = ours.events();
    let token = leadership.token();
    let again = async {
        // It stands by, and nobody tells it of what comes now but the gap.
        while !matches!(
            soon("it stands by", events.recv()).await,
            Ok(Event::Standby { .. })
        ) {}
        let name = LeaseName::new("job").unwrap();
        let asked = connect()
            .await
            .ask(&Ask {
                name: name.clone(),
                token,
            })
            .await;
        assert_eq!(asked.unwrap(), Asked::Noted);
        soon("the release", leadership.step_down()).await;
        let left = connect().await.get(&name).await.unwrap().unwrap();
        assert_eq!(
            (left.occupancy(), left.asked_to_step_down),
            (Occupancy::Vacant, true)
        );
        hints.send(WatchEvent::Gap).await.unwrap();
    };
    let (third, ()) = tokio::join!(soon("the third term", ours.campaign()), again);
    assert!(third.unwrap().token() > token);
}
