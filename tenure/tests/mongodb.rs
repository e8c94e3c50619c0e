//! Leading through the faults of a real replica set and of the network before it.
use crate::believed::until_lost;
use std::sync::Arc;
use std::time::Duration;
use tenure::contract::Occupancy;
use tenure::mongodb::MongoStore;
use tenure::{
    Authority, Cause, Election, Event, LeaseName, ReleaseOutcome, SharedStore, Timing, Ttl, clock_now,
};
use tenure_testkit::{Fault, FaultProxy, ReplicaSet, RequestFault, Size, eventually_async};

/// A lease that outlasts an election of this replica set, which takes two or three seconds.
fn long() -> Timing {
    Timing::of(Ttl::from_secs(20).unwrap())
}

fn short() -> Timing {
    Timing::of(Ttl::from_secs(4).unwrap())
}

const PATIENCE: Duration = Duration::from_secs(60);

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("{what}: not within {PATIENCE:?}"),
    }
}

async fn connect(uri: &str) -> SharedStore {
    Arc::new(soon("connecting", MongoStore::connect(uri)).await.unwrap())
}

fn election(store: SharedStore, candidate: &str, timing: Timing) -> Election {
    Election::builder("job", store)
        .candidate(candidate)
        .timing(timing)
        .build()
        .unwrap()
}

#[derive(Clone, Copy, Debug)]
enum Blow {
    Kill,
    Freeze,
    StepDown,
}

async fn no_term_ends_by(blow: Blow) {
    let mut set = ReplicaSet::start(Size::Three).await.unwrap();
    let leader = election(connect(&set.uri()).await, "leader", long());
    let standby = election(connect(&set.uri()).await, "standby", long());
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let mut events = leader.events();
    let campaign = tokio::spawn(async move { standby.campaign().await.map(|won| won.token()) });
    tokio::time::sleep(Duration::from_millis(300)).await;
    match blow {
        Blow::Kill => {
            let primary = set.primary().await.unwrap();
            set.kill(primary);
        }
        Blow::Freeze => drop(set.freeze_primary().await.unwrap()),
        Blow::StepDown => drop(set.step_down().await.unwrap()),
    }
    // Past the deadline that the term had when the primary went: it was renewed by the new one.
    tokio::time::sleep(long().ttl().duration() + Duration::from_secs(4)).await;
    assert!(
        matches!(leadership.authority(), Authority::Held { .. }),
        "{blow:?}: {leadership:?}"
    );
    assert!(!campaign.is_finished(), "{blow:?}: the standby leads, too");
    let mut renewals = 0;
    while let Ok(event) = events.try_recv() {
        assert!(!matches!(event, Event::Ended { .. }), "{blow:?}: {event:?}");
        renewals += u32::from(matches!(event, Event::Renewed { .. }));
    }
    assert!(renewals >= 2, "{blow:?}: {renewals} renewals");
    campaign.abort();
}

#[tokio::test]
async fn a_killed_primary_costs_no_leadership() {
    no_term_ends_by(Blow::Kill).await;
}

#[tokio::test]
async fn a_frozen_primary_costs_no_leadership() {
    no_term_ends_by(Blow::Freeze).await;
}

#[tokio::test]
async fn a_primary_that_steps_down_costs_no_leadership() {
    no_term_ends_by(Blow::StepDown).await;
}

