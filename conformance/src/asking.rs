//! Requests as tests write them: short, and valid without a word about it. Each panics on what a test has
//! wrong.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Attempt, Candidate, CandidateId, Fault, FencingToken, Finding, Grant, Incarnation,
    LeaseName, LeasePurge, LeaseStore, Note, PURGE_TTLS_MIN, Purge, Purging, Release, Released, Renew,
    Renewed, Ttl, Verdict,
};

/// Bits that no other test has.
#[must_use]
pub fn random_bits() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A lease's name.
///
/// # Panics
/// If it is none.
#[must_use]
pub fn name(text: &str) -> LeaseName {
    LeaseName::new(text).expect("a test gives a valid name")
}

/// A ttl in seconds.
///
/// # Panics
/// If it is out of range.
#[must_use]
pub fn seconds(seconds: u64) -> Ttl {
    Ttl::from_secs(seconds).expect("a test gives a valid ttl")
}

/// A new process that asks by its first attempt.
///
/// # Panics
/// If `lease` or `label` is no valid name.
#[must_use]
pub fn request(lease: &str, label: &str, ttl: Ttl) -> Acquire {
    let bits = (u128::from(random_bits()) << 64) | u128::from(random_bits());
    Acquire {
        name: name(lease),
        candidate: Candidate {
            id: CandidateId::new(label).expect("a test gives a valid id"),
            incarnation: Incarnation::from_bits(bits),
        },
        attempt: Attempt::FIRST,
        ttl,
        note: Note::default(),
    }
}

/// The renewal of the term that `request` was granted.
#[must_use]
pub fn renewal(request: &Acquire, token: FencingToken) -> Renew {
    Renew {
        name: request.name.clone(),
        incarnation: request.candidate.incarnation,
        token,
        attempt: request.attempt,
        ttl: request.ttl,
    }
}

/// The release of the term that `request` was granted.
#[must_use]
pub fn giving_back(request: &Acquire, token: FencingToken) -> Release {
    Release {
        name: request.name.clone(),
        incarnation: request.candidate.incarnation,
        token,
        attempt: request.attempt,
    }
}

/// The grant in an answer.
///
/// # Panics
/// If it is another answer.
#[must_use]
pub fn granted(answer: Acquired) -> Grant {
    match answer {
        Acquired::Granted(grant) => grant,
        other => panic!("not granted: {other:?}"),
    }
}

/// Asks, and is granted.
///
/// # Panics
/// If not.
pub async fn take(store: &dyn LeaseStore, request: &Acquire) -> Grant {
    granted(store.acquire(request).await.expect("the store answers"))
}

