//! That a run of leader-terms notices what it is there to notice: on the model, sound and with a planted
//! defect.

use std::time::Duration;
use tenure_conformance::Subject;
use tenure_conformance::model::{Defect, FlawedSubject, ModelSubject};
use tenure_conformance::terms::{Campaign, Deployment, Process, Promise, Seen, run};

/// Memory, to which nothing happens.
struct Memory;

impl Deployment for Memory {
    fn members(&self) -> usize {
        1
    }

    fn kill(&mut self, _member: usize) {}

    async fn restart(&mut self, _member: usize) {}

    fn freeze(&mut self, _member: usize) {}

    fn thaw(&mut self, _member: usize) {}
}

/// Three hundred terms between two processes.
async fn seen_on(subject: &impl Subject) -> Seen {
    let campaign = Campaign {
        terms: 300,
        promise: Promise::Exclusion,
        ttl: Duration::from_millis(500),
        leases: 16,
        commands: &[],
        faults_per_harm: 1,
        harmed_max: 1,
        harm_time_max: Duration::ZERO,
    };
    let stores = [subject.store(), subject.other()];
    let process = |store| Process {
        store,
        ways: Vec::new(),
    };
    run(&campaign, &mut Memory, stores.map(process).into()).await
}

#[tokio::test]
async fn sound_store_is_violated_by_no_term() {
    let seen = seen_on(&ModelSubject::new()).await;
    assert_eq!(seen.violations, [""; 0]);
    assert!(
        seen.terms >= 300 && seen.renewed > 0 && seen.is_harmed,
        "{seen:?}"
    );
    assert!(
        !seen.is_good(),
        "nothing was unknown, so that nothing was shown: {seen:?}"
    );
}

#[tokio::test]
async fn token_that_is_given_twice_is_seen() {
    let seen = seen_on(&FlawedSubject::new(Defect::TokenRepeats)).await;
    assert!(
        seen.duplicate_tokens > 0 && !seen.violations.is_empty(),
        "{seen:?}"
    );
}

#[tokio::test]
async fn lease_that_is_taken_while_its_holder_believes_is_seen() {
    for defect in [Defect::ExpiryJudgedEarly, Defect::DecidedBeforeWritten] {
        let seen = seen_on(&FlawedSubject::new(defect)).await;
        let two = |violation: &&String| violation.starts_with("two believe in ");
        assert!(
            seen.violations.iter().any(|violation| two(&violation)),
            "{defect:?}: {seen:?}"
        );
    }
}

#[tokio::test]
async fn token_that_is_no_higher_than_one_before_is_seen() {
    let seen = seen_on(&FlawedSubject::new(Defect::TokenStartsAgain)).await;
    let falls = |violation: &String| violation.contains("is not above one that was given before");
    assert!(seen.violations.iter().any(falls), "{seen:?}");
}

#[tokio::test]
async fn renewal_by_a_token_that_is_over_is_seen() {
    let seen = seen_on(&FlawedSubject::new(Defect::RenewIgnoresToken)).await;
    let revived = |violation: &String| violation.ends_with("was extended when it was over");
    assert!(seen.violations.iter().any(revived), "{seen:?}");
}

#[tokio::test]
async fn release_by_a_token_that_is_over_is_seen() {
    for defect in [Defect::ReleaseIgnoresToken, Defect::BatchReleaseIgnoresToken] {
        let seen = seen_on(&FlawedSubject::new(defect)).await;
        let ended =
            |violation: &String| violation.contains("was lost") && violation.contains("before its deadline");
        assert!(seen.violations.iter().any(ended), "{defect:?}: {seen:?}");
        let vacated = |violation: &String| violation.ends_with("was given back when it was over");
        assert!(seen.violations.iter().any(vacated), "{defect:?}: {seen:?}");
    }
}
