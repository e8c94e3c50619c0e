//! Winning, leading, giving back, on a real store.

use crate::harness::counting::Counting;
use crate::harness::{LONG_BEFORE, Site, enduring_timing, long_timing, soon};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tenure::contract::{Ask, Asked, Occupancy};
use tenure::{
    Authority, CampaignError, Cause, Election, Event, LeaseName, PATIENCE_AT_DROP, Timing, TimingOptions, Ttl,
};
use tokio::sync::Semaphore;

#[tokio::test]
async fn one_leads_and_the_other_follows_when_it_steps_down() {
    let site = Site::new();
    let (first, second) = (site.election("first"), site.election("second"));
    let leadership = soon("the first campaign", first.campaign()).await.unwrap();
    assert!(matches!(leadership.authority(), Authority::Held { .. }));
    let token = leadership.token();
    let waiting = tokio::spawn(async move { (second.campaign().await, second) });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "there is only one leader");
    leadership.step_down().await;
    let (won, _second) = soon("the second campaign", waiting).await.unwrap();
    let won = won.unwrap();
    assert!(won.token() > token);
    assert_eq!(won.terms(), 2);
    let before = won.predecessor().unwrap();
    assert_eq!((before.candidate.as_str(), before.token), ("first", token));
}

#[tokio::test]
async fn a_release_wakes_the_standby_long_before_the_lease_would_end() {
    let site = Site::new();
    let (first, second) = (site.election("first"), site.election("second"));
    let leadership = soon("the first campaign", first.campaign()).await.unwrap();
    let waiting = tokio::spawn(async move { (second.campaign().await, second) });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let released_at = Instant::now();
    drop(leadership);
    let (won, _second) = soon("the second campaign", waiting).await.unwrap();
    drop(won.unwrap());
    assert!(released_at.elapsed() < LONG_BEFORE, "{:?}", released_at.elapsed());
}

#[tokio::test]
async fn a_leader_that_is_dropped_with_everything_leaves_nothing_held() {
    /// A drop that has waited for as long as it may, on a machine that stood still, proves nothing.
    const DROPS_MAX: u32 = 5;
    let site = Site::new();
    // Opened before, as that takes longer than a release.
    let (store, name) = (site.store(), LeaseName::new("job").unwrap());
    for _drop in 0..DROPS_MAX {
        let first = site.election("first");
        let leadership = soon("the campaign", first.campaign()).await.unwrap();
        drop(leadership);
        // As at the end of main: the release must have been sent before the process is gone.
        let began = Instant::now();
        drop(first);
        let waited = began.elapsed();
        let lease = store.get(&name).await.unwrap().unwrap();
        if lease.occupancy() == Occupancy::Vacant {
            return;
        }
        assert!(waited >= PATIENCE_AT_DROP, "it is held after {waited:?}");
    }
    panic!("no release was made within {PATIENCE_AT_DROP:?}");
}

/// A task that was aborted lets go of what it has a moment later, on another thread: the process may end with
/// the drop.
#[tokio::test]
async fn an_election_that_goes_while_its_leadership_is_let_go_of_leaves_nothing_held() {
    /// On a machine that stands still the other thread may come too late.
    const DROPS_MAX: u32 = 10;
    let site = Site::new();
    let (store, name) = (site.store(), LeaseName::new("job").unwrap());
    for _drop in 0..DROPS_MAX {
        let election = site.election("first");
        let leadership = soon("the campaign", election.campaign()).await.unwrap();
        let aborted = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            drop(leadership);
        });
        drop(election);
        let lease = store.get(&name).await.unwrap().unwrap();
        aborted.join().unwrap();
        if lease.occupancy() == Occupancy::Vacant {
            return;
        }
    }
    panic!("it was held whenever the election had gone");
}

/// As where a function builds it, campaigns, and answers with the leadership alone: its thread may be the
/// runtime's only one.
#[tokio::test]
async fn an_election_that_goes_before_its_leadership_does_not_wait_for_it() {
    /// On a machine that stands still one may take as long as if it had waited.
    const DROPS_MAX: u32 = 5;
    let site = Site::new();
    let waits_for_nothing = async || {
        let election = Site::election_of(site.store(), "first", long_timing());
        let leadership = soon("the campaign", election.campaign()).await.unwrap();
        let began = Instant::now();
        drop(election);
        let waited = began.elapsed();
        leadership.step_down().await;
        waited < PATIENCE_AT_DROP
    };
    for _drop in 0..DROPS_MAX {
        if waits_for_nothing().await {
            return;
        }
    }
    panic!("each waited for {PATIENCE_AT_DROP:?}");
}