/// Gives the term back that `request` was granted.
///
/// # Panics
/// If it was no longer held.
pub async fn give_back(store: &dyn LeaseStore, request: &Acquire, token: FencingToken) {
    let released = store.release(&[giving_back(request, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
}

/// A clean-up of whatever nobody has used for a day, on one page.
#[must_use]
pub fn unused_for_a_day(purging: Purging) -> Purge {
    Purge {
        prefix: String::new(),
        after: None,
        limit: 1_000,
        unused_for: Duration::from_secs(24 * 60 * 60),
        purging,
    }
}

/// Whether the right to clean up is looked at: `writer`, who has every right but that, leaves a record that
/// nobody uses and may not remove it, and `cleaner` may.
///
/// # Panics
/// If either has the other's right.
pub async fn only_the_cleaner_cleans_up(writer: &impl LeasePurge, cleaner: &impl LeasePurge) {
    let asked = request("unused", "a", writer.traits().ttl_min);
    let token = take(writer, &asked).await.token;
    give_back(writer, &asked, token).await;
    tokio::time::sleep(asked.ttl.duration() * (PURGE_TTLS_MIN + 1) + Duration::from_millis(300)).await;
    let everything = Purge {
        prefix: asked.name.to_string(),
        after: None,
        limit: 10,
        unused_for: Duration::ZERO,
        purging: Purging::Removes,
    };
    let error = writer.purge(&everything).await.expect_err("it may not remove");
    assert_eq!(error.fault, Fault::Forbidden, "{error}");
    let purged = cleaner.purge(&everything).await.expect("it may");
    assert_eq!((purged.unused, purged.removed), (vec![asked.name.clone()], 1));
    assert_eq!(cleaner.get(&asked.name).await, Ok(None));
}

/// Takes, extends and gives back a lease of no interest, so that connections are made and scripts are known.
///
/// # Panics
/// If the store does not do as it is asked.
pub async fn warm_up(store: &dyn LeaseStore) {
    let warm = request("warm", "warm", seconds(60));
    let grant = take(store, &warm).await;
    let renewed = store.renew(&[renewal(&warm, grant.token)]).await;
    assert!(matches!(renewed[0], Ok(Renewed::Extended { .. })), "{renewed:?}");
    let released = store.release(&[giving_back(&warm, grant.token)]).await;
    assert_eq!(released[0], Ok(Released::Vacated));
}

/// What an examination says of `subject`.
///
/// # Panics
/// If it says nothing.
pub async fn finding(store: &dyn LeaseStore, subject: &str) -> Finding {
    let findings = store.examine().await.expect("it may be looked at");
    let about = findings.iter().find(|finding| finding.subject == subject);
    about
        .unwrap_or_else(|| panic!("nothing of \"{subject}\": {findings:?}"))
        .clone()
}

/// Whether an examination tells of a server's clock that is another, which `set_ahead` sets by so many
/// seconds: a fail-over to it would shift every expiry.
///
/// # Panics
/// If it does not tell, or tells the difference the wrong way round.
pub async fn another_clock_is_told_of(store: &dyn LeaseStore, set_ahead: impl Fn(f64)) {
    assert_eq!(finding(store, "clock").await.verdict, Verdict::Good);
    for seconds in [3600, -3600] {
        set_ahead(f64::from(seconds));
        let told = finding(store, "clock").await;
        assert_eq!(told.verdict, Verdict::Warning, "{told:?}");
        let ahead = told.detail.split(' ').find_map(|word| word.parse::<i32>().ok());
        let apart = ahead.expect("the difference").abs_diff(seconds * 1000);
        assert!(apart < 600_000, "{told:?}");
        assert!(told.repair.expect("the way out").contains("synchronise"));
    }
    set_ahead(0.0);
}

/// Takes these leases and gives them back.
pub async fn use_once(store: &dyn LeaseStore, leases: &[&str]) {
    for lease in leases {
        let asked = request(lease, "holder", seconds(1));
        let token = take(store, &asked).await.token;
        give_back(store, &asked, token).await;
    }
}

/// Whether a clean-up passes by the record of "b", which somebody keeps locked until `let_go`: one that
/// waited would keep the records before it locked meanwhile, and their names from who wants them. Of "a", "b"
/// and "c" nobody has used any for a day.
///
/// # Panics
/// If it waits, or removes less than it may.
pub async fn clean_up_passes_by_what_is_locked(store: &impl LeasePurge, let_go: impl Future<Output = ()>) {
    let everything = unused_for_a_day(Purging::Removes);
    let purged = store.purge(&everything).await.expect("it may remove");
    assert_eq!((purged.unused.len(), purged.removed), (3, 2), "{purged:?}");
    for lease in ["a", "c"] {
        assert_eq!(store.get(&name(lease)).await, Ok(None));
        take(store, &request(lease, "another", seconds(60))).await;
    }
    let_go.await;
    let purged = store.purge(&everything).await.expect("it may remove");
    assert_eq!((purged.unused, purged.removed), (vec![name("b")], 1));
}

/// Whether a clean-up keeps "a", which is taken again between its look and its removal, and removes "b".
///
/// # Panics
/// If it removes the other, or both.
pub async fn clean_up_keeps_what_was_taken(store: &impl LeasePurge) {
    let purged = store.purge(&unused_for_a_day(Purging::Removes)).await;
    let purged = purged.expect("it may remove");
    assert_eq!(purged.removed, 1, "{purged:?}");
    let lease = store.get(&name("a")).await.expect("a look").expect("a record");
    assert!(!lease.released, "{lease:?}");
}