#[tokio::test]
async fn a_silent_connection_ends_the_term_at_its_deadline_and_the_standby_takes_over() {
    let set = ReplicaSet::start(Size::One).await.unwrap();
    let proxy = FaultProxy::mongodb(set.address(0)).unwrap();
    let leader = election(connect(&proxy.mongodb_uri()).await, "leader", short());
    let standby = election(connect(&set.uri()).await, "standby", short());
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

#[tokio::test]
async fn a_lost_reply_to_the_acquisition_costs_no_second_term() {
    let set = ReplicaSet::start(Size::One).await.unwrap();
    let proxy = FaultProxy::mongodb(set.address(0)).unwrap();
    let leader = election(connect(&proxy.mongodb_uri()).await, "leader", short());
    proxy.next_commands(1, "findAndModify", RequestFault::CutAfter);
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    assert_eq!(proxy.counts().cut_after, 1, "the reply was lost");
    assert_eq!(leadership.terms(), 1, "the same attempt found its own term");
}

/// The store has released it, and the standby leads, when the release is asked for again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_whose_answer_was_lost_is_not_told_as_a_loss() {
    let set = ReplicaSet::start(Size::One).await.unwrap();
    let proxy = FaultProxy::mongodb(set.address(0)).unwrap();
    let leader = election(connect(&proxy.mongodb_uri()).await, "leader", long());
    let standby = election(connect(&set.uri()).await, "standby", long());
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let campaign = tokio::spawn(async move { (standby.campaign().await, standby) });
    // Long enough for its first attempt: it is woken by the release.
    tokio::time::sleep(Duration::from_secs(1)).await;
    proxy.next_commands(1, "findAndModify", RequestFault::CutAfter);
    let (outcome, next) = tokio::join!(
        soon("the release", leadership.step_down()),
        soon("the take-over", campaign)
    );
    assert_eq!(proxy.counts().cut_after, 1, "the answer was lost");
    drop(next.unwrap().0.unwrap());
    // On a machine that stood still the standby comes only after the second release, which finds the first.
    let is_true = matches!(outcome, ReleaseOutcome::Unconfirmed(_) | ReleaseOutcome::Released);
    assert!(is_true, "{outcome:?}");
}

#[tokio::test]
async fn a_campaign_whose_reply_was_lost_and_which_is_withdrawn_leaves_nothing_held() {
    let set = ReplicaSet::start(Size::One).await.unwrap();
    let direct = connect(&set.uri()).await;
    // The first lease of a store leaves its mark, and would wait for the answer to that.
    let first = Election::builder("first", direct.clone())
        .timing(long())
        .build()
        .unwrap();
    drop(soon("the first", first.campaign()).await.unwrap());
    soon("closing", first.close()).await;
    let proxy = FaultProxy::mongodb(set.address(0)).unwrap();
    let store = connect(&proxy.mongodb_uri()).await;
    let leader = election(store.clone(), "leader", long());
    let name = LeaseName::new("job").unwrap();
    // Connections for the watch and the request: opening one would need an answer, too.
    let (one, two, three) = tokio::join!(store.get(&name), store.get(&name), store.get(&name));
    assert_eq!([one.unwrap(), two.unwrap(), three.unwrap()], [None, None, None]);
    // None of them is new any more.
    assert_eq!(store.get(&name).await.unwrap(), None);
    // The server applies the request and its answer never comes.
    proxy.set(Fault::HalfOpen);
    let is_held = async || {
        let lease = direct.get(&name).await.unwrap();
        lease.is_some_and(|lease| lease.occupancy() == Occupancy::Held)
    };
    let is_applied_and_unanswered = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        eventually_async(PATIENCE, "the request is applied", is_held).await;
    };
    tokio::select! {
        won = leader.campaign() => panic!("{won:?}"),
        () = is_applied_and_unanswered => {}
    }
    proxy.heal();
    soon("closing", leader.close()).await;
    let lease = direct.get(&name).await.unwrap().unwrap();
    assert_eq!(lease.occupancy(), Occupancy::Vacant, "it was found and released");
}

#[tokio::test]
async fn a_renewal_that_arrives_after_the_release_revives_nothing() {
    let set = ReplicaSet::start(Size::One).await.unwrap();
    let proxy = FaultProxy::mongodb(set.address(0)).unwrap();
    let leader = election(connect(&proxy.mongodb_uri()).await, "leader", long());
    let direct = connect(&set.uri()).await;
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let token = leadership.token();
    proxy.next_commands(
        1,
        "findAndModify",
        RequestFault::DuplicateLater(Duration::from_millis(1500)),
    );
    // The next renewal is applied now, and once more after the release.
    eventually_async(PATIENCE, "a renewal", async || proxy.faults_left() == 0).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    soon("the release", leadership.step_down()).await;
    eventually_async(PATIENCE, "the duplicate", async || proxy.counts().duplicated == 1).await;
    let lease = direct
        .get(&LeaseName::new("job").unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!((lease.occupancy(), lease.token), (Occupancy::Vacant, token));
}