#[test]
fn blocked_user_code_does_not_starve_renewals() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let site = Site::new();
        let election = Site::election_of(site.store(), "first", enduring_timing());
        let leadership = soon("the campaign", election.campaign()).await.unwrap();
        let token = leadership.token();
        // The only worker of this runtime is busy for twice the ttl.
        std::thread::sleep(2 * enduring_timing().ttl().duration());
        assert!(matches!(leadership.authority(), Authority::Held { .. }));
        assert_eq!(leadership.token(), token);
    });
}

#[tokio::test]
async fn a_withdrawn_campaign_leaves_nothing_held() {
    let site = Site::new();
    // Else a fast disk has answered before anybody can leave.
    let candidate = |id| {
        let mut store = Counting::new(site.store());
        store.delay = Duration::from_millis(2);
        Site::election_in(Arc::new(store), id)
    };
    let election = candidate("measured");
    let measured = Instant::now();
    drop(soon("the first", election.campaign()).await.unwrap());
    // From nothing to twice what a grant takes on this machine.
    let step = measured.elapsed() / 20;
    soon("closing", election.close()).await;
    let mut withdrawn = 0;
    for round in 0..40_u32 {
        let election = candidate("hasty");
        // Dropped at any moment: before, while and after the store grants.
        let campaign = tokio::time::timeout(round * step, election.campaign()).await;
        withdrawn += u32::from(campaign.is_err());
        drop(campaign);
        soon("closing", election.close()).await;
        let lease = site.record("job").await.unwrap();
        assert_eq!(lease.occupancy(), Occupancy::Vacant, "round {round}");
    }
    let terms = site.record("job").await.unwrap().terms;
    assert!(
        withdrawn > 0 && terms > 1,
        "{withdrawn} were withdrawn, {terms} granted"
    );
}

