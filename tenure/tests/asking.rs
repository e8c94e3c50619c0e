//! What can be asked of elections and locks beside having them, and closing what is shared.

use crate::harness::{Site, enduring_timing, long_timing, pass_on, soon};
use std::sync::Arc;
use std::time::Duration;
use tenure::contract::{
    Acquire, Acquired, Answer, Attempt, Candidate, CandidateId, End, Fault, Incarnation, Note, Renew, Renewed,
};
use tenure::{
    CampaignError, Cause, Election, LeaseName, LeaseStore, LockError, ReleaseOutcome, SharedStore,
    StoreError, Ttl,
};

#[tokio::test]
async fn one_attempt_leads_or_says_who_does() {
    let site = Site::new();
    let (one, other) = (site.election("one"), site.election("other"));
    let leadership = soon("an answer", one.try_campaign()).await.unwrap();
    let refused = soon("an answer", other.try_campaign()).await.unwrap_err();
    let CampaignError::Held(lease) = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!(
        (lease.holder.id.as_str(), lease.token),
        ("one", leadership.token())
    );
    let said = refused.to_string();
    assert!(said.contains("lease \"job\"") && said.contains("one"), "{said}");
    // By one that leads itself.
    let busy = soon("an answer", one.try_campaign()).await.unwrap_err();
    assert!(matches!(busy, CampaignError::Busy(_)), "{busy:?}");
    assert_eq!(
        soon("the end", leadership.step_down()).await,
        ReleaseOutcome::Released
    );
    let next = soon("an answer", other.try_campaign()).await.unwrap();
    assert_eq!(next.predecessor().unwrap().candidate.as_str(), "one");
}

/// A process that died with the lock may have left its work half done.
#[tokio::test]
async fn a_lock_says_how_the_term_before_it_ended() {
    let site = Site::new();
    let died = Acquire {
        name: LeaseName::new("a").unwrap(),
        candidate: Candidate {
            id: CandidateId::new("died").unwrap(),
            incarnation: Incarnation::from_bits(7),
        },
        attempt: Attempt::FIRST,
        ttl: Ttl::MIN,
        note: Note::default(),
    };
    let taken = site.store().acquire(&died).await.unwrap();
    let Acquired::Granted(grant) = taken else {
        panic!("{taken:?}")
    };
    assert!(grant.predecessor.is_none());
    let manager = site.manager("next");
    let mut lock = soon("the lock", manager.lock("a")).await.unwrap();
    let before = lock.predecessor().expect("it is known");
    assert_eq!(
        (before.candidate.as_str(), before.token, before.end),
        ("died", grant.token, End::Expired)
    );
    soon("its release", lock.release()).await;
    let lock = soon("the lock", manager.lock("a")).await.unwrap();
    assert_eq!(lock.predecessor().map(|before| before.end), Some(End::Released));
    let first = soon("a lock", manager.lock("b")).await.unwrap();
    assert!(first.predecessor().is_none());
}

/// To the store it is a later attempt of the same holder, which gave the term before up.
#[tokio::test]
async fn whoever_comes_after_a_term_that_was_cut_off_in_the_same_process_is_told_that_it_expired() {
    const MAX_HOLD: Duration = Duration::from_secs(2);
    let site = Site::new();
    let manager = site.manager_builder("one").max_hold(MAX_HOLD).build().unwrap();
    let first = soon("the lock", manager.lock("a")).await.unwrap();
    let cut_off = soon("its end", first.guard(std::future::pending::<()>())).await;
    assert!(cut_off.is_err());
    let mut next = soon("the next", manager.lock("a")).await.unwrap();
    let before = next.predecessor().expect("it is known");
    assert_eq!((before.token, before.end), (first.token(), End::Expired));
    // What was given back is told as that, also to the next.
    soon("its release", next.release()).await;
    let last = soon("the last", manager.lock("a")).await.unwrap();
    assert_eq!(last.predecessor().map(|before| before.end), Some(End::Released));
}

/// A real store that extends what it is asked to, and of which no renewal is heard: a term ends at its
/// deadline while its record goes on.
struct Unheard {
    inner: SharedStore,
}

impl LeaseStore for Unheard {
    pass_on!(
        traits, acquire, release, ask, get, list, watch, examine, run_beside
    );

    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        Box::pin(async move {
            let answers = self.inner.renew(requests).await;
            let lost = |_| Err(StoreError::unknown(Fault::Unreachable, "the answer was lost"));
            answers.into_iter().map(lost).collect()
        })
    }
}

/// As after the longest hold: the record is still the term's when the next comes.
#[tokio::test]
async fn whoever_comes_after_a_stuck_term_or_one_past_its_deadline_is_told_that_it_expired() {
    for is_stuck in [true, false] {
        let site = Site::new();
        let unheard = Unheard { inner: site.store() };
        let mut election = Election::builder("job", Arc::new(unheard)).timing(enduring_timing());
        if is_stuck {
            // The store is asked to extend it until then.
            election = election.progress_within(Duration::from_secs(3));
        }
        let election = election.build().unwrap();
        let first = soon("a term", election.campaign()).await.unwrap();
        let loss = soon("its end", first.lost()).await;
        // A thread that is held up is late with the cause.
        let is_its_cause = match loss.cause {
            Cause::NoProgress(_) => is_stuck,
            Cause::Deadline(None) => true,
            Cause::Deadline(Some(_)) => !is_stuck,
            _ => false,
        };
        assert!(is_its_cause, "{loss}");
        let next = soon("the next", election.campaign()).await.unwrap();
        let before = next.predecessor().expect("it is known");
        assert_eq!(
            (before.token, before.end),
            (first.token(), End::Expired),
            "{loss}"
        );
    }
}

#[tokio::test]
async fn anybody_can_ask_who_holds_a_lock() {
    let site = Site::new();
    let (one, other) = (site.manager("one"), site.manager("other"));
    assert!(soon("an answer", other.holder("a")).await.unwrap().is_none());
    let mut lock = soon("the lock", one.lock("a")).await.unwrap();
    let held = soon("an answer", other.holder("a"))
        .await
        .unwrap()
        .expect("it is held");
    assert_eq!((held.holder.id.as_str(), held.token), ("one", lock.token()));
    soon("its release", lock.release()).await;
    assert!(soon("an answer", other.holder("a")).await.unwrap().is_none());
    let bad = soon("an answer", other.holder("")).await;
    assert!(matches!(bad, Err(LockError::Name(_))), "{bad:?}");
}

#[tokio::test]
async fn what_several_share_can_be_closed_and_says_so_afterwards() {
    let site = Site::new();
    let manager = Arc::new(site.manager("one"));
    let shared = manager.clone();
    soon("the end", manager.close()).await;
    let stopped = soon("an answer", shared.lock("a")).await;
    assert!(matches!(stopped, Err(LockError::Stopped(_))), "{stopped:?}");
    let election = Arc::new(
        Election::builder("job", site.store())
            .timing(long_timing())
            .build()
            .unwrap(),
    );
    let shared = election.clone();
    soon("the end", election.close()).await;
    let stopped = soon("an answer", shared.campaign()).await;
    assert!(matches!(stopped, Err(CampaignError::Stopped(_))), "{stopped:?}");
}

/// Whoever reckons with it must not go on believing.
#[tokio::test]
async fn the_end_of_a_lock_that_was_released_lies_in_the_past() {
    let site = Site::new();
    let manager = site.manager("one");
    let mut lock = soon("the lock", manager.lock("a")).await.unwrap();
    assert!(lock.until() > tenure::clock_now());
    soon("its release", lock.release()).await;
    assert!(lock.until() <= tenure::clock_now());
}