#[tokio::test]
async fn a_campaign_that_is_dropped_after_it_was_won_and_before_it_looked_leaves_nothing_held() {
    let site = Site::new();
    let election = site.election("hasty");
    let (store, name) = (site.store(), LeaseName::new("job").unwrap());
    let occupancy = async || store.get(&name).await.unwrap().map(|lease| lease.occupancy());
    let until = async |wanted| {
        while occupancy().await != Some(wanted) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    for _round in 0..10 {
        let mut campaign = Box::pin(election.campaign());
        let looked = tokio::select! {
            biased;
            // Polled once, which begins the campaign, and never again. A machine that stalls in it has it won
            // already.
            won = &mut campaign => Some(won.unwrap()),
            () = async {} => None,
        };
        if looked.is_none() {
            soon("the grant", until(Occupancy::Held)).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            drop(campaign);
            soon("the release", until(Occupancy::Vacant)).await;
            return;
        }
        drop(looked);
        soon("the release", until(Occupancy::Vacant)).await;
    }
    panic!("each campaign was won before its first look was over");
}

#[tokio::test]
async fn a_second_campaign_of_one_election_is_refused() {
    let site = Site::new();
    let election = site.election("first");
    let _leadership = soon("the campaign", election.campaign()).await.unwrap();
    assert_eq!(
        soon("the second", election.campaign()).await.unwrap_err(),
        CampaignError::Busy(election.name().clone())
    );
}

#[tokio::test]
async fn a_second_campaign_that_is_dropped_leaves_the_first_alone() {
    let site = Site::new();
    let (other, election) = (site.election("other"), Arc::new(site.election("first")));
    let leadership = soon("the other's campaign", other.campaign()).await.unwrap();
    let first = election.clone();
    let waiting = tokio::spawn(async move { first.campaign().await.map(|leadership| leadership.token()) });
    tokio::time::sleep(Duration::from_millis(100)).await;
    tokio::select! {
        biased;
        // Polled once, which begins it, and dropped, mostly before it is refused: the other thread may be as
        // quick.
        refused = election.campaign() => assert!(matches!(refused, Err(CampaignError::Busy(_)))),
        () = async {} => {}
    }
    let token = leadership.token();
    leadership.step_down().await;
    let won = soon("the first campaign", waiting).await.unwrap();
    assert!(won.unwrap() > token);
}

#[tokio::test]
async fn authority_says_that_the_term_is_being_ended_as_soon_as_it_is() {
    let site = Site::new();
    let election = site.election("first");
    let leadership = soon("the campaign", election.campaign()).await.unwrap();
    leadership.begin_to_step_down();
    assert!(matches!(leadership.authority(), Authority::Ending { .. }));
    assert!(leadership.is_ending());
    soon("the wish", leadership.interrupted()).await;
}

#[tokio::test]
async fn candidates_of_one_id_are_two_candidates_and_the_standby_is_told() {
    let site = Site::new();
    let (first, second) = (site.election("twin"), site.election("twin"));
    let _leadership = soon("the campaign", first.campaign()).await.unwrap();
    let mut events = second.events();
    let is_told =
        async { while !matches!(events.recv().await.unwrap(), Event::Standby { twin: true, .. }) {} };
    tokio::select! {
        _ = second.campaign() => panic!("both lead"),
        () = soon("the standby is told", is_told) => {}
    }
}

#[tokio::test]
async fn run_goes_back_to_campaigning_after_a_loss_and_ends_with_its_work() {
    let site = Site::new();
    let election = Site::election_of(site.store(), "first", enduring_timing());
    let starts = Arc::new(AtomicU32::new(0));
    let (counted, store) = (starts.clone(), site.store());
    let work = move |leadership: Arc<tenure::Leadership>| {
        let (start, store) = (counted.fetch_add(1, Ordering::SeqCst), store.clone());
        async move {
            if start == 0 {
                // Somebody breaks the lease; the future is dropped here and never goes on.
                let lease = store.get(leadership.name()).await.unwrap().unwrap();
                let release = tenure::contract::Release {
                    name: lease.name,
                    incarnation: lease.holder.incarnation,
                    token: lease.token,
                    attempt: lease.attempt,
                };
                store.release(&[release]).await.remove(0).unwrap();
                std::future::pending::<()>().await;
            }
            leadership.token()
        }
    };
    soon("the work", election.run(work)).await.unwrap();
    assert_eq!(starts.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn run_ends_when_the_last_who_keeps_its_term_is_gone() {
    let site = Site::new();
    let election = site.election("first");
    for _again in 0..2 {
        let is_let_go = Arc::new(AtomicBool::new(false));
        let lets_go = is_let_go.clone();
        let work = move |leadership: Arc<tenure::Leadership>| {
            let lets_go = lets_go.clone();
            async move {
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    lets_go.store(true, Ordering::SeqCst);
                    drop(leadership);
                });
            }
        };
        soon("the work", election.run(work)).await.unwrap();
        assert!(is_let_go.load(Ordering::SeqCst), "somebody still leads");
    }
}

#[tokio::test]
async fn a_holder_that_is_asked_to_step_down_hands_over() {
    let site = Site::new();
    // A renewal would tell it, too.
    let (first, second) = (site.election("first"), site.election("second"));
    let store = site.store();
    let working = tokio::spawn(async move {
        let ended: Result<(), CampaignError> = first.run(|_| std::future::pending()).await;
        ended
    });
    let name = LeaseName::new("job").unwrap();
    let token = soon("the first term", async {
        loop {
            if let Some(lease) = store.get(&name).await.unwrap() {
                break lease.token;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let waiting = tokio::spawn(async move { (second.campaign().await, second) });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let asked_at = Instant::now();
    assert_eq!(store.ask(&Ask { name, token }).await.unwrap(), Asked::Noted);
    let (won, _second) = soon("the second campaign", waiting).await.unwrap();
    assert!(won.unwrap().token() > token);
    assert!(asked_at.elapsed() < LONG_BEFORE, "the watch tells the holder");
    working.abort();
}

/// Also before it begins to watch, and long before it renews.
#[tokio::test]
async fn a_holder_that_is_asked_as_soon_as_it_leads_hears_it() {
    let site = Site::new();
    let store = site.store();
    let long = Timing::of(Ttl::from_secs(3600).unwrap());
    let builder = Election::builder("job", store.clone()).timing(long);
    let election = builder.build().unwrap();
    let leadership = soon("the campaign", election.campaign()).await.unwrap();
    let (name, token) = (LeaseName::new("job").unwrap(), leadership.token());
    assert_eq!(store.ask(&Ask { name, token }).await.unwrap(), Asked::Noted);
    soon("the wish", leadership.interrupted()).await;
}

#[tokio::test]
async fn a_stuck_worker_does_not_lead_for_ever() {
    let site = Site::new();
    let election = Election::builder("job", site.store())
        .timing(enduring_timing())
        .progress_within(Duration::from_secs(5))
        .build()
        .unwrap();
    let leadership = soon("the campaign", election.campaign()).await.unwrap();
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        leadership.progress();
    }
    assert_ne!(
        leadership.authority(),
        Authority::None,
        "progress keeps the term past its ttl"
    );
    let loss = soon("the loss", leadership.lost()).await;
    assert!(matches!(loss.cause, Cause::NoProgress(_)), "{loss}");
}

#[tokio::test]
async fn observers_see_who_leads_and_tokens_never_decrease() {
    let site = Site::new();
    let (first, second) = (site.election("first"), site.election("second"));
    let mut observer = second.observe();
    assert!(matches!(
        soon("the first look", observer.next()).await,
        tenure::Observation::Free(None)
    ));
    let mut seen = Vec::new();
    for election in [&first, &second, &first] {
        let leadership = soon("a campaign", election.campaign()).await.unwrap();
        let lease = soon("the observation", async {
            loop {
                if let tenure::Observation::Held(lease) = observer.next().await {
                    break lease;
                }
            }
        })
        .await;
        assert_eq!(lease.token, leadership.token());
        seen.push(lease.token);
        leadership.step_down().await;
    }
    assert!(seen.is_sorted() && seen.len() == 3);
}

#[tokio::test]
async fn observers_see_that_a_record_was_removed() {
    let site = Site::new();
    // The next renewal tells the leader.
    let election = |candidate| Site::election_of(site.store(), candidate, enduring_timing());
    let (first, second) = (election("first"), election("second"));
    let leadership = soon("the campaign", first.campaign()).await.unwrap();
    let mut observer = second.observe();
    let seen = soon("the first look", observer.next()).await;
    assert!(matches!(seen, tenure::Observation::Held(_)), "{seen:?}");
    let removal = rusqlite::Connection::open(site.file()).unwrap();
    removal.busy_timeout(Duration::from_secs(5)).unwrap();
    removal.execute_batch("DELETE FROM lease").unwrap();
    let seen = soon("the removal", observer.next()).await;
    assert!(matches!(seen, tenure::Observation::Free(None)), "{seen:?}");
    soon("the loss", leadership.lost()).await;
}

/// The release comes after the standby has found the lease held, and before its watch is in place: no watch
/// tells of it.
#[tokio::test]
async fn a_release_that_comes_before_the_watch_wakes_the_standby_all_the_same() {
    let spread = Duration::from_secs(75);
    let options = TimingOptions {
        spread: Some(spread),
        ..TimingOptions::new(Duration::from_secs(300))
    };
    // Whoever looked within the spread would look this soon four times in a row once in 625 times.
    for _ in 0..4 {
        let site = Site::new();
        let leadership = site.election("first").campaign().await.unwrap();
        let store = Arc::new(Counting::new(site.store()));
        store.watches.forget_permits(Semaphore::MAX_PERMITS);
        let second = Election::builder("job", store.clone())
            .candidate("second")
            .timing(options.check().unwrap());
        let second = second.build().unwrap();
        let mut events = second.events();
        let waiting = tokio::spawn(async move { (second.campaign().await.map(drop), second) });
        let standby = async { while !matches!(events.recv().await.unwrap(), Event::Standby { .. }) {} };
        soon("the lease is found held", standby).await;
        leadership.step_down().await;
        let released = Instant::now();
        store.watches.add_permits(1);
        soon("the second campaign", waiting).await.unwrap().0.unwrap();
        assert!(released.elapsed() < spread / 5, "{:?}", released.elapsed());
    }
}
